"""What `import mxnet` finds in the child processes of `python -m symbind`: it imports Symbind instead."""

import os
import sys

try:
    import symbind
except ModuleNotFoundError as error:
    if error.name != "symbind":
        raise
    # The parent found the package in its working directory.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    import symbind

del sys.modules[__name__]  # this module is not MXNet: install_as_mxnet() refuses where that is loaded
symbind.install_as_mxnet()
import mxnet  # noqa: E402, F401  from here on sys.modules has Symbind under this name, which is what the importer gets
