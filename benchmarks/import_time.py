"""What `import mxnet` costs beyond `import torch`, in fresh processes, interleaved.

    python benchmarks/import_time.py --mxnet-python /opt/oracle/bin/python
"""
import argparse

import peers

_TIMED = "import time\nt = time.perf_counter()\nimport {module}\nprint(time.perf_counter() - t)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers.add_arguments(parser)
    args = parser.parse_args()
    me, env = peers.own_python(), peers.python_env()

    def seconds(python, module, env):
        out = peers.run(python, _TIMED.format(module=module), env)
        return float(out) if out else None

    found = peers.interleave({
        "import torch": lambda: seconds(me, "torch", env),
        "import mxnet (Remex)": lambda: seconds(me, "mxnet", env),
        "import mxnet (MXNet 1.9.1)": lambda: seconds(args.mxnet_python, "mxnet", None),
    }, args.rounds)
    print(f"{peers.versions(args.mxnet_python)}\n")
    print("| | seconds, median |\n|---|---|")
    for name, value in found.items():
        print(f"| {name} | {f'{value:.2f}' if value else 'not installed'} |")
    print(f"\nRemex costs {found['import mxnet (Remex)'] - found['import torch']:.2f} s more than torch.")


if __name__ == "__main__":
    main()
