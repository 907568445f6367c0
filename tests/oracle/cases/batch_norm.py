"""BatchNorm."""

import numpy as np

from .common import DTYPES, case

OP = "BatchNorm"


def make(shape, axis=1, dtype="float32", parameter_dtype=None):
    def inputs(v):
        channels = shape[axis]
        kind = parameter_dtype or dtype
        return {
            "data": v.real(*shape, dtype=dtype),
            "gamma": v.nonzero(channels, dtype=kind, low=0.25),
            "beta": v.real(channels, dtype=kind),
            "moving_mean": v.real(channels, dtype=kind, low=-1, high=1),
            "moving_var": v.nonzero(channels, dtype=kind, low=0.5, high=2),
        }

    return inputs


def cases():
    for dtype in DTYPES:
        for fix in ("True", "False"):
            yield case(OP, "%s_fix_%s" % (dtype, fix), make((4, 3), dtype=dtype), {"fix_gamma": fix})
    for dtype in ("float16", "float64"):
        yield case(
            OP,
            dtype + "_parameters_float32",
            make((4, 3), dtype=dtype, parameter_dtype="float32"),
            {"fix_gamma": "False"},
        )
    settings = [
        ("default", {}),
        ("fix", {"fix_gamma": "True"}),
        ("free", {"fix_gamma": "False"}),
        ("eps", {"eps": "0.1"}),
        ("eps_tiny", {"eps": "2e-5", "fix_gamma": "False"}),
        ("eps_below_0", {"eps": "-0.25", "fix_gamma": "False"}),
        ("momentum", {"momentum": "0.5"}),
        ("momentum0", {"momentum": "0"}),
        ("momentum1", {"momentum": "1"}),
        ("global", {"use_global_stats": "True"}),
        ("global_free", {"use_global_stats": "True", "fix_gamma": "False", "eps": "0.01"}),
        ("mean_var", {"output_mean_var": "True"}),
        ("mean_var_free", {"output_mean_var": "True", "fix_gamma": "False", "eps": "0.5", "momentum": "0.7"}),
        ("mean_var_global", {"output_mean_var": "True", "use_global_stats": "True"}),
        ("cudnn_off", {"cudnn_off": "True"}),
        ("calibrated", {"min_calib_range": "-1.0", "max_calib_range": "1.0"}),
    ]
    for where, shape in [("2d", (5, 3)), ("4d", (2, 3, 2, 2))]:
        for name, attrs in settings:
            yield case(OP, where + "_" + name, make(shape), attrs)
    for name, shape, axis in [
        ("3d", (2, 3, 4), 1),
        ("5d", (2, 2, 2, 1, 3), 1),
        ("axis0", (3, 4), 0),
        ("axis_last", (2, 3, 4), -1),
        ("axis2", (2, 3, 4), 2),
        ("axis3", (2, 2, 2, 3), 3),
        ("axis_minus2", (2, 3, 4), -2),
        ("odd", (3, 1, 7), 1),
        ("one_channel", (7, 1), 1),
        ("one_sample", (1, 3), 1),
        ("one_image", (1, 2, 3, 3), 1),
        ("sixteen", (2, 16, 2, 1), 1),
    ]:
        attrs = {"fix_gamma": "False"}
        if axis != 1:
            attrs["axis"] = str(axis)
        yield case(OP, name, make(shape, axis), attrs)
        yield case(OP, name + "_fix", make(shape, axis), dict(attrs, fix_gamma="True"))
        yield case(OP, name + "_global", make(shape, axis), dict(attrs, use_global_stats="True"))
    for fix in ("True", "False"):
        for stats in ("True", "False"):
            yield case(
                OP,
                "add_fix_%s_global_%s" % (fix, stats),
                make((2, 3, 2, 2)),
                {"fix_gamma": fix, "use_global_stats": stats},
                grad_req="add",
            )
    yield case(
        OP, "constant", lambda v: dict(make((4, 2))(v), data=np.full((4, 2), 1.5, "float32")), {"fix_gamma": "False"}
    )
    yield case(
        OP, "offset", lambda v: dict(make((4, 2))(v), data=v.real(4, 2) + np.float32(1000)), {"fix_gamma": "False"}
    )
    # Training forward without backward leaves the moving statistics alone.
    for stats in ("True", "False"):
        yield case(OP, "forward_only_global_" + stats, make((4, 3)), {"use_global_stats": stats}, grad_req="null")
    yield case(OP, "eps_too_small_for_cudnn", make((4, 3)), {"eps": "1e-10"})
    yield case(OP, "axis_too_big", make((4, 3)), {"axis": "2"}, expect_error=True)
    yield case(OP, "vector", make((4,), 0), {"axis": "0"})
