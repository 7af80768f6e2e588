"""Predict the scaling of up to 1,024 workers from the time of a batch, the size of the gradients, and the bandwidth between workers.

``python -m mxnet.tools.scaling --step 0.5 --size 100 --bandwidth 1.25`` prints a table; ``mxnet.tools.bandwidth`` measures these three numbers.

The model is a ring all-reduce: each of n workers sends, and receives, ``2 (n - 1) / n`` times the size of the gradients, in ``2 (n - 1)`` steps.
The workers of one machine reduce first, and machines follow: the bytes that leave a machine do not depend on its number of workers. A step waits
for the communication that does not overlap with the computation.

The predictions agree with published results within 3 percentage points (tests/tools/test_scaling.py): 92.98 % at 32 instances on 16 machines, from
the measurement on 8; 90 % at 256 K80 on 16 machines, from the speed of one, ResNet-152's size, 20 Gbit/s, and PCI Express. Those of MLPerf 0.6 with
MXNet on 512 and 1,536 GPUs follow within 5 points from the one on 1,040, which determines `overhead`; docs/scaling.md has the table.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Optional

from ..base import MXNetError
from .command import command, parser

if TYPE_CHECKING:
    import argparse

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Cluster(NamedTuple):
    """A cluster of workers and its network.

    Parameters
    ----------
    bandwidth : float
        Bytes a second that a machine can send, and receive at the same time.
    per_machine : int
        Workers on each machine.
    local_bandwidth : float, optional
        Bytes a second between workers of one machine; by default `bandwidth`.
    latency : float
        Seconds of a step, independent of its size.
    hidden : float
        Seconds of communication that overlap with the computation of a batch.
    overhead : float
        Seconds that a step takes longer on several workers, however many: small batches compute less efficiently, and all wait for the slowest.
    """

    bandwidth: float
    per_machine: int = 1
    local_bandwidth: Optional[float] = None
    latency: float = 0.0
    hidden: float = 0.0
    overhead: float = 0.0

    def exchange(self, size: float, workers: int) -> float:
        """Return the time in seconds for an all-reduce of gradients of `size` bytes over `workers`."""
        local = min(workers, self.per_machine)
        machines = -(-workers // self.per_machine)
        return (_ring(size, local, self.local_bandwidth or self.bandwidth, self.latency) + _ring(size, machines, self.bandwidth, self.latency))

    def efficiency(self, step: float, size: float, workers: int) -> float:
        """Return the parallel efficiency of `workers`: their speed-up over one worker, divided by their number.

        Parameters
        ----------
        step : float
            Seconds of a batch on one worker.
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
        longer = self.overhead if workers > 1 else 0.0
        return step / (step + longer + max(0.0, self.exchange(size, workers) - self.hidden))


def _ring(size, members, bandwidth, latency):
    return 2 * (members - 1) / members * size / bandwidth + 2 * (members - 1) * latency


def bandwidth_from(efficiency: float, step: float, size: float, machines: int) -> float:
    """Return the bandwidth in bytes a second that explains a measured efficiency of `machines` with one worker each, for further predictions."""
    if not 0 < efficiency < 1 or machines < 2:
        raise MXNetError(f"scaling: an efficiency between 0 and 1 on 2 machines or more says something, received {efficiency} on {machines}")
    return 2 * (machines - 1) / machines * size / (step / efficiency - step)


def table(cluster: Cluster, step: float, size: float, batch: int = 0) -> str:
    """Return a Markdown table of predictions for 1 to 1,024 workers; with samples a second if the `batch` of a worker is given."""
    lines = ["| workers | exchange, ms | efficiency |" + (" samples/s |" if batch else ""), "| --: | --: | --: |" + (" --: |" if batch else "")]
    for workers in WORKERS:
        share = cluster.efficiency(step, size, workers)
        lines.append(f"| {workers} | {1e3 * cluster.exchange(size, workers):.1f} | {100 * share:.1f} % |"
                     + (f" {workers * batch / step * share:.1f} |" if batch else ""))
    return "\n".join(lines)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("scaling", "The model is a ring all-reduce. The command `bandwidth` measures the three numbers that it needs.")
    p.add_argument("--step", type=float, required=True, metavar="S", help="seconds that a worker computes for a batch")
    p.add_argument("--size", type=float, required=True, metavar="MB", help="size of the gradients; 4 bytes for each float32 parameter")
    p.add_argument("--bandwidth", type=float, required=True, metavar="GB/S", help="between machines, in each direction")
    p.add_argument("--per-machine", type=int, default=1, help="workers on each machine")
    p.add_argument("--local-bandwidth", type=float, metavar="GB/S", help="between workers of one machine; by default the one between machines")
    p.add_argument("--latency", type=float, default=0.0, metavar="S", help="seconds of one message of any size")
    p.add_argument("--hidden", type=float, default=0.0, metavar="S", help="seconds of communication that overlap with the computation")
    p.add_argument("--overhead", type=float, default=0.0, metavar="S", help="seconds that a step takes longer on several workers, however many")
    p.add_argument("--batch-size", type=int, default=0, help="samples of a worker's batch, for a column of samples a second")
    return p


@command
def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the program; return the exit status."""
    args = build_parser().parse_args(argv)
    local = None if args.local_bandwidth is None else args.local_bandwidth * 1e9
    try:
        cluster = Cluster(args.bandwidth * 1e9, args.per_machine, local, args.latency, args.hidden, args.overhead)
        print(table(cluster, args.step, args.size * 1e6, args.batch_size))
    except MXNetError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
