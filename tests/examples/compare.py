"""Runs a program and compares what it prints with a recorded text.

usage: compare.py PROGRAM EXPECTED
"""

import difflib
import subprocess
import sys
from pathlib import Path


def main():
    program, expected_file = sys.argv[1:]
    result = subprocess.run([program], capture_output=True, text=True, check=False)
    expected = Path(expected_file).read_text()
    if result.returncode != 0:
        sys.exit(f"{program} failed with status {result.returncode}:\n{result.stdout}{result.stderr}")
    if result.stdout != expected:
        lines = difflib.unified_diff(
            expected.splitlines(keepends=True), result.stdout.splitlines(keepends=True), "MXNet prints", "we print"
        )
        sys.exit("".join(lines))


if __name__ == "__main__":
    main()
