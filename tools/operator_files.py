#!/usr/bin/env python3
"""Counts the library's files that name an operator family: what adding one costs.

A file counts if its name is the family's, or if its code, without comments, includes the family's header, defines or
calls its registration, or names one of the parameter structs that the header declares. ops/all.h counts: it is the one
list of families.

usage: tools/operator_files.py [--check FILE] [FAMILY ...]    (roi_pool, upsample and pool when none is named)
"""

import argparse
import re
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "symbind"
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}


def words_of(family):
    header = (LIBRARY / "ops" / f"{family}.h").read_text()
    structs = re.findall(r"^struct (\w+)", header, re.MULTILINE)
    return [f"ops/{family}.h", f"register_{family}", f"add_{family}", *structs]


def code_of(path):
    return re.sub(r"//.*", "", path.read_text())


def files_of(family):
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words_of(family)))
    return sorted(
        path.relative_to(LIBRARY)
        for path in LIBRARY.rglob("*")
        if path.suffix in SUFFIXES and (path.stem == family or pattern.search(code_of(path)))
    )


def check(document, families):
    """Exits with an error unless the document has each family with its count: `roi_pool` 6."""
    counts = dict(re.findall(r"`(\w+)` (\d+)", Path(document).read_text()))
    wrong = [
        f"{family} has {len(files_of(family))} files, {document} says {counts.get(family, 'nothing')}"
        for family in families
        if counts.get(family) != str(len(files_of(family)))
    ]
    if wrong:
        sys.exit("\n".join(wrong))


def main():
    parser = argparse.ArgumentParser(description="Counts the files that name an operator family.")
    parser.add_argument("families", nargs="*", default=["roi_pool", "upsample", "pool"], metavar="FAMILY")
    parser.add_argument("--check", metavar="FILE", help="compare with the counts in a document")
    arguments = parser.parse_args()
    if arguments.check:
        return check(arguments.check, arguments.families)
    for family in arguments.families:
        files = files_of(family)
        print(f"{family}: {len(files)} files")
        for file in files:
            print(f"  {file}")


if __name__ == "__main__":
    main()
