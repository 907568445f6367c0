#!/usr/bin/env python3
"""Records what MXNet 1.9.1 answers for the cases in cases/*.py.

    python record.py                 record every family and the facts
    python record.py conv pool       record the named families only
    python record.py facts           record the symbol facts and .params files
    python record.py --list          list the families
    ORACLE_VERBOSE=1                 say why cases were rejected
    python record.py --out DIR ...   write somewhere else (default: recorded/)

See README.md for the environment and the format of what is written.
"""

import ctypes
import gzip
import importlib
import json
import os
import pathlib
import pickle
import select
import signal
import sys
import time

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet._ctypes.symbol import _symbol_creator  # noqa: E402
from mxnet.base import _LIB, OpHandle, c_str, check_call  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

FAMILIES = [
    "elementwise",
    "scalar",
    "broadcast",
    "reduce",
    "matrix",
    "cast",
    "fully_connected",
    "conv",
    "pool",
    "batch_norm",
    "activation",
    "dropout",
    "rnn",
    "loss",
    "regression",
    "softmax",
    "gather",
    "math",
    "choices",
    "fold",
    "shapes",
    "indices",
    "layers",
    "sort",
    "sequence",
    "ctc",
    "linalg",
    "hawkes",
    "vision",
    "detection",
    "contrib",
    "image_ops",
    "creation",
    "random",
    "density",
    "amp",
    "optimizer",
]

CHILD_LIMIT_S = 20


# --------------------------------------------------------------- encoding

_DIGITS = {"float16": "%.5g", "float32": "%.9g", "float64": "%.17g"}


def encode(array):
    """numpy array -> {"dtype", "shape", "data"} (see README.md)."""
    array = np.asarray(array)
    dtype = array.dtype.name
    flat = array.ravel()
    if dtype in _DIGITS:
        form = _DIGITS[dtype]
        data = []
        for value in flat.tolist():
            if value != value:
                data.append("nan")
            elif value in (float("inf"), float("-inf")):
                data.append("inf" if value > 0 else "-inf")
            else:
                value = float(form % value)
                data.append(int(value) if value.is_integer() and abs(value) < 1e6 and str(value) != "-0.0" else value)
    else:
        data = [int(value) for value in flat.tolist()]
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


def write_json(path, value):
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    text = text.replace('{"id":', '\n{"id":')  # one case per line
    raw = text.encode() + b"\n"
    if path.suffix == ".gz":
        with open(path, "wb") as out:
            with gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
                packed.write(raw)
    else:
        path.write_bytes(raw)
    return len(raw)


# --------------------------------------------------- running in a child


def in_child(function, *arguments):
    """("ok", value), ("raise", text), ("crash", signal) or ("timeout", None).

    A fresh process per call: neither a crash nor a stuck engine reaches us.
    """
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        try:
            answer = ("ok", function(*arguments))
        except BaseException as error:  # noqa: B902
            answer = ("raise", str(error).strip())
        with os.fdopen(write_end, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(write_end)
    chunks = []
    deadline = time.time() + CHILD_LIMIT_S
    timed_out = False
    while True:
        ready, _, _ = select.select([read_end], [], [], max(0, deadline - time.time()))
        if not ready:
            timed_out = True
            os.kill(pid, signal.SIGKILL)
            break
        chunk = os.read(read_end, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    if timed_out:
        return "timeout", None
    if not chunks or os.WIFSIGNALED(status):
        return "crash", os.WTERMSIG(status)
    return pickle.loads(b"".join(chunks))


# ----------------------------------------------------------- one operator


def make_symbol(op, names, attrs):
    """The operator applied to one variable per name, in order."""
    handle = OpHandle()
    check_call(_LIB.NNGetOpHandle(c_str(op), ctypes.byref(handle)))
    variables = [mx.sym.Variable(name) for name in names]
    return _symbol_creator(handle.value, variables, None, list(attrs), list(attrs.values()), "op", False, False)


def nd(array):
    return mx.nd.array(array, dtype=array.dtype)


def run_case(case, is_train, with_backward, onednn=True):
    """Binds and runs `case`; everything it saw, as numpy arrays."""
    if not onednn:  # read once per process, at the first operator
        os.environ["MXNET_MKLDNN_ENABLED"] = "0"
    symbol = make_symbol(case["op"], list(case["inputs"]), case["attrs"])
    aux_names = symbol.list_auxiliary_states()
    args = {k: nd(v) for k, v in case["inputs"].items() if k not in aux_names}
    aux = {k: nd(v) for k, v in case["inputs"].items() if k in aux_names}
    grad_req = case["grad_req"] if with_backward else "null"
    grads, init_grads = None, {}
    if with_backward:
        rng = np.random.RandomState(case["seed"] ^ 0x5BD1E995)
        for name, value in case["inputs"].items():
            if name not in args or name in case["no_grad"]:
                continue
            start = small(rng, value.shape, value.dtype)
            if case["grad_req"] == "write" and value.dtype.kind == "f":
                start = start + np.asarray(77, value.dtype)
            elif case["grad_req"] == "write" and value.dtype.kind != "b":
                start = start + np.asarray(99, value.dtype)
            init_grads[name] = start
        grads = {k: nd(v) for k, v in init_grads.items()}
    reqs = {k: "null" if k in case["no_grad"] else grad_req for k in args} if case["no_grad"] else grad_req
    executor = symbol.bind(mx.cpu(), args, args_grad=grads, grad_req=reqs, aux_states=aux)
    outputs = [o.asnumpy() for o in executor.forward(is_train=is_train)]
    seen = {"outputs": outputs, "output_names": symbol.list_outputs(), "aux_names": aux_names}
    if with_backward:
        rng = np.random.RandomState(case["seed"] ^ 0x2545F491)
        out_grads = [small(rng, o.shape, o.dtype) for o in outputs]
        if case["out_grads"] is not None:
            out_grads = [np.asarray(g, o.dtype).reshape(o.shape) for g, o in zip(case["out_grads"], outputs)]
        executor.backward([nd(g) for g in out_grads])
        seen["out_grads"] = out_grads
        seen["grads"] = {k: v.asnumpy() for k, v in grads.items()}
        if grad_req == "write":
            # Some operators never write the gradient of an input (labels).
            seen["untouched"] = [k for k, v in seen["grads"].items() if same(v, init_grads[k])]
            for name in seen["untouched"]:
                del seen["grads"][name]
        seen["init_grads"] = init_grads
    mx.nd.waitall()
    seen["aux_after"] = {k: v.asnumpy() for k, v in aux.items()}
    # Some operators write to an ordinary argument (BatchNorm sets gamma).
    seen["args_after"] = {k: v.asnumpy() for k, v in args.items() if not same(v.asnumpy(), case["inputs"][k])}
    return seen


def small(rng, shape, dtype):
    """Small values that float16 holds exactly."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return (rng.randint(-64, 65, shape) / 32.0).astype(dtype)
    if kind == "b":
        return rng.randint(0, 2, shape).astype(dtype)
    return rng.randint(0 if kind == "u" else -3, 4, shape).astype(dtype)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def close(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return same(a, b)
    limit = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-12}[a.dtype.name]
    return np.allclose(a, b, rtol=limit, atol=limit, equal_nan=True)


def shape_only(array):
    return {"dtype": array.dtype.name, "shape": list(array.shape)}


PARTS = ("outputs", "grads", "aux_after", "args_after")


def encode_parts(seen, put, unlike=None):
    """The parts of `seen` to store; only those that differ from `unlike`."""
    result = {}
    for part in PARTS:
        value = seen.get(part)
        if value is None or (unlike is None and not value):
            continue
        if unlike is not None:
            other = unlike.get(part, {})
            if part == "outputs":
                equal = all(close(a, b) for a, b in zip(value, other))
            else:
                equal = set(value) == set(other) and all(close(v, other[k]) for k, v in value.items())
            if equal:
                continue
        if part == "outputs":
            result[part] = [put(v) for v in value]
        else:
            result[part] = {k: put(v) for k, v in value.items()}
    return result


def record_case(case):
    """(record, None) or (None, rejection)."""
    values = case["compare"] == "values"
    put = encode if values else shape_only
    record = {
        "id": case["id"],
        "op": case["op"],
        "attrs": case["attrs"],
        "inputs": [{"name": k, "role": "arg", "array": encode(v)} for k, v in case["inputs"].items()],
    }
    if case.get("quirk"):
        record["quirk"] = case["quirk"]
    wanted = case["grad_req"] != "null"
    attempts = [(wanted, True)]
    if not case["expect_error"]:
        # Without the backward pass; then the same two without oneDNN.
        attempts += [(False, True), (wanted, False), (False, False)]
    how = None
    for backward, onednn in attempts:
        attempt, seen = in_child(run_case, case, True, backward, onednn)
        how = how or attempt
        if attempt == "ok":
            break
    else:
        if case["expect_error"]:
            record["error"] = True
            record["grad_req"] = case["grad_req"]
            if wanted and in_child(run_case, case, True, False)[0] == "ok":
                print("    only backward fails: " + case["id"])
            return record, None
        if os.environ.get("ORACLE_VERBOSE"):
            print("    %s: %s: %s" % (case["id"], how, str(seen)[-160:]))
        return None, {
            "id": case["id"],
            "op": case["op"],
            "attrs": case["attrs"],
            "inputs": [{"name": k, "dtype": v.dtype.name, "shape": list(v.shape)} for k, v in case["inputs"].items()],
            "how": how,
        }
    if case["expect_error"]:
        print("    no error after all: " + case["id"])
    if wanted and not backward:
        record["backward"] = how
    if not onednn:
        record["onednn"] = False
    for entry in record["inputs"]:
        if entry["name"] in seen["aux_names"]:
            entry["role"] = "aux"
    record["grad_req"] = case["grad_req"] if backward else "null"
    record["compare"] = case["compare"]
    record["output_names"] = [n[len("op_") :] for n in seen["output_names"]]
    if backward:
        record["out_grads"] = [encode(g) for g in seen["out_grads"]]
        if case["grad_req"] == "add":
            record["init_grads"] = {k: encode(v) for k, v in seen["init_grads"].items()}
    if backward and case["grad_req"] == "add":
        attempt, written = in_child(run_case, dict(case, grad_req="write"), True, True, onednn)
        sane = dict(seen["init_grads"])
        if attempt == "ok":
            for name, value in written["grads"].items():
                sane[name] = sane[name] + value
            if not all(close(sane[k], v) for k, v in seen["grads"].items()):
                record.setdefault("quirk", "the gradient is not the old one plus what write gives")
                record["sane_grads"] = {k: put(v) for k, v in sane.items()}
    if seen.get("untouched"):
        record["untouched_grads"] = seen["untouched"]
    record.update(encode_parts(seen, put))
    attempt, predicted = in_child(run_case, case, False, False, onednn)
    if attempt != "ok":
        record["infer"] = {"error": True}
    elif values:
        differs = encode_parts(predicted, put, seen)
        if differs:
            record["infer"] = differs
    if values and onednn:
        attempt, plain = in_child(run_case, case, True, backward, False)
        if attempt == "ok":
            differs = encode_parts(plain, put, seen)
            if differs:
                record["without_onednn"] = differs
    return record, None


def record_family(family, out):
    module = importlib.import_module("cases." + family)
    cases = list(module.cases())
    seen = set()
    records, rejected = [], []
    start = time.time()
    for case in cases:
        assert case["id"] not in seen, case["id"]
        seen.add(case["id"])
        record, rejection = record_case(case)
        if record is not None:
            records.append(record)
        else:
            rejected.append(rejection)
    size = write_json(
        out / (family + ".json.gz"),
        {
            "format": "symbind-oracle-1",
            "mxnet": mx.__version__,
            "family": family,
            "cases": records,
            "rejected": rejected,
        },
    )
    print(
        "%-16s %4d recorded %4d rejected  %7d bytes  %5.1f s"
        % (family, len(records), len(rejected), size, time.time() - start)
    )


def main(argv):
    out = HERE / "recorded"
    if "--out" in argv:
        at = argv.index("--out")
        out = pathlib.Path(argv[at + 1])
        del argv[at : at + 2]
    if "--list" in argv:
        print("\n".join(FAMILIES + ["facts"]))
        return 0
    out.mkdir(parents=True, exist_ok=True)
    assert mx.__version__ == "1.9.1", mx.__version__
    for name in argv or FAMILIES + ["facts"]:
        if name == "facts":
            import facts

            facts.record(out, in_child, encode, write_json)
        elif name in FAMILIES:
            record_family(name, out)
        else:
            print("unknown family: " + name, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
