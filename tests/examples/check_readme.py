"""A C++ program in the README is a source of examples/ to the letter, and does what it says.

usage: check_readme.py README SOURCE PROGRAM SAVED PATTERN LEAST [ARGUMENT...]

The program prints a line that matches PATTERN, whose first group is a number of at least LEAST, and writes the file
SAVED where it runs.
"""

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    readme, source, program, saved, pattern, least, *arguments = sys.argv[1:]
    blocks = re.findall(r"^```cpp\n(.*?)^```$", Path(readme).read_text(), re.DOTALL | re.MULTILINE)
    code = Path(source).read_text()
    if code not in blocks:
        closest = difflib.get_close_matches(code, blocks, 1, 0)
        lines = closest[0].splitlines(True) if closest else []
        sys.exit("".join(difflib.unified_diff(lines, code.splitlines(True), "README.md", source)))
    with tempfile.TemporaryDirectory() as folder:  # the program saves its weights where it runs
        command = [Path(program).resolve(), *arguments]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        answer = re.search(pattern, result.stdout, re.MULTILINE)
        if result.returncode != 0 or not answer or float(answer[1]) < float(least):
            sys.exit(f"{program} ended with status {result.returncode}:\n{result.stdout}{result.stderr}")
        if not Path(folder, saved).exists():
            sys.exit(f"{program} did not save {saved}")


if __name__ == "__main__":
    main()
