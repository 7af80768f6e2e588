import subprocess
import sys

from forked import python


def loaded_by(statement):
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout.split())


def test_import_brings_in_nothing_heavy():
    loaded = loaded_by("import mxnet")
    heavy = {"cv2", "openvino", "simplejpeg", "matplotlib", "scipy", "requests", "onnx", "tensorboard", "mxnet.gluon", "mxnet.module", "mxnet.io"}
    assert not heavy & loaded


def test_import_starts_no_gpu():
    code = "import mxnet, torch; print(torch.cuda.is_initialized())"
    assert subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout.strip() == "False"


def test_short_names_are_the_modules():
    import mxnet as mx
    assert mx.mod is mx.module and mx.kv is mx.kvstore and mx.viz is mx.visualization and mx.init is mx.initializer and mx.mon is mx.monitor
    assert mx.nd is mx.ndarray and mx.sym is mx.symbol and mx.rnd is mx.random
    assert mx.__version__ == "1.9.1"
