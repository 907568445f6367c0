"""Which operators compute in bfloat16, and which do not."""

from .symbol_fp16 import CONDITIONAL_FP32_FUNCS, LOSS_OUTPUT_FUNCTIONS, neutral
from .symbol_fp16 import WIDEST_TYPE_CASTS as _WIDEST

BF16_FUNCS = ["Convolution", "FullyConnected"]

# They compute in the type that comes.
BF16_FP32_FUNCS = """
    abs _add BatchNorm clip Concat concat Flatten LRN Pooling relu reshape Reshape shuffle _shuffle sqrt square tanh
""".split()

# In the type that comes, with parameters in float32.
BF16_USE_FP32_PARAMS = {"BatchNorm": ["", "gamma", "beta", "moving_mean", "moving_var"]}

WIDEST_TYPE_CASTS = [op for op in _WIDEST if op not in BF16_FP32_FUNCS]

FP32_FUNCS = neutral(
    BF16_FUNCS,
    BF16_FP32_FUNCS,
    WIDEST_TYPE_CASTS,
    [op for op, _, _ in CONDITIONAL_FP32_FUNCS],
    ["amp_cast", "amp_multicast"],
)

__all__ = [
    "BF16_FP32_FUNCS",
    "BF16_FUNCS",
    "BF16_USE_FP32_PARAMS",
    "CONDITIONAL_FP32_FUNCS",
    "FP32_FUNCS",
    "LOSS_OUTPUT_FUNCTIONS",
    "WIDEST_TYPE_CASTS",
]
