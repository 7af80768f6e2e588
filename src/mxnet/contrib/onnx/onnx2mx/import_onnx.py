"""`GraphProto`: from the graph of an ONNX model to a Symbol with its arrays."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .... import symbol
from ....base import MXNetError
from ....ndarray import array
from . import _op_translations  # noqa: F401  (fills the table)
from .reading import stored_type
from .translator import Translator

if TYPE_CHECKING:
    from ....gluon import Block
    from ....ndarray import NDArray
    from ....symbol import Symbol


class GraphProto:
    """Imports the graph of a model that has been read.

    Parameters
    ----------
    folder : str, optional
        Where the model is, if it keeps arrays in files of their own.
    functions : sequence of onnx.FunctionProto
        The operators that the model defines itself.

    Attributes
    ----------
    arg_dict, aux_dict : dict of str to NDArray
        The arrays of the graph that was imported last.
    model_metadata : dict
        The result of `get_graph_metadata`.
    opset_version : int
        The version of ONNX's operators that it was written for.

    Example
    -------
    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in 'xy')
    >>> graph = helper.make_graph([helper.make_node('Abs', ['x'], ['y'])], 'g', [x], [y])
    >>> from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
    >>> out, args, auxs = GraphProto().from_onnx(graph, 13)
    >>> out.eval(x=mx.nd.array([-1, 2]))[0].asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, folder: str | None = None, functions: Sequence[Any] = ()):
        self._folder, self._functions = folder, functions
        self.aux_dict, self.arg_dict, self.model_metadata, self.opset_version = {}, {}, {}, 0

    def from_onnx(self, graph: Any, opset_version: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
        """Return a Symbol that computes the same as the graph.

        Parameters
        ----------
        graph : onnx.GraphProto
        opset_version : int

        Returns
        -------
        tuple of (Symbol, dict of str to NDArray, dict of str to NDArray)
            Its variables are the graph's inputs, and its arguments and auxiliary states in the two dictionaries.

        Raises
        ------
        MXNetError
            If the graph is not sound; the text names the node.
        UnsupportedFeature
            If it uses a feature that cannot be imported. It is an MXNetError and a NotImplementedError.
        """
        self.opset_version = opset_version
        self.model_metadata = self.get_graph_metadata(graph)
        translator = Translator(opset_version, self._folder, self._functions)
        outputs = translator.graph(graph)
        if not outputs:
            raise MXNetError("a graph with outputs expected, received none")
        symbols = [symbol.Symbol([translator.entry(value)]) for value in outputs]
        out = symbol.Group(symbols) if len(symbols) > 1 else symbols[0]
        arrays = translator.params
        self.arg_dict, self.aux_dict = ({name: array(arrays[name], dtype=arrays[name].dtype) for name in names if name in arrays}
                                        for names in (out.list_arguments(), out.list_auxiliary_states()))
        return out, self.arg_dict, self.aux_dict

    def get_graph_metadata(self, graph: Any) -> dict[str, Any]:
        """Return the inputs that are given when the network runs, and the outputs.

        Parameters
        ----------
        graph : onnx.GraphProto

        Returns
        -------
        dict
            ``input_tensor_data``: names, shapes and ONNX's numbers of element types; ``output_tensor_data``: names and shapes. A size that the
            file leaves open is 0.
        """
        known = {tensor.name for tensor in graph.initializer}

        def described(value):
            return value.name, tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim), value.type.tensor_type.elem_type

        return {"input_tensor_data": [described(value) for value in graph.input if value.name not in known],
                "output_tensor_data": [described(value)[:2] for value in graph.output]}

    def graph_to_gluon(self, graph: Any, ctx: Any, opset_version: int) -> Block:
        """Return a block that computes the same as the graph.

        Parameters
        ----------
        graph : onnx.GraphProto
        ctx : Context or list of Context
            Where its parameters go.
        opset_version : int

        Returns
        -------
        SymbolBlock
            It takes the graph's inputs in their order in the file. Errors as for `from_onnx`.
        """
        from ....gluon import SymbolBlock
        out, args, auxs = self.from_onnx(graph, opset_version)
        used = {*out.list_inputs()}
        inputs = []
        for name, _, number in self.model_metadata["input_tensor_data"]:
            if name not in used:
                raise MXNetError(f"nothing is computed from the input '{name}'; a block takes all of its inputs. Import the graph as a Symbol "
                                 "(import_model)")
            inputs.append(symbol.var(name, dtype=stored_type(number)))
        block = SymbolBlock(out, inputs)
        parameters = block._by_name()
        for name, value in {**args, **auxs}.items():
            parameters[name].shape = value.shape
            parameters[name]._load_init(value, ctx, cast_dtype=True, dtype_source="saved")
            if value.dtype.__name__[:5] != "float":
                parameters[name].grad_req = "null"
        return block
