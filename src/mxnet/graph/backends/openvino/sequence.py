"""Operators on sequences in OpenVINO, for sequences of full length."""
from .conversion import Call, Value, converts
from .shape.repeating import reversed_along
from .shape.slicing import strided


@converts("SequenceMask", "SequenceReverse", "SequenceLast")
def sequence(call: Call, data: Value, *lengths: Value) -> Value:
    if call.use_sequence_length:
        call.refuse("lengths")
    axis = call.axis(call.attributes.get("axis", 0))
    if call.name == "SequenceMask":
        return data
    if call.name == "SequenceReverse":
        return reversed_along(call, data, [axis])
    size = call.shape[axis]
    return call.reshape(strided(call, data, [size - 1], [size], [1], [axis]), call.out_shape)
