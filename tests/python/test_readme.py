"""The Python program printed in the README runs as it is printed."""

import os
import pathlib
import re
import subprocess
import sys

import symbind

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def test_the_program_in_the_readme_runs(tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "data").symlink_to(README.parent / "data")
    package = {"PYTHONPATH": str(pathlib.Path(symbind.__file__).absolute().parents[1])}
    command = [sys.executable, "-c", program]
    result = subprocess.run(
        command, cwd=tmp_path, env=os.environ | package, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split()[-1]) >= 0.9
    assert (tmp_path / "quickstart-0008.params").exists() and (tmp_path / "quickstart-symbol.json").exists()
