"""Records the Python interface of MXNet 1.9.1: the names in its modules and classes, and what its functions take.

    oracle-env/bin/python record_api.py    # writes recorded/api.json.gz

Only facts are kept: names, kinds, and the names and defaults of parameters. The format is in README.md.
"""

import gzip
import importlib
import inspect
import json
import os
import pkgutil
import re
import types

import mxnet as mx
from api_text import parameters_text

HERE = os.path.dirname(os.path.abspath(__file__))

# Not part of Symbind, or how MXNet is made inside; a module's parts go with it.
LEFT_OUT = """
    _api_internal _ctypes _cy3 _ffi _global_var _numpy_op_doc
    api autograd gluon library ndarray.numpy ndarray.numpy_extension ndarray_doc notebook np npx numpy
    numpy_dispatch_protocol numpy_extension numpy_op_fallback numpy_op_signature onnx rtc space symbol.numpy
    symbol.numpy_extension symbol_doc torch th tvmop cython libmxnet error kvstore_server kvstore.kvstore_server
    contrib.autograd contrib.onnx contrib.quantization contrib.quant contrib.tensorrt
    ndarray.register symbol.register
""".split()

# Names with an underscore in front that public programs use.
PRIVATE = {
    "": ["_symbol_internal"],
    "model": ["_create_kvstore", "_initialize_kvstore", "_update_params", "_update_params_on_kvstore",
              "_train_multi_device"],
    "module.base_module": ["_check_input_names", "_as_list", "_parse_data_desc"],
    "module.module": [],
    "io": ["_init_data"],
    "io.io": ["_init_data"],
    "executor_manager": ["_split_input_slice", "_check_arguments", "_load_data", "_load_label", "_load_general",
                         "_bind_exec"],
    "module.executor_group": ["_load_data", "_load_label", "_load_general", "_merge_multi_context"],
    "base": ["_as_list"],
    "ndarray": ["_internal"],
    "symbol": ["_internal"],
}  # fmt: skip
PRIVATE_MEMBERS = """
    _set_updater _barrier _set_attr _init_weight _init_bias _init_default _init_gamma _init_beta _init_zero _init_one
    _get_lr _get_wd _get_lrs _get_wds _update_count _sync_copyfrom _slice _at _full _to_dlpack _verify
    _sync_params_from_devices _reset_bind _compose _init_loc_bias _init_rnn
""".split()

# How MXNet reaches its library: of no use to anyone else.
INSIDE = re.compile(
    r"(c_array|c_str|ctypes2|check_call|build_param_doc|.*Handle$|mx_uint|mx_int|py_str$|c_handle|.*_create$|"
    r"_LIB|_Null|add_fileline|classproperty|with_metaclass|mxint|mxfloat|SymbolHandle|OpHandle|.*_p$|"
    r"ctypes|ctypes2buffer|ctypes2numpy|numeric_types$)"
)


SHARED = [mx.base.string_types, mx.base.integer_types]  # values that many modules import


def in_scope(module):
    return not any(module == name or module.startswith(name + ".") for name in LEFT_OUT)


def modules():
    """The modules in scope by their names without "mxnet."; "" is the package itself."""
    found = {"": mx}
    for info in pkgutil.walk_packages(mx.__path__, "mxnet.", onerror=lambda name: None):
        name = info.name[len("mxnet.") :]
        parts = name.split(".")
        if not in_scope(name) or any(part.startswith("gen_") for part in parts):
            continue
        try:
            found[name] = importlib.import_module(info.name)
        except Exception as error:  # what cannot be imported cannot be used either
            print(f"{name}: not recorded, {error!r}")
    return found


def parameters_of(function):
    """[[name, kind, default]], with kind "" where it may be given by position and by name; null where nobody knows."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return parameters_text(signature)


def belongs(value, module):
    """Is it part of the module's interface, and not what the module has imported for its own use?"""
    inside = module.__name__ + "."
    if isinstance(value, types.ModuleType):
        rest = value.__name__[len(inside) :]
        return value.__name__.startswith(inside) and not rest.startswith("gen_") and in_scope(inside[6:] + rest)
    if isinstance(value, (type, types.FunctionType)):
        home = getattr(value, "__module__", None) or ""
        if home.startswith("mxnet.") and not in_scope(home[len("mxnet.") :]):
            return False
        if home in ("ndarray", "symbol"):  # operators that MXNet generates
            return module.__name__.startswith(("mxnet.ndarray", "mxnet.symbol", "mxnet.contrib"))
        if home == "mxnet.registry" and value.__name__ not in dir(mx.registry):
            return True  # the functions "register", "alias" and "create" of a module
        own = [module.__name__, *TAKEN_OVER.get(module.__name__, [])]
        return home in own or (hasattr(module, "__path__") and home.startswith(inside))
    return not (value is None or inspect.isbuiltin(value) or type(value).__module__ in ("typing", "__future__"))


# Modules whose purpose it is to show what is in others.
TAKEN_OVER = {"mxnet.random": ["mxnet.ndarray.random"], "mxnet.misc": ["mxnet.lr_scheduler"]}


def members_of(klass):
    """The members that a class or a base of MXNet's defines."""
    members = {}
    for name in dir(klass):
        keep = not name.startswith("_") or name in PRIVATE_MEMBERS
        special = name.startswith("__") and name.endswith("__") and name in klass.__dict__
        if special and name in ("__module__", "__dict__", "__weakref__", "__doc__", "__slots__", "__hash__", "__del__"):
            special = False
        if not (keep or special):
            continue
        value = inspect.getattr_static(klass, name)
        owner = next((base for base in klass.__mro__ if name in base.__dict__), None)
        if owner is not None and not owner.__module__.startswith("mxnet") and owner is not klass:
            continue  # of a base that is Python's own
        if isinstance(value, (staticmethod, classmethod)):
            members[name] = {"kind": "function", "parameters": parameters_of(getattr(klass, name))}
        elif isinstance(value, types.FunctionType):
            members[name] = {"kind": "function", "parameters": parameters_of(value)}
        else:
            members[name] = {"kind": "value"}
    return members


def entry_of(value):
    if isinstance(value, types.ModuleType):
        return {"kind": "module"}
    if isinstance(value, type):
        return {"kind": "class", "parameters": parameters_of(value), "members": members_of(value)}
    if callable(value):
        made = getattr(value, "__code__", None) is not None and value.__code__.co_filename == "<string>"
        kind = "operator" if made else "function"  # MXNet makes its operators' functions from text
        return {"kind": kind, "parameters": parameters_of(value)}
    return {"kind": "value"}


def record():
    """Each thing once, at its shortest path; elsewhere it is the "same_as" that."""
    everything = {}
    seen = {}
    for path, module in sorted(modules().items(), key=lambda item: (item[0].count(".") + bool(item[0]), item[0])):
        entries = {}
        internal = path.endswith("._internal")  # operators whose names begin with an underscore
        for name in dir(module):
            if name.startswith("_") and name != "__version__" and name not in PRIVATE.get(path, []) and not internal:
                continue
            if INSIDE.fullmatch(name) or name.startswith("_backward"):
                continue
            value = getattr(module, name)
            named = name in [*getattr(module, "__all__", []), *PRIVATE.get(path, [])]
            if not belongs(value, module) and (not named or isinstance(value, types.ModuleType)):
                continue
            if internal and entry_of(value)["kind"] != "operator":
                continue
            if isinstance(value, tuple(map(type, SHARED))) and value in SHARED and path != "base":
                continue
            if internal and re.match(
                r"_(np|npi|npx|sg_mkldnn|cvimdecode|FusedOp|TensorRT|NoGradient|Cross|CachedOp|Custom|Native|NDArray)",
                name,
            ):
                continue  # of parts that are left out
            full = f"{path}.{name}" if path else name
            if callable(value) and id(value) in seen:
                entries[name] = {"kind": "same", "same_as": seen[id(value)]}
                continue
            seen[id(value)] = full
            entries[name] = entry_of(value)
        everything[path] = entries
    return everything


def main():
    answer = {"format": "symbind-api-1", "mxnet": mx.__version__, "left_out": LEFT_OUT, "modules": record()}
    text = json.dumps(answer, sort_keys=True, indent=0)
    path = os.path.join(HERE, "recorded", "api.json.gz")
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(text.encode())
    names = sum(len(entries) for entries in answer["modules"].values())
    print(f"{len(answer['modules'])} modules, {names} names, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
