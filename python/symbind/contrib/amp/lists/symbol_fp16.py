"""Which operators compute in float16, and which do not."""

from .... import _symbind

# Fast in float16, and safe: they add up in float32.
FP16_FUNCS = ["Convolution", "Deconvolution", "FullyConnected", "RNN"]

# They lose digits, or overflow, in float16.
FP32_FUNCS = """
    Convolution_v1 IdentityAttachKLSparseReg arccos arcsin cosh erfinv sinh tan arctanh exp expm1 log log10 log2
    log1p broadcast_power square reciprocal _RDivScalar _rdiv_scalar rsqrt rcbrt _Power _PowerScalar _power
    _power_scalar _RPowerScalar _rpower_scalar _Hypot _HypotScalar _hypot _hypot_scalar broadcast_hypot sum
    sum_axis nansum prod nanprod mean norm softmin khatri_rao moments gamma gammaln argsort topk SoftmaxOutput
    softmax Softmax log_softmax InstanceNorm LayerNorm GroupNorm L2Normalization LRN SoftmaxActivation
    LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput SVMOutput softmax_cross_entropy
    smooth_l1 MakeLoss make_loss Custom CTCLoss ctc_loss
""".split()

# In float32 for some values of a parameter.
CONDITIONAL_FP32_FUNCS = [
    ("Activation", "act_type", ["softrelu"]),
    ("LeakyReLU", "act_type", ["elu", "selu"]),
]

# Their inputs have one type: the widest that comes.
WIDEST_TYPE_CASTS = """
    _Plus _plus _Minus _sub _Mul _Div _div _Mod _Not_Equal _Equal _equal _Greater _greater _Greater_Equal
    _greater_equal _Lesser _Lesser_Equal _lesser _lesser_equal _Logical_And _Logical_Or _Logical_Xor
    _logical_and _logical_or _logical_xor _maximum _minimum _minus _mod _mul _not_equal Concat concat
    Correlation ElementWiseSum add_n batch_dot broadcast_add broadcast_plus broadcast_div broadcast_equal
    broadcast_greater broadcast_greater_equal broadcast_lesser broadcast_lesser_equal broadcast_logical_and
    broadcast_logical_or broadcast_logical_xor broadcast_maximum broadcast_minimum broadcast_minus broadcast_mod
    broadcast_mul broadcast_not_equal broadcast_sub dot elemwise_add elemwise_div elemwise_mul elemwise_sub
    stack _Maximum _Minimum where
""".split()

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
