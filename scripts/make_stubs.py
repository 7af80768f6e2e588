"""Write the .pyi stubs of functions and methods that are created at run time: those of mx.nd, mx.sym and mx.np, and of arrays and Symbols.

    python scripts/make_stubs.py [--check]

They are for editors and type checkers. Functions that are written by hand have annotations instead. The package `stubs` has the parts.
"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src" / "mxnet"


def all_stubs():
    """Return {path: text} of every stub."""
    from stubs import modules

    import mxnet as mx
    from mxnet.numpy.frontend import TABLE
    from mxnet.symbol.numpy import _Symbol
    texts = {"__init__.pyi": modules.root()}
    for front, array in (("ndarray", "NDArray"), ("symbol", "Symbol")):
        texts[f"{front}/__init__.pyi"] = modules.package(front, array)
        for key in modules.SPACES:
            texts[f"{front}/{key}.pyi"] = modules.space(front, array, key)
    texts["ndarray/_attached.pyi"] = modules.attached(mx.nd.NDArray, None, "mxnet.ndarray.ndarray", "mxnet.ndarray")
    texts["symbol/_attached.pyi"] = modules.attached(mx.sym.Symbol, None, "mxnet.symbol.symbol", "mxnet.symbol")
    for folder, array, cls, base in (("numpy", "ndarray", mx.np.ndarray, ("mxnet.ndarray", "NDArray")),
                                     ("symbol/numpy", "_Symbol", _Symbol, ("mxnet.symbol.symbol", "Symbol"))):
        name = "mxnet." + folder.replace("/", ".")
        home = f"{name}.multiarray" if array == "ndarray" else f"{name}.symbol"
        texts[f"{folder}/_attached.pyi"] = modules.attached(cls, base, home, name, TABLE[""])
        texts[f"{folder}/__init__.pyi"] = modules.numpy_space(name, array, home, TABLE[""])
        for key in ("random", "linalg"):
            texts[f"{folder}/{key}.pyi"] = modules.numpy_space(f"{name}.{key}", array, home, TABLE[key])
        extension = f"{name}_extension"
        texts[f"{folder}_extension/__init__.pyi"] = modules.numpy_space(extension, array, home, {}, ("_npx_",))
        texts[f"{folder}_extension/random.pyi"] = modules.numpy_space(f"{extension}.random", array, home, TABLE["npx.random"])
        texts[f"{folder}_extension/image.pyi"] = modules.numpy_space(f"{extension}.image", array, home, {}, ("_npx__image_",))
    return {ROOT / path: text for path, text in texts.items()}


def stale():
    """Return the stub files that are outdated, missing or superfluous."""
    stubs = all_stubs()
    return [path for path, text in stubs.items() if not path.exists() or path.read_text() != text] + sorted({*ROOT.rglob("*.pyi")} - {*stubs})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a stub is stale")
    args = parser.parse_args()
    if args.check:
        old = stale()
        print("\n".join(f"stale: {p.relative_to(ROOT)}" for p in old) or "all stubs are up to date")
        return bool(old)
    for path, text in all_stubs().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
