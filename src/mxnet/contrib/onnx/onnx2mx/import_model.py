"""`import_model` and `get_model_metadata`."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ....base import MXNetError
from .import_onnx import GraphProto
from .reading import UnsupportedFeature, opset_of, read_model

if TYPE_CHECKING:
    from ....ndarray import NDArray
    from ....symbol import Symbol


@contextlib.contextmanager
def opened(model_file: str) -> Iterator[Any]:
    """Open a file; yield the model and its importer. Errors inside the ``with`` block name the file.

    Yields
    ------
    tuple of (onnx.ModelProto, GraphProto, int)
        The last is the version of ONNX's operators.
    """
    model = read_model(model_file)
    try:
        yield model, GraphProto(os.path.dirname(os.path.abspath(model_file)), model.functions), opset_of(model, model_file)
    except UnsupportedFeature as error:
        raise UnsupportedFeature(f"{os.fspath(model_file)}: {error}") from error
    except MXNetError as error:
        raise MXNetError(f"{os.fspath(model_file)}: {error}") from error
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError) as error:  # such as names that are no text
        raise MXNetError(f"{os.fspath(model_file)} is damaged: {error!r:.200}") from error


def import_model(model_file: str) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Return a Symbol and its arrays out of an ONNX file.

    Parameters
    ----------
    model_file : str or os.PathLike

    Returns
    -------
    tuple of (Symbol, dict of str to NDArray, dict of str to NDArray)
        The network, its parameters and its auxiliary states. The inputs of the file are variables of the same names.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    MXNetError
        If the file cannot be read, or is no sound model; the text names the file and the node.
    UnsupportedFeature
        If it uses a feature that cannot be imported. It is an MXNetError and a NotImplementedError.

    Example
    -------
    >>> import onnx, tempfile
    >>> x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ('batch', 2)) for name in 'xy')
    >>> weight = onnx.numpy_helper.from_array(mx.nd.array([[1, 2]]).asnumpy(), 'weight')
    >>> graph = onnx.helper.make_graph([onnx.helper.make_node('Mul', ['x', 'weight'], ['y'])], 'g', [x], [y], [weight])
    >>> path = tempfile.mkdtemp() + '/model.onnx'
    >>> onnx.save(onnx.helper.make_model(graph), path)
    >>> out, args, auxs = mx.contrib.onnx.import_model(path)
    >>> out.list_arguments(), args['weight'].shape
    (['x', 'weight'], (1, 2))
    >>> out.eval(x=mx.nd.ones((3, 2)), **args)[0].shape
    (3, 2)
    """
    with opened(model_file) as (model, graph, opset):
        return graph.from_onnx(model.graph, opset)


def get_model_metadata(model_file: str) -> dict[str, Any]:
    """Return the names, shapes and types of a network's inputs and outputs in an ONNX file.

    Parameters
    ----------
    model_file : str or os.PathLike

    Returns
    -------
    dict
        ``input_tensor_data``: a tuple of name, shape and ONNX's number of the element type for each input; ``output_tensor_data``: a tuple of name
        and shape for each output. A size that the file leaves open is 0. Errors as for `import_model`.

    Example
    -------
    >>> import onnx, tempfile
    >>> x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ('batch', 2)) for name in 'xy')
    >>> graph = onnx.helper.make_graph([onnx.helper.make_node('Abs', ['x'], ['y'])], 'g', [x], [y])
    >>> path = tempfile.mkdtemp() + '/model.onnx'
    >>> onnx.save(onnx.helper.make_model(graph), path)
    >>> mx.contrib.onnx.get_model_metadata(path)['output_tensor_data']
    [('y', (0, 2))]
    """
    with opened(model_file) as (model, graph, _):
        return graph.get_graph_metadata(model.graph)
