# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""The casts of mixed precision, and the checks of whole arrays that go with them."""

import numpy as np

from .common import DTYPES, FLOATS, case


def cases():
    for source in DTYPES[:-1]:
        for target in FLOATS:
            yield case(
                "amp_cast", source + "_to_" + target, lambda v: {"data": v.real(3, 2, dtype=source)}, {"dtype": target}
            )
    for target in ("int32", "int8", "uint8"):
        yield case("amp_cast", "float32_to_" + target, lambda v: {"data": v.real(3, 2, low=0)}, {"dtype": target})
    yield case("amp_cast", "add", lambda v: {"data": v.real(3, 2)}, {"dtype": "float16"}, grad_req="add")
    yield case("amp_cast", "bad", lambda v: {"data": v.real(2)}, {"dtype": "float8"}, expect_error=True)
    for narrow in ("False", "True"):
        for types in (
            ("float32", "float16"),
            ("float16", "float16"),
            ("float64", "float32", "float16"),
            ("float32", "int32"),
        ):
            yield case(
                "amp_multicast",
                "_".join(types) + "_" + narrow,
                lambda v: {f"data_{i}": v.real(3, i + 1, dtype=dtype) for i, dtype in enumerate(types)},
                {"num_outputs": len(types), "cast_narrow": narrow},
                grad_req="write" if "int32" not in types else "null",
            )
    for name, values in {"yes": [1, -2], "inf": [1, np.inf], "nan": [np.nan, 1], "empty_range": [3.4e38, 0]}.items():
        data = np.array(values, "float32")
        yield case("all_finite", name, lambda v: {"data": data}, grad_req="null")
        both = {"array_0": np.array([1, 2, 3], "float32"), "array_1": data}
        yield case("multi_all_finite", name, lambda v: both, {"num_arrays": 2}, grad_req="null")
