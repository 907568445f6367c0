"""`python -m symbind`: programs and modules that import mxnet, and what is said of a wrong call."""

import subprocess
import sys

import pytest
from script_runs import environment, package_path

PROGRAM = "import sys, mxnet; print(__name__, mxnet.nd.ones((2,)).sum().asscalar(), sys.argv[1:], sys.path[0])"


def run(*arguments, cwd=None):
    command = [sys.executable, "-m", "symbind", *map(str, arguments)]
    env = environment(package_path())
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
