"""Networks in mixed precision."""

from ..._lazy import missing as _missing
from ..._symbind import (
    BucketingModule,
    MXNetTypeError,
    MXNetValueError,
    Symbol,
    _mixed_precision,
    _with_low_parameters,
)
from ...symbol import load_json as _load_json
from .lists import symbol_bf16 as _bf16
from .lists import symbol_fp16 as _fp16

bfloat16 = "bfloat16"

_TYPE_NUMBERS = {"float16": "2", "bfloat16": "12"}  # as the attribute __dtype__ has them


def __getattr__(name):
    raise _missing("symbind.contrib.amp", name)


def _name_of(dtype):
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    if name not in _TYPE_NUMBERS:
        raise MXNetValueError(f"target_dtype is float16 or bfloat16, not {dtype!r}")
    return name


def _lists(target_dtype):
    return _fp16 if _name_of(target_dtype) == "float16" else _bf16


def list_lp16_ops(target_dtype):
    """The operators that compute in 16 bits."""
    lists = _lists(target_dtype)
    return lists.FP16_FUNCS if lists is _fp16 else lists.BF16_FUNCS


def list_fp32_ops(target_dtype):
    """The operators that compute in float32."""
    return _lists(target_dtype).FP32_FUNCS


def list_lp16_fp32_ops(target_dtype):
    """The operators that compute in the type that comes."""
    lists = _lists(target_dtype)
    return lists.FP16_FP32_FUNCS if lists is _fp16 else lists.BF16_FP32_FUNCS


def list_conditional_fp32_ops(target_dtype):
    """(operator, parameter, values) of those that compute in float32 for some values of a parameter."""
    return _lists(target_dtype).CONDITIONAL_FP32_FUNCS


def list_widest_type_cast(target_dtype):
    """The operators whose inputs are cast to the widest type among them."""
    return _lists(target_dtype).WIDEST_TYPE_CASTS


def list_loss_output_functions(target_dtype):
    """The operators that are losses."""
    return _lists(target_dtype).LOSS_OUTPUT_FUNCTIONS


def list_lp16_use_fp32_params(target_dtype):
    """The operators that compute in 16 bits with parameters in float32; None where there are none."""
    return getattr(_lists(target_dtype), "BF16_USE_FP32_PARAMS", None)


class _Choice:
    """Which operators compute in the target type, in float32, and in the widest type that comes."""

    def __init__(self, target, target_ops, fp32_ops, conditional, excluded):
        lists = _lists(target)
        for name, given in (("target_dtype_ops", target_ops), ("fp32_ops", fp32_ops)):
            if given is not None and (isinstance(given, str) or not all(isinstance(op, str) for op in given)):
                raise MXNetTypeError(f"{name} is a list of names of operators, not {given!r}")
        self.target = target
        self.target_ops = set(list_lp16_ops(target) if target_ops is None else target_ops)
        self.fp32_ops = set(lists.FP32_FUNCS if fp32_ops is None else fp32_ops)
        both = self.target_ops & self.fp32_ops
        if both and target_ops is not None and fp32_ops is not None:
            raise MXNetValueError(f"in both target_dtype_ops and fp32_ops: {', '.join(sorted(both))}")
        # A list that was given decides over one that was not.
        if fp32_ops is not None:
            self.target_ops -= self.fp32_ops
        else:
            self.fp32_ops -= self.target_ops
        self.widest = set(lists.WIDEST_TYPE_CASTS) - self.target_ops - self.fp32_ops
        self.conditional = lists.CONDITIONAL_FP32_FUNCS if conditional is None else conditional
        self.excluded = set(excluded or [])


def convert_symbol(
    sym,
    target_dtype="float16",
    target_dtype_ops=None,
    fp32_ops=None,
    conditional_fp32_ops=None,
    excluded_sym_names=None,
    data_names=None,
    cast_optional_params=False,
):
    """The network in mixed precision: inputs of some operators are cast to 16 bits, those of others to float32.

    Parameters
    ----------
    sym : Symbol
        The network.
    target_dtype : str
        "float16" or "bfloat16".
    target_dtype_ops, fp32_ops : list of str
        Operators that compute in the target type, and in float32, instead of the usual ones.
    conditional_fp32_ops : list of (str, str, list of str)
        Operators, parameters, and their values for which the operator computes in float32.
    excluded_sym_names : list of str
        Names of nodes that compute in float32.
    data_names : list of str
        The variables that are no parameters; the others are declared as float32.
    cast_optional_params : bool
        Parameters that only operators of the target type read are of that type themselves.
    """
    if not isinstance(sym, Symbol):
        raise MXNetTypeError(f"convert_symbol takes a Symbol, not {type(sym).__name__}")
    target = _name_of(target_dtype)
    choice = _Choice(target, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names)
    converted = _mixed_precision(
        sym,
        target,
        sorted(choice.target_ops),
        sorted(choice.fp32_ops),
        sorted(choice.widest),
        [(op, parameter, list(values)) for op, parameter, values in choice.conditional],
        sorted(choice.excluded),
    )
    if cast_optional_params:
        converted = _with_low_parameters(converted, target, list(data_names or []))
    if data_names:
        converted = _declared_as_float32(converted, set(data_names))
    return converted


def _declared_as_float32(sym, data_names):
    """A copy in which parameters without a type are of float32, so that types follow from those of the data."""
    sym = _load_json(sym.tojson(remove_amp_cast=False))
    variables = sym.get_internals()
    attributes = sym.attr_dict()
    for name in sym.list_inputs():
        if name not in data_names and "__dtype__" not in attributes.get(name, {}):
            variables[name]._set_attr(__dtype__="0")
    return sym


def convert_model(
    sym,
    arg_params,
    aux_params,
    target_dtype="float16",
    target_dtype_ops=None,
    fp32_ops=None,
    conditional_fp32_ops=None,
    excluded_sym_names=None,
    cast_optional_params=False,
):
    """(symbol, arg_params, aux_params) of a checkpoint in mixed precision; with `cast_optional_params` the parameters
    that only operators of the target type read are of that type."""
    data_names = [name for name in sym.list_arguments() if name not in arg_params]
    converted = convert_symbol(
        sym,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        data_names,
        cast_optional_params,
    )
    return converted, _cast_as_declared(arg_params, converted, target_dtype), dict(aux_params)


def _cast_as_declared(arg_params, converted, target_dtype):
    """The parameters, of the target type where a converted network declares them so."""
    target = _name_of(target_dtype)
    attributes = converted.attr_dict()

    def cast(name, array):
        is_low = attributes.get(name, {}).get("__dtype__") == _TYPE_NUMBERS[target]
        return array.astype(target) if is_low else array

    return {name: cast(name, array) for name, array in arg_params.items()}


def convert_bucketing_module(
    bucketing_mod,
    target_dtype="float16",
    target_dtype_ops=None,
    fp32_ops=None,
    conditional_fp32_ops=None,
    excluded_sym_names=None,
    cast_optional_params=False,
):
    """A BucketingModule with the parameters of another, whose networks are in mixed precision. It is not bound yet, and
    has no optimizer. A compute_dtype is not taken over: its networks state the types themselves."""
    if not isinstance(bucketing_mod, BucketingModule):
        raise MXNetTypeError(f"expected a BucketingModule, not {type(bucketing_mod).__name__}")
    if not bucketing_mod.params_initialized:
        raise MXNetValueError("the BucketingModule has no parameters yet: call bind and init_params first")
    generate, networks = bucketing_mod._sym_gen, bucketing_mod._networks
    arg_params, aux_params = bucketing_mod.get_params()
    param_names = set(arg_params)

    def sym_gen(key):
        generated, data_names, label_names = generate(key)
        symbol = networks.get(key, generated)
        converted = convert_symbol(
            symbol,
            target_dtype,
            target_dtype_ops,
            fp32_ops,
            conditional_fp32_ops,
            excluded_sym_names,
            [name for name in symbol.list_arguments() if name not in param_names],
            cast_optional_params,
        )
        return converted, data_names, label_names

    key = bucketing_mod._default_bucket_key
    made = BucketingModule(
        sym_gen,
        key,
        logger=bucketing_mod.logger,
        context=bucketing_mod._context,
        work_load_list=bucketing_mod._work_load_list,
        fixed_param_names=bucketing_mod._fixed_param_names,
        state_names=bucketing_mod._state_names,
        group2ctxs=bucketing_mod._group2ctxs,
        compression_params=bucketing_mod._compression_params,
        memory_budget=bucketing_mod._memory_budget,
    )
    made._preload({}, _cast_as_declared(arg_params, made._networks[key], target_dtype), aux_params, "")
    return made
