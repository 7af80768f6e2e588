"""Options for training, and training by them."""
import logging
import math
import os
import re
import time

import mxnet as mx

from .options import add_options, numbers
from .util import devices

HAVE_MOMENTUM = {"sgd", "dcasgd", "nag", "signum", "lbsgd"}
HAVE_WARMUP = {"lbsgd", "lbnag"}
INITIALIZERS = {
    "xavier": mx.init.Xavier, "msra": mx.init.MSRAPrelu, "orthogonal": mx.init.Orthogonal, "normal": mx.init.Normal,
    "uniform": mx.init.Uniform, "one": mx.init.One, "zero": mx.init.Zero,
}


def add_fit_args(parser):
    """Add the options that say how to train."""
    parser.add_argument("--monitor", type=int, default=0, help="log statistics of the parameters every N batches, if above 0")
    return add_options(parser.add_argument_group("Training", "model training"), [
        ("--network", str, None, "the network, a module in symbols/"),
        ("--num-layers", int, None, "its depth, for networks such as resnet that come in several"),
        ("--gpus", str, None, "GPUs to use, e.g. 0 or 0,2,5; none means the CPU"),
        ("--kv-store", str, "device", "type of the key-value store"),
        ("--num-epochs", int, 100, "the last epoch"),
        ("--lr", float, 0.1, "learning rate at the start"),
        ("--lr-factor", float, 0.1, "factor for the learning rate at each step"),
        ("--lr-step-epochs", str, None, "epochs of these steps, e.g. 30,60; or 'pow2' for a polynomial decay"),
        ("--initializer", str, "default", f"default, {', '.join(INITIALIZERS)}"),
        ("--optimizer", str, "sgd", "the optimizer"),
        ("--mom", float, 0.9, "its momentum"),
        ("--wd", float, 0.0001, "weight decay"),
        ("--batch-size", int, 128, "examples in a batch, over all devices"),
        ("--disp-batches", int, 20, "show progress every N batches"),
        ("--model-prefix", str, None, "start of the checkpoints' file names; none means no checkpoints"),
        ("--save-period", int, 1, "save a checkpoint every N epochs"),
        ("--load-epoch", int, None, "resume from the checkpoint of this epoch"),
        ("--top-k", int, 0, "report the top-k accuracy too, if above 0"),
        ("--loss", str, "", "losses to report: ce (cross-entropy), nll (negative log-likelihood), or both with a comma"),
        ("--test-io", int, 0, "1 measures how fast the data comes, without training"),
        ("--dtype", str, "float32", "float32 or float16"),
        ("--gc-type", str, "none", "gradient compression: 2bit or none"),
        ("--gc-threshold", float, 0.5, "threshold of 2bit gradient compression"),
        ("--macrobatch-size", int, 0, "effective batch over all machines, for large-batch optimizers"),
        ("--warmup-epochs", int, 5, "epochs in which such an optimizer raises the learning rate"),
        ("--warmup-strategy", str, "linear", "how it does"),
        ("--profile-worker-suffix", str, "", "profile workers into this file; several get rank0_, rank1_, ... before its name"),
        ("--profile-server-suffix", str, "", "the same for servers"),
        ("--use-imagenet-data-augmentation", int, 0, "1 varies the images as usual for ImageNet"),
    ])


def get_epoch_size(args, kv):
    """Batches of one epoch on one machine."""
    return math.ceil(int(args.num_examples / kv.num_workers) / args.batch_size)


def learning_rate(args, epoch_size):
    """The learning rate to start with, and its schedule or None."""
    steps = getattr(args, "lr_step_epochs", None)
    if getattr(args, "lr_factor", 1) >= 1 or not steps:
        return args.lr, None
    begin = args.load_epoch or 0
    if "pow" in steps:
        power = float(re.sub("pow[- ]*", "", steps))
        return args.lr, mx.lr_scheduler.PolyScheduler(args.num_epochs * epoch_size, args.lr, power)
    epochs = numbers(steps, int)
    lr = args.lr * args.lr_factor ** sum(epoch <= begin for epoch in epochs)
    if lr != args.lr:
        logging.info("Adjust learning rate to %e for epoch %d", lr, begin)
    ahead = [epoch_size * (epoch - begin) for epoch in epochs if epoch > begin]
    return lr, mx.lr_scheduler.MultiFactorScheduler(step=ahead, factor=args.lr_factor, base_lr=lr) if ahead else None


def make_initializer(args):
    """The initializer that ``--initializer`` names; the default depends on the network."""
    if args.initializer in INITIALIZERS:
        return INITIALIZERS[args.initializer]()
    if args.initializer != "default":
        raise ValueError(f"--initializer must be default, {', '.join(INITIALIZERS)}; received {args.initializer!r}")
    network = args.network or ""
    if network == "alexnet":
        return mx.init.Normal()  # it doesn't converge with Xavier
    return mx.init.Xavier() if "vgg" in network else mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2)


def optimizer_parameters(args, kv, epoch_size):
    """Return the parameters of the optimizer."""
    lr, schedule = learning_rate(args, epoch_size)
    parameters = {"learning_rate": lr, "wd": args.wd, "lr_scheduler": schedule, "multi_precision": True}
    if args.optimizer in HAVE_MOMENTUM:
        parameters["momentum"] = args.mom
    if args.optimizer in HAVE_WARMUP:
        batch = args.batch_size * kv.num_workers
        parameters.update(
            updates_per_epoch=max(epoch_size, 1), begin_epoch=args.load_epoch or 0, num_epochs=args.num_epochs,
            batch_scale=math.ceil(max(args.macrobatch_size, batch) / batch),
            warmup_strategy=args.warmup_strategy, warmup_epochs=args.warmup_epochs)
    return parameters


def make_metrics(args, network):
    """Accuracy, and what ``--top-k`` and ``--loss`` ask for."""
    metrics = ["accuracy"]
    if args.top_k > 0:
        metrics.append(mx.metric.create("top_k_accuracy", top_k=args.top_k))
    losses = [name.strip() for name in args.loss.split(",") if name.strip()]
    if losses and "softmax_output" not in network.list_outputs():
        logging.warning("--loss needs an output named softmax_output, found %s: no loss is reported", network.list_outputs())
        return metrics
    for name in losses:
        if name not in ("ce", "nll", "nll_loss"):
            logging.warning("%s is not a valid loss, use ce (cross-entropy) or nll (negative log-likelihood)", name)
        else:
            metrics.append(mx.metric.create("nll_loss" if name == "nll" else name))
    return metrics


def _prefix(args, rank):
    return f"{args.model_prefix}-{rank}" if rank else args.model_prefix


def load_model(args, network, rank=0):
    """The parameters of the checkpoint that ``--load-epoch`` names, or (None, None).

    Raises
    ------
    ValueError
        If the checkpoint isn't of this network, or no prefix is given.
    """
    if args.load_epoch is None:
        return None, None
    if args.model_prefix is None:
        raise ValueError("--load-epoch needs --model-prefix, the start of the checkpoint's file names")
    prefix = _prefix(args, rank)
    if not os.path.exists(f"{prefix}-symbol.json"):
        prefix = args.model_prefix
    symbol, arg_params, aux_params = mx.model.load_checkpoint(prefix, args.load_epoch)
    logging.info("Loaded model %s_%04d.params", prefix, args.load_epoch)
    for kind in ("list_arguments", "list_auxiliary_states", "list_outputs"):
        stored, built = getattr(symbol, kind)(), getattr(network, kind)()
        if stored != built:
            odd = sorted(set(stored) ^ set(built))[:5] or "their order"
            raise ValueError(f"{prefix}-symbol.json is not the network that the options describe; they differ in {odd}")
    return arg_params, aux_params


def _measure_reading(args, train):
    """Read the training data once and log the speed."""
    tic = time.time()
    for i, batch in enumerate(train):
        for part in batch if isinstance(batch, list) else [batch]:
            for array in part.data:
                array.wait_to_read()
        if (i + 1) % args.disp_batches == 0:
            logging.info("Batch [%d]\tSpeed: %.2f samples/sec", i, args.disp_batches * args.batch_size / (time.time() - tic))
            tic = time.time()


def _profile(args, kv, state):
    """Start or stop the profilers that the options ask for."""
    rank = f"rank{kv.rank}_" if kv.num_workers > 1 else ""
    for process, filename in (("server", args.profile_server_suffix), ("worker", args.profile_worker_suffix)):
        if filename:
            if state == "run":
                name = rank + filename if process == "worker" else filename
                mx.profiler.set_config(filename=name, profile_all=True, profile_process=process)
            mx.profiler.set_state(state=state, profile_process=process)
            if state == "stop":
                mx.profiler.dump(profile_process=process)


def fit(args, network, data_loader, **kwargs):
    """Train a network.

    Parameters
    ----------
    args : argparse.Namespace
        What `add_fit_args` and the options of the data gave.
    network : Symbol
    data_loader : callable
        ``data_loader(args, kv)`` gives the training and the validation iterator.
    **kwargs
        ``arg_params`` and ``aux_params`` to start from, ``batch_end_callback`` to call besides the `Speedometer`.

    Returns
    -------
    Module
        The trained module; None with ``--test-io``.
    """
    kv = mx.kvstore.create(args.kv_store)
    if args.gc_type != "none":
        kv.set_gradient_compression({"type": args.gc_type, "threshold": args.gc_threshold})
    _profile(args, kv, "run")
    logging.basicConfig(level=logging.DEBUG, format=f"%(asctime)-15s Node[{kv.rank}] %(message)s")
    logging.info("start with arguments %s", args)

    epoch_size = get_epoch_size(args, kv)
    train, val = data_loader(args, kv)
    if "dist" in args.kv_store and "async" not in args.kv_store:
        # Machines wait for each other after every batch, so each must have the same number of them.
        logging.info("Resizing training data to %d batches per machine", epoch_size)
        train = mx.io.ResizeIter(train, epoch_size)
    if args.test_io:
        _measure_reading(args, train)
        return None

    if "arg_params" in kwargs and "aux_params" in kwargs:
        arg_params, aux_params = kwargs["arg_params"], kwargs["aux_params"]
    else:
        arg_params, aux_params = load_model(args, network, kv.rank)
    callbacks = kwargs.get("batch_end_callback", [])
    callbacks = [mx.callback.Speedometer(args.batch_size, args.disp_batches), *(callbacks if isinstance(callbacks, list) else [callbacks])]
    checkpoint = mx.callback.do_checkpoint(_prefix(args, kv.rank), period=args.save_period) if args.model_prefix else None

    model = mx.mod.Module(symbol=network, context=devices(args.gpus))
    model.fit(
        train, eval_data=val, begin_epoch=args.load_epoch or 0, num_epoch=args.num_epochs, kvstore=kv,
        eval_metric=make_metrics(args, network), optimizer=args.optimizer,
        optimizer_params=optimizer_parameters(args, kv, epoch_size), initializer=make_initializer(args),
        arg_params=arg_params, aux_params=aux_params, allow_missing=True,
        batch_end_callback=callbacks, epoch_end_callback=checkpoint,
        monitor=mx.mon.Monitor(args.monitor, pattern=".*") if args.monitor > 0 else None)
    _profile(args, kv, "stop")
    return model
