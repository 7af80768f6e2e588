"""Deploy a model to a SageMaker endpoint: the image of the Dockerfile, and a model.tar.gz with the network's files.

    tar -czf model.tar.gz -C models/digits . && aws s3 cp model.tar.gz s3://BUCKET/model.tar.gz
    python sagemaker.py 123456789012.dkr.ecr.eu-west-1.amazonaws.com/remex-serving:latest s3://BUCKET/model.tar.gz arn:aws:iam::123456789012:role/R

It needs boto3 and an account; SageMaker starts the container with the argument ``serve`` and asks ``/ping`` and ``/invocations`` on port 8080.
"""
import argparse
import json
import time


def deploy(image, data, role, name="digits"):
    """Create model, configuration and endpoint; return when it is in service, or raise."""
    import boto3
    sagemaker = boto3.client("sagemaker")
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer={"Image": image, "ModelDataUrl": data})
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[{
        "VariantName": "all", "ModelName": name, "InstanceType": "ml.c7i.large", "InitialInstanceCount": 1}])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    while (status := sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"]) == "Creating":
        time.sleep(10)
    if status != "InService":
        raise SystemExit(f"the endpoint is {status}")


def invoke(array, name="digits"):
    """Return the outputs for nested lists of numbers."""
    import boto3
    answer = boto3.client("sagemaker-runtime").invoke_endpoint(EndpointName=name, ContentType="application/json", Body=json.dumps(array))
    return json.loads(answer["Body"].read())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", help="the container's image")
    parser.add_argument("data", help="the URL of model.tar.gz")
    parser.add_argument("role", help="the ARN of the execution role")
    deploy(**vars(parser.parse_args()))
    print(invoke([[[[0.0] * 8] * 8]]))
