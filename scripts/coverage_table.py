"""The command of the scripts that measure a share in each package of src/mxnet: its options, its table and its exit status."""
import argparse


def percentage(complete, missing):
    """The share of complete places in percent; 100 where there are no places."""
    return 100 * complete / (complete + len(missing)) if complete or missing else 100.0


def run(description, rows, missing_help, argv=None):
    """Print the share of each package, and return the exit status: 1 if one is below the threshold.

    Parameters
    ----------
    description : str
        The script's docstring.
    rows : function
        Returns a dict: package -> (number of complete places, names of the others).
    missing_help : str
        The help of the option ``--missing``.
    argv : list of str, optional
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", help="this package only")
    parser.add_argument("--missing", action="store_true", help=missing_help)
    parser.add_argument("--threshold", type=float, default=0.0, help="the least percentage of each package")
    args = parser.parse_args(argv)
    chosen = {k: v for k, v in rows().items() if args.package in (None, k)}
    if not chosen:
        parser.error(f"src/mxnet has no package {args.package!r} with anything to count")
    for package, (complete, missing) in sorted(chosen.items(), key=lambda row: percentage(*row[1])):
        print(f"{package:26s} {complete:5d} / {complete + len(missing):5d} {percentage(complete, missing):6.1f} %")
        if args.missing:
            print(*(f"    {place}" for place in missing), sep="\n")
    complete, missing = sum(v[0] for v in chosen.values()), [place for v in chosen.values() for place in v[1]]
    print(f"{'all':26s} {complete:5d} / {complete + len(missing):5d} {percentage(complete, missing):6.1f} %")
    return int(any(percentage(*row) < args.threshold for row in chosen.values()))
