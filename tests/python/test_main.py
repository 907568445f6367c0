"""`python -m symbind`: programs and modules that import mxnet, and what is said of a wrong call."""

import subprocess
import sys
import textwrap

import pytest
from script_runs import environment, package_path

PROGRAM = "import sys, mxnet; print(__name__, mxnet.nd.ones((2,)).sum().asscalar(), sys.argv[1:], sys.path[0])"


def run(*arguments, cwd=None, **more):
    command = [sys.executable, "-m", "symbind", *map(str, arguments)]
    env = {**environment(package_path()), **more}
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)


def test_a_script_finds_its_arguments_and_what_is_beside_it(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(tmp_path / "program.py", "-m", "x")
    assert (done.returncode, done.stdout) == (0, f"__main__ 2.0 ['-m', 'x'] {tmp_path}\n"), done.stderr


def test_a_module_runs_under_its_name(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run("-m", "program", "x", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("__main__ 2.0 ['x'] "), done.stderr


@pytest.mark.parametrize(
    "arguments, status, stdout, stderr",
    [
        (["--help"], 0, "usage: python -m symbind SCRIPT", ""),
        (["-h"], 0, "usage: python -m symbind SCRIPT", ""),
        ([], 2, "usage: python -m symbind SCRIPT", ""),
        (["-m"], 2, "", "usage: python -m symbind SCRIPT"),
        (["doctor"], 0, "Symbind ", ""),
        (["missing.py"], 2, "", "python -m symbind: there is no file missing.py"),
    ],
)
def test_usage_and_mistakes(arguments, status, stdout, stderr, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert done.stdout.startswith(stdout) and bool(done.stdout) == bool(stdout)
    assert done.stderr.startswith(stderr) and bool(done.stderr) == bool(stderr)


# ---- child processes

CHILDREN = """
    import multiprocessing, subprocess, sys

    import mxnet.module.base_module
    import mxnet as mx
    import numpy as np


    def compute(value):
        return float((mx.nd.ones((2, 2)) * value).sum().asscalar()), hasattr(np, "int")


    if __name__ == "__main__":
        for method in ("spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                print(method, *pool.map_async(compute, [2]).get(timeout=60)[0])
        child = "from mxnet import nd; import mxnet, sys; print(nd.ones(3).shape, mxnet.__name__, sys.path[1:3])"
        subprocess.run([sys.executable, "-c", child], check=True)
        subprocess.run([sys.executable, "-m", "symbind", "nested.py"], check=True)
"""


@pytest.mark.parametrize("compat", ["1", "0"])
def test_child_processes_import_mxnet(compat, tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(CHILDREN))
    (tmp_path / "nested.py").write_text("import os; print(os.environ['PYTHONPATH'].split(os.pathsep))")
    done = run("program.py", cwd=tmp_path, SYMBIND_COMPAT=compat, PYTHONUNBUFFERED="1")
    assert done.returncode == 0, done.stderr
    children = str(package_path() / "symbind" / "_child_path")
    path = [children, str(package_path())]
    shown = f"8.0 {compat == '1'}"
    assert done.stdout.splitlines() == [
        f"spawn {shown}",
        f"forkserver {shown}",
        f"(3,) symbind {path}",
        str(path),
    ]


def test_children_find_a_package_that_only_their_parent_has_in_its_path(tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, subprocess, sys; print(sys.path[:2], os.environ['PYTHONPATH'], flush=True);"
        "subprocess.run([sys.executable, '-c', 'import mxnet; print(mxnet.__name__)'], cwd='/', check=True)"
    )
    done = run(tmp_path / "program.py", cwd=package_path(), PYTHONPATH="")
    assert done.returncode == 0, done.stderr
    children = str(package_path() / "symbind" / "_child_path")
    assert done.stdout.splitlines() == [f"{[str(tmp_path), children]} {children}", "symbind"]
