"""The model server: ``python -m mxnet.tools.serve MODEL ...``; docs/serving.md is the guide. It takes the extra ``serve``.

``sources``, ``archives``
    Files of models.
``network``, ``curve``, ``batcher``
    A network, the times that its batches take, and the queue in front of it.
``repository``
    All models, loaded and replaced while requests go on.
``v2``, ``predictions``, ``page``
    The faces: the Open Inference Protocol; SageMaker and Multi Model Server; a page for people.
``service``, ``app``, ``server``
    Limits of requests, the ASGI application, and the process with its signals.
"""
