"""The C++ program in the README is examples/quickstart.cc to the letter, and does what it says.

usage: check_readme.py README SOURCE PROGRAM
"""

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    readme, source, program = sys.argv[1:]
    blocks = re.findall(r"^```cpp\n(.*?)^```$", Path(readme).read_text(), re.DOTALL | re.MULTILINE)
    code = Path(source).read_text()
    if code not in blocks:
        closest = max(blocks, key=len, default="")
        sys.exit("".join(difflib.unified_diff(closest.splitlines(True), code.splitlines(True), "README.md", source)))
    with tempfile.TemporaryDirectory() as folder:  # the program saves its weights where it runs
        result = subprocess.run([Path(program).resolve()], cwd=folder, capture_output=True, text=True, check=False)
        answer = re.fullmatch(r"(\d+) of 100 points are right\n", result.stdout)
        if result.returncode != 0 or not answer or int(answer[1]) < 90:
            sys.exit(f"{program} ended with status {result.returncode}:\n{result.stdout}{result.stderr}")
        if not Path(folder, "quickstart.params").exists():
            sys.exit(f"{program} saved nothing")


if __name__ == "__main__":
    main()
