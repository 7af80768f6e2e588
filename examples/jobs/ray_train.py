"""Run examples/jobs/train.py on the workers of Ray Train (pip install 'ray[train]').

    python examples/jobs/ray_train.py --workers 2

Ray's TorchTrainer starts a process for each worker and its torch.distributed group, which the `dist_sync` store of Remex uses as it is.
"""
import argparse
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def work(options):
    """Train in one worker."""
    import train
    rank, workers, accuracy = train.train(**options)
    print(f"worker {rank} of {workers}: accuracy {accuracy:.3f}", flush=True)


def main():
    """Start Ray on this machine, or join the cluster of RAY_ADDRESS, and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--model-dir", default="model", help="folder of the network's files, which all machines see")
    parser.add_argument("--storage", default=None, help="folder of Ray's own records, by default ~/ray_results")
    args = parser.parse_args()
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    ray.init(runtime_env={"env_vars": {"PYTHONPATH": paths}}, include_dashboard=False)
    TorchTrainer(work, train_loop_config={"model_dir": os.path.abspath(args.model_dir)}, torch_config=TorchConfig(backend="gloo"),
                 scaling_config=ScalingConfig(num_workers=args.workers), run_config=RunConfig(storage_path=args.storage)).fit()


if __name__ == "__main__":
    main()
