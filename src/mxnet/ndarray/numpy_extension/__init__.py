"""``mx.nd.npx``: ``mx.npx`` under the name that ``hybrid_forward(F=mx.nd)`` finds it by."""


def __getattr__(name):
    from ... import numpy_extension
    return getattr(numpy_extension, name)


def __dir__():
    from ... import numpy_extension
    return dir(numpy_extension)
