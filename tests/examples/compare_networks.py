"""Every network is one graph in both languages: examples/support/networks for C++, examples/python/symbols for Python.
train_imagenet has the same options in both.

usage: compare_networks.py PROGRAM     (examples/train_imagenet, which writes its networks as JSON)
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))

import symbols  # noqa: E402

import symbind as mx  # noqa: E402

# The C++ side writes what differs from the default, the Python side what it was given.
DEFAULTS = {
    "BatchNorm": {"fix_gamma": "True", "momentum": "0.9"},
    "Convolution": {"num_group": "1"},
    "Dropout": {"p": "0.5"},
    "LRN": {"alpha": "0.0001", "beta": "0.75", "knorm": "2"},
    "Pooling": {"pool_type": "max"},
}
ONLY_CPP = {"--contexts", "--num-batches", "--symbol"}
# What --help of both programs has beside the name of the network.
VARIANTS = [
    *[(name, {}) for name in symbols.NETWORKS],
    ("alexnet", {"num_group": 2}),
    *[("vgg", {"num_layers": depth, "batch_norm": True}) for depth in (11, 13, 19)],
    *[("resnet", {"num_layers": depth}) for depth in (18, 34, 101, 152)],
    *[("resnet-v1", {"num_layers": depth}) for depth in (18, 34, 101, 152)],
    *[("resnext", {"num_layers": depth, "num_group": 64}) for depth in (101, 152)],
    *[("densenet", {"num_layers": depth}) for depth in (169, 201)],
    *[(name, {"multiplier": by}) for name in ("mobilenet", "mobilenetv2") for by in (0.25, 0.35, 0.75, 1.4)],
    ("squeezenet", {"version": "1.1"}),
]


def without_defaults(graph):
    """The nodes of a network: operator, name, inputs, and the parameters that are not the default."""
    nodes = []
    for node in graph["nodes"]:
        defaults = DEFAULTS.get(node["op"], {}).items()
        attrs = set(node.get("attrs", {}).items()) - set(defaults)
        if node["op"] == "null":  # a variable repeats the parameters of the operator it was made for
            attrs = {item for item in attrs if item[0] == "__init__"}
        nodes.append((node["op"], node["name"], node["inputs"], sorted(attrs)))
    return nodes, graph["heads"]


def of_program(program, network, options, folder):
    file = Path(folder, "network.json")
    arguments = ["--network", network, "--num-classes", "12", "--symbol", file]
    for key, value in options.items():
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        arguments += ["--" + key.replace("_", "-"), text]
    subprocess.run([program, *arguments], check=True)
    return json.loads(file.read_text())


def difference(network, options, cpp, python):
    if cpp == python:
        return []
    first = next((pair for pair in zip(cpp[0], python[0]) if pair[0] != pair[1]), ("more nodes", "or fewer"))
    return [f"{network} {options}: {first[0]} in C++, {first[1]} in Python"]


def options_of(text):
    return set(re.findall(r"^  (?:-h, )?(--[a-z0-9-]+)", text, re.MULTILINE))


def main():
    program = sys.argv[1]
    wrong = []
    explained = subprocess.check_output([program, "--help"], text=True)
    listed = re.findall(r"^  (\w\S*)  ", explained, re.MULTILINE)
    if listed != list(symbols.NETWORKS):
        wrong.append(f"networks {listed} in C++, {list(symbols.NETWORKS)} in Python")
    script = EXAMPLES / "train_imagenet.py"
    in_python = options_of(subprocess.check_output([sys.executable, "-B", script, "--help"], text=True))
    differing = (options_of(explained) ^ in_python) - ONLY_CPP - {"--help"}
    if differing:
        wrong.append(f"options of one language only: {', '.join(sorted(differing))}")
    with tempfile.TemporaryDirectory() as folder:
        for network, options in VARIANTS:
            cpp = without_defaults(of_program(program, network, options, folder))
            with mx.name.NameManager():  # sums are numbered anew, as in a new program
                graph = symbols.get_symbol(network, num_classes=12, **options).tojson()
            wrong += difference(network, options, cpp, without_defaults(json.loads(graph)))
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
