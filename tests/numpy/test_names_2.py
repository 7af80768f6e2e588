import importlib.util
import pathlib

_spec = importlib.util.spec_from_file_location("check_names_2", pathlib.Path(__file__).parent / "check_names_2.py")
check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check)


def test_the_names_of_mxnet_2_are_here():
    gaps, total = check.missing()
    assert total > 530
    assert 1 - len(gaps) / total >= 0.98, sorted(gaps)
    assert set(gaps) <= set(check.ABSENT), {path: what for path, what in gaps.items() if path not in check.ABSENT}


def test_what_is_said_to_be_absent_is():
    assert set(check.ABSENT) <= set(check.missing()[0])


def test_parameters_and_members_count():
    assert check.lacks("mxnet.numpy.f", lambda a, b: 0, {"kind": "function", "params": ["a", "b", "c="]}) == "c"
    assert check.lacks("mxnet.numpy.f", lambda a, ctx=None: 0, {"kind": "function", "params": ["a", "device="]}) == ""
    assert check.lacks("mxnet.numpy.diag", lambda array, k: 0, {"kind": "function", "params": ["v", "k="]}) == ""
    assert check.lacks("mxnet.numpy.C", int, {"kind": "class", "members": ["bit_length", "bits"]}) == "bits"
