"""Which operators compute in float16, and which do not."""

from .... import _symbind

# FP16_FUNCS are fast in float16, and safe: they add up in float32. FP32_FUNCS lose digits, or overflow. The inputs of
# WIDEST_TYPE_CASTS get the widest type among them. CONDITIONAL_FP32_FUNCS are of float32 for values of a parameter.
FP16_FUNCS, FP32_FUNCS, WIDEST_TYPE_CASTS, CONDITIONAL_FP32_FUNCS = _symbind._precision_rules()

LOSS_OUTPUT_FUNCTIONS = ["SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"]


def neutral(*lists):
    """The operators of the registry that are in none of the lists: they compute in the type that comes."""
    named = {op for each in lists for op in each}
    return sorted(op for op in _symbind._list_ops() if op not in named)


FP16_FP32_FUNCS = neutral(
    FP16_FUNCS,
    FP32_FUNCS,
    WIDEST_TYPE_CASTS,
    [op for op, _, _ in CONDITIONAL_FP32_FUNCS],
    ["amp_cast", "amp_multicast"],
)
