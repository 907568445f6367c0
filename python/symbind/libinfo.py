"""Where the library is, and which interface it has."""

import os as _os

__version__ = "1.9.1"  # the MXNet whose interface this is; scripts compare it


def find_lib_path(prefix="libsymbind"):
    """The paths of the library that is loaded."""
    from . import _symbind

    found = []
    if _os.path.exists("/proc/self/maps"):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if len(line.split(maxsplit=5)) > 5}
        found = sorted(path for path in paths if _os.path.basename(path).startswith(("libsymbind.", prefix + ".")))
    return found or [_symbind.__file__]
