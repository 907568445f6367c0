#!/usr/bin/env python3
"""Counts the library's files that name an operator family: what adding one costs.

A file counts if it includes the family's header, defines or calls its registration, or names one of the parameter
structs that the header declares. ops/all.h counts: it is the one list of families.

usage: tools/operator_files.py [FAMILY ...]    (roi_pool, upsample and pool when none is named)
"""

import argparse
import re
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "symbind"
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}


def words_of(family):
    header = (LIBRARY / "ops" / f"{family}.h").read_text()
    structs = re.findall(r"^struct (\w+)", header, re.MULTILINE)
    return [f"ops/{family}.h", f"register_{family}", f"add_{family}", *structs]


def files_of(family):
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words_of(family)))
    return sorted(
        path.relative_to(LIBRARY)
        for path in LIBRARY.rglob("*")
        if path.suffix in SUFFIXES and pattern.search(path.read_text())
    )


def main():
    parser = argparse.ArgumentParser(description="Counts the files that name an operator family.")
    parser.add_argument("families", nargs="*", default=["roi_pool", "upsample", "pool"], metavar="FAMILY")
    for family in parser.parse_args().families:
        files = files_of(family)
        print(f"{family}: {len(files)} files")
        for file in files:
            print(f"  {file}")


if __name__ == "__main__":
    main()
