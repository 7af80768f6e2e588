import pytest

from openvino_checks import check, numbers, refusal, registered_in

_GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


def _case(mode, directions, layers):
    size, width, gates = 3, 2, _GATES[mode]
    count = sum(directions * gates * size * ((width if k == 0 else size * directions) + size + 2) for k in range(layers))
    states = [numbers(layers * directions, 2, size, seed=i) for i in range(2 if mode == "lstm" else 1)]
    return [numbers(4, 2, width), numbers(count, seed=5), *states], dict(
        state_size=size, num_layers=layers, mode=mode, bidirectional=directions == 2, state_outputs=True)


CASES = {"RNN": [_case(m, d, n) for m in _GATES for d in (1, 2) for n in (1, 2)]}


@pytest.mark.parametrize("name", registered_in("nn.rnn"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    inputs, attributes = _case("lstm", 1, 1)
    assert refusal("RNN", *inputs, **attributes, lstm_state_clip_min=-1, lstm_state_clip_max=1) == "RNN: projection, clipping or lengths"
