"""Which programs, with which arguments, data and edits."""
import dataclasses

from . import data

CPUS = (("mx.context.gpu(", "mx.context.cpu("), ("mx.gpu(", "mx.cpu("))


def _epochs(before, after="num_epoch = 1"):
    return (before, after),


@dataclasses.dataclass
class Program:
    """One of MXNet's programs.

    Parameters
    ----------
    path : str
        Under ``example/``.
    arguments : str
        Such that it is short.
    data : list of function
        What makes its data, given the folder where it starts.
    edits : sequence of (str, str)
        What is replaced in its text: for a short run, or for its age. Each must be there.
    cpu : bool
        Whether it and its neighbours name GPUs where a flag should: they are given CPUs.
    first : str
        Another program of the folder, with arguments, that runs before.
    """

    path: str
    arguments: str = ""
    data: tuple = ()
    edits: tuple = ()
    cpu: bool = False
    first: str = ""

    @property
    def name(self):
        """Its path and arguments."""
        return f"{self.path} {self.arguments}".strip()


def _classify(path, arguments, *made):
    return Program(f"image-classification/{path}", arguments, made)


PROGRAMS = (
    _classify("train_mnist.py", "--network mlp --num-epochs 2 --num-examples 1000", data.mnist),
    _classify("train_mnist.py", "--network lenet --num-epochs 1 --num-examples 1000 --kv-store local", data.mnist),
    _classify("train_mnist.py", "--network mlp --add_stn --num-epochs 1 --num-examples 1000", data.mnist),
    _classify("train_cifar10.py", "--network resnet --num-layers 20 --num-epochs 1 --num-examples 1000", data.pictures_in_records),
    *(_classify("train_imagenet.py", f"--benchmark 1 --network {net} --image-shape 3,{size},{size} --batch-size 4 --num-examples 40 --num-epochs 1 "
                "--num-classes 10 --disp-batches 2")
      for net, size in (("resnet --num-layers 18", 64), ("resnet-v1 --num-layers 18", 64), ("resnext --num-layers 50", 64), ("alexnet", 224),
                        ("googlenet", 224), ("inception-bn", 224), ("mobilenet", 224), ("vgg --num-layers 11", 64))),
    *(_classify("benchmark_score.py", f"--network {net} --batch-size 1") for net in ("alexnet", "mobilenet", "inception-bn", "squeezenet1.1")),
    Program("gluon/mnist/mnist.py", "--epochs 2", (data.mnist,)),
    Program("gluon/image_classification.py", "--dataset cifar10 --model mobilenet0.25 --epochs 1 --mode hybrid --batch-size 50 --log-interval 5",
            (data.pictures_in_records,)),
    Program("gluon/image_classification.py", "--dataset mnist --model resnet18_v1 --use_thumbnail --epochs 1 --mode symbolic --batch-size 50",
            (data.mnist,), (("mod.save_parameters(", "mod.save_params("),)),
    Program("gluon/image_classification.py", "--dataset dummy --model squeezenet1.1 --epochs 1 --mode imperative --batch-size 1 --log-interval 10"),
    Program("gluon/dc_gan/dcgan.py", "--dataset mnist --nepoch 1 --ngf 8 --ndf 8 --batch-size 32 --inception_score=", (data.mnist,)),
    Program("gluon/sn_gan/train.py", "--epochs 1 --batch-size 50", (data.cifar,)),
    Program("gluon/word_language_model/train.py", "--emsize 32 --nhid 32 --epochs 1 --tied --log-interval 10", (data.text,)),
    Program("gluon/word_language_model/train.py", "--model gru --emsize 32 --nhid 32 --epochs 1 --hybridize --static-alloc --log-interval 10",
            (data.text,)),
    Program("gluon/house_prices/kaggle_k_fold_cross_validation.py", "", (data.houses,),
            (("\nepochs = 100", "\nepochs = 5"), ("verbose_epoch = 95", "verbose_epoch = 1"), ("as_matrix()", "values"))),
    Program("gluon/lstm_crf/lstm_crf.py"),
    Program("rnn/bucketing/lstm_bucketing.py", "--num-epochs 1 --num-hidden 50 --num-embed 50 --disp-batches 5", (data.text,)),
    *(Program("rnn/bucketing/cudnn_rnn_bucketing.py", f"--num-epochs 1 --num-hidden 50 --num-embed 50 --disp-batches 5 {more}", (data.text,))
      for more in ("", "--stack-rnn True --dropout 0.2", "--rnntype gru", "--bidirectional")),
    Program("rnn/word_lm/train.py", "--epochs 1 --emsize 32 --nhid 32 --log-interval 10", (data.text,), cpu=True),
    Program("sparse/linear_classification/train.py", "--num-epoch 1 --batch-size 512", (data.clicks,)),
    Program("sparse/linear_classification/train.py", "--num-epoch 1 --batch-size 512 --optimizer adam --kvstore local", (data.clicks,)),
    Program("sparse/factorization_machine/train.py",
            "--data-train data/avazu-app --data-test data/avazu-app.t --batch-size 100 --input-size 6000 --num-epoch 1", (data.clicks,)),
    Program("sparse/matrix_factorization/train.py", "--num-epoch 1", (data.ratings,)),
    Program("sparse/matrix_factorization/train.py", "--num-epoch 1 --dense --factor-size 16", (data.ratings,)),
    Program("sparse/wide_deep/train.py", "--num-epoch 2", (data.adults,)),
    Program("sparse/wide_deep/inference.py", "--num-infer-batch 5", (data.adults,), first="train.py --num-epoch 1"),
    Program("model-parallel/matrix_factorization/train.py", "--num-epoch 1 --factor-size 16", (data.ratings,), cpu=True),
    Program("nce-loss/toy_nce.py", "", (), _epochs("num_epoch=20", "num_epoch=2")),
    Program("nce-loss/toy_softmax.py", "", (), _epochs("num_epoch=20", "num_epoch=2")),
    Program("nce-loss/wordvec.py", "", (data.text,), _epochs("num_epoch=20", "num_epoch=2")),
    Program("nce-loss/wordvec_subwords.py", "", (data.text,), _epochs("NUM_EPOCH = 20", "NUM_EPOCH = 1")),
    Program("nce-loss/lstm_word.py", "", (data.text,), _epochs("num_epoch=20", "num_epoch=2")),
    Program("svrg_module/api_usage_example/example_api_train.py", "-e 4"),
    Program("svrg_module/api_usage_example/example_inference.py", "-e 4"),
    Program("svrg_module/linear_regression/train.py", "-e 2", (data.years,)),
    Program("module/mnist_mlp.py", "", (data.mnist,), (("from utils import get_data\n", ""), ("get_data.get_mnist(", "print("))),
    Program("module/sequential_module.py", "", (data.mnist,), (("from utils import get_data\n", ""), ("get_data.get_mnist(", "print(")), cpu=True),
    Program("module/python_loss.py", "", (data.mnist,), (("import numba\n", ""), ("@numba.jit\n", ""), ("n_epoch = 10", "n_epoch = 2")), cpu=True),
    Program("numpy-ops/custom_softmax.py", "", (data.mnist,), _epochs("num_epoch=10", "num_epoch=2")),
    Program("numpy-ops/custom_sparse_sqr.py"),
    Program("numpy-ops/weighted_logistic_regression.py"),
    Program("svm_mnist/svm_mnist.py", "", (data.mnist,),
            (("from sklearn.datasets import fetch_mldata\n", ""), ("num_epoch = 10", "num_epoch = 2"))),
    Program("stochastic-depth/sd_mnist.py", "", (data.mnist,), _epochs("n_epoch = 2", "n_epoch = 1")),
    Program("dsd/mlp.py", "--pruning_switch_epoch 1,2 --weight_sparsity 0,50 --bias_sparsity 0,0", (data.mnist,)),
    *(Program(f"restricted-boltzmann-machine/binary_rbm_{style}.py",
              "--num-epoch 1 --k 3 --num-hidden 50 --batch-size 50 --ais-batch-size 10 --ais-num-batch 2 --ais-intermediate-steps 3 "
              f"--ais-burn-in-steps 3 --no-cuda{more}", (data.mnist,), (("plt.show(s)", "plt.show()"),))
      for style, more in (("module", ""), ("gluon", " --data-loader-num-worker 1"))),
    Program("bayesian-methods/bdk_demo.py", "-d 0 -l 3", (data.curve,), (("sample_num=300000", "sample_num=30"),)),
    Program("named_entity_recognition/src/ner.py", "--num-epochs 1 --word-embed 30 --char-embed 10 --batch-size 20 --buckets 10,20,40",
            (data.entities,), (("read_pickle(", "read_json("), ("ner_data.pkl", "ner_data.json"))),
    *(Program(f"cnn_{which}text_classification/text_cnn.py", "--num-epochs 2 --num-embed 30", (data.reviews,),
              (("args.gpus is not None", "args.gpus"),)) for which in ("", "chinese_")),
    Program("multivariate_time_series/src/lstnet.py", "--num-epochs 1 --q 48 --num-filters 10 --recurrent-state-size 10 --batch-size 32 --horizon 3",
            (data.loads,), (("as_matrix()", "values"),)),
    Program("profiler/profiler_matmul.py", "", (), (("4096", "256"),), cpu=True),
    Program("profiler/profiler_ndarray.py"),
    Program("profiler/profiler_imageiter.py", "", (data.pictures_in_records,)),
    Program("vae-gan/vaegan_mxnet.py", "--train --use_cpu --training_data_path pictures --num_epoch 1 --batch_size 16 --nef 8 --ndf 8 --ngf 8",
            (data.faces,)),
    Program("reinforcement-learning/ddpg/strategies.py"),
)
