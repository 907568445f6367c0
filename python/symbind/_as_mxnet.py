"""`import mxnet` imports Symbind: every mxnet.x.y is the module symbind.x.y."""

import importlib as _importlib
import importlib.abc as _abc
import importlib.machinery as _machinery
import sys as _sys

from . import _compat


class _Finder(_abc.MetaPathFinder, _abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != "mxnet" and not fullname.startswith("mxnet."):
            return None
        return _machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        ours = "symbind" + spec.name[len("mxnet") :]
        try:
            module = _importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name != ours:
                raise
            raise ModuleNotFoundError(f"Symbind has no module {spec.name}", name=spec.name) from None
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has put its own description over the module's; the module goes on under its own name.
        for name in [name for name, spec in self._specs.items() if spec.name == module.__name__]:
            module.__spec__ = self._specs.pop(name)

    _specs = {}


def install_as_mxnet():
    """From here on ``import mxnet`` and ``import mxnet.x.y`` import Symbind. Names that Python and NumPy have removed
    since MXNet's time are restored (docs/from_mxnet.md); with SYMBIND_COMPAT=0 they are not."""
    loaded = _sys.modules.get("mxnet")
    if loaded is not None and not loaded.__name__.startswith("symbind"):
        raise ImportError("MXNet itself is loaded already: call install_as_mxnet() before anything imports it")
    if not any(isinstance(finder, _Finder) for finder in _sys.meta_path):
        _sys.meta_path.insert(0, _Finder())
    _compat.install()
