"""Runs a program of examples/python as a user does, and returns its log and then what it printed."""

import os
import subprocess
import sys
from pathlib import Path

import symbind

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"


def run(name, *arguments, folder):
    env = os.environ | {"PYTHONPATH": str(Path(symbind.__file__).absolute().parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    text = done.stderr + done.stdout
    assert done.returncode == 0, f"exit status {done.returncode}:\n{text[-3000:]}"
    return text
