"""Records what MXNet's operators that update many weights in one call answer, which networks cannot hold: their states
are between their other inputs. Writes recorded/updates.json.gz.

usage: oracle-env/bin/python record_updates.py [--out DIR]
"""

import argparse
import gzip
import json
import pathlib

import mxnet as mx
import numpy as np

SHAPES = [(2, 3), (1,), (4, 1, 2)]
RATES = {"lrs": "(0.1, 0.5, 0.25)", "wds": "(0.01, 0, 0.125)"}
ADAMW = {**RATES, "etas": "(1, 0.5, 2)", "num_weights": "3"}
LAMB = {"learning_rates": RATES["lrs"], "wds": RATES["wds"], "step_count": "(1, 7, 3)", "num_tensors": "3"}


def settings():
    """(operator, what is particular about it, attributes, states of a weight, arrays after those of all weights)"""
    rates = [np.array([0.1, 0.5, 0.25], "float32"), np.array([0.01, 0, 0.125], "float32")]
    for mixed in ("", "mp_"):
        master = ["weight32"] if mixed else []
        for name, attrs in {
            "plain": {},
            "scaled": {"rescale_grad": "0.5"},
            "clipped": {"rescale_grad": "0.5", "clip_gradient": "0.25"},
            "clipped_to_0": {"clip_gradient": "0"},
        }.items():
            yield f"preloaded_multi_{mixed}sgd_update", name, {**attrs, "num_weights": "3"}, master, rates
            momentum = {**attrs, "num_weights": "3", "momentum": "0.9"}
            yield f"preloaded_multi_{mixed}sgd_mom_update", name, momentum, ["mom", *master], rates
            # MXNet clips by a bound of 0 in neither of these.
            if name == "clipped_to_0":
                continue
            means = ["mean", "var", *master]
            yield f"_multi_{mixed}lamb_update", name, {**LAMB, **attrs}, means, []
            scale = [np.array([float(attrs.pop("rescale_grad", 1))], "float32")]
            yield f"_multi_{mixed}adamw_update", name, {**ADAMW, **attrs}, means, scale
        for name, attrs in {
            "uncorrected": {"bias_correction": "False"},
            "bounded": {"lower_bound": "1.5", "upper_bound": "2.5", "epsilon": "0.01", "beta1": "0.5", "beta2": "0.75"},
        }.items():
            yield f"_multi_{mixed}lamb_update", name, {**LAMB, **attrs}, ["mean", "var", *master], []
        one = {"lr": "0.1", "eta": "0.5", "wd": "0.01", "beta1": "0.5", "epsilon": "0.01"}
        yield f"_{mixed}adamw_update", "single", one, ["mean", "var", *master], [np.array([0.5], "float32")]


def plain(array):
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": [float(f"{x:.9g}") for x in array.ravel()]}


def record(op, name, attrs, states, after):
    rng = np.random.RandomState(sum(map(ord, op + name)))
    narrow = "float16" if "weight32" in states else "float32"
    arrays = []
    for shape in SHAPES if "multi" in op else SHAPES[:1]:
        weight = rng.uniform(-2, 2, shape).astype(narrow)
        arrays += [weight, rng.uniform(-2, 2, shape).astype(narrow)]
        for state in states:
            if state == "weight32":
                arrays.append(weight.astype("float32"))
            else:
                low = 0.5 if state == "var" else -1
                arrays.append(rng.uniform(low, 1, shape).astype("float32"))
    inputs = [mx.nd.array(array, dtype=array.dtype) for array in arrays + after]
    weights = inputs[: len(arrays) : 2 + len(states)]
    outputs = [mx.nd.zeros(weight.shape, dtype=weight.dtype) for weight in weights]  # without them MXNet fails
    (getattr(mx.nd, op, None) or getattr(mx.nd._internal, op))(*inputs, **attrs, out=outputs)
    return {
        "id": f"{op}/{name}",
        "op": op,
        "attrs": attrs,
        "inputs": [plain(array) for array in arrays + after],
        "outputs": [plain(array.asnumpy()) for array in outputs],
        # MXNet's _adamw_update scales the gradient in place, which is no part of the answer.
        "states": {i: plain(inputs[i].asnumpy()) for i in range(len(arrays)) if i % (2 + len(states)) >= 2},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "recorded")
    cases = [record(*each) for each in settings()]
    text = json.dumps({"format": "symbind-updates-1", "mxnet": mx.__version__, "cases": cases})
    with gzip.GzipFile(parser.parse_args().out / "updates.json.gz", "wb", mtime=0) as file:
        file.write(text.replace('{"id"', '\n{"id"').encode())
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
