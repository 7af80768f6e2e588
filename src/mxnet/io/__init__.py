"""``mx.io``: data iterators.

``base``
    Batches, their descriptions, and the base class of all iterators.
``ndarray_iter``
    Batches from arrays in memory.
``wrappers``, ``background``
    Iterators that wrap other iterators, and the prefetching thread.
``native``
    The common interface of the iterators below, which MXNet implements in C++.
``mnist``, ``text``
    MNIST, CSV and LibSVM files.
``record_source``, ``augment``, ``image_record``
    Images in RecordIO files: reading records, augmenting images, assembling batches.
``detection_record``
    The same for images with boxes of objects.
``position``
    The position of an iterator, as a file of a checkpoint.
"""
from .base import DataBatch, DataDesc, DataIter
from .detection_record import ImageDetRecordIter
from .image_record import ImageRecordInt8Iter, ImageRecordIter, ImageRecordIter_v1, ImageRecordUInt8Iter, ImageRecordUInt8Iter_v1
from .mnist import MNISTIter
from .native import MXDataIter
from .ndarray_iter import NDArrayIter
from .position import load_position, save_position
from .text import CSVIter, LibSVMIter
from .wrappers import PrefetchingIter, ResizeIter

__all__ = ["CSVIter", "DataBatch", "DataDesc", "DataIter", "ImageDetRecordIter", "ImageRecordInt8Iter", "ImageRecordIter",
           "ImageRecordIter_v1", "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1", "LibSVMIter", "MNISTIter", "MXDataIter", "NDArrayIter",
           "PrefetchingIter", "ResizeIter", "load_position", "save_position"]
