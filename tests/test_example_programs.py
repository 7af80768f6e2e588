"""What `python -m tests.example_programs` is made of; MXNet's programs themselves are not here."""
import os
import sys

import pytest

import mxnet as mx
from example_programs import __main__ as driver
from example_programs import data, table

PATH = os.path.join(driver.ROOT, "src")


@pytest.fixture
def source(tmp_path):
    """A folder with one program, as `driver.extract` leaves them."""
    area = tmp_path / "example" / "area"
    area.mkdir(parents=True)
    (area / "neighbour.py").write_text("import mxnet as mx\nwhere = mx.gpu(1)\n")
    (area / "first.py").write_text("open('made', 'w').write('by the first')\n")
    (area / "program.py").write_text("import sys\nimport numpy as np\nimport mxnet as mx\nfrom neighbour import where\nEPOCHS = 50\n"
                                     "images = mx.gluon.data.vision.MNIST(train=False)\nassert np.float is float\n"
                                     "print(f'loss {EPOCHS} {where} {len(images)} {sys.argv[1:]} {open(\"made\").read()}')\n"
                                     "print('done')\nsys.exit(int(sys.argv[2]))\n")
    return tmp_path


def run(source, program, limit=60):
    return driver.run(program, sys.executable, source, limit, PATH)


def test_a_program_runs_edited_on_its_data(source):
    program = table.Program("area/program.py", "--status 0", (data.mnist,), (("EPOCHS = 50", "EPOCHS = 1"),), cpu=True, first="first.py")
    status, seconds, said = run(source, program)
    assert (status, said) == ("ok", "loss 1 cpu(1) 200 ['--status', '0'] by the first") and seconds > 0
    program.arguments = "--status 3"
    assert run(source, program)[::2] == ("status 3", "loss 1 cpu(1) 200 ['--status', '3'] by the first; done")


def test_edits_must_fit_and_programs_end(source):
    with pytest.raises(SystemExit, match="area/program.py has no 'EPOCHS = 7'"):
        run(source, table.Program("area/program.py", edits=(("EPOCHS = 7", ""),)))
    (source / "example" / "area" / "program.py").write_text("while True: pass\n")
    assert run(source, table.Program("area/program.py"), limit=3)[0] == "status -9"


def test_data_can_be_read(tmp_path):
    for make in {make for program in table.PROGRAMS for make in program.data} - {data.entities}:
        make(tmp_path)
    place = tmp_path / "data"
    digits = mx.io.MNISTIter(image=str(place / "train-images-idx3-ubyte"), label=str(place / "train-labels-idx1-ubyte"), batch_size=100)
    assert digits.next().data[0].shape == (100, 1, 28, 28)
    records = mx.io.ImageRecordIter(path_imgrec=str(place / "cifar10_train.rec"), data_shape=(3, 28, 28), batch_size=50)
    assert sum(len(batch.label[0]) for batch in records) == 1000
    rows = mx.io.LibSVMIter(data_libsvm=str(place / "avazu-app.t"), data_shape=(5000,), batch_size=100)
    assert rows.next().data[0].stype == "csr"
