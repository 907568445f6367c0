"""Libraries of NVIDIA's Python packages, wherever sys.path has them."""

import os
import subprocess
import sys

import symbind as mx


def library_path_after_import(**variables):
    code = "import os, symbind; print(os.environ.get('SYMBIND_LIBRARY_PATH', ''))"
    environment = {name: value for name, value in os.environ.items() if name != "SYMBIND_LIBRARY_PATH"} | variables
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_folders_of_packages_are_added_once_after_the_users(tmp_path):
    for package in ("cudnn", "nccl"):
        (tmp_path / "nvidia" / package / "lib").mkdir(parents=True)
    (tmp_path / "nvidia" / "without_libraries").mkdir()
    here = os.path.dirname(os.path.dirname(mx.__file__))
    added = [f"{tmp_path}/nvidia/{package}/lib" for package in ("cudnn", "nccl")]
    path = library_path_after_import(PYTHONPATH=f"{here}:{tmp_path}", SYMBIND_LIBRARY_PATH="/mine")
    assert path.split(":")[:3] == ["/mine", *added]
    assert library_path_after_import(PYTHONPATH=f"{here}:{tmp_path}", SYMBIND_LIBRARY_PATH=path) == path
