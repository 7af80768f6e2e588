"""What scaling to expect: from how long a batch takes, the size of the gradients, and the bandwidth between workers, up to 1,024 workers.

Gradients are added up by rings: each of n workers sends, and receives, ``2 (n - 1) / n`` times their size, in ``2 (n - 1)`` turns. Workers of one
machine add theirs up first, and machines then join: so many bytes leave each machine, whatever number of workers it has. What of that is not hidden
behind the computation is waited for.

The model says what was published, but for 3 points of a hundred (tests/tools/test_scaling.py): 92.98 % at 32 instances on 16 machines, from what
was measured on 8; 90 % at 256 K80 on 16 machines, from the speed of one, ResNet-152's size, 20 Gbit/s, and PCI Express.
"""
from typing import NamedTuple, Optional

from ..base import MXNetError

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Cluster(NamedTuple):
    """Workers, and what joins them.

    Parameters
    ----------
    bandwidth : float
        Bytes a second that a machine sends, and receives at the same time.
    per_machine : int
        Workers on each machine.
    local_bandwidth : float, optional
        Bytes a second between workers of one machine; that between machines if it is not given.
    latency : float
        Seconds that a turn takes, however little it carries.
    hidden : float
        Seconds of communication that pass while a batch is computed.
    """

    bandwidth: float
    per_machine: int = 1
    local_bandwidth: Optional[float] = None
    latency: float = 0.0
    hidden: float = 0.0

    def exchange(self, size: float, workers: int) -> float:
        """Seconds in which `workers` add up gradients of `size` bytes."""
        local = min(workers, self.per_machine)
        machines = -(-workers // self.per_machine)
        return (_ring(size, local, self.local_bandwidth or self.bandwidth, self.latency) + _ring(size, machines, self.bandwidth, self.latency))

    def efficiency(self, step: float, size: float, workers: int) -> float:
        """The speed of `workers` as a share of that many times one worker's.

        Parameters
        ----------
        step : float
            Seconds that one worker takes for a batch.
        size : float
            Bytes of gradients.
        workers : int

        Raises
        ------
        MXNetError
            If a number is not above 0.

        Example
        -------
        >>> from mxnet.tools.scaling import Cluster
        >>> round(Cluster(bandwidth=1.25e9).efficiency(step=0.5, size=100e6, workers=1024), 3)
        0.758
        """
        for name, value in (("step", step), ("size", size), ("workers", workers), ("bandwidth", self.bandwidth), ("per_machine", self.per_machine)):
            if not value > 0:
                raise MXNetError(f"scaling: `{name}` must be above 0, received {value}")
        return step / (step + max(0.0, self.exchange(size, workers) - self.hidden))


def _ring(size, members, bandwidth, latency):
    return 2 * (members - 1) / members * size / bandwidth + 2 * (members - 1) * latency


def bandwidth_from(efficiency: float, step: float, size: float, machines: int) -> float:
    """The bytes a second at which that many machines, of one worker each, reach an efficiency: to predict others from one measurement."""
    if not 0 < efficiency < 1 or machines < 2:
        raise MXNetError(f"scaling: an efficiency between 0 and 1 on 2 machines or more says something, received {efficiency} on {machines}")
    return 2 * (machines - 1) / machines * size / (step / efficiency - step)


def table(cluster: Cluster, step: float, size: float, batch: int = 0) -> str:
    """A table in Markdown of what to expect of 1 to 1,024 workers; with samples a second if the `batch` of a worker is given."""
    lines = ["| workers | exchange, ms | efficiency |" + (" samples/s |" if batch else ""), "| --: | --: | --: |" + (" --: |" if batch else "")]
    for workers in WORKERS:
        share = cluster.efficiency(step, size, workers)
        lines.append(f"| {workers} | {1e3 * cluster.exchange(size, workers):.1f} | {100 * share:.1f} % |"
                     + (f" {workers * batch / step * share:.1f} |" if batch else ""))
    return "\n".join(lines)
