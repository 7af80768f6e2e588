"""The examples of jobs: one program, started by each of the systems that people start jobs with, as far as one machine can.

SageMaker's toolkit, Ray and the classes of Kubeflow Trainer run where their packages are installed: ``pip install sagemaker-mxnet-training
'ray[train]' kubeflow-trainer-api``.
"""
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

import mxnet

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "jobs"
SOURCES = str(pathlib.Path(mxnet.__file__).parent.parent)
BOTH = ["worker 0 of 2: accuracy 0.959", "worker 1 of 2: accuracy 0.959"]


def environment(**more):
    return {**os.environ, "PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1", **{key: str(value) for key, value in more.items()}}


def said(text):
    return sorted({line[line.index("worker "):].strip() for line in text.splitlines() if "accuracy" in line})


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_slurm(tmp_path):
    """`srun` and `scontrol` are played by scripts: both machines of the job are this one."""
    tools = {"scontrol": '#!/bin/bash\n[ "$*" = "show hostnames n[1-2]" ] && printf "localhost\\nn2\\n"\n',
             "srun": '#!/bin/bash\n"$@" & first=$!\n"$@" & second=$!\nwait $first && wait $second\n',
             "torchrun": f'#!/bin/bash\nexec {sys.executable} -m torch.distributed.run "$@"\n'}
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    job = environment(PATH=f"{tmp_path}:{os.environ['PATH']}", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_NUM_NODES=2, SLURM_JOB_ID=7,
                      SLURM_CPUS_PER_TASK=1, SLURM_SUBMIT_DIR=tmp_path, MASTER_PORT=free_port())
    done = subprocess.run(["bash", EXAMPLES / "train.sbatch", EXAMPLES / "train.py", "--model-dir", tmp_path / "model"], capture_output=True,
                          text=True, timeout=240, env=job)
    assert done.returncode == 0, done.stderr
    assert said(done.stdout) == BOTH and (tmp_path / "model" / "net-symbol.json").exists()


def test_kubeflow():
    yaml, models = pytest.importorskip("yaml"), pytest.importorskip("kubeflow_trainer_api.models")
    runtime, job = yaml.safe_load_all((EXAMPLES / "trainjob.yaml").read_text())
    for given, kind in ((runtime, models.TrainerV1alpha1ClusterTrainingRuntime), (job, models.TrainerV1alpha1TrainJob)):
        assert kind.from_dict(given).to_dict() == given, "a field is unknown"
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]


@pytest.mark.skipif(importlib.util.find_spec("sagemaker_mxnet_container") is None, reason="needs sagemaker-mxnet-training")
def test_sagemaker(tmp_path):
    """Two machines of a job, by MXNet's own toolkit: the scheduler, a server and a worker on the first, a server and a worker on the second."""
    hosts, toolkit = ["127.0.0.1", "localhost"], os.path.dirname(sys.executable)
    parameters = {"epochs": "3", "sagemaker_submit_directory": json.dumps(str(EXAMPLES)), "sagemaker_program": '"train.py"',
                  "sagemaker_parameter_server_enabled": "true", "sagemaker_container_log_level": "20", "_ps_port": f'"{free_port()}"'}
    running = []
    for host in hosts:
        config = tmp_path / host / "input" / "config"
        config.mkdir(parents=True)
        (config / "hyperparameters.json").write_text(json.dumps(parameters))
        (config / "resourceconfig.json").write_text(json.dumps({"current_host": host, "hosts": hosts, "network_interface_name": "lo"}))
        (config / "inputdataconfig.json").write_text("{}")
        (tmp_path / host / "model").mkdir()
        (tmp_path / host / "output").mkdir()
        job = environment(PATH=f"{toolkit}:{os.environ['PATH']}", SAGEMAKER_BASE_DIR=tmp_path / host,
                          SAGEMAKER_TRAINING_MODULE="sagemaker_mxnet_container.training:main")
        running.append(subprocess.Popen([os.path.join(toolkit, "train")], env=job, cwd=tmp_path, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT))
    texts = [process.communicate(timeout=240)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], texts
    assert said("".join(texts)) == BOTH and (tmp_path / "127.0.0.1" / "model" / "net-0000.params").exists()


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray[train]")
def test_ray(tmp_path):
    command = [sys.executable, EXAMPLES / "ray_train.py", "--workers", "2", "--model-dir", tmp_path / "model", "--storage", tmp_path / "ray"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment(RAY_AUTH_MODE="disabled"))
    assert done.returncode == 0, done.stderr
    assert said(done.stdout + done.stderr) == BOTH and (tmp_path / "model" / "net-0000.params").exists()
