"""What the processes of bench/layers.py and operators.py share: the arrays of a layer, the clock, and the protocol.

A process reads a JSON request per line and answers with one. "prepare" builds a layer and computes it once, "time"
times it for some milliseconds, "save" writes its results to a file, "compare" compares them with those of such a file.
"""

import json
import os
import statistics
import sys
import time
import zlib

import numpy as np

# The largest difference that rounding explains, relative to the largest number of an array.
TOLERANCES = {"float32": 3e-4, "float16": 5e-2, "bfloat16": 8e-2}  # PyTorch adds some gradients in half precision


FROM_NORMAL = {
    "positive": lambda x: np.abs(x) + 0.1,
    "above one": lambda x: np.abs(x) + 1.1,
    "below one": lambda x: np.tanh(x) * 0.99,
    "truth": lambda x: (x > 0).astype(np.float32),
    "probability": lambda x: np.clip(np.abs(x) / 4, 0.01, 0.99),
    "definite": lambda x: x @ np.swapaxes(x, -1, -2) / x.shape[-1] + np.eye(x.shape[-1], dtype=np.float32),
    "triangular": lambda x: np.tril(x) / x.shape[-1] + np.eye(x.shape[-1], dtype=np.float32),
    "boxes": lambda x: np.sort(np.abs(x.reshape(*x.shape[:-1], 2, 2)), axis=-2).reshape(x.shape),
}


def array_of(layer, name, shape):
    """The same numbers in every process: normal ones, scaled so that a sum over a weight's inputs stays near one, or
    what the layer wants."""
    random = np.random.RandomState((layer["seed"] * 1000003 + zlib.crc32(name.encode())) % 2**32)
    wanted = layer.get("values", {}).get(name)
    if isinstance(wanted, int):  # indices below a number
        return random.randint(0, wanted, tuple(shape)).astype(np.float32)
    values = random.standard_normal(tuple(shape)).astype(np.float32)
    if wanted:
        return FROM_NORMAL[wanted](values)
    if name == "moving_var":
        return np.abs(values) + 0.5
    if name == "weight" and len(shape) > 1:
        values /= np.sqrt(np.prod(shape[1:]))
    return values


def median_ms(step, milliseconds, clock=time.perf_counter):
    """The median time of a step, over as many as fit."""
    times = []
    end = clock() + milliseconds / 1e3
    while not times or clock() < end:
        start = clock()
        step()
        times.append(clock() - start)
    return statistics.median(times) * 1e3


def differences(layer, ours, theirs):
    """What differs by more than rounding explains, as text; nothing if all agree."""
    found = []
    tolerance = TOLERANCES[layer["dtype"]]
    for name, theirs_of_name in theirs.items():
        mine = ours[name]
        if mine.shape != theirs_of_name.shape:
            found.append(f"{name}: shapes {mine.shape} and {theirs_of_name.shape}")
            continue
        if mine.size == 0:
            continue
        largest = max(1e-3, float(np.max(np.abs(theirs_of_name))))
        error = float(np.max(np.abs(mine - theirs_of_name))) / largest
        if not error <= tolerance:
            found.append(f"{name}: {error:.1e}")
    return ", ".join(found)


def type_of(layer, name):
    """BatchNorm keeps its scales and statistics in float32 whatever the data are."""
    return "float32" if layer["kind"] == "BatchNorm" and name not in ("data", "out_grad") else layer["dtype"]


def serve(build):
    """`build(layer)` returns (functions to time by mode, a function that computes the results by name)."""
    layer = modes = results = None
    # On a busy machine the seconds of all threads of a process say more than those on the wall.
    clock = time.process_time if os.environ.get("LAYERS_CLOCK") == "cpu" else time.perf_counter
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        try:
            if request["do"] == "prepare":
                layer = modes = results = None  # the last layer's memory comes first
                layer = request["layer"]
                modes, compute = build(layer)
                results = compute()
                answer["once_ms"] = {mode: median_ms(step, 0, clock) for mode, step in modes.items()}
            elif request["do"] == "time":
                answer["ms"] = median_ms(modes[request["mode"]], request["milliseconds"], clock)
            elif request["do"] == "save":
                np.savez(request["file"], **results)
            elif request["do"] == "compare":
                with np.load(request["file"]) as ours:
                    answer["differences"] = differences(layer, ours, results)
        except Exception as error:  # noqa: BLE001 - a library that cannot do a layer is left out of it
            text = (str(error).strip().splitlines() or [""])[0]
            answer["error"] = f"{type(error).__name__}: {text}"[:200]
        print(json.dumps(answer), flush=True)
