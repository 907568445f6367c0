"""Image classification networks, one module per family, each with `get_symbol(num_classes, **options)`.

The same networks, layer by layer and name by name, are in `examples/support/networks` for C++. All read `data` and end
in `softmax`.
"""

import importlib

import symbind as mx

# The names that --network takes, and the shape of the images each is made for.
NETWORKS = {
    "alexnet": (3, 227, 227),
    "densenet": (3, 224, 224),
    "inception-bn": (3, 224, 224),
    "inception-v3": (3, 299, 299),
    "lenet": (1, 28, 28),
    "mlp": (1, 28, 28),
    "mobilenet": (3, 224, 224),
    "mobilenetv2": (3, 224, 224),
    "resnet": (3, 224, 224),
    "resnet-v1": (3, 224, 224),
    "resnext": (3, 224, 224),
    "squeezenet": (3, 224, 224),
    "vgg": (3, 224, 224),
}


def get_symbol(network, dtype="float32", **options):
    """The network of that name. A family ignores the options it does not have.

    With dtype="float16" its layers compute in half precision; the images and the probabilities stay float32.
    """
    if network not in NETWORKS:
        raise ValueError(f"unknown network {network!r}; there are {', '.join(NETWORKS)}")
    module = importlib.import_module("." + network.replace("-", "_"), __name__)
    symbol = module.get_symbol(**options)
    return symbol if dtype == "float32" else computed_in(symbol, dtype)


def computed_in(symbol, dtype):
    """The network with its input cast to a type, and its scores cast back before the softmax."""
    scores = symbol.get_children()[0]
    scores = scores(data=mx.sym.Cast(mx.sym.Variable("data"), dtype=dtype, name="data_cast"))
    return mx.sym.SoftmaxOutput(mx.sym.Cast(scores, dtype="float32", name="scores_cast"), name="softmax")
