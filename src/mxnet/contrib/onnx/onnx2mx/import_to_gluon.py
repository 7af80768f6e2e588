"""`import_to_gluon`."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .import_model import opened

if TYPE_CHECKING:
    from ....gluon import Block


def import_to_gluon(model_file: str, ctx: Any = None) -> Block:
    """Return a Gluon block out of an ONNX file.

    Parameters
    ----------
    model_file : str or os.PathLike
    ctx : Context or list of Context, optional
        Where its parameters go; the CPU by default.

    Returns
    -------
    SymbolBlock
        It takes the inputs of the file in their order there. Errors as for `import_model`.

    Example
    -------
    >>> import onnx, tempfile
    >>> x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (2,)) for name in 'xy')
    >>> graph = onnx.helper.make_graph([onnx.helper.make_node('Neg', ['x'], ['y'])], 'g', [x], [y])
    >>> path = tempfile.mkdtemp() + '/model.onnx'
    >>> onnx.save(onnx.helper.make_model(graph), path)
    >>> net = mx.contrib.onnx.import_to_gluon(path, mx.cpu())
    >>> net(mx.nd.array([1, 2])).asnumpy()
    array([-1., -2.], dtype=float32)
    """
    with opened(model_file) as (model, graph, opset):
        return graph.graph_to_gluon(model.graph, ctx, opset)
