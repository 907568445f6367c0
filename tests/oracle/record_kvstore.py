#!/usr/bin/env python3
"""Records what MXNet 1.9.1's stores make of pushed gradients: sums over devices, and 2-bit compression.

    python record_kvstore.py              writes recorded/kvstore.json.gz
    python record_kvstore.py --out DIR    writes it somewhere else

See README.md for the environment and the format of what is written.
"""

import argparse
import os
import pathlib

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from record import encode, write_json  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SIZE = 37  # two words of sixteen elements, and a part of a third


def gradients(seed, steps, devices, threshold):
    """Per step and device. Some elements meet the threshold exactly, now or by what was left before."""
    random = np.random.RandomState(seed)
    values = random.normal(0, 1.2, (steps, devices, SIZE)).astype("float32")
    exact = random.randint(0, 3, values.shape) == 0
    steps_of_half = random.randint(-4, 5, values.shape) * np.float32(0.5 * (threshold or 1))
    return np.where(exact, steps_of_half.astype("float32"), values)


def record(store_type, devices, threshold):
    store = mx.kv.create(store_type)
    if threshold is not None:
        store.set_gradient_compression({"type": "2bit", "threshold": threshold})
    store.init("w", mx.nd.zeros((SIZE,)))
    pushed = gradients(len(store_type) + 10 * devices, 4, devices, threshold)
    steps = []
    for step in pushed:
        store.push("w", [mx.nd.array(value, ctx=mx.cpu(i)) for i, value in enumerate(step)])
        out = mx.nd.zeros((SIZE,))
        store.pull("w", out)
        steps.append({"pushed": [encode(value) for value in step], "pulled": encode(out.asnumpy())})
    name = "%s/%d_devices" % (store_type, devices)
    case = {"id": name, "type": store_type, "devices": devices, "steps": steps}
    if threshold is not None:
        case["id"] += "_threshold_%s" % threshold
        case["threshold"] = threshold
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "recorded")
    out = parser.parse_args().out
    cases = [record(kind, devices, None) for kind in ("local", "device") for devices in (1, 2, 3, 4)]
    cases += [record("device", devices, threshold) for devices in (1, 2, 3, 4) for threshold in (0.5, 0.3)]
    write_json(out / "kvstore.json.gz", {"format": "symbind-kvstore-1", "mxnet": mx.__version__, "cases": cases})
    print("%d cases" % len(cases))


if __name__ == "__main__":
    main()
