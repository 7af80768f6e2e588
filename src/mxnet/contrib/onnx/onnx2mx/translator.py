"""From the nodes of an ONNX graph to those of a Symbol."""
import itertools

import numpy as np

from .... import symbol
from ....base import MXNetError
from ....ops import dtypes
from ....ops.registry import get
from ....symbol.compose import create
from ....symbol.inference import infer_node, infer_node_types
from .reading import UnsupportedFeature, element_type, read_attributes, read_tensor, stored_type
from .registry import FOLDS, TRANSLATIONS, operator_name
from .values import Value

_DEEPEST = 32  # calls of functions in functions
_LARGEST = 1 << 24  # elements of an array that importing computes


class Translator:
    """Imports one graph.

    Parameters
    ----------
    opset : int
        The version of ONNX's operators that the file was written for.
    folder : str, optional
        The file's, for arrays in files of their own.
    functions : sequence of onnx.FunctionProto
        The operators that the file defines itself.

    Attributes
    ----------
    params : dict of str to numpy.ndarray
        The arrays that became variables.
    """

    def __init__(self, opset, folder=None, functions=()):
        self.opset, self.folder = opset, folder
        self.functions = {(f.domain, f.name): f for f in functions}
        self.params, self.sources, self.inputs = {}, {}, []
        self.node_outputs, self.node_type = 0, ""  # of the node that is being imported
        self.open_inputs = []  # of a node that is computed: which inputs follow from open sizes
        self._trials, self._left_open = 1, ""
        self._shapes, self._types, self._finished = [{}], {}, [set()]
        self._made, self._names, self._scope, self._depth, self._outer = [], set(), {}, 0, None

    # -- the graph -----------------------------------------------------------------------------------------------------

    def graph(self, graph):
        """Import a graph.

        Parameters
        ----------
        graph : onnx.GraphProto

        Returns
        -------
        list of Value
            The outputs, each with an entry.

        Raises
        ------
        MXNetError
            If the graph is not sound, or asks for what cannot be imported; the text names the node.
        """
        self._refuse_unknown(graph)
        arrays = {}
        for tensor in graph.initializer:
            if not tensor.name.strip():
                raise MXNetError("an initializer has no name")
            arrays[tensor.name] = read_tensor(tensor, self.folder, f"the initializer '{tensor.name}'")
        if graph.sparse_initializer:
            raise UnsupportedFeature("the graph has sparse initializers, which cannot be imported")
        self._names.update(arrays, (value.name for value in graph.input))
        for name, sizes in self._open_sizes([value for value in graph.input if value.name not in arrays]):
            self._input(name, sizes)
        for name, array in arrays.items():
            self._scope[name] = self.array(array, name)
        self._nodes(graph.node)
        return [self._output(value) for value in graph.output]

    def _open_sizes(self, values):
        """Yield each input with its shapes, and decide on the numbers that stand for open sizes."""
        named, numbers, found = {}, _numbers(), []
        for value in values:
            kind = value.type.tensor_type
            if value.type.WhichOneof("value") not in ("tensor_type", None):
                raise UnsupportedFeature(f"the input '{value.name}' is no array ({value.type.WhichOneof('value')}), and cannot be imported")
            shape = None
            if kind.HasField("shape"):
                shape = []
                for axis, dim in enumerate(kind.shape.dim):
                    if dim.dim_value > 0:
                        shape.append((dim.dim_value, dim.dim_value))
                        continue
                    key = dim.dim_param or (value.name, axis)
                    if key not in named:
                        # Windows and strides need room; a sequence must not outgrow the table of its positions.
                        room = 64 if len(kind.shape.dim) > 3 and axis > 1 else 16 if len(kind.shape.dim) == 3 and axis == 2 else 1
                        named[key] = tuple(room * n for n in next(numbers))
                    shape.append(named[key])
            found.append((value, shape))
        if named:
            self._left_open = ", ".join(f"axis {key[1]} of '{key[0]}'" if isinstance(key, tuple) else f"{key!r}" for key in named)
            self._trials = 2
            self._shapes, self._finished = [{}, {}], [set(), set()]
        return found

    def _input(self, info, sizes):
        number = info.type.tensor_type.elem_type
        dtype = element_type(number, f"the input '{info.name}'") if number else np.dtype("float32")
        stored = stored_type(number) if number else dtype
        stored = dtype if stored is None else stored
        made = symbol.var(info.name, dtype=None if stored == np.float32 else stored)
        value = Value(info.name, entry=made._outputs[0], scalar=sizes == [], boolean=dtype.kind == "b")
        shapes = [None] * self._trials if sizes is None else [tuple(size[i] for size in sizes) or (1,) for i in range(self._trials)]
        self._declare(value.entry[0], shapes, stored)
        if stored != dtype:  # nothing computes with it
            value = self.op("Cast", value, dtype=dtype.name, is_scalar=value.scalar)
            value.name = info.name
        self._scope[info.name] = value
        self.inputs.append(info.name)
        if sizes is not None:
            self.note_sizes(value)

    def _declare(self, node, shapes, dtype):
        self._made.append(node)  # so that its id stays its own
        for known, shape in zip(self._shapes, shapes):
            known[id(node), 0] = shape
        self._types[id(node), 0] = dtypes.to_torch(dtype)

    def _output(self, info):
        value = self._scope.get(info.name)
        if value is None:
            raise MXNetError(f"the output '{info.name}' is made by no node")
        entry = self.entry(value)
        if entry[0].op is None:
            value = self.op("_copy", value)
        number = info.type.tensor_type.elem_type
        wanted = stored_type(number)
        if wanted is None and value.boolean:
            wanted = np.dtype("bool")
        if wanted is not None and self.dtype(value) not in (None, wanted):
            value = self.op("Cast", value, dtype=wanted.name)
        return value

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _refuse_unknown(self, graph):
        unknown = {}
        for node in _all_nodes(graph):
            name = operator_name(node)
            if name not in TRANSLATIONS and (node.domain, node.op_type) not in self.functions:
                unknown.setdefault(name, node.name or f"that makes '{next(iter(node.output), '')}'")
        if unknown:
            named = ", ".join(f"{operator} (node {where})" for operator, where in unknown.items())
            raise UnsupportedFeature(f"no operators here compute these of the file: {named}")

    def _nodes(self, nodes):
        for node in nodes:
            name = f"node '{node.name}'" if node.name else f"the node that makes {list(node.output)[:3]}"
            label = f"{name} ({operator_name(node)})"
            try:
                results = self._node(node)
            except UnsupportedFeature as error:
                raise UnsupportedFeature(f"{label}: {error}") from error
            except Exception as error:  # what a damaged file makes a translation stumble over
                text = str(error) if isinstance(error, MXNetError) else f"its inputs or attributes are not what the operator takes ({error!r:.200})"
                raise MXNetError(f"{label}: {text}") from error
            for name, value in itertools.zip_longest(node.output, results):
                if not name:
                    continue
                if value is None:
                    raise UnsupportedFeature(f"{label}: its output '{name}' cannot be imported")
                if name in self._scope:
                    raise MXNetError(f"{label}: '{name}' has been made before")
                value.name = value.name or name
                self._scope[name] = value

    def _node(self, node):
        inputs = []
        for name in node.input:
            if name and name not in self._scope:
                raise MXNetError(f"the input '{name}' is no input of the graph, no initializer, and made by no node before")
            inputs.append(self._scope[name] if name else None)
        attributes = read_attributes(node, self.folder, self._outer)
        operator = operator_name(node)
        used = max((i + 1 for i, name in enumerate(node.output) if name), default=0)
        if operator not in TRANSLATIONS:
            if (node.domain, node.op_type) not in self.functions:
                raise UnsupportedFeature("no operator here computes this")
            return self._call(self.functions[node.domain, node.op_type], inputs, attributes)

        def run():
            given, named = TRANSLATIONS[operator].arguments(inputs, attributes, self.array)
            self.node_outputs, self.node_type, before = used, node.op_type, len(self._made)
            results = TRANSLATIONS[operator].function(self, *given, **named)
            results = results if isinstance(results, (list, tuple)) else [results]
            if node.name and results and results[0] is not None and results[0].entry is not None:
                head = results[0].entry[0]
                if head.op is not None and any(head is new for new in self._made[before:]):
                    head.name = node.name
            return results

        folded = self._fold(operator, inputs, attributes, len(node.output))
        if folded is None:
            return run()
        for i, value in enumerate(folded):
            value.recipe = lambda i=i: run()[i]
        return folded

    def _fold(self, operator, inputs, attributes, outputs):
        """The results of a node whose inputs are known arrays; None if it has others, or is not among what is computed so."""
        rule = FOLDS.get(operator)
        if rule is None or not inputs or any(value is not None and value.arrays is None for value in inputs):
            return None
        found = []
        self.node_outputs = outputs
        self.open_inputs = [value is not None and value.array is None for value in inputs]
        for trial in range(self._trials):
            arrays = [None if value is None else value.arrays[trial] for value in inputs]
            given, named = rule.arguments(arrays, attributes, np.asarray)
            with np.errstate(all="ignore"):
                results = rule.function(self, *given, **named)
            if results is None:
                return None
            results = results if isinstance(results, (list, tuple)) else [results]
            if any(array.size > _LARGEST and array.size > max(a.size for a in arrays if a is not None) for array in results):
                return None
            found.append(results)
            if all(value is None or value.array is not None for value in inputs):  # the same in every trial
                found *= self._trials
                break
        return [Value("", list(arrays)) for arrays in zip(*found)]

    def _call(self, function, inputs, attributes):
        if self._depth >= _DEEPEST:
            raise MXNetError(f"functions call one another more than {_DEEPEST} deep")
        defaults = read_attributes(function, self.folder, None, "attribute_proto")
        outside = self._scope, self._outer, self.opset
        self._scope = dict(zip(function.input, inputs))
        self._outer = {**defaults, **attributes}
        self.opset = next((entry.version for entry in function.opset_import if entry.domain in ("", "ai.onnx")), self.opset)
        self._depth += 1
        try:
            self._nodes(function.node)
            missing = [name for name in function.output if name not in self._scope]
            if missing:
                raise MXNetError(f"the function's output '{missing[0]}' is made by no node")
            return [self._scope[name] for name in function.output]
        finally:
            self._scope, self._outer, self.opset = outside
            self._depth -= 1

    def branch(self, graph):
        """Import a graph within this one, which sees its values.

        Returns
        -------
        list of Value
        """
        outside, self._scope = self._scope, dict(self._scope)
        try:
            for tensor in graph.initializer:
                self._scope[tensor.name] = self.array(read_tensor(tensor, self.folder), tensor.name)
            self._nodes(graph.node)
            missing = [value.name for value in graph.output if value.name not in self._scope]
            if missing:
                raise MXNetError(f"the output '{missing[0]}' of a graph within it is made by no node")
            return [self._scope[value.name] for value in graph.output]
        finally:
            self._scope = outside

    # -- what translations are made of ---------------------------------------------------------------------------------

    def array(self, array, name=""):
        """A `Value` of a known array; with a name, which it keeps as a variable of the Symbol."""
        return Value(name, [np.asarray(array)] * self._trials)

    def entry(self, value):
        """The output of a node that has the value; a variable, for a known array."""
        if value.entry is not None:
            return value.entry
        array = value.array
        if array is None:
            made = value.recipe() if value.recipe is not None else None
            if made is None or made is value:
                raise UnsupportedFeature(f"the value '{value.name}' follows from sizes that the file leaves open, in a way that cannot be imported")
            value.entry, value.scalar, value.boolean = self.entry(made), made.scalar, made.boolean
            return value.entry
        if not array.size:
            raise UnsupportedFeature(f"the array '{value.name}' of shape {array.shape} has no elements")
        name = value.name or "constant"
        for number in itertools.count():
            unique = f"{name}_{number}" if number else name
            if unique not in self.params and (not number or unique not in self._names) and unique not in self.inputs:
                break
        self.params[unique] = array = array.reshape(array.shape or (1,))
        node = symbol.var(unique, shape=array.shape, dtype=None if array.dtype == np.float32 else array.dtype)._outputs[0][0]
        self._declare(node, [array.shape] * self._trials, array.dtype)
        value.scalar, value.boolean, value.entry = not value.arrays[0].shape, array.dtype.kind == "b", (node, 0)
        return value.entry

    def op(self, name, *inputs, is_scalar=False, is_boolean=False, **attributes):
        """A call of one of the operators here.

        Parameters
        ----------
        name : str
        *inputs : Value
        is_scalar, is_boolean : bool
            As `scalar` and `boolean` of `Value`.
        **attributes
            Of the operator.

        Returns
        -------
        Value, or tuple of Value if the operator has several outputs
        """
        operator = get(name)
        symbols = [symbol.Symbol([self.entry(value)]) for value in inputs]
        made = create(operator, symbols, attributes, None, operator.name.strip("_").lower())
        node = made._outputs[0][0]
        self._made.append(node)
        outputs = range(node.num_outputs())
        for known, finished in zip(self._shapes, self._finished):
            known.update(((id(node), i), None) for i in outputs)
            try:
                infer_node(node, known, finished)
            except MXNetError:
                if self._trials == 1:
                    raise
                # The numbers that stand for open sizes need not suit the network.
        self._types.update(((id(node), i), None) for i in outputs)
        infer_node_types(node, self._types)
        values = tuple(Value("", entry=(node, i), scalar=is_scalar, boolean=is_boolean) for i in outputs)
        return values[0] if len(values) == 1 else values

    def dtype(self, value):
        """The numpy type of a value when the network runs; None where that is not known."""
        if value.entry is None and value.arrays is not None:
            return value.arrays[0].dtype
        found = self._types.get((id(value.entry[0]), value.entry[1]))
        return None if found is None or dtypes.name_of(found) == "bfloat16" else np.dtype(dtypes.to_numpy(found))

    def known_shapes(self, value):
        """The value's shape for each set of sizes, as ONNX has it; None where it is not known."""
        if value.arrays is not None:
            return [array.shape for array in value.arrays]
        if value.scalar:
            return [()] * self._trials
        node, i = value.entry
        shapes = [known.get((id(node), i)) for known in self._shapes]
        return None if any(shape is None or min(shape, default=0) < 0 for shape in shapes) else shapes

    def shapes(self, value):
        """The value's shape for each set of sizes.

        Raises
        ------
        UnsupportedFeature
            If it is not known.
        """
        found = self.known_shapes(value)
        if found is None:
            remedy = f"; it leaves open {self._left_open}: write the file with numbers for them" if self._left_open else ""
            raise UnsupportedFeature(f"the shape of '{value.name or 'an intermediate value'}' must be known for this, and does not follow from what "
                                     f"the file says of its inputs{remedy}")
        return found

    def sizes(self, value):
        """The value's shape, with None for sizes that the file leaves open; errors as for `shapes`."""
        return tuple(column[0] if len(set(column)) == 1 else None for column in zip(*self.shapes(value)))

    def size(self, value, axis, what="this"):
        """One size of the value, which the file must not leave open."""
        found = self.sizes(value)[axis]
        if found is None:
            raise UnsupportedFeature(f"{what} needs the size of axis {axis} of '{value.name or 'an intermediate value'}', which the file leaves open")
        return found

    def rank(self, value):
        """How many axes ONNX has for the value; errors as for `shapes`."""
        if value.arrays is not None:
            return value.arrays[0].ndim
        if not value.scalar and value.entry is not None:  # a shape with open sizes will do
            partial = self._shapes[0].get((id(value.entry[0]), value.entry[1]))
            if partial is not None:
                return len(partial)
        return len(self.shapes(value)[0])

    def axis(self, value, axis, beyond=0):
        """An axis counted from the front.

        Parameters
        ----------
        value : Value
        axis : int
        beyond : int
            How many axes more than those of `value` there are.

        Raises
        ------
        MXNetError
            If there is no such axis.
        """
        rank = self.rank(value) + beyond
        if not -rank <= axis < rank:
            raise MXNetError(f"axis {axis} of an array of {rank} axes; expected {-rank} to {rank - 1}")
        return axis % rank if rank else 0

    def note_sizes(self, value):
        """Remember where open sizes can be read when the network runs."""
        for axis, numbers in enumerate(zip(*self.shapes(value))):
            if len(set(numbers)) > 1:
                self.sources.setdefault(numbers, (value, axis))


def _all_nodes(graph):
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            yield node
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def _numbers():
    """Pairs of numbers that stand for open sizes: primes, so that products of sizes can be told apart."""
    primes = [n for n in range(7, 1000) if all(n % m for m in range(2, 32) if m < n)]
    for i in itertools.count():
        yield (primes[2 * i], primes[2 * i + 1]) if 2 * i + 1 < len(primes) else (1009 + 2 * i, 2003 + 4 * i)
