"""Checks that a shared library exports only what the installed headers declare.

Each exported name is of the namespace symbind, and the first name below it (a class, a function, a nested namespace)
is a word of an installed header.

usage: check_exports.py LIBRARY INCLUDE_FOLDER
"""

import re
import subprocess
import sys
from pathlib import Path

# A name nested in symbind, after the marks of type information, tables, thunks, guards and thread-local wrappers.
IN_SYMBIND = re.compile(r"_Z(?:T[ISVT]|Th[^_]*_|Tv[^N]*_|GV|T[WH])?N[KVRO]*7symbind(?:(\d+)(\w+))?")


def main():
    library, folder = sys.argv[1], Path(sys.argv[2])
    words = set()
    for header in folder.rglob("*.h"):
        words.update(re.findall(r"\w+", header.read_text(encoding="utf-8")))
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    exported = [line.split()[-1] for line in listing.stdout.splitlines()]
    if not exported:
        sys.exit(f"{library} exports nothing")
    wrong = []
    for name in exported:
        match = IN_SYMBIND.match(name)
        # Operators have no length before their name.
        if not match or (match[1] and match[2][: int(match[1])] not in words):
            wrong.append(name)
    if wrong:
        sys.exit(f"{len(wrong)} of {len(exported)} exported names are in no installed header, as {wrong[0]}")
    print(f"   {len(exported)} names")


main()
