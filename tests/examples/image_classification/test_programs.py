"""The programs as a user runs them, on a few small images."""
import gzip
import json
import logging
import struct

import numpy as np
import pytest

import mxnet as mx

cv2 = pytest.importorskip("cv2")
random = np.random.RandomState(0)
# Two classes that any network tells apart: bright in the left or in the right half.
LABELS = np.arange(64) % 2
IMAGES = random.randint(0, 60, (64, 28, 28)).astype("uint8")
IMAGES[LABELS == 0, :, :14] += 150
IMAGES[LABELS == 1, :, 14:] += 150


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    path = str(folder / "train.rec")
    writer = mx.recordio.MXIndexedRecordIO(str(folder / "train.idx"), path, "w")
    for i, (image, label) in enumerate(zip(IMAGES, LABELS)):
        content = cv2.imencode(".png", image)[1].tobytes()
        writer.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, float(label), i, 0), content))
    writer.close()
    return path


@pytest.fixture(scope="module")
def checkpoint(records, tmp_path_factory):
    import train_mnist
    prefix = str(tmp_path_factory.mktemp("model") / "digits")
    mx.random.seed(0)
    train_mnist.main(["--network", "lenet", "--data-train", records, "--data-val", records, "--num-examples", "64", "--batch-size", "16",
                      "--num-epochs", "2", "--num-classes", "5", "--lr", "0.02", "--model-prefix", prefix, "--image-shape", "1,28,28"])
    return prefix


def test_train_on_records_and_score(checkpoint, records, caplog):
    import score
    caplog.set_level(logging.INFO)
    metrics = score.main(["--model", checkpoint, "--load-epoch", "2", "--data-val", records, "--image-shape", "1,28,28", "--gpus", "",
                          "--rgb-std", "255,255,255", "--batch-size", "48"])
    assert dict(m.get() for m in metrics) == {"accuracy": 1.0, "top_k_accuracy_5": 1.0}
    assert metrics[0].num_inst == 64  # the second batch is filled up, and what fills it doesn't count
    assert "images per second" in caplog.text
    assert "('accuracy', 1.0)" in caplog.text


def test_resume(checkpoint, records, caplog):
    import train_mnist
    caplog.set_level(logging.INFO)
    train_mnist.main(["--network", "lenet", "--data-train", records, "--num-examples", "64", "--batch-size", "16", "--num-classes", "5",
                      "--num-epochs", "3", "--load-epoch", "2", "--lr", "0.02", "--model-prefix", checkpoint])
    assert f"Loaded model {checkpoint}_0002.params" in caplog.text
    assert "Epoch[2] Train-accuracy=1.000000" in caplog.text
    assert f'Saved checkpoint to "{checkpoint}-0003.params"' in caplog.text


def test_fine_tune(checkpoint, records, caplog):
    import fine_tune
    caplog.set_level(logging.INFO)
    model = fine_tune.main([
        "--pretrained-model", checkpoint, "--load-epoch", "2", "--num-epochs", "3", "--layer-before-fullc", "activation2", "--num-classes", "2",
        "--num-examples", "64", "--batch-size", "16", "--lr", "0.05", "--image-shape", "1,28,28", "--data-train", records,
        "--rgb-mean", "0,0,0", "--rgb-std", "255,255,255"])
    assert model.get_params()[0]["fc_weight"].shape == (2, 500)
    assert "Epoch[2] Train-accuracy=" in caplog.text


def test_fine_tune_lists_the_last_layers(checkpoint):
    import fine_tune
    symbol, parameters, _ = mx.model.load_checkpoint(checkpoint, 2)
    with pytest.raises(ValueError, match="--layer-before-fullc flat: .* its last ones are .*flatten0, fullyconnected0, activation2"):
        fine_tune.get_fine_tune_model(symbol, parameters, 2, "flat")
    network, kept = fine_tune.get_fine_tune_model(symbol, {"fc1_weight": 1, "convolution0_weight": 2}, 2, "flatten0", "float16")
    assert kept == {"convolution0_weight": 2}
    assert network.get_internals().list_outputs()[-3].startswith("cast")


def idx(array, magic):
    return struct.pack(f">{array.ndim + 1}I", magic, *array.shape) + array.astype("uint8").tobytes()


@pytest.fixture
def mnist(tmp_path):
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(IMAGES, 2051))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS, 2049)))
    return tmp_path


def test_train_on_mnist_files(mnist, caplog, monkeypatch):
    import train_mnist
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(mnist)
    mx.random.seed(0)
    train_mnist.main(["--data-dir", ".", "--num-examples", "64", "--batch-size", "16", "--num-epochs", "4", "--disp-batches", "2", "--top-k", "2",
                      "--loss", "ce", "--profile-worker-suffix", "profile.json", "--monitor", "2"])
    assert "start with arguments Namespace(" in caplog.text
    assert "network='mlp'" in caplog.text
    assert "Epoch[3] Validation-accuracy=1.000000" in caplog.text
    assert "Epoch[0] Batch [0-2]\tSpeed: " in caplog.text
    assert "cross-entropy=" in caplog.text
    events = json.loads((mnist / "profile.json").read_text())["traceEvents"]
    assert any("FullyConnected" in event.get("name", "") for event in events)


@pytest.mark.parametrize(("name", "content", "text"), [
    ("train-images-idx3-ubyte", idx(IMAGES, 2049), "is not an MNIST file of images: it must start with 2051"),
    ("train-images-idx3-ubyte", idx(IMAGES, 2051)[:-5], r"announces \(64, 28, 28\) but holds 50171 bytes"),
    ("train-labels-idx1-ubyte", b"", "is not an MNIST file of labels"),
    ("train-labels-idx1-ubyte.gz", b"junk", "cannot read .*delete it to download it again"),
])
def test_damaged_mnist_files_are_named(mnist, name, content, text):
    import train_mnist
    (mnist / name).write_bytes(content)
    with pytest.raises(mx.MXNetError, match=text):
        train_mnist.get_mnist_iter(train_mnist.argparse.Namespace(data_dir=str(mnist), batch_size=8), None)


def test_missing_files_are_named(tmp_path, monkeypatch):
    import train_cifar10
    import train_mnist
    from common import util

    def refuse(url, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(util, "download", refuse)
    with pytest.raises(mx.MXNetError, match=r"train-labels-idx1-ubyte.gz is missing and cannot be downloaded from https:.*put the file there"):
        train_mnist.read_idx("train-labels-idx1-ubyte", 1, str(tmp_path))
    with pytest.raises(mx.MXNetError, match="cifar10_train.rec is missing"):
        train_cifar10.download_cifar10(str(tmp_path))


@pytest.mark.parametrize("program", ["train_imagenet", "train_cifar10"])
def test_synthetic_training(program, caplog):
    from importlib import import_module
    caplog.set_level(logging.INFO)
    import_module(program).main(["--benchmark", "1", "--network", "resnet", "--num-layers", "8", "--image-shape", "3,28,28", "--batch-size", "4",
                                 "--num-examples", "8", "--num-classes", "10", "--num-epochs", "1"])
    assert "Epoch[0] Train-accuracy=" in caplog.text


def test_imagenet_augmentation_yields_to_the_command_line(monkeypatch):
    import train_imagenet
    monkeypatch.setattr(train_imagenet.fit, "fit", lambda args, *rest: args)
    monkeypatch.setattr(train_imagenet, "get_network", lambda args: None)
    args = train_imagenet.main(["--use-imagenet-data-augmentation", "1", "--brightness", "0.1"])
    assert (args.random_resized_crop, args.min_random_area, args.brightness, args.contrast) == (1, 0.08, 0.1, 0.4)
    assert args.rgb_std == "58.393,57.12,57.375"
    assert train_imagenet.main([]).random_resized_crop == 0


def test_reading_speed(records, caplog):
    import train_mnist
    caplog.set_level(logging.INFO)
    assert train_mnist.main(["--data-train", records, "--batch-size", "16", "--test-io", "1", "--disp-batches", "2", "--num-examples", "64"]) is None
    assert "Batch [3]\tSpeed: " in caplog.text


def test_unknown_network():
    import train_mnist
    with pytest.raises(ValueError, match="--network nope: there is no symbols/nope.py"):
        train_mnist.main(["--network", "nope"])


def test_benchmark_score(capsys, caplog):
    import benchmark_score
    caplog.set_level(logging.INFO)
    speeds = benchmark_score.main(["--network", "lenet,resnet-20", "--batch-size", "1,2", "--num-batches", "2", "--image-shape", "3,28,28"])
    assert list(speeds) == [(network, "cpu(0)", "float32", size) for network in ("lenet", "resnet-20") for size in (1, 2)]
    assert min(speeds.values()) > 0
    assert "batch size  2, dtype float32, images/sec: " in caplog.text
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["network", "device", "dtype", "batch", "1", "batch", "2", "(images/sec)"]
    assert [line.split()[:3] for line in lines[1:]] == [["lenet", "cpu(0)", "float32"], ["resnet-20", "cpu(0)", "float32"]]


def test_benchmark_networks():
    import benchmark_score
    assert benchmark_score.get_symbol("inception-v3", 2, "float32")[1] == [("data", (2, 3, 299, 299))]
    symbol, shapes = benchmark_score.get_symbol("squeezenet1.1", 1, "float32")
    assert shapes == [("data", (1, 3, 224, 224))]
    assert symbol.list_outputs() == ["softmax_output"]
    assert benchmark_score.get_symbol("vgg-16", 1, "float32")[0].list_arguments()[-3] == "fc8_weight"


def test_pretrained_models(tmp_path, monkeypatch):
    from common import modelzoo
    asked = []
    monkeypatch.setattr(modelzoo, "download_file", lambda url, path: asked.append((url, path)))
    assert modelzoo.download_model("lenet", str(tmp_path)) == (None, 0)
    prefix = str(tmp_path / "imagenet1k-inception-bn")
    assert modelzoo.download_model("imagenet1k-inception-bn", str(tmp_path)) == (prefix, 0)
    address = "imagenet/inception-bn/Inception-BN"
    assert asked == [(f"http://data.mxnet.io/models/{address}-symbol.json", f"{prefix}-symbol.json"),
                     (f"http://data.mxnet.io/models/{address}-0126.params", f"{prefix}-0000.params")]
    with pytest.raises(ValueError, match="x lacks the address of its params"):
        modelzoo.download_model("x", meta_info={"x": {"symbol": "u"}})


def test_benchmarks_measure_what_is_compiled_already(monkeypatch):
    import benchmark_score

    from mxnet.graph.tuning import inference_states
    measured, clock = [], benchmark_score.time.perf_counter

    class Clock:
        @staticmethod
        def perf_counter():
            measured.append([e.settled for e in executors])
            return clock()

    executors = []
    bind = benchmark_score.mx.mod.Module.bind
    monkeypatch.setattr(benchmark_score, "time", Clock)
    monkeypatch.setattr(benchmark_score.mx.mod.Module, "bind", lambda self, **k: (bind(self, **k), executors.extend(self._exec_group.execs)))
    monkeypatch.setattr(inference_states.Warmup, "holds", lambda self, inputs: len(measured) > 0 or self.spent < 0.05)
    assert benchmark_score.score("mlp", benchmark_score.mx.cpu(), 1, 2, "float32") > 0
    assert measured == [[True], [True]]


@pytest.mark.parametrize("name, depth", [("vgg", 16), ("resnet", 50)])
def test_benchmarks_take_names_without_depth(name, depth):
    import benchmark_score
    symbol, _ = benchmark_score.get_symbol(name, 1, "float32")
    assert symbol.list_arguments() == benchmark_score.get_symbol(f"{name}-{depth}", 1, "float32")[0].list_arguments()


def test_benchmarks_name_the_networks_if_one_is_unknown():
    import benchmark_score
    with pytest.raises(SystemExit, match=r"no network is called 'rasnet-50'; there are alexnet, vgg-16, .*, and with another depth alexnet, "):
        benchmark_score.main(["--network", "rasnet-50", "--batch-size", "1"])
