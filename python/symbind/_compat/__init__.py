"""What Python and NumPy have removed since the scripts of MXNet's time were written, brought back for them.

`python -m symbind` and `install_as_mxnet()` install it; SYMBIND_COMPAT=0 turns it off. A name that still exists is left
as it is. The first use of anything that was brought back is logged once.
"""

import importlib.abc as _abc
import importlib.util as _util
import logging as _logging
import os as _os
import sys as _sys
import threading as _threading
import types as _types

_OFF = ("0", "false", "off", "no")
_lock = _threading.Lock()
_said = False
_installed = False


def enabled():
    """Whether SYMBIND_COMPAT allows it: by default it does."""
    return (_os.environ.get("SYMBIND_COMPAT") or "1").lower() not in _OFF


def note(what):
    """Logs, the first time only, that something of old was used."""
    global _said
    with _lock:
        first, _said = not _said, True
    if first:
        _logging.getLogger("symbind").warning(
            "%s is of an older Python or NumPy: Symbind brings back what scripts of MXNet's time use (SYMBIND_COMPAT=0 "
            "turns this off)",
            what,
        )


def restore(module, names):
    """Gives a module attributes that it does not have: {name: function that makes the value}."""
    missing = {name: make for name, make in names.items() if name not in vars(module)}
    inherited = vars(module).get("__getattr__")

    def __getattr__(name):
        make = missing.get(name)
        if make is not None:
            value = make()
            setattr(module, name, value)
            note(f"{module.__name__}.{name}")
            return value
        if inherited is not None:
            return inherited(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    module.__getattr__ = __getattr__


class _PatchOnImport(_abc.MetaPathFinder, _abc.Loader):
    """Completes a module right after it is imported."""

    def __init__(self, patches):
        self._patches = patches
        self._loaders = {}
        self._busy = set()

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self._patches or fullname in self._busy:
            return None
        self._busy.add(fullname)
        try:
            spec = _util.find_spec(fullname)
        finally:
            self._busy.discard(fullname)
        if spec is None or spec.loader is None:
            return None
        self._loaders[fullname] = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec):
        return self._loaders[spec.name].create_module(spec)

    def exec_module(self, module):
        loader = self._loaders.pop(module.__name__)
        module.__spec__.loader = module.__loader__ = loader
        loader.exec_module(module)
        self._patches.pop(module.__name__)(module)


class _RemovedModules(_abc.MetaPathFinder, _abc.Loader):
    """The last to be asked, so that it makes only modules that do not exist."""

    def __init__(self, modules):
        self._modules = modules

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self._modules:
            return None
        package = any(name.startswith(fullname + ".") for name in self._modules)
        return _util.spec_from_loader(fullname, self, is_package=package)

    def create_module(self, spec):
        module = _types.ModuleType(spec.name, "Brought back by Symbind: Python has it no more.")
        module.__dict__.update(self._modules[spec.name]())
        note(f"the module {spec.name}")
        return module

    def exec_module(self, module):
        """It is complete already."""


def install():
    """Brings everything back, once; modules that are not imported yet are completed when they are."""
    global _installed
    if _installed or not enabled():
        return
    _installed = True
    from . import _numpy, _python

    patches = {**_python.PATCHES, **_numpy.PATCHES}
    for name in list(patches):
        if name in _sys.modules:
            patches.pop(name)(_sys.modules[name])
    _sys.meta_path.insert(0, _PatchOnImport(patches))
    _sys.meta_path.append(_RemovedModules(_python.MODULES))
