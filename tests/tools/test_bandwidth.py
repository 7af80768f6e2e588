import pytest

from job_checks import outputs
from mxnet.tools import bandwidth

SMALL = ["--network", "mobilenet0.25", "--num-classes", "10", "--image-shape", "3,64,64", "--num-batches", "2"]


def options(*more):
    return vars(bandwidth.build_parser().parse_args([*SMALL, *more]))


@pytest.mark.parametrize("more", [["--kv-store", "local"], ["--kv-store", "device", "--cpus", "3"], ["--optimizer", "sgd"]])
def test_sums_are_right(more):
    found = bandwidth.run(**options(*more))
    assert [r.iter for r in found] == [1, 2]
    assert all(r.error < 1e-6 and r.time > 0 and r.bandwidth > 0 for r in found)


def test_compression_leaves_an_error_and_rounds_are_joined():
    found, = bandwidth.run(**options("--gc-type", "2bit", "--disp-batches", "2"))
    assert found.iter == 2 and 0.1 < found.error < 2
    assert bandwidth.run(**options("--test-results", "0"))[0].error == -1


def test_the_program_says_what_to_expect(capsys):
    assert bandwidth.main([*SMALL, "--batch-size", "2"]) == 0
    said = capsys.readouterr().out
    assert "A batch of 2 takes" in said and "% of a step" in said and "| 1024 |" in said


@pytest.mark.parametrize("wrong, said", [
    (["--image-shape", "3,64"], "three numbers such as 3,224,224"), (["--network", "nothing"], "--network nothing"),
    (["--num-batches", "0"], "at least 1, received 0")])
def test_wrong_flags_are_named(wrong, said, capsys):
    assert bandwidth.main([*SMALL, *wrong]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["dist_sync", "horovod"])
def test_two_workers(kind):
    said = outputs(f"""
        from mxnet.tools import bandwidth
        found = bandwidth.run(**vars(bandwidth.build_parser().parse_args({[*SMALL, '--cpus', '1', '--kv-store', kind]!r})))
        print(len(found), all(r.error < 1e-6 and r.bandwidth > 0 for r in found))
    """)
    assert said == [["2 True"]] * 2
