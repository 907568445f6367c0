"""The networks of examples/python/symbols. tests/examples compares them node by node with those in C++."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))

import symbols  # noqa: E402


def parameters(net, **shapes):
    names = net.list_arguments()
    inferred, _, _ = net.infer_shape(**shapes)
    return {name: shape for name, shape in zip(names, inferred) if name not in ("data", "softmax_label")}


# Those of ResNet and ResNeXt have a scale and a shift per color more than was published: they normalise their input.
@pytest.mark.parametrize(
    "network, options, published",
    [
        ("alexnet", {}, 62378344),
        ("alexnet", {"num_group": 2}, 60965224),
        ("vgg", {"num_layers": 11}, 132863336),
        ("vgg", {"num_layers": 16}, 138357544),
        ("inception-bn", {}, 11295240),
        ("inception-v3", {}, 23834568),
        ("mobilenet", {}, 4231976),
        ("mobilenetv2", {}, 3504872),
        ("resnet-v1", {"num_layers": 18}, 11689512),
        ("resnext", {}, 25028904 + 6),
        ("densenet", {}, 7978856),
        ("squeezenet", {}, 1248424),
        ("squeezenet", {"version": "1.1"}, 1235496),
    ],
)
def test_a_network_has_as_many_parameters_as_was_published(network, options, published):
    net = symbols.get_symbol(network, num_classes=1000, **options)
    found = parameters(net, data=(2, *symbols.NETWORKS[network]))
    assert sum(map(math.prod, found.values())) == published


@pytest.mark.parametrize("network", symbols.NETWORKS)
def test_a_network_gives_one_probability_per_class(network):
    net = symbols.get_symbol(network, num_classes=7)
    _, outputs, _ = net.infer_shape(data=(3, *symbols.NETWORKS[network]))
    assert outputs == [(3, 7)]
    assert net.list_outputs() == ["softmax_output"]


def test_layers_compute_in_half_precision_between_float32_images_and_probabilities():
    net = symbols.get_symbol("resnet", num_layers=18, num_classes=10, dtype="float16")
    arguments, outputs, _ = net.infer_type(data="float32")
    types = dict(zip(net.list_arguments(), arguments))
    assert types["conv0_weight"] == types["fc1_weight"] == np.float16
    assert outputs == [np.float32]


@pytest.mark.parametrize(
    "network, options, message",
    [
        ("vggg", {}, "unknown network 'vggg'"),
        ("vgg", {"num_layers": 12}, "11, 13, 16, 19, not 12"),
        ("resnet", {"num_layers": 51}, "18, 34, 50, 101, 152, not 51"),
        ("densenet", {"num_layers": 1}, "121, 169, 201, not 1"),
        ("squeezenet", {"version": "2"}, "1.0 and 1.1, not 2"),
    ],
)
def test_a_network_that_there_is_not_is_refused(network, options, message):
    with pytest.raises(ValueError, match=message):
        symbols.get_symbol(network, **options)
