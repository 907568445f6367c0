"""Attributes of the package that are loaded lazily: modules imported at their first use, and the parts of MXNet that
are not part of Symbind, whose use or import raises an error that explains it."""

import importlib as _importlib
import sys as _sys

# Attribute → module. Scripts that train need none of these, so `import symbind` does not wait for them.
LAZY = {
    "_symbol_internal": "symbol._internal",
    "contrib": "contrib",
    "image": "image",
    "img": "image",
    "kvstore_server": "kvstore_server",
    "log": "log",
    "misc": "misc",
    "profiler": "profiler",
    "recordio": "recordio",
    "registry": "registry",
    "rnn": "rnn",
    "runtime": "runtime",
    "test_utils": "test_utils",
    "visualization": "visualization",
    "viz": "visualization",
}

_SCALED_BY_MODULES = (
    "Trainers of Gluon are not part of Symbind: mx.mod.Module with compute_dtype='float16' scales the loss and the "
    "gradients itself."
)

ABSENT = {
    "autograd": "Automatic differentiation of array code is not part of Symbind: bind a Symbol, whose backward() gives "
    "gradients.",
    "contrib.amp.convert_hybrid_block": "Gluon is not part of Symbind: convert a network, which is a Symbol, by "
    "mx.contrib.amp.convert_symbol, or a checkpoint by mx.contrib.amp.convert_model.",
    "contrib.amp.init": "Functions that cast in every network are not part of Symbind: give compute_dtype='float16' or "
    "'bfloat16' to mx.mod.Module or its fit, or convert a network by mx.contrib.amp.convert_symbol.",
    "contrib.amp.init_trainer": _SCALED_BY_MODULES,
    "contrib.amp.scale_loss": _SCALED_BY_MODULES,
    "contrib.amp.unscale": _SCALED_BY_MODULES,
    "gluon": "Gluon is not part of Symbind: write the network as a Symbol and train it with mx.mod.Module.",
    "library": "Operators compiled against MXNet cannot be loaded by Symbind: write a CustomOp.",
    "notebook": "MXNet's notebook helpers are not part of Symbind.",
    "np": "MXNet's NumPy-like arrays are not part of Symbind: use mx.nd, or NumPy itself.",
    "npx": "MXNet's NumPy extensions are not part of Symbind: use mx.nd, or NumPy itself.",
    "numpy": "MXNet's NumPy-like arrays are not part of Symbind: use mx.nd, or NumPy itself.",
    "numpy_extension": "MXNet's NumPy extensions are not part of Symbind: use mx.nd, or NumPy itself.",
    "onnx": "Import from and export to ONNX are not part of Symbind.",
    "rtc": "CUDA kernels compiled from text at run time are not part of Symbind: write a CustomOp.",
    "th": "Torch7's functions are not part of Symbind.",
    "torch": "Torch7's functions are not part of Symbind.",
}


class _Finder:
    """The last of sys.meta_path, asked only for modules that do not exist."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        package, _, rest = fullname.partition(".")
        sentence = ABSENT.get(rest.split(".")[0], ABSENT.get(rest)) if package == "symbind" else None
        if sentence:
            raise ImportError(sentence, name=fullname)
        return None


def missing(module, name):
    """The error for an attribute that a module of Symbind, given by its name, does not have."""
    sentence = ABSENT.get(f"{module}.{name}".removeprefix("symbind."))
    return AttributeError(sentence or f"module {module!r} has no attribute {name!r}")


def install(module_globals):
    """Gives the package `__getattr__` and `__dir__`."""
    package = module_globals["__name__"]
    if _Finder not in _sys.meta_path:
        _sys.meta_path.append(_Finder)

    def __getattr__(name):
        if name in LAZY:
            module_globals[name] = module = _importlib.import_module(f"{package}.{LAZY[name]}")
            return module
        raise missing(package, name)

    def __dir__():
        return sorted({*module_globals, *LAZY})

    module_globals["__getattr__"] = __getattr__
    module_globals["__dir__"] = __dir__
