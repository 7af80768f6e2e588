"""Decoding, resizing and padding of images on the CPU by OpenCV."""
import torch

from ... import opencv
from ...base import MXNetError
from ...image_header import decode
from ..dtypes import name_of, same_type
from ..registry import op
from ..schema import AtLeast0, Device, Floats
from ..shapes import unify
from .common import require_image

_BORDER_CONSTANT, _BORDER_ISOLATED = 0, 16  # OpenCV's
_CV2_TYPES = (torch.uint8, torch.int16, torch.float32, torch.float64)


def cv2_resize(image: torch.Tensor, height: int, width: int, interp: int, operator: str) -> torch.Tensor:
    """One (H, W, C) image on the CPU, resized by OpenCV as MXNet does."""
    cv2 = opencv.load()
    if image.dtype not in _CV2_TYPES and (image.dtype != torch.int32 or interp != cv2.INTER_NEAREST):
        raise MXNetError(f"{operator}: expected an image of type uint8, int16, float32 or float64 (with interp=0 int32, too), received "
                         f"{name_of(image.dtype)}; convert with astype")
    if not 0 <= interp <= 5:
        raise MXNetError(f"{operator}: `interp` must be one of OpenCV's methods 0 to 5, received {interp}")
    resized = cv2.resize(image.detach().numpy(), (width, height), interpolation=interp)
    return torch.from_numpy(resized).reshape(height, width, image.shape[-1])


def _decode(encoded, flag, to_rgb, what):
    cv2 = opencv.load()
    image = decode(encoded, cv2.IMREAD_COLOR if flag else cv2.IMREAD_GRAYSCALE, what)
    if image is None:
        raise MXNetError(f"Decoding failed. Invalid image file: {what} is not an image that OpenCV reads")
    if flag and to_rgb:
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return torch.from_numpy(image).reshape(*image.shape[:2], -1)


@op("_cvimdecode", aliases=("_npi_cvimdecode",), data_dependent_shape=True)
def cvimdecode(buf, *, flag: AtLeast0 = 1, to_rgb: bool = True):
    """The image in the bytes `buf` of a file, as uint8 (H, W, C): in colour (RGB, or BGR without `to_rgb`), or gray with flag=0.

    Programs call it as ``mx.image.imdecode``.

    Raises
    ------
    MXNetError
        If `buf` is not of type uint8, or holds no image that OpenCV reads, or one of more than ``MXNET_IMAGE_MAX_PIXELS`` pixels.

    Example
    -------
    >>> buf = mx.nd.array(list(b"P6 1 1 255 " + bytes([255, 128, 0])), dtype="uint8")    # a file in the PPM format: one orange pixel
    >>> mx.image.imdecode(buf).asnumpy()
    array([[[255, 128,   0]]], dtype=uint8)
    """
    if buf.dtype != torch.uint8:
        raise MXNetError(f"imdecode: input needs to be uint8 buffer, received {name_of(buf.dtype)}")
    return _decode(buf.cpu().numpy().reshape(-1), flag, to_rgb, f"a buffer of {buf.numel()} bytes").to(buf.device)


@op("_cvimread", aliases=("_npi_cvimread",))
def cvimread(*, filename: str, flag: int = 1, to_rgb: bool = True, device: Device = None):
    """The image in a file, as `_cvimdecode` gives it. Programs call it as ``mx.image.imread``.

    Raises
    ------
    MXNetError
        If there is no such file, or it is no image that OpenCV reads.

    Example
    -------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "orange.ppm")
    ...     with open(path, "wb") as file:
    ...         count = file.write(b"P6 1 1 255 " + bytes([255, 128, 0]))
    ...     mx.image.imread(path).asnumpy()
    array([[[255, 128,   0]]], dtype=uint8)
    """
    import numpy as np
    try:
        encoded = np.fromfile(filename, dtype=np.uint8)
    except OSError as error:
        raise MXNetError(f"imread: '{filename}' couldn't open file: {error.strerror or error}") from None
    image = _decode(encoded, flag, to_rgb, f"'{filename}'")
    return image if device is None else image.to(device)


@op("_imdecode")
def imdecode_file(mean, *, index: int, x0: int, y0: int, x1: int, y1: int, c: int, size: int):
    """Raise an error: the form of ``mx.nd.imdecode`` in files of old graphs cannot run, as a graph holds no image's bytes."""
    raise MXNetError(f"_imdecode: the {size} bytes of the image are not among the inputs of a graph; decode with mx.nd.imdecode or "
                     "mx.image.imdecode, and pass the array")


def _unknown_image(in_shapes, out_shapes, **_):
    return in_shapes, [unify(out_shapes[0], (-1, -1, -1))]


for _operator in (cvimdecode, cvimread):
    _operator.shape_rule(_unknown_image)

    @_operator.dtype_rule
    def _(in_types, out_types, **_):
        return [torch.uint8] * len(in_types), [torch.uint8]


@op("_cvimresize", aliases=("_npi_cvimresize",))
def cvimresize(src, *, w: int, h: int, interp: int = 1):
    """Resize an image (H, W, C) to width `w` and height `h`, by OpenCV's method `interp`. Programs call it as ``mx.image.imresize``.

    Raises
    ------
    MXNetError
        If `src` is not 3-D, a size is below 1, or OpenCV takes no such type or method.

    Example
    -------
    >>> mx.image.imresize(mx.nd.array([[[0], [4]]]), w=4, h=1).asnumpy().ravel()
    array([0., 1., 3., 4.], dtype=float32)
    """
    require_image("imresize", src)
    if w < 1 or h < 1:
        raise MXNetError(f"imresize: w and h should be greater equal to 1, received w={w}, h={h}")
    return cv2_resize(src.cpu(), h, w, interp, "imresize").to(src.device)


@cvimresize.shape_rule
def _(in_shapes, out_shapes, *, w, h, interp):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) == 3:
        out = unify(out, (h, w, data[2]))
    return [data], [out]


cvimresize.dtype_rule(same_type)


@op("_cvcopyMakeBorder")
def cv_copy_make_border(src, *, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0, values: Floats = ()):
    """Put a border around an image (H, W, C): of OpenCV's border `type`, filled with `values` for each channel, or `value` for the first three.

    Programs call it as ``mx.image.copyMakeBorder``.

    Raises
    ------
    MXNetError
        If `src` is not 3-D, is of type int64 or bool, or is empty where the border is to repeat its pixels.

    Example
    -------
    >>> mx.image.copyMakeBorder(mx.nd.array([[[7]]]), top=0, bot=1, left=1, right=1, value=5)[:, :, 0].asnumpy()
    array([[5., 7., 5.],
           [5., 5., 5.]], dtype=float32)
    """
    require_image("copyMakeBorder", src)
    if type & ~_BORDER_ISOLATED != _BORDER_CONSTANT and not src.numel():  # OpenCV would loop forever
        raise MXNetError(f"copyMakeBorder: an image of shape {tuple(src.shape)} has no pixels that a border of type {type} could repeat")
    if src.dtype in (torch.int64, torch.bool):  # cv2 would return another type
        raise MXNetError(f"copyMakeBorder: OpenCV has no images of type {name_of(src.dtype)}; convert with astype")
    if src.is_meta:  # inference does not load OpenCV
        return src.new_empty((src.shape[0] + top + bot, src.shape[1] + left + right, src.shape[2]))
    fill = tuple(values) or (value, value, value, 0)
    bordered = opencv.load().copyMakeBorder(src.detach().cpu().numpy(), top, bot, left, right, type, value=fill)
    return torch.from_numpy(bordered).reshape(bordered.shape[0], bordered.shape[1], src.shape[2]).to(src.device)


@cv_copy_make_border.shape_rule
def _(in_shapes, out_shapes, *, top, bot, left, right, **_):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) == 3:
        out = unify(out, (data[0] + top + bot if data[0] >= 0 else -1, data[1] + left + right if data[1] >= 0 else -1, data[2]))
    return [data], [out]


cv_copy_make_border.dtype_rule(same_type)
