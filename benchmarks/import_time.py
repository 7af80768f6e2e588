"""Measure `import mxnet` and `import torch`, in fresh processes, interleaved.

    python benchmarks/import_time.py --mxnet-python /opt/oracle/bin/python
"""
import argparse

from harness import common

_TIMED = "import time\nt = time.perf_counter()\nimport {module}\nprint(time.perf_counter() - t)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser)
    args = parser.parse_args()
    own, env = common.own_python(), common.python_env()

    def seconds(python, module, env):
        out = common.run(python, _TIMED.format(module=module), env)
        return float(out) if out else None

    medians = common.interleave({
        "import torch": lambda: seconds(own, "torch", env),
        "import mxnet (Remex)": lambda: seconds(own, "mxnet", env),
        "import mxnet (MXNet 1.9.1)": lambda: seconds(args.mxnet_python, "mxnet", None),
    }, args.rounds)
    print(f"{common.versions(args.mxnet_python)}\n")
    print("| | seconds, median |\n|---|---|")
    for name, value in medians.items():
        print(f"| {name} | {f'{value:.2f}' if value else 'not installed'} |")
    print(f"\nRemex costs {medians['import mxnet (Remex)'] - medians['import torch']:.2f} s more than torch.")


if __name__ == "__main__":
    main()
