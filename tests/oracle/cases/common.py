"""Helpers that the case modules share."""

import zlib

import numpy as np

DTYPES = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"]
FLOATS = ["float32", "float64", "float16"]


class Values:
    """A fixed stream of input values, seeded by the case's name.

    Floats are multiples of 1/64, so that float16 holds them exactly and they
    are short in the file.
    """

    def __init__(self, name):
        self.rng = np.random.RandomState(zlib.crc32(name.encode()))

    def real(self, *shape, dtype="float32", low=-2.0, high=2.0):
        dtype = np.dtype(dtype)
        if dtype.kind == "f":
            steps = self.rng.randint(int(low * 64), int(high * 64) + 1, shape)
            return (steps / 64.0).astype(dtype)
        if dtype.kind == "b":
            return self.rng.randint(0, 2, shape).astype(dtype)
        low = max(int(low), 0) if dtype.kind == "u" else int(low)
        return self.rng.randint(low, int(high) + 1, shape).astype(dtype)

    def nonzero(self, *shape, dtype="float32", low=-2.0, high=2.0):
        values = self.real(*shape, dtype=dtype, low=low, high=high)
        return np.where(values == 0, np.ones_like(values), values)

    def distinct(self, *shape, dtype="float32"):
        """Every element different (no ties), about -n/64..n/64."""
        count = int(np.prod(shape))
        order = self.rng.permutation(count).reshape(shape) - count // 2
        if np.dtype(dtype).kind == "f":
            return (order / 32.0).astype(dtype)
        return order.astype(dtype)

    def labels(self, *shape, classes, dtype="float32"):
        return self.rng.randint(0, classes, shape).astype(dtype)


def case(
    op,
    name,
    make_inputs,
    attrs=None,
    grad_req="write",
    out_grads=None,
    compare="values",
    expect_error=False,
    no_grad=(),
):
    """One case. `make_inputs(values)` gives {input name: array} in order.

    `no_grad` names inputs that MXNet refuses a gradient of.
    """
    identity = op + "/" + name
    inputs = make_inputs(Values(identity))
    return {
        "id": identity,
        "op": op,
        "attrs": {k: str(v) for k, v in (attrs or {}).items()},
        "inputs": inputs,
        "grad_req": grad_req,
        "out_grads": out_grads,
        "compare": compare,
        "expect_error": expect_error,
        "no_grad": tuple(no_grad),
        "seed": zlib.crc32(identity.encode()),
    }
