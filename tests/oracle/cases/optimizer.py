# ruff: noqa: B023 (a case is made at once, before the loop goes on)
"""sgd_update and sgd_mom_update.

The first output is the new weight; the momentum is an auxiliary state.
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
