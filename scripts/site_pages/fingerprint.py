"""A fingerprint of the code that the guides' cells run: their outputs are reused as long as it stays."""
import hashlib
import importlib.metadata

LIBRARIES = ("torch", "numpy", "openvino", "matplotlib", "onnx", "scikit-learn", "opencv-python-headless")
_SUFFIXES = {".py", ".cpp", ".h", ".json"}


def of_code(folder):
    """Return a digest of the sources under `folder` and of the versions of `LIBRARIES`, in 20 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    for name in LIBRARIES:
        digest.update(f"{name} {_version(name)}\0".encode())
    return digest.hexdigest()[:20]


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
