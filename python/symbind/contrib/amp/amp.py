"""Networks in mixed precision."""

import json as _json

from ..._symbind import MXNetTypeError, MXNetValueError, Symbol
from ...symbol import load_json as _load_json
from .lists import symbol_bf16 as _bf16
from .lists import symbol_fp16 as _fp16

bfloat16 = "bfloat16"

_TYPE_NUMBERS = {"float16": "2", "bfloat16": "12"}  # as the attribute __dtype__ has them


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
    """Which type a node computes in: the target, float32, the widest that comes, or (None) what comes."""

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

    def of(self, node):
        """For a node of the JSON."""
        if node["name"] in self.excluded:
            return "float32"
        op, attributes = node["op"], node.get("attrs", {})
        for name, parameter, values in self.conditional:
            if op == name and attributes.get(parameter) in values:
                return "float32"
        if op in self.target_ops:
            return self.target
        if op in self.fp32_ops:
            return "float32"
        return "widest" if op in self.widest else None


class _Converter:
    """Writes the nodes of a network again, with casts before those that compute in another type."""

    def __init__(self, graph, choice, auxiliary):
        self.old = graph["nodes"]
        self.choice = choice
        self.auxiliary = auxiliary  # names of the variables that are states, which are never cast
        self.nodes = []
        self.placed = {}  # number of an old node → of the new one
        self.casts = {}  # (node, output, type) → node

    def add(self, node):
        self.nodes.append(node)
        return len(self.nodes) - 1

    def cast(self, entry, dtype):
        """The entry in a type, by a node that all its users share."""
        source, output = entry
        node = self.nodes[source]
        if node["op"] == "null" and (node["name"] in self.auxiliary or dtype == "float32"):
            return entry  # a variable is float32 unless it says otherwise
        key = (source, output, dtype)
        if key not in self.casts:
            name = node["name"] if node["op"] == "null" else f"{node['name']}_output{output or ''}"
            attributes = {"dtype": dtype}
            self.casts[key] = self.add(
                {
                    "op": "amp_cast",
                    "name": f"{name}_amp_cast_{dtype}",
                    "attrs": attributes,
                    "inputs": [[source, output, 0]],
                }
            )
        return self.casts[key], 0

    def multicast(self, name, entries):
        """All entries in the widest of their types."""
        node = {
            "op": "amp_multicast",
            "name": f"{name}_amp_multicast",
            "attrs": {"num_outputs": str(len(entries))},
            "inputs": [[*entry, 0] for entry in entries],
        }
        source = self.add(node)
        return [(source, output) for output in range(len(entries))]

    def convert(self):
        for number, node in enumerate(self.old):
            entries = [(self.placed[source], output) for source, output, *_ in node["inputs"]]
            kind = None if node["op"] == "null" else self.choice.of(node)
            if kind == "widest" and len(entries) > 1:
                entries = self.multicast(node["name"], entries)
            elif kind in ("float32", "float16", "bfloat16"):
                entries = [self.cast(entry, kind) for entry in entries]
            self.placed[number] = self.add({**node, "inputs": [[*entry, 0] for entry in entries]})


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
        Operators that compute in the target type, and in float32, in place of the usual ones.
    conditional_fp32_ops : list of (str, str, list of str)
        Operators, parameters, and their values for which the operator computes in float32.
    excluded_sym_names : list of str
        Names of nodes that compute in float32.
    data_names : list of str
        The variables that are no parameters.
    cast_optional_params : bool
        Parameters that only operators of the target type read are of that type themselves.
    """
    if not isinstance(sym, Symbol):
        raise MXNetTypeError(f"convert_symbol takes a Symbol, not {type(sym).__name__}")
    target = _name_of(target_dtype)
    choice = _Choice(target, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names)
    graph = _json.loads(sym.tojson(remove_amp_cast=False))
    converter = _Converter(graph, choice, set(sym.list_auxiliary_states()))
    converter.convert()
    if cast_optional_params:
        _declare_low_precision(converter, target, set(data_names or []))
    graph["nodes"] = converter.nodes
    graph["arg_nodes"] = [i for i, node in enumerate(converter.nodes) if node["op"] == "null"]
    graph["node_row_ptr"] = list(range(len(converter.nodes) + 1))
    graph["heads"] = [[converter.placed[node], output, 0] for node, output, *_ in graph["heads"]]
    return _load_json(_json.dumps(graph))


def _declare_low_precision(converter, target, data_names):
    """Gives variables that nothing but casts to the target type reads that type."""
    readers = {}
    for node in converter.nodes:
        for source, *_ in node["inputs"]:
            readers.setdefault(source, []).append(node)
    for number, node in enumerate(converter.nodes):
        reading = readers.get(number, [])
        casts = all(reader["op"] == "amp_cast" and reader["attrs"]["dtype"] == target for reader in reading)
        if node["op"] == "null" and node["name"] not in data_names and reading and casts:
            node["attrs"] = {**node.get("attrs", {}), "__dtype__": _TYPE_NUMBERS[target]}


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
    attributes = converted.attr_dict()
    target = _name_of(target_dtype)

    def cast(name, array):
        is_low = attributes.get(name, {}).get("__dtype__") == _TYPE_NUMBERS[target]
        return array.astype(target) if is_low else array

    return converted, {name: cast(name, array) for name, array in arg_params.items()}, dict(aux_params)


def convert_bucketing_module(
    bucketing_mod,
    target_dtype="float16",
    target_dtype_ops=None,
    fp32_ops=None,
    conditional_fp32_ops=None,
    excluded_sym_names=None,
    cast_optional_params=False,
):
    """A BucketingModule whose networks are in mixed precision."""
    if not hasattr(bucketing_mod, "_sym_gen"):
        raise MXNetTypeError(f"expected a BucketingModule, not {type(bucketing_mod).__name__}")
    generate = bucketing_mod._sym_gen

    def sym_gen(key):
        symbol, data_names, label_names = generate(key)
        converted = convert_symbol(
            symbol,
            target_dtype,
            target_dtype_ops,
            fp32_ops,
            conditional_fp32_ops,
            excluded_sym_names,
            [*data_names, *(label_names or [])],
            cast_optional_params,
        )
        return converted, data_names, label_names

    return type(bucketing_mod)(
        sym_gen,
        default_bucket_key=bucketing_mod._default_bucket_key,
        context=bucketing_mod._context,
        fixed_param_names=bucketing_mod._fixed_param_names,
    )
