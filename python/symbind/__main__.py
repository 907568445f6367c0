"""``python -m symbind train.py --args`` runs a script whose ``import mxnet`` imports Symbind."""

import os
import runpy
import sys

from . import install_as_mxnet, runtime

USAGE = """usage: python -m symbind SCRIPT [ARGUMENTS ...]
       python -m symbind -m MODULE [ARGUMENTS ...]
       python -m symbind doctor

Runs a Python program in which `import mxnet` gives Symbind; `doctor` says what Symbind found on this machine."""


def let_children_import_mxnet():
    """Child processes find a module mxnet in PYTHONPATH. Those of multiprocessing get this process's sys.path: it is
    where PYTHONPATH would have put it, behind the folder of the script."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_child_path")
    given = os.environ.get("PYTHONPATH")
    if not given:
        os.environ["PYTHONPATH"] = folder
    elif folder not in given.split(os.pathsep):
        os.environ["PYTHONPATH"] = folder + os.pathsep + given
    if folder not in sys.path:
        sys.path.insert(1, folder)


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    if arguments == ["doctor"] and not os.path.exists("doctor"):
        print(runtime.report())
        return 0
    install_as_mxnet()
    let_children_import_mxnet()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print(USAGE, file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    script = arguments[0]
    if not os.path.exists(script):
        print(f"python -m symbind: there is no file {script}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
