"""What Python's own library has removed."""

import functools as _functools
import sys as _sys

from .. import _symbind
from . import note, restore

# ---- attributes of modules -------------------------------------------------------------------------------------------


def _time(module):
    restore(module, {"clock": lambda: module.process_time})  # in 3.8


def _collections(module):
    import collections.abc as abc

    restore(module, {name: _functools.partial(getattr, abc, name) for name in abc.__all__})  # in 3.10


def _fractions(module):
    import math

    restore(module, {"gcd": lambda: math.gcd})  # in 3.9


def _inspect(module):
    from collections import namedtuple

    ArgSpec = namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])

    def getargspec(func):
        """The arguments of a function that has neither keyword-only ones nor annotations."""
        found = module.getfullargspec(func)
        if found.kwonlyargs or found.annotations:
            raise ValueError("a function with keyword-only arguments or annotations: use inspect.getfullargspec")
        return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)

    restore(module, {"getargspec": lambda: getargspec, "ArgSpec": lambda: ArgSpec})  # in 3.11


def _platform(module):
    def linux_distribution(*args, **kwargs):
        """(name, version, code name), empty where unknown."""
        try:
            about = module.freedesktop_os_release()
        except (AttributeError, OSError):
            return "", "", ""
        return about.get("NAME", ""), about.get("VERSION_ID", ""), about.get("VERSION_CODENAME", "")

    restore(module, {"linux_distribution": lambda: linux_distribution, "dist": lambda: linux_distribution})  # in 3.8


def _base64(module):
    restore(  # in 3.9
        module, {"encodestring": lambda: module.encodebytes, "decodestring": lambda: module.decodebytes}
    )


def _sys_module(module):
    restore(  # in 3.9
        module, {"setcheckinterval": lambda: lambda interval: None, "getcheckinterval": lambda: lambda: 100}
    )


def _os(module):
    import errno

    restore(module, {"errno": lambda: errno})  # in 3.7


def _re(module):
    restore(module, {"_pattern_type": lambda: module.Pattern})  # in 3.7


def _cgi(module):
    import html

    restore(module, {"escape": lambda: _functools.partial(html.escape, quote=False)})  # in 3.8


def _pipes(module):
    import shlex

    restore(module, {"quote": lambda: shlex.quote})


# ---- methods and arguments -------------------------------------------------------------------------------------------


def _method(cls, name, function):
    """A method that a class no longer has; those written in C have no attributes to set."""
    if hasattr(cls, name):
        return

    @_functools.wraps(function)
    def method(self, *args, **kwargs):
        note(f"{cls.__name__}.{name}")
        return function(self, *args, **kwargs)

    method.__name__ = name
    _symbind._add_method(cls, name, method)


def _threading(module):
    _method(module.Thread, "isAlive", lambda self: self.is_alive())  # in 3.9


def _element_tree(module):
    _method(module.Element, "getchildren", lambda self: list(self))  # in 3.9
    _method(module.Element, "getiterator", lambda self, tag=None: list(self.iter(tag)))
    _method(module.ElementTree, "getiterator", lambda self, tag=None: list(self.iter(tag)))


def _array(module):
    _method(module.array, "tostring", lambda self: self.tobytes())  # in 3.9
    _method(module.array, "fromstring", lambda self, values: self.frombytes(values))


def _unittest_case(module):
    for old, new in {  # in 3.12
        "assertEquals": "assertEqual",
        "assertNotEquals": "assertNotEqual",
        "assertAlmostEquals": "assertAlmostEqual",
        "assertRegexpMatches": "assertRegex",
        "assertNotRegexpMatches": "assertNotRegex",
        "assertRaisesRegexp": "assertRaisesRegex",
        "assertItemsEqual": "assertCountEqual",
        "assert_": "assertTrue",
    }.items():
        if not hasattr(module.TestCase, old):
            setattr(module.TestCase, old, getattr(module.TestCase, new))


def _json(module):
    loads = module.loads

    @_functools.wraps(loads)
    def without_encoding(s, *args, **kwargs):
        if kwargs.pop("encoding", None) is not None:  # in 3.9; it had no effect before
            note("json.loads(encoding=…)")
        return loads(s, *args, **kwargs)

    module.loads = without_encoding


def _random(module):
    sample, shuffle = module.sample, module.shuffle

    @_functools.wraps(sample)
    def of_sets_too(population, k, **kwargs):
        if isinstance(population, (set, frozenset)):  # in 3.11
            note("random.sample of a set")
            population = tuple(population)
        return sample(population, k, **kwargs)

    @_functools.wraps(shuffle)
    def by_a_function_too(x, random=None):
        if random is None:
            return shuffle(x)
        note("random.shuffle(x, random)")  # in 3.11
        for last in reversed(range(1, len(x))):
            other = int(random() * (last + 1))
            x[last], x[other] = x[other], x[last]

    if _sys.version_info >= (3, 11):
        module.sample, module.shuffle = of_sets_too, by_a_function_too


PATCHES = {
    "array": _array,
    "base64": _base64,
    "cgi": _cgi,
    "collections": _collections,
    "fractions": _fractions,
    "inspect": _inspect,
    "json": _json,
    "os": _os,
    "pipes": _pipes,
    "platform": _platform,
    "random": _random,
    "re": _re,
    "sys": _sys_module,
    "threading": _threading,
    "time": _time,
    "unittest.case": _unittest_case,
    "xml.etree.ElementTree": _element_tree,
}

# ---- modules ---------------------------------------------------------------------------------------------------------


def _imp():
    """imp, removed in 3.12."""
    import importlib
    import importlib.util
    import types

    SEARCH, SOURCE, PACKAGE = 0, 1, 5

    def load_source(name, pathname, file=None):
        """A module from a file."""
        spec = importlib.util.spec_from_file_location(name, pathname)
        if spec is None:
            raise ImportError(f"{pathname} is not a Python file", name=name, path=pathname)
        module = importlib.util.module_from_spec(spec)
        _sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def find_module(name, path=None):
        """(open file or None, path, description) of a module in the folders given, or in sys.path."""
        import importlib.machinery
        import os

        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:
            raise ImportError(f"No module named {name!r}", name=name)
        if spec.submodule_search_locations:
            return None, list(spec.submodule_search_locations)[0], ("", "", PACKAGE)
        ending = os.path.splitext(spec.origin)[1]
        return open(spec.origin, encoding="utf-8"), spec.origin, (ending, "r", SOURCE)  # noqa: SIM115

    def load_module(name, file, filename, details):
        """What find_module has found."""
        import os

        path = os.path.join(filename, "__init__.py") if details[2] == PACKAGE else filename
        return load_source(name, path)

    return {
        "PKG_DIRECTORY": PACKAGE,
        "PY_SOURCE": SOURCE,
        "SEARCH_ERROR": SEARCH,
        "acquire_lock": lambda: None,
        "find_module": find_module,
        "load_module": load_module,
        "load_source": load_source,
        "new_module": types.ModuleType,
        "release_lock": lambda: None,
        "reload": importlib.reload,
    }


def _strtobool(val):
    """1 or 0 for a word."""
    word = val.lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if word in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"invalid truth value {val!r}")


@_functools.total_ordering
class _LooseVersion:
    """Versions as lists of numbers and words, compared one by one."""

    def __init__(self, vstring=None):
        if vstring:
            self.parse(vstring)

    def parse(self, vstring):
        """Reads a version."""
        import re

        parts = [part for part in re.split(r"(\d+|[a-z]+|\.)", vstring) if part and part != "."]
        self.vstring = vstring
        self.version = [int(part) if part.isdigit() else part for part in parts]

    def _other(self, other):
        return other.version if isinstance(other, _LooseVersion) else _LooseVersion(other).version

    def __eq__(self, other):
        return self.version == self._other(other)

    def __lt__(self, other):
        return self.version < self._other(other)

    def __str__(self):
        return self.vstring

    def __repr__(self):
        return f"LooseVersion ('{self.vstring}')"

    __hash__ = None


def _distutils_spawn():
    import shutil

    return {"find_executable": lambda executable, path=None: shutil.which(executable, path=path)}


def _distutils_dir_util():
    import os
    import shutil

    def mkpath(name, mode=0o777, verbose=1, dry_run=0):
        os.makedirs(name, mode, exist_ok=True)
        return [name]

    def copy_tree(src, dst, *args, **kwargs):
        shutil.copytree(src, dst, dirs_exist_ok=True)
        return [os.path.join(folder, file) for folder, _, files in os.walk(dst) for file in files]

    return {"mkpath": mkpath, "copy_tree": copy_tree, "remove_tree": lambda directory, *rest: shutil.rmtree(directory)}


def _c_element_tree():
    import xml.etree.ElementTree as module

    return {name: value for name, value in vars(module).items() if not name.startswith("__")}


def _quoting():
    import shlex

    return {"quote": shlex.quote}


def _escaping():
    import html

    return {"escape": _functools.partial(html.escape, quote=False)}


MODULES = {
    "cgi": _escaping,  # removed in 3.13
    "distutils": dict,  # removed in 3.12, with what is below it
    "distutils.dir_util": _distutils_dir_util,
    "distutils.spawn": _distutils_spawn,
    "distutils.util": lambda: {"strtobool": _strtobool},
    "distutils.version": lambda: {"LooseVersion": _LooseVersion, "StrictVersion": _LooseVersion},
    "imp": _imp,
    "pipes": _quoting,  # removed in 3.13
    "xml.etree.cElementTree": _c_element_tree,  # removed in 3.9
}
