"""Start a training job of Amazon SageMaker with MXNet's own training toolkit; it needs boto3 and an account.

    python sagemaker.py NAME IMAGE ROLE_ARN s3://BUCKET/models [--instances 2]

The image holds Remex, the toolkit and the program:

    FROM python:3.12-slim
    RUN pip install remexnet sagemaker-mxnet-training
    COPY train.py /opt/ml/code/
    ENV SAGEMAKER_TRAINING_MODULE=sagemaker_mxnet_container.training:main SAGEMAKER_PROGRAM=train.py

On each machine the toolkit starts `python -c 'import mxnet'` as a server (on the first one as the scheduler, too), sets MXNet's variables, and runs
the program as a worker.
"""
import argparse
import json


def main():
    """Send the job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the job")
    parser.add_argument("image", help="the container's image")
    parser.add_argument("role", help="the ARN of the execution role")
    parser.add_argument("output", help="the URL of the folder for the model")
    parser.add_argument("--instances", type=int, default=2, help="machines")
    parser.add_argument("--instance-type", default="ml.c7i.2xlarge", help="kind of machine")
    args = parser.parse_args()
    import boto3
    boto3.client("sagemaker").create_training_job(
        TrainingJobName=args.name, RoleArn=args.role, AlgorithmSpecification={"TrainingImage": args.image, "TrainingInputMode": "File"},
        OutputDataConfig={"S3OutputPath": args.output}, StoppingCondition={"MaxRuntimeInSeconds": 3600},
        ResourceConfig={"InstanceType": args.instance_type, "InstanceCount": args.instances, "VolumeSizeInGB": 30},
        HyperParameters={name: json.dumps(value) for name, value in {"epochs": 5, "sagemaker_parameter_server_enabled": True}.items()})


if __name__ == "__main__":
    main()
