"""The tasks of `run.py`: their rows, the compared libraries and the goals."""
import os
import sys
from dataclasses import dataclass

from harness import common

NETWORKS = ("alexnet", "vgg16", "inception-bn", "inception-v3", "resnet18", "resnet50", "resnet101", "resnet152", "mobilenet", "mobilenetv2",
            "squeezenet")
TRAINED = ("resnet18", "resnet50", "inception-v3", "alexnet", "mobilenet", "vgg16")
RECURRENT = tuple(f"{kind}{layers}x{units}" for kind in ("lstm", "gru") for units in (512, 1024) for layers in (4, 8))
BATCHES = (1, 2, 4, 8, 16, 32)
QUANTIZED = ("resnet18", "resnet50", "resnet101", "resnet152v2", "mobilenet", "mobilenetv2", "squeezenet", "inception-v3")
STYLES = ("imperative", "hybridized", "Module")
# Networks of `train_models.py` with their batches. The time of the small ones, first, is mostly call overhead, that of the large ones arithmetic.
STEP_BATCHES = {"mlp2x128": 32, "lenet": 32, "resnet18-thin": 16, "lm2x64": 16, "encoder2x64": 8, "deepar2x40": 32,
            "mlp3x1024": 128, "resnet18-wide": 8, "lm2x650": 20, "encoder4x512": 8, "deepar3x128": 32}

# Task: (its goal in words, and the number that the geometric mean of the best peer's time over Remex's should reach).
GOALS = {
    "scoring": ("the best of all peers, row by row: >= 1.25 in the geometric mean, no row under 1.00", 1.25),
    "scoring-bf16": ("OpenVINO bf16: >= 0.98", 0.98),
    "int8": ("the better of MXNet's INT8 and OpenVINO's of NNCF: >= 1.02 in the geometric mean, no row under 0.95", 1.02),
    "module": ("Module.predict and hybridized Gluon within 3 % of each other", 0.97),
    "training": ("the best of all peers: >= 1.35 in the geometric mean, no row under 1.05", 1.35),
    "training-bf16": ("PyTorch bf16 autocast, tuned: >= 1.30", 1.3),
    "amp": ("Remex's float32, on a processor with BF16 instructions: >= 1.7", 1.7),
    "quantizing": ("OpenVINO and NNCF: >= 1.00", 1.0),
    "rnn": ("the best of all peers: >= 1.15 in the geometric mean, no row under 1.00", 1.15),
    "rnn-bf16": ("the best of all peers: >= 1.10 in the geometric mean, no row under 0.97", 1.1),
    "mlp": ("PyTorch eager: >= 1.5", 1.5),
    "transformer": ("the best of all peers: >= 1.00", 1.0),
    "encoder-int8": ("OpenVINO's INT8 of NNCF: >= 1.00", 1.0),
    "encoder-bf16": ("OpenVINO bf16: >= 1.00", 1.0),
    "steps": ("MXNet, in every style: >= 1.00, row by row", 1.0),
    "compile": ("torch.compile: >= 3", 3.0),
    "memory": ("PyTorch: >= 1.0", 1.0),
}

COLD = ("compile", "memory", "quantizing")  # measured once in each of several fresh processes

LIMITS = {"scoring": 1.0, "training": 1.05, "int8": 0.95, "steps": 1.0, "rnn": 1.0, "rnn-bf16": 0.97}  # the lowest acceptable ratio of a single row


@dataclass(frozen=True)
class Peer:
    """A column of the tables, a library in one configuration: the worker program, its options and the module it needs."""

    name: str
    worker: str
    options: tuple = ()
    needs: str = "torch"  # the module that its Python must have


REMEX = Peer("Remex", "mxnet_worker.py", needs="mxnet")
SINGLE = Peer("Remex float32", "mxnet_worker.py", ("single",), "mxnet")
MODULE = Peer("Remex Module", "mxnet_worker.py", ("module",), "mxnet")
MXNET = Peer("MXNet", "mxnet_worker.py", ("allocator",), "mxnet")
UNSET = Peer("MXNet, own threads", "mxnet_worker.py", ("allocator", "own-threads"), "mxnet")
PLAIN = Peer("MXNet 1.5.1", "mxnet_worker.py", ("allocator", "plain"), "mxnet")  # without MKL-DNN: the baseline of published speed-ups
MKLDNN = Peer("MXNet MKLDNN", "mxnet_worker.py", ("allocator", "mkldnn"), "mxnet")
TORCH = Peer("PyTorch", "torch_worker.py")
TUNED = Peer("PyTorch tuned", "torch_worker.py", ("tuned",))
COMPILED = Peer("torch.compile", "torch_worker.py", ("compile",))
COMPILED_TUNED = Peer("torch.compile tuned", "torch_worker.py", ("compile", "tuned"))
RUNTIME = Peer("ONNX Runtime", "onnx_worker.py", ("onnxruntime",), "onnxruntime")
OPENVINO = Peer("OpenVINO", "onnx_worker.py", ("openvino",), "openvino")
NNCF = Peer("NNCF", "nncf_worker.py", needs="nncf")

SCORING = (REMEX, OPENVINO, MXNET, MKLDNN, RUNTIME, COMPILED_TUNED, COMPILED, TUNED, TORCH)
TRAINING = (REMEX, TUNED, MXNET, COMPILED_TUNED, COMPILED, TORCH)

# The libraries that the goal names, where that is not the best of all.
BASELINES = {"scoring-bf16": ("OpenVINO",), "int8": ("OpenVINO", "MXNet"), "encoder-int8": ("OpenVINO",), "encoder-bf16": ("OpenVINO",),
          "module": ("Remex",), "amp": ("Remex float32",), "quantizing": ("NNCF",), "training-bf16": ("PyTorch tuned",),
          "mlp": ("PyTorch",), "compile": ("torch.compile",), "memory": ("PyTorch",), "steps": ("MXNet", "MXNet, own threads")}


def peers(row):
    """Return the columns of a row, Remex's first."""
    task, trains = row["task"], row.get("mode") == "training"
    if task == "scoring-bf16":
        return (REMEX, OPENVINO, COMPILED_TUNED, TUNED)
    if task == "int8":
        return (REMEX, OPENVINO, MXNET, SINGLE, PLAIN)
    if task == "amp":
        return (REMEX, SINGLE)
    if task == "quantizing":
        return (REMEX, NNCF, MXNET)
    if task in ("encoder-int8", "encoder-bf16"):
        return (REMEX, OPENVINO, SINGLE)
    if task == "module":
        return (MODULE, REMEX)
    if task == "training-bf16":
        return (REMEX, TUNED, COMPILED_TUNED, SINGLE)
    if task == "steps":
        return (REMEX, MXNET, UNSET, TORCH)
    if task == "compile":
        return (REMEX, COMPILED, OPENVINO, MXNET, RUNTIME)
    if task == "memory":
        return (REMEX, TORCH, MXNET) if trains else (REMEX, TORCH, OPENVINO, MXNET, RUNTIME)
    if task == "rnn":
        own = (REMEX, MXNET, TUNED, TORCH) if trains else (REMEX, OPENVINO, MXNET, RUNTIME, TUNED, TORCH)
        return own if trains or not row["network"].startswith("lstm") else (*own, PLAIN)
    if task == "rnn-bf16":
        return (REMEX, TUNED, TORCH) if trains else (REMEX, OPENVINO, TUNED, TORCH)
    return TRAINING if trains else SCORING


def rows(tasks, networks=None, batches=None, mode=None):
    """Return the rows of the tasks, those of one network together; `networks`, `batches` and `mode` (scoring, training) select some."""
    def product(task, names, sizes, **more):
        return [{"task": task, "network": n, "batch": b, "dtype": "float32", **more} for n in names for b in sizes]

    def recurrent(task, **more):
        return [row for name in RECURRENT for mode in ("scoring", "training") for row in product(task, [name], (1, 32), mode=mode, **more)]
    everything = {
        "scoring": product("scoring", NETWORKS, BATCHES),
        "scoring-bf16": product("scoring-bf16", NETWORKS, (1, 8, 32), dtype="bfloat16"),
        "int8": product("int8", QUANTIZED, (*BATCHES, 64), dtype="int8"),
        "module": product("module", NETWORKS, (1, 8), settle=60),
        "training": product("training", TRAINED, BATCHES, mode="training"),
        "training-bf16": product("training-bf16", ("resnet50",), BATCHES, mode="training", dtype="bfloat16"),
        "amp": product("amp", ("resnet50",), BATCHES, mode="training", dtype="bfloat16"),
        "quantizing": product("quantizing", ("resnet50",), (1, 8, 32), dtype="int8"),  # 32 images, in batches of these sizes
        "rnn": recurrent("rnn"),
        "rnn-bf16": recurrent("rnn-bf16", dtype="bfloat16"),
        "mlp": product("mlp", ("mlp",), (8,)),
        "transformer": product("transformer", ("transformer",), (1, 8)),
        "encoder-int8": product("encoder-int8", ("transformer",), (1, 8), dtype="int8"),  # as large as BERT's, 128 words
        "encoder-bf16": product("encoder-bf16", ("transformer",), (1, 8), dtype="bfloat16"),
        "steps": [row for name, size in STEP_BATCHES.items() for style in STYLES
                  for row in product("steps", [name], [size], mode="training", style=style)],
        "compile": product("compile", ("resnet50",), (1,)),
        "memory": product("memory", ("resnet50",), (1, 32)) + product("memory", ("resnet50",), (8, 32), mode="training"),
    }
    if unknown := set(tasks) - set(everything):
        raise SystemExit(f"no task {sorted(unknown)[0]!r}; there are {', '.join(everything)}")
    return [row for task in tasks for row in everything[task]
            if (not networks or row["network"] in networks) and (not batches or row["batch"] in batches)
            and (not mode or row.get("mode", "scoring") == mode)]


def label(row):
    """Return the name of a row in tables and result files."""
    mode = f" {row['style']}" if "style" in row else f" {row['mode']}" if "mode" in row and row["task"] in ("rnn", "rnn-bf16", "memory") else ""
    return f"{row['network']}{mode}, batch {row['batch']}"


def command(peer, mxnet_python, folder):
    """Return the command line of a peer's worker, or None where it has no Python."""
    elsewhere = {NNCF: os.environ.get("NNCF_PYTHON", ""), PLAIN: os.environ.get("PLAIN_PYTHON", "")}
    python = elsewhere.get(peer, mxnet_python if peer.name.startswith("MXNet") else sys.executable)
    return [python, "-W", "ignore", os.path.join(common.WORKERS, peer.worker), folder, *peer.options] if python else None
