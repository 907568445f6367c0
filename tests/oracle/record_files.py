#!/usr/bin/env python3
"""Records files that MXNet 1.9.1 writes, and what it makes of files of older generations.

    python record_files.py           write into recorded/files and recorded/old_networks.json
    python record_files.py --out DIR

Needs the environment of record.py (see README.md).
"""

import argparse
import json
import os
import pathlib
import pickle
import struct

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
import old_networks  # noqa: E402
from record import encode, in_child, write_json  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent

# ------------------------------------------------------- arrays, written byte by byte


def i32(*values):
    return struct.pack("<%di" % len(values), *values)


def u32(*values):
    return struct.pack("<%dI" % len(values), *values)


def i64(*values):
    return struct.pack("<%dq" % len(values), *values)


def f32(*values):
    return struct.pack("<%df" % len(values), *values)


def file_of(*arrays, names=()):
    text = b"".join(i64(len(name)) + name.encode() for name in names)
    return i64(0x112, 0, len(arrays)) + b"".join(arrays) + i64(len(names)) + text


V1, V2 = u32(0xF993FAC8), u32(0xF993FAC9)
FIRST = u32(2, 2, 3) + i32(1, 0, 0) + f32(1, 2, 3, 4, 5, 6)
SECOND = V1 + i32(1) + i64(2) + i32(1, 0, 0) + f32(0.5, -1)
THIRD = V2 + i32(0, 1) + i64(2) + i32(1, 0, 0) + f32(7, 8)

OLD_ARRAYS = {
    "first_generation": file_of(FIRST),
    "first_generation_on_gpu": file_of(u32(1, 2) + i32(2, 3, 0) + f32(1, 2)),
    "first_generation_float64": file_of(u32(1, 1) + i32(1, 0, 1) + struct.pack("<d", 2.5)),
    "first_generation_int32": file_of(u32(1, 2) + i32(1, 0, 4) + i32(-3, 4)),
    "first_generation_uint8": file_of(u32(1, 2) + i32(1, 0, 3) + b"\x01\xff"),
    "first_generation_float16": file_of(u32(1, 2) + i32(1, 0, 2) + b"\x00\x3c\x00\xc0"),
    "v1": file_of(SECOND),
    "v1_on_gpu": file_of(V1 + i32(1) + i64(1) + i32(2, 1, 0) + f32(3)),
    "v2_pinned": file_of(V2 + i32(0, 1) + i64(2) + i32(3, 0, 0) + f32(1, 2)),
    "v2_shared_memory": file_of(V2 + i32(0, 1) + i64(2) + i32(5, 0, 0) + f32(1, 2)),
    "v2_unheard_of_device": file_of(V2 + i32(0, 1) + i64(2) + i32(77, 0, 0) + f32(1, 2)),
    "no_elements": file_of(u32(2, 0, 3) + i32(1, 0, 0)),
    "three_generations": file_of(FIRST, SECOND, THIRD, names=("a", "arg:b", "aux:c")),
}


def load_bytes(folder, data):
    path = str(folder / "try.params")
    pathlib.Path(path).write_bytes(data)
    try:
        loaded = mx.nd.load(path)
        keyed = isinstance(loaded, dict)
        arrays = loaded.values() if keyed else loaded
        return {"names": list(loaded) if keyed else None, "arrays": [encode(a.asnumpy()) for a in arrays]}
    finally:
        os.remove(path)


def sparse_files(folder):
    dense = np.zeros((4, 3), "float32")
    dense[1], dense[3] = [1, 2, 3], [4, 0, 5]
    rows = np.zeros((5, 2, 2), "float64")
    rows[2] = [[1, 2], [3, 4]]
    files = {
        "row_sparse.params": {"w": mx.nd.array(dense).tostype("row_sparse"), "d": mx.nd.array([1, 2])},
        "row_sparse_rank_3.params": [mx.nd.array(rows, dtype="float64").tostype("row_sparse")],
        "csr.params": {"c": mx.nd.array(dense).tostype("csr")},
        "empty_sparse.params": [mx.nd.sparse.zeros("row_sparse", (4, 3)), mx.nd.sparse.zeros("csr", (4, 3))],
    }
    expected = []
    for name, content in files.items():
        mx.nd.save(str(folder / name), content)
        keyed = isinstance(content, dict)
        values = list(content.values()) if keyed else content
        expected.append(
            {
                "id": name,
                "names": list(content) if keyed else None,
                "arrays": [encode(v.asnumpy()) for v in values],
            }
        )
    return expected


# ------------------------------------------------------- states of optimizers


def tree(state):
    if state is None:
        return None
    if isinstance(state, tuple | list):
        return [tree(s) for s in state]
    return encode(state.asnumpy())


def plain_fields(optimizer):
    plain = (type(None), bool, int, float, str)
    return {k: v for k, v in vars(optimizer).items() if isinstance(v, plain)}


def updated(name, dtype="float32", **arguments):
    """An updater after three steps on two parameters."""
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, **arguments))
    rng = np.random.RandomState(5)
    weights = [mx.nd.array(rng.uniform(-1, 1, s), dtype=dtype) for s in ((2, 3), (2,))]
    for _ in range(3):
        for index, weight in enumerate(weights):
            updater(index, mx.nd.array(rng.uniform(-1, 1, weight.shape), dtype=dtype), weight)
    return updater


def updaters():
    """{file name: (updater, whether the optimizer is dumped too)}."""
    schedule = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
    steps = mx.lr_scheduler.MultiFactorScheduler([1, 3], 0.5, base_lr=0.1)
    named = updated("sgd", momentum=0.9, param_idx2name={0: "fc_weight", 1: "fc_bias"})
    named.optimizer.set_lr_mult({"fc_weight": 0.5})
    numpy_rate = updated("sgd", momentum=0.5)
    numpy_rate.optimizer.wd = np.float32(0.25)
    return {
        "sgd.states": (updated("sgd"), False),
        "sgd_momentum.states": (updated("sgd", momentum=0.9), False),
        "adam.states": (updated("adam"), False),
        "rmsprop_centered.states": (updated("rmsprop", centered=True), False),
        "dcasgd.states": (updated("dcasgd"), False),
        "sgd_multi_precision.states": (updated("sgd", "float16", momentum=0.9, multi_precision=True), False),
        "adam_multi_precision.states": (updated("adam", "float16", multi_precision=True), False),
        "adam_dumped.states": (updated("adam", learning_rate=0.01), True),
        "sgd_scheduled_dumped.states": (updated("sgd", momentum=0.9, lr_scheduler=schedule), True),
        "sgd_steps_dumped.states": (updated("sgd", momentum=0.9, lr_scheduler=steps), True),
        "sgd_named_dumped.states": (named, True),
        "nadam_dumped.states": (updated("nadam"), True),
        "numpy_number_dumped.states": (numpy_rate, True),
    }


def module_states(folder, kvstore):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    module = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params(mx.init.One())
    module.init_optimizer(kvstore=kvstore, optimizer="adam")
    batch = mx.io.DataBatch([mx.nd.arange(12).reshape((4, 3))], [mx.nd.array([0, 1, 1, 0])])
    for _ in range(2):
        module.forward_backward(batch)
        module.update()
    name = "module_%s.states" % ("two_devices" if kvstore is None else kvstore)
    module.save_optimizer_states(str(folder / name))
    states = pickle.loads((folder / name).read_bytes())
    return {"id": name, "states": [[k, tree(v)] for k, v in states.items()]}


def state_files(folder):
    expected = []
    for name, (updater, dump) in updaters().items():
        (folder / name).write_bytes(updater.get_states(dump_optimizer=dump))
        entry = {"id": name, "states": [[k, tree(v)] for k, v in updater.states.items()]}
        if dump:
            optimizer = updater.optimizer
            entry["optimizer"] = [type(optimizer).__module__, type(optimizer).__name__, plain_fields(optimizer)]
        expected.append(entry)
    states = updated("adam").states
    for protocol in range(6):
        name = "protocol_%d.states" % protocol
        (folder / name).write_bytes(pickle.dumps(states, protocol))
        expected.append({"id": name, "states": [[k, tree(v)] for k, v in states.items()]})
    name = "sparse.states"
    value = mx.nd.array([[1, 2], [0, 0], [3, 4]])
    held = {0: value.tostype("row_sparse"), 1: value.tostype("csr")}
    (folder / name).write_bytes(pickle.dumps(held, 4))
    expected.append({"id": name, "states": [[k, tree(v)] for k, v in held.items()]})
    return expected


# ------------------------------------------------------- networks


def describe(text):
    net = mx.sym.load_json(text)
    return {
        "arguments": net.list_arguments(),
        "auxiliary": net.list_auxiliary_states(),
        "outputs": net.list_outputs(),
        "attributes": net.attr_dict(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "recorded")
    out = parser.parse_args().out
    folder = out / "files"
    folder.mkdir(parents=True, exist_ok=True)

    old_arrays = []
    for name, data in OLD_ARRAYS.items():
        how, answer = in_child(load_bytes, folder, data)
        assert how == "ok", (name, answer)
        old_arrays.append(dict({"id": name, "bytes": data.hex()}, **answer))
    states = state_files(folder)
    for kvstore in ("local", None):
        how, answer = in_child(module_states, folder, kvstore)
        assert how == "ok", answer
        states.append(answer)
    sparse = sparse_files(folder)
    write_json(folder / "expected.json", {"old_arrays": old_arrays, "params": sparse, "states": states})

    networks = []
    for name, text in old_networks.CASES.items():
        how, answer = in_child(describe, text)
        networks.append(dict({"id": name, "text": text, "error": how != "ok"}, **(answer if how == "ok" else {})))
    text = json.dumps({"mxnet": mx.__version__, "networks": networks}, indent=1)
    (out / "old_networks.json").write_text(text + "\n")
    print("%d old arrays, %d params, %d states, %d networks" % tuple(map(len, (old_arrays, sparse, states, networks))))


if __name__ == "__main__":
    main()
