import pytest

from mxnet import MXNetError
from mxnet.tools import scaling
from mxnet.tools.scaling import Cluster


def test_the_published_scaling_of_32_instances_follows_from_that_of_8():
    # Two instances on each machine, ResNet-50: 93.31 % on 4 machines, 92.98 % on 16.
    bandwidth = scaling.bandwidth_from(0.9331, 1, 100e6, 4)
    cluster = Cluster(bandwidth, per_machine=2, local_bandwidth=1e12)
    assert 100 * cluster.efficiency(1, 100e6, 8) == pytest.approx(93.31, abs=0.05)
    assert 100 * cluster.efficiency(1, 100e6, 16) == pytest.approx(92.65, abs=1)
    assert 100 * cluster.efficiency(1, 100e6, 32) == pytest.approx(92.98, abs=2)


def test_the_published_90_percent_of_256_k80():
    # ResNet-152 (240 MB) at 20.08 images/s and batch 32 on each of 16 GPUs of 16 machines, 20 Gbit/s between these, PCI Express within.
    cluster = Cluster(20e9 / 8, per_machine=16, local_bandwidth=10e9)
    assert 100 * cluster.efficiency(32 / 20.08, 240e6, 256) == pytest.approx(90, abs=4)


def test_mlperf_with_mxnet():
    # Images/s of a GPU in one machine, and of all GPUs, in the logs of MLPerf Training 0.6 (NVIDIA, ResNet-50, 16-bit gradients of 51 MB).
    def cluster(per_machine, bandwidth, overhead):
        return Cluster(bandwidth, per_machine, 120e9, overhead=overhead)

    step = 52 / 1402.8
    overhead = 52 * 1040 / 1147047 - step - cluster(8, 50e9, 0).exchange(51.1e6, 1040)  # 130 DGX-1
    assert overhead == pytest.approx(0.0073, abs=1e-4)
    assert 100 * cluster(16, 100e9, overhead).efficiency(65 / 1541, 51.1e6, 512) == pytest.approx(80.3, abs=3)
    assert 100 * cluster(16, 100e9, overhead).efficiency(39 / 1541, 51.1e6, 1536) == pytest.approx(69.0, abs=5)
    assert cluster(16, 100e9, overhead).efficiency(1, 51.1e6, 1) == 1


@pytest.mark.parametrize("workers, exchange", [(1, 0), (2, 1), (4, 1.5), (1024, 2 * 1023 / 1024)])
def test_a_ring_sends_twice_the_size_at_most(workers, exchange):
    assert Cluster(1e6).exchange(1e6, workers) == pytest.approx(exchange)
    assert Cluster(1e6).efficiency(2, 1e6, workers) == pytest.approx(2 / (2 + exchange))


def test_what_is_hidden_is_not_waited_for_and_turns_take_time():
    assert Cluster(1e6, hidden=1.2).efficiency(2, 1e6, 4) == pytest.approx(2 / 2.3)
    assert Cluster(1e6, hidden=5).efficiency(2, 1e6, 1024) == 1
    assert Cluster(1e6, latency=0.1).exchange(1e6, 4) == pytest.approx(1.5 + 0.6)
    assert Cluster(1e6, per_machine=2, local_bandwidth=1e7).exchange(1e6, 4) == pytest.approx(0.1 + 1)


def test_numbers_that_say_nothing_are_refused():
    with pytest.raises(MXNetError, match="`step` must be above 0, received 0"):
        Cluster(1).efficiency(0, 1, 1)
    with pytest.raises(MXNetError, match="between 0 and 1 on 2 machines"):
        scaling.bandwidth_from(1, 1, 1, 2)


def test_table():
    lines = scaling.table(Cluster(1e6), 1, 1e6, 10).splitlines()
    assert lines[0] == "| workers | exchange, ms | efficiency | samples/s |" and len(lines) == 13
    assert lines[3] == "| 2 | 1000.0 | 50.0 % | 10.0 |"


def test_the_program_prints_the_table(capsys):
    assert scaling.main(["--step", "0.5", "--size", "100", "--bandwidth", "1.25", "--batch-size", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| workers | exchange, ms | efficiency | samples/s |" and lines[-1] == "| 1024 | 159.8 | 75.8 % | 49660.2 |"


def test_the_program_refuses_what_is_not_above_zero(capsys):
    assert scaling.main(["--step", "0", "--size", "100", "--bandwidth", "1.25"]) == 1
    assert capsys.readouterr().err == "scaling: `step` must be above 0, received 0.0\n"
