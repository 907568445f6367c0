# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""The update operators.

The first output is the new weight; momenta and the like are auxiliary states.
"""

import numpy as np

from .common import DTYPES, case


def cases():
    for op in ("sgd_update", "sgd_mom_update"):
        momentum = op == "sgd_mom_update"

        def make(*shape, dtype="float32"):
            def inputs(v):
                result = {"weight": v.real(*shape, dtype=dtype), "grad": v.real(*shape, dtype=dtype, low=-4, high=4)}
                if momentum:
                    result["mom"] = v.real(*shape, dtype=dtype)
                return result

            return inputs

        def step(name, make, attrs, **more):
            return case(op, name, make, attrs, grad_req="null", **more)

        for dtype in DTYPES:
            yield step(dtype, make(3, 4, dtype=dtype), {"lr": "0.5"})
            yield step(dtype + "_wd", make(3, 4, dtype=dtype), {"lr": "0.5", "wd": "0.25", "rescale_grad": "0.5"})
        settings = [
            ("lr", {"lr": "0.1"}),
            ("lr0", {"lr": "0"}),
            ("lr_exponent", {"lr": "1e-3"}),
            ("wd", {"lr": "0.1", "wd": "0.01"}),
            ("rescale", {"lr": "0.1", "rescale_grad": "0.125"}),
            ("clip", {"lr": "0.1", "clip_gradient": "0.5"}),
            ("clip0", {"lr": "0.1", "clip_gradient": "0"}),
            ("clip_negative", {"lr": "0.1", "clip_gradient": "-2"}),
            ("clip_rescale", {"lr": "0.1", "clip_gradient": "1", "rescale_grad": "0.5"}),
            ("clip_wd", {"lr": "0.1", "clip_gradient": "1", "wd": "0.5"}),
            ("eager", {"lr": "0.1", "lazy_update": "False"}),
            ("all", {"lr": "0.05", "wd": "1e-4", "rescale_grad": "0.03125", "clip_gradient": "0.1"}),
        ]
        for name, attrs in settings:
            yield step(name, make(3, 4), attrs)
            if momentum:
                yield step(name + "_momentum", make(3, 4), dict(attrs, momentum="0.9"))
        yield step("odd", make(3, 1, 7), {"lr": "0.1"})
        yield step("one", make(1), {"lr": "0.1"})
        yield step("missing_lr", make(2), {}, expect_error=True)
        yield step(
            "nan",
            lambda v: dict(make(3)(v), grad=np.array([np.nan, np.inf, -np.inf], "float32")),
            {"lr": "0.1", "clip_gradient": "1"},
        )
        yield step("mixed_shape", lambda v: dict(make(2)(v), grad=v.real(3)), {"lr": "0.1"}, expect_error=True)

    yield from other_cases()


# The states of each operator, and those of its attributes that matter besides the common ones.
OTHERS = {
    "nag_mom_update": (["mom"], {"momentum": "0.9"}),
    "signsgd_update": ([], {}),
    "signum_update": (["mom"], {"momentum": "0.75", "wd_lh": "0.125"}),
    "adam_update": (["mean", "var"], {"beta1": "0.75", "beta2": "0.5", "epsilon": "0.01"}),
    "ftrl_update": (["z", "n"], {"lamda1": "0.5", "beta": "0.5"}),
    "rmsprop_update": (["n"], {"gamma1": "0.75", "epsilon": "0.01", "clip_weights": "0.75"}),
    "rmspropalex_update": (["n", "g", "delta"], {"gamma1": "0.75", "gamma2": "0.5", "epsilon": "2"}),
    "lamb_update_phase1": (["mean", "var"], {"t": "3", "beta1": "0.75", "epsilon": "0.01"}),
}
POSITIVE = {"var", "n"}  # means of squares


def other_cases():
    for op, (states, special) in OTHERS.items():

        def make(*shape):
            def inputs(v):
                result = {"weight": v.real(*shape), "grad": v.real(*shape, low=-4, high=4)}
                for state in states:
                    result[state] = v.real(*shape, low=0.5, high=2) if state in POSITIVE else v.real(*shape)
                return result

            return inputs

        rate = {} if op == "lamb_update_phase1" else {"lr": "0.125"}
        least = dict(rate, t="1", wd="0") if op == "lamb_update_phase1" else rate
        # The momentum's decay comes from the new weight where it is written over the old one, as optimizers do, and
        # from the old one otherwise: optimizers.json.gz has the former.
        wd = "0" if op == "nag_mom_update" else "0.25"
        settings = [
            ("plain", least),
            ("special", {**least, **special}),
            ("wd", {**least, **special, "wd": wd, "rescale_grad": "0.5"}),
            ("clip", {**least, **special, "wd": wd, "clip_gradient": "0.5"}),
        ]
        for name, attrs in settings:
            yield case(op, name, make(3, 4), attrs, grad_req="null")
        yield case(op, "odd", make(3, 1, 7), least, grad_req="null")
        yield case(op, "missing", make(2), {}, grad_req="null", expect_error=True)
        if op == "lamb_update_phase1":
            for t in ("0", "-3"):
                attrs = {"t": t, "wd": "0.25", "bias_correction": "False"}
                yield case(op, "not_corrected_" + t, make(3, 4), attrs, grad_req="null")
