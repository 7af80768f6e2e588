"""The last steps of the augmentation: mirroring, mean, deviation, type, layout, and the copy into the batch."""
import dataclasses
import random
import warnings
from typing import Any, Optional

import numpy as np
import torch

from ..kernels.image.transform import Cut, available, finish, table_of

TORCH_TYPES = {"float32": torch.float32, "float16": torch.float16, "uint8": torch.uint8, "int8": torch.int8}


_STDS, _RANDOM = ("std_r", "std_g", "std_b", "std_a"), ("max_random_contrast", "max_random_illumination")
# The parameters without effect for an output type, as in MXNet, which does not document it.
_LEFT_OUT = {"int8": (*_STDS, "scale", *_RANDOM),
             "uint8": ("mean_img", "mean_r", "mean_g", "mean_b", "mean_a", *_STDS, "scale", *_RANDOM)}
_NEUTRAL = {"scale": (1.0,), **dict.fromkeys(_STDS, (0.0, 1.0))}


def warn_ignored(iterator: str, dtype: str, given: dict[str, Any], applied: tuple[str, ...] = ()) -> None:
    """Warn about the `given` normalization parameters that the output type ignores; `applied` ones have an effect elsewhere."""
    named = [name for name in _LEFT_OUT.get(dtype, ()) if name not in applied and given[name] not in _NEUTRAL.get(name, ("", 0.0))]
    if named:
        warnings.warn(f"{iterator} with dtype={dtype} does not apply {', '.join(named)}", stacklevel=5)


@dataclasses.dataclass
class Normalizer:
    """Writes images (BGR) into output arrays (RGB).

    The fields are parameters of `ImageRecordIter`; `mean`, `std` are (r, g, b, a).
    """

    dtype: str
    channels: int
    mean: tuple
    std: tuple
    scale: float
    mirror: bool
    rand_mirror: bool
    max_random_contrast: float
    max_random_illumination: float
    layout: str = "NCHW"
    mean_image: Optional[np.ndarray] = None

    def __post_init__(self) -> None:
        self._varying = self.dtype in ("float32", "float16") and bool(self.max_random_contrast or self.max_random_illumination)
        self._table = self._make_table(1.0, 0.0)
        self._has_kernel = available()

    @property
    def is_random(self) -> bool:
        """True if the result is random."""
        return self.rand_mirror or self._varying

    @property
    def fuses(self) -> bool:
        """True if it accepts a `Cut` of an image, instead of a resized and cropped image."""
        return (self.mean_image is None or self.dtype == "uint8") and self._has_kernel

    def _factors(self, contrast: float, illumination: float) -> list[tuple[np.floating, np.floating]]:
        f = np.float32
        return [(f(contrast * self.scale) / f(std), f(illumination * self.scale) / f(std)) for std in self.std[:self.channels]]

    def _make_table(self, contrast: float, illumination: float) -> torch.Tensor:
        """Return the look-up table of the 256 pixel values for each output channel."""
        values = np.arange(256, dtype=np.float32)
        if self.dtype == "uint8":
            rows = [values] * self.channels
        elif self.dtype == "int8":
            # Rounds half away from zero, as C does.
            means = [np.sign(mean) * np.floor(abs(mean) + 0.5) for mean in self.mean[:self.channels]]
            rows = [np.clip(values - mean, -128, 127) for mean in means]
        else:
            rows = [(values - np.float32(mean)) * factor + offset
                    for mean, (factor, offset) in zip(self.mean, self._factors(contrast, illumination), strict=False)]
        with np.errstate(over="ignore"):  # infinite in float16
            return table_of(np.stack(rows).astype(self.dtype))

    def __call__(self, image: np.ndarray, out: torch.Tensor, rng: random.Random, flat: torch.Tensor, cut: Optional[Cut] = None) -> None:
        """Write `image`, or its part `cut`, into `out`; `flat` has its bytes (see `Decoder.flat`)."""
        mirrored = (self.rand_mirror and rng.random() < 0.5) or self.mirror
        contrast, illumination = 1.0, 0.0
        if self._varying:
            contrast = 1 + rng.uniform(-self.max_random_contrast, self.max_random_contrast)
            illumination = rng.uniform(-self.max_random_illumination, self.max_random_illumination)
        if self.mean_image is not None and self.dtype != "uint8":
            self._subtract_mean_image(image, self.mean_image, out, mirrored, contrast, illumination)
            return
        table = self._make_table(contrast, illumination) if self._varying else self._table
        pixels = self.layout == "NHWC"
        if self.fuses:
            height, width = image.shape[:2]
            cut = cut or Cut(height, width, 0, 0, height, width, height, width, 0, 0)
            finish(flat, cut._replace(mirrored=mirrored, reversed=self.channels > 1), table, out, pixels)
            return
        planes = self._planes(image, mirrored)
        for channel in range(self.channels):
            target = out[:, :, channel] if pixels else out[channel]
            target.numpy()[:] = table[channel].numpy()[planes[channel]]

    def _planes(self, image: np.ndarray, mirrored: bool) -> np.ndarray:
        """Return the image with its channels first, in RGB order."""
        planes = image[None] if self.channels == 1 else image.transpose(2, 0, 1)[[2, 1, 0, 3][:self.channels]]
        return planes[:, :, ::-1] if mirrored else planes

    def _subtract_mean_image(self, image: np.ndarray, mean: np.ndarray, out: torch.Tensor, mirrored: bool, contrast: float,
                             illumination: float) -> None:
        planes = self._planes(image, mirrored=False)
        if self.dtype == "int8":
            result = np.clip(planes.astype(np.int16) - np.rint(mean), -128, 127)
        else:
            result = planes - mean
            for channel, (factor, offset) in enumerate(self._factors(contrast, illumination)):
                result[channel] *= factor
                result[channel] += offset
        if mirrored:
            result = result[:, :, ::-1]
        out.numpy()[:] = result.transpose(1, 2, 0) if self.layout == "NHWC" else result
