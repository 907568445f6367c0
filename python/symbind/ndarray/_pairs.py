"""Functions of two operands that may be arrays or numbers."""

from .._functions import on_pair
from .._symbind import NDArray


def _pair(name, both_numbers, array_op, scalar_op, reversed_op, doc):
    def function(lhs, rhs):
        return on_pair(NDArray, lhs, rhs, both_numbers, array_op, scalar_op, reversed_op)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


add = _pair("add", lambda a, b: a + b, "broadcast_add", "_plus_scalar", "_plus_scalar", "lhs + rhs")
subtract = _pair("subtract", lambda a, b: a - b, "broadcast_sub", "_minus_scalar", "_rminus_scalar", "lhs - rhs")
multiply = _pair("multiply", lambda a, b: a * b, "broadcast_mul", "_mul_scalar", "_mul_scalar", "lhs * rhs")
divide = _pair("divide", lambda a, b: a / b, "broadcast_div", "_div_scalar", "_rdiv_scalar", "lhs / rhs")
true_divide = divide
modulo = _pair("modulo", lambda a, b: a % b, "broadcast_mod", "_mod_scalar", "_rmod_scalar", "lhs % rhs")
_power = _pair("power", lambda a, b: a**b, "broadcast_power", "_power_scalar", "_rpower_scalar", "lhs to the power rhs")


def power(base, exp):
    """base to the power exp"""
    return _power(base, exp)


maximum = _pair("maximum", max, "broadcast_maximum", "_maximum_scalar", "_maximum_scalar", "the greater of both")
minimum = _pair("minimum", min, "broadcast_minimum", "_minimum_scalar", "_minimum_scalar", "the lesser of both")
equal = _pair("equal", lambda a, b: float(a == b), "broadcast_equal", "_equal_scalar", "_equal_scalar", "lhs == rhs")
not_equal = _pair(
    "not_equal",
    lambda a, b: float(a != b),
    "broadcast_not_equal",
    "_not_equal_scalar",
    "_not_equal_scalar",
    "lhs != rhs",
)
greater = _pair(
    "greater", lambda a, b: float(a > b), "broadcast_greater", "_greater_scalar", "_lesser_scalar", "lhs > rhs"
)
greater_equal = _pair(
    "greater_equal",
    lambda a, b: float(a >= b),
    "broadcast_greater_equal",
    "_greater_equal_scalar",
    "_lesser_equal_scalar",
    "lhs >= rhs",
)
lesser = _pair(
    "lesser", lambda a, b: float(a < b), "broadcast_lesser", "_lesser_scalar", "_greater_scalar", "lhs < rhs"
)
lesser_equal = _pair(
    "lesser_equal",
    lambda a, b: float(a <= b),
    "broadcast_lesser_equal",
    "_lesser_equal_scalar",
    "_greater_equal_scalar",
    "lhs <= rhs",
)
logical_and = _pair(
    "logical_and",
    lambda a, b: float(bool(a) and bool(b)),
    "broadcast_logical_and",
    "_logical_and_scalar",
    "_logical_and_scalar",
    "1 where both are true",
)
logical_or = _pair(
    "logical_or",
    lambda a, b: float(bool(a) or bool(b)),
    "broadcast_logical_or",
    "_logical_or_scalar",
    "_logical_or_scalar",
    "1 where one is true",
)
logical_xor = _pair(
    "logical_xor",
    lambda a, b: float(bool(a) != bool(b)),
    "broadcast_logical_xor",
    "_logical_xor_scalar",
    "_logical_xor_scalar",
    "1 where exactly one is true",
)
