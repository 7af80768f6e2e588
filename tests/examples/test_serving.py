"""The examples of serving: a model is trained, served, and asked by each client."""
import pathlib
import shutil
import subprocess
import sys

import pytest

import serve_checks
from forked import python

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "serving"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A server of the trained model, and an image of a digit."""
    folder = tmp_path_factory.mktemp("serving")
    environment = {**serve_checks.os.environ, "PYTHONPATH": serve_checks.SOURCES}
    done = subprocess.run([*python(), EXAMPLES / "train_digits.py", folder / "models" / "digits"], capture_output=True, text=True, timeout=200,
                          env=environment)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) > 0.85
    with serve_checks.Running(folder / "models") as server:
        yield server, folder / "models" / "digit.png"


def ran(command, server, image):
    done = subprocess.run([*command, server.address, "digits", image], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python(digits):
    first, second = ran([sys.executable, EXAMPLES / "client.py"], *digits).splitlines()
    best = serve_checks.json.loads(first)[0]
    assert best["probability"] > 0.5 and second == f"infer: [{best['class']}]"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl(digits):
    text = ran(["sh", EXAMPLES / "curl.sh"], *digits)
    assert '{"ready":true}' in text and text.count('[{"probability"') == 2 and '"model_name": "digits"' in text
    assert 'remex_requests_total{model="digits",route="/invocations",status="200"} 1.0' in text


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_javascript(digits):
    assert "probability" in ran(["node", EXAMPLES / "client.mjs"], *digits)


def test_the_scripts_of_containers():
    subprocess.run(["sh", "-n", EXAMPLES / "entrypoint.sh"], check=True)
    compile((EXAMPLES / "sagemaker.py").read_text(), "sagemaker.py", "exec")
