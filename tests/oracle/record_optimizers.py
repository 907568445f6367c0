#!/usr/bin/env python3
"""Records ten steps of every optimizer of MXNet 1.9.1, and the curves of its schedules.

    python record_optimizers.py              writes recorded/optimizers.json.gz
    python record_optimizers.py --out DIR    writes it somewhere else

See README.md for the environment and the format of what is written.
"""

import argparse
import os
import pathlib
import pickle

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from record import encode, in_child, write_json  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 10
NAMES = ["fc_weight", "bn_gamma", "fc_bias"]
SHAPES = [(2, 2), (2,), (1,)]
ROWS = [(2, 2), (2, 1), (1, 2)]  # for the optimizer that knows matrices only


def arrays(seed, shapes, scale):
    """Multiples of 1/64, so that every floating type holds them."""
    random = np.random.RandomState(seed)
    return [random.randint(-64, 65, shape) / 64.0 * scale for shape in shapes]


# --------------------------------------------------------------- schedules


SCHEDULES = {
    "factor": lambda **more: mx.lr_scheduler.FactorScheduler(**{"step": 3, "factor": 0.5, "base_lr": 0.4, **more}),
    "factor_stops": lambda **more: mx.lr_scheduler.FactorScheduler(
        **{"step": 2, "factor": 0.25, "stop_factor_lr": 0.01, "base_lr": 0.4, **more}
    ),
    "factor_every": lambda **more: mx.lr_scheduler.FactorScheduler(
        **{"step": 1, "factor": 0.9, "base_lr": 0.4, **more}
    ),
    "multi_factor": lambda **more: mx.lr_scheduler.MultiFactorScheduler(
        **{"step": [4, 9, 17], "factor": 0.1, "base_lr": 0.4, **more}
    ),
    "poly": lambda **more: mx.lr_scheduler.PolyScheduler(
        **{"max_update": 20, "base_lr": 0.4, "pwr": 2, "final_lr": 0.01, **more}
    ),
    "poly_line": lambda **more: mx.lr_scheduler.PolyScheduler(
        **{"max_update": 20, "base_lr": 0.4, "pwr": 1, "final_lr": 0, **more}
    ),
    "cosine": lambda **more: mx.lr_scheduler.CosineScheduler(
        **{"max_update": 20, "base_lr": 0.4, "final_lr": 0.01, **more}
    ),
}
WARM_UPS = {
    "": {},
    "warm_linear": {"warmup_steps": 5, "warmup_begin_lr": 0.1, "warmup_mode": "linear"},
    "warm_linear_from_0": {"warmup_steps": 4},
    "warm_constant": {"warmup_steps": 5, "warmup_begin_lr": 0.05, "warmup_mode": "constant"},
}
CALLS = {
    "each": list(range(1, 31)),
    "jumps": [0, 1, 2, 7, 7, 12, 20, 25],
}


def record_schedules():
    curves = []
    for name, make in SCHEDULES.items():
        for warm_up, arguments in WARM_UPS.items():
            for how, calls in CALLS.items():
                schedule = make(**arguments)
                curves.append(
                    {
                        "id": "/".join(part for part in (name, warm_up, how) if part),
                        "schedule": name,
                        "warm_up": warm_up,
                        "calls": calls,
                        "rates": [schedule(update) for update in calls],
                    }
                )
    return curves


# -------------------------------------------------------------- optimizers


def cases():
    """(id, optimizer, arguments, more): more holds what is not an argument of the optimizer."""
    common = {
        "plain": {},
        "wd": {"wd": 0.125},
        "rescale": {"rescale_grad": 0.25, "wd": 0.0625},
        "clip": {"clip_gradient": 0.25, "rescale_grad": 2.0, "wd": 0.125},
        "rate": {"learning_rate": 0.1, "wd": 0.01},
    }
    kinds = {
        "sgd": {"": {}, "momentum": {"momentum": 0.9}, "eager": {"momentum": 0.9, "lazy_update": False}},
        "ccsgd": {"momentum": {"momentum": 0.9}},
        "nag": {"": {}, "momentum": {"momentum": 0.9}},
        "dcasgd": {"": {}, "momentum": {"momentum": 0.9, "lamda": 0.1}},
        "signum": {"": {}, "no_momentum": {"momentum": 0.0}, "wd_lh": {"momentum": 0.5, "wd_lh": 0.25}},
        "adam": {"": {}, "betas": {"beta1": 0.5, "beta2": 0.75, "epsilon": 1e-3}},
        "adamax": {"": {}, "betas": {"beta1": 0.5, "beta2": 0.75}},
        "nadam": {"": {}, "betas": {"beta1": 0.5, "beta2": 0.75, "epsilon": 1e-3, "schedule_decay": 0.5}},
        "adagrad": {"": {}, "eps": {"eps": 0.01}},
        "rmsprop": {
            "": {},
            "gammas": {"gamma1": 0.5, "epsilon": 0.01},
            "clip_weights": {"clip_weights": 0.5},
            "centered": {"centered": True},
            "centered_gammas": {"centered": True, "gamma1": 0.5, "gamma2": 0.25, "epsilon": 0.01},
            "centered_clip_weights": {"centered": True, "clip_weights": 0.5},
        },
        "adadelta": {"": {}, "rho": {"rho": 0.5, "epsilon": 0.01}},
        "ftrl": {"": {}, "lamda1": {"lamda1": 0.5, "beta": 0.25}},
        "ftml": {"": {}, "betas": {"beta1": 0.25, "beta2": 0.5, "epsilon": 1e-3}},
        "lars": {
            "": {},
            "momentum": {"momentum": 0.9, "eta": 0.1},
            "uncorrected": {"momentum": 0.9, "momentum_correction": False, "eps": 0.01},
        },
        "lamb": {
            "": {},
            "betas": {"beta1": 0.5, "beta2": 0.75, "epsilon": 1e-3},
            "bounds": {"lower_bound": 0.5, "upper_bound": 1.0},
            "uncorrected": {"bias_correction": False},
        },
        "lbsgd": {
            "": {},
            "momentum": {"momentum": 0.9},
            "linear": {"momentum": 0.9, "batch_scale": 2, "updates_per_epoch": 2, "warmup_epochs": 2},
            "power2": {"batch_scale": 3, "updates_per_epoch": 2, "warmup_epochs": 4, "warmup_strategy": "power2"},
            "sqrt": {"batch_scale": 2, "updates_per_epoch": 3, "warmup_epochs": 4, "warmup_strategy": "sqrt"},
            "lars": {"momentum": 0.9, "batch_scale": 2, "warmup_strategy": "lars"},
            "begun": {"batch_scale": 2, "updates_per_epoch": 3, "begin_epoch": 1, "num_epochs": 3},
        },
        "groupadagrad": {"": {}, "eps": {"eps": 0.01}},
        "test": {"": {}},
    }
    with_scheduler = {"sgd", "adam", "nag", "ftml", "lars", "lbsgd", "rmsprop", "lamb"}
    for optimizer, variants in kinds.items():
        for variant, arguments in variants.items():
            for name, shared in common.items():
                if variant and name != "clip" and (name != "wd" or variant not in ("momentum", "centered")):
                    continue
                if optimizer == "groupadagrad" and "wd" in shared:
                    shared = {key: value for key, value in shared.items() if key != "wd"}
                yield f"{optimizer}/{variant or 'default'}/{name}", optimizer, {**arguments, **shared}, {}
        first = next(iter(variants.values()))
        last = list(variants.values())[-1]
        decay = {} if optimizer == "groupadagrad" else {"wd": 0.125}
        for name, arguments in (("default", first), ("last", last)) if len(variants) > 1 else (("default", first),):
            half = {**arguments, **decay, "learning_rate": 0.125}
            if name == "last" or len(variants) == 1:
                yield f"{optimizer}/{name}/half", optimizer, half, {"dtype": "float16"}
            master = {**half, "multi_precision": True}
            yield f"{optimizer}/{name}/master", optimizer, master, {"dtype": "float16"}
            if name == "last":
                master = {**master, "clip_gradient": 0.25, "rescale_grad": 0.5}
                yield f"{optimizer}/{name}/master_clip", optimizer, master, {"dtype": "float16"}
            yield f"{optimizer}/{name}/double", optimizer, {**arguments, **decay}, {"dtype": "float64"}
        multipliers = {**last, **decay, "learning_rate": 0.1}
        if optimizer in ("sgd", "lars"):
            yield f"{optimizer}/mults_set", optimizer, multipliers, {"lr_mult": {"fc_weight": 0.5, "fc_bias": 2.0}}
            yield f"{optimizer}/mults_by_number", optimizer, multipliers, {"lr_mult": {0: 0.5}, "wd_mult": {2: 2.0}}
            yield (
                f"{optimizer}/mults_symbol",
                optimizer,
                multipliers,
                {"symbol_mults": {"fc_weight": [0.25, 2.0], "fc_bias": [3.0, 0.5]}},
            )
        yield (
            f"{optimizer}/mults_both",
            optimizer,
            multipliers,
            {
                "symbol_mults": {"fc_weight": [0.25, 2.0], "fc_bias": [3.0, 0.5]},
                "lr_mult": {"fc_weight": 0.5},
                "wd_mult": {"fc_bias": 2.0, "bn_gamma": 0.5},
            },
        )
        if optimizer in with_scheduler:
            yield f"{optimizer}/schedule", optimizer, {**last, **decay}, {"schedule": ["factor", "warm_linear"]}
            yield (
                f"{optimizer}/schedule_and_rate",
                optimizer,
                {**last, **decay, "learning_rate": 0.2},
                {"schedule": ["multi_factor", ""]},
            )
            yield (
                f"{optimizer}/schedule_begun",
                optimizer,
                {**last, **decay, "begin_num_update": 5},
                {"schedule": ["poly", ""]},
            )
        yield f"{optimizer}/begun", optimizer, {**last, **decay, "begin_num_update": 7}, {}


def encode_state(state):
    if state is None:
        return None
    if isinstance(state, tuple):
        return [encode_state(item) for item in state]
    if isinstance(state, mx.nd.NDArray):
        return encode(state.asnumpy())
    raise TypeError(f"a state of type {type(state).__name__}")


def symbol_with(multipliers):
    symbols = []
    for name in NAMES:
        rate, decay = multipliers.get(name, (None, None))
        symbols.append(mx.sym.Variable(name, lr_mult=rate, wd_mult=decay))
    return mx.sym.Group(symbols)


def run(optimizer, arguments, more, weights, gradients):
    dtype = more.get("dtype", "float32")
    arguments = dict(arguments, param_idx2name=dict(enumerate(NAMES)))
    if "symbol_mults" in more:
        arguments["sym"] = symbol_with(more["symbol_mults"])
    if "schedule" in more:
        name, warm_up = more["schedule"]
        arguments["lr_scheduler"] = SCHEDULES[name](**WARM_UPS[warm_up])
    instance = mx.optimizer.create(optimizer, **arguments)
    if "lr_mult" in more:
        instance.set_lr_mult(more["lr_mult"])
    if "wd_mult" in more:
        instance.set_wd_mult(more["wd_mult"])
    updater = mx.optimizer.get_updater(instance)
    values = [mx.nd.array(value, dtype=dtype) for value in weights]
    steps = []
    for step in gradients:
        for index, gradient in enumerate(step):
            updater(index, mx.nd.array(gradient, dtype=dtype), values[index])
        states = pickle.loads(updater.get_states())
        steps.append(
            {
                "weights": [encode(value.asnumpy()) for value in values],
                "states": [encode_state(states[index]) for index in range(len(values))],
            }
        )
    return {"learning_rate": instance.learning_rate, "num_update": instance.num_update, "steps": steps}


def record_optimizers(weights, gradients):
    recorded, rejected = [], []
    for name, optimizer, arguments, more in cases():
        shapes = "rows" if optimizer == "groupadagrad" else "plain"
        how, answer = in_child(run, optimizer, arguments, more, weights[shapes], gradients[shapes])
        head = {"id": name, "optimizer": optimizer, "arguments": arguments, "shapes": shapes, **more}
        # Members that are numbers as keys would become text unseen.
        for key in ("lr_mult", "wd_mult"):
            if key in head:
                head[key] = [[index, value] for index, value in head[key].items()]
        if how == "ok":
            recorded.append({**head, **answer})
        else:
            rejected.append({**head, "how": how})
            if os.environ.get("ORACLE_VERBOSE"):
                print(name, how, answer)
    return recorded, rejected


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "recorded")
    out = parser.parse_args().out
    weights = {"plain": arrays(1, SHAPES, 1), "rows": arrays(2, ROWS, 1)}
    gradients = {
        kind: [arrays(100 + step, shapes, 2) for step in range(STEPS)]
        for kind, shapes in (("plain", SHAPES), ("rows", ROWS))
    }
    recorded, rejected = record_optimizers(weights, gradients)
    content = {
        "format": "symbind-optimizers-1",
        "mxnet": mx.__version__,
        "names": NAMES,
        "weights": {kind: [encode(value) for value in values] for kind, values in weights.items()},
        "gradients": {kind: [[encode(value) for value in step] for step in steps] for kind, steps in gradients.items()},
        "schedules": record_schedules(),
        "cases": recorded,
        "rejected": rejected,
    }
    size = write_json(out / "optimizers.json.gz", content)
    print(f"optimizers: {len(recorded)} cases, {len(rejected)} rejected, {size} bytes unpacked")


if __name__ == "__main__":
    main()
