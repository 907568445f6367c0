"""The extension module as a shared library."""

import shutil
import subprocess

import pytest

import symbind


@pytest.mark.skipif(not shutil.which("nm"), reason="nm is not installed")
def test_only_the_entry_point_is_exported():
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", symbind._symbind.__file__], check=True, capture_output=True, text=True
    )
    assert [line.split()[-1] for line in listing.stdout.splitlines()] == ["PyInit__symbind"]
