# Made by scripts/make_stubs.py; do not edit.
# mypy: disable-error-code="override, misc"
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload
import numpy as _numpy

from ..image.augment import Augmenter as Augmenter
from ..image.augment import BrightnessJitterAug as BrightnessJitterAug
from ..image.augment import CastAug as CastAug
from ..image.augment import CenterCropAug as CenterCropAug
from ..image.augment import ColorJitterAug as ColorJitterAug
from ..image.augment import ColorNormalizeAug as ColorNormalizeAug
from ..image.augment import ContrastJitterAug as ContrastJitterAug
from ..image.augment import CreateAugmenter as CreateAugmenter
from ..image.augment import ForceResizeAug as ForceResizeAug
from ..image.augment import HorizontalFlipAug as HorizontalFlipAug
from ..image.augment import HueJitterAug as HueJitterAug
from ..image.augment import LightingAug as LightingAug
from ..image.augment import RandomCropAug as RandomCropAug
from ..image.augment import RandomGrayAug as RandomGrayAug
from ..image.augment import RandomOrderAug as RandomOrderAug
from ..image.augment import RandomSizedCropAug as RandomSizedCropAug
from ..image.augment import ResizeAug as ResizeAug
from ..image.augment import SaturationJitterAug as SaturationJitterAug
from ..image.augment import SequentialAug as SequentialAug
from ..image.detection import CreateDetAugmenter as CreateDetAugmenter
from ..image.detection import CreateMultiRandCropAugmenter as CreateMultiRandCropAugmenter
from ..image.detection import DetAugmenter as DetAugmenter
from ..image.detection import DetBorrowAug as DetBorrowAug
from ..image.detection import DetHorizontalFlipAug as DetHorizontalFlipAug
from ..image.detection import DetRandomCropAug as DetRandomCropAug
from ..image.detection import DetRandomPadAug as DetRandomPadAug
from ..image.detection import DetRandomSelectAug as DetRandomSelectAug
from ..image.detection import ImageDetIter as ImageDetIter
from ..image.image import center_crop as center_crop
from ..image.image import color_normalize as color_normalize
from ..image.image import copyMakeBorder as copyMakeBorder
from ..image.image import fixed_crop as fixed_crop
from ..image.image import imdecode as imdecode
from ..image.image import imread as imread
from ..image.image import imresize as imresize
from ..image.image import imrotate as imrotate
from ..image.image import random_crop as random_crop
from ..image.image import random_rotate as random_rotate
from ..image.image import random_size_crop as random_size_crop
from ..image.image import resize_short as resize_short
from ..image.image import scale_down as scale_down
from ..image.image_iter import ImageIter as ImageIter
from ..numpy.multiarray import ndarray as ndarray
from typing import Any as Any

_Number: TypeAlias = float | _numpy.number[Any] | _numpy.bool_
_Int: TypeAlias = int | _numpy.integer[Any]
_Sizes: TypeAlias = int | _numpy.integer[Any] | _numpy.ndarray | Sequence[int | None] | Sequence[int | _numpy.integer[Any]]
_Flag: TypeAlias = bool | Literal[0, 1]

def adjust_lighting(data: ndarray, alpha: _Number | Sequence[_Number], out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def crop(data: ndarray, x: _Int, y: _Int, width: _Int, height: _Int, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def flip_left_right(data: ndarray, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def flip_top_bottom(data: ndarray, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def normalize(data: ndarray, mean: _Number | Sequence[_Number] = ..., std: _Number | Sequence[_Number] = ..., out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_brightness(data: ndarray, min_factor: _Number, max_factor: _Number, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_color_jitter(data: ndarray, brightness: _Number, contrast: _Number, saturation: _Number, hue: _Number, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_contrast(data: ndarray, min_factor: _Number, max_factor: _Number, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_flip_left_right(data: ndarray, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_flip_top_bottom(data: ndarray, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_hue(data: ndarray, min_factor: _Number, max_factor: _Number, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_lighting(data: ndarray, alpha_std: _Number = ..., out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def random_saturation(data: ndarray, min_factor: _Number, max_factor: _Number, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def resize(data: ndarray, size: _Sizes = ..., keep_ratio: _Flag = ..., interp: _Int = ..., out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
def to_tensor(data: ndarray, out: ndarray | None = ..., name: str | None = ...) -> ndarray: ...
