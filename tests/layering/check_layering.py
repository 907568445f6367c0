"""Checks that every file under symbind/ includes only what its folder may include.

The table below is the architecture; each folder's README.md repeats its row in a line "May include: core, graph." and
the two must agree. A folder may always include itself and the folders it is in. Naming a folder permits its
subfolders too, except those of optional libraries: they may be absent from a build, so no other folder may count on
them. A folder without a row follows its parent.

Every C++ file of the repository that names a fixed-width integer (int64_t, uint8_t, ...) must reach <cstdint> through
its own includes: which other standard headers bring it in differs between versions of a standard library.

usage: check_layering.py [REPOSITORY]
"""

import re
import sys
from pathlib import Path, PurePosixPath

LOWER = ["core", "graph", "ops", "passes"]
# What backends supply is declared in core and passes, and linked: nothing above includes a backend.
UP_TO_EXEC = [*LOWER, "exec"]

MAY_INCLUDE = {
    "core": [],
    "image": ["core"],
    "graph": ["core"],
    "ops": ["core", "graph"],
    "passes": ["core", "graph", "ops"],
    "backend": [*LOWER, "image"],
    "backend/cpu": [*LOWER, "image"],
    "backend/onednn": [*LOWER, "backend/cpu"],
    "backend/no_onednn": [*LOWER, "backend/cpu"],
    "backend/cuda": [*LOWER, "image"],
    "backend/no_cuda": LOWER,
    "backend/cuda/cudnn": LOWER,
    "backend/cuda/no_cudnn": LOWER,
    "exec": LOWER,
    "data": ["core", "image"],
    "files": ["core", "graph"],
    "optim": [*UP_TO_EXEC, "files"],
    "kvstore": [*UP_TO_EXEC, "optim", "files"],
    "train": [*UP_TO_EXEC, "optim", "kvstore", "data", "files"],
}

# Folders that wrap an optional library: the library's headers live there and nowhere else.
VENDOR_HEADERS = {
    "backend/cpu": r"omp\.h",
    "backend/onednn": r"(oneapi/dnnl/|dnnl).*",
    "backend/cuda": r"(cuda|cublas|cudnn|nvrtc|nvtx|cub/|thrust/|cooperative_groups|curand|mma\.h).*",
    "kvstore/mpi": r"mpi\.h",
    "kvstore/nccl": r"nccl.*\.h",
    "data/jpeg": r"(jpeglib|jerror|turbojpeg)\.h",
    "data/png": r"png\.h",
}
OPTIONAL = {
    "backend/onednn",
    "backend/cuda",
    "backend/cuda/cudnn",
    "kvstore/mpi",
    "kvstore/nccl",
    "data/jpeg",
    "data/png",
}
STUBS = {str(PurePosixPath(f).with_name("no_" + PurePosixPath(f).name)) for f in OPTIONAL}

# Libraries that a user of the installed headers need not have.
PRIVATE_HEADERS = r"(nlohmann/.*|zlib\.h|zconf\.h)"

# Folders that CMake writes into the build (cmake/Families.cmake, EmbeddedSources.cmake): lists made from the sources.
GENERATED = {"families", "embedded"}

# Folders of the repository with C++ files. Fixed-width integers are checked in all of them.
SOURCE_FOLDERS = ["symbind", "python/src", "tests", "bench", "examples"]
FIXED_WIDTH = re.compile(r"\bu?int(_fast|_least)?(8|16|32|64)_t\b|\bu?int(ptr|max)_t\b")
FIXED_WIDTH_HEADERS = {"cstdint", "stdint.h", "cinttypes", "inttypes.h"}  # no other one is required to define them
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)

SOURCE_SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b")
ENVIRONMENT = re.compile(r"\bgetenv\b")
ENVIRONMENT_HOME = "core/environment.cc"
README_LINE = re.compile(r"^May include: (.+)\.$", re.MULTILINE)


def ancestors(folder):
    """The folder and its parents, nearest first: a/b/c, a/b, a."""
    parts = folder.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]


def allowed_folders(folder):
    """The row of the table for a folder, or None where no row applies."""
    return next((MAY_INCLUDE[f] for f in ancestors(folder) if f in MAY_INCLUDE), None)


def is_allowed(folder, target):
    if target in ancestors(folder):
        return True
    fences = [f for f in ancestors(target) if f in OPTIONAL | STUBS]
    if any(f not in ancestors(folder) for f in fences):
        return False
    return any(f in ancestors(target) for f in [*allowed_folders(folder), folder])


def files_reaching(headers, includes):
    """The files that include one of the headers, by themselves or through other files. `includes` maps a file's path in
    the repository to the names in its #include lines: paths from the repository root or from the file's folder."""
    users = {}  # an included name or path → the files that include it
    for file, names in includes.items():
        for name in names:
            users.setdefault(name, []).append(file)
            users.setdefault((PurePosixPath(file).parent / name).as_posix(), []).append(file)
    reaching, waiting = set(), [file for header in headers for file in users.get(header, [])]
    while waiting:
        file = waiting.pop()
        if file not in reaching:
            reaching.add(file)
            waiting += users.get(file, [])
    return reaching


class Checker:
    def __init__(self, repository):
        self.repository = Path(repository)
        self.root = self.repository / "symbind"
        self.errors = []

    def complain(self, path, line_number, message):
        name = path.relative_to(self.repository)
        self.errors.append(f"{name}:{line_number}: {message}" if line_number else f"{name}: {message}")

    def check(self):
        if not self.root.is_dir():
            self.errors.append("symbind/ is missing")
            return self.errors
        for folder in sorted([self.root, *(p for p in self.root.rglob("*") if p.is_dir())]):
            self.check_readme(folder)
        for path in sorted(p for p in self.root.rglob("*") if p.suffix in SOURCE_SUFFIXES):
            self.check_source(path)
        self.check_fixed_width_integers()
        return self.errors

    def check_readme(self, folder):
        readme = folder / "README.md"
        if not readme.is_file():
            self.complain(readme, None, "every folder has a README.md; this one is missing")
            return
        if folder == self.root:
            return
        name = folder.relative_to(self.root).as_posix()
        allowed = allowed_folders(name)
        if allowed is None:
            self.complain(readme, None, f"{name} has no row in the table of tests/layering/check_layering.py")
            return
        wanted = f"May include: {', '.join(allowed) or 'nothing'}."
        match = README_LINE.search(readme.read_text(encoding="utf-8"))
        if match is None:
            self.complain(readme, None, f'the line "{wanted}" is missing')
            return
        listed = [] if match[1] == "nothing" else match[1].split(", ")
        if sorted(listed) != sorted(allowed):
            self.complain(readme, None, f'says "{match[0]}", the table says "{wanted}"')

    def check_source(self, path):
        folder = path.parent.relative_to(self.root).as_posix()
        lines = path.read_text(encoding="utf-8").splitlines()
        is_header = path.suffix in {".h", ".cuh"}
        if is_header and "#pragma once" not in lines:
            self.complain(path, None, "a header has #pragma once")
        reads_environment = path.relative_to(self.root).as_posix() == ENVIRONMENT_HOME
        for number, line in enumerate(lines, start=1):
            if ENVIRONMENT.search(line) and not reads_environment:
                self.complain(path, number, f"the environment is read by symbind/{ENVIRONMENT_HOME} alone")
            if include := INCLUDE.match(line):
                problem = self.include_problem(folder, is_header, include[1] == '"', include[2])
                if problem:
                    self.complain(path, number, problem)
            elif CONDITIONAL.match(line) and not self.may_have_conditionals(folder):
                self.complain(path, number, "preprocessor conditionals belong in symbind/backend and optional folders")

    def check_fixed_width_integers(self):
        files = {
            path.relative_to(self.repository).as_posix(): path.read_text(encoding="utf-8")
            for folder in SOURCE_FOLDERS
            for path in sorted((self.repository / folder).rglob("*"))
            if path.suffix in SOURCE_SUFFIXES
        }
        includes = {
            name: [include[2] for line in text.splitlines() if (include := INCLUDE.match(line))]
            for name, text in files.items()
        }
        reaching = files_reaching(FIXED_WIDTH_HEADERS, includes)
        for name, text in files.items():
            code = COMMENT_OR_STRING.sub(lambda match: "\n" * match[0].count("\n"), text)
            if name not in reaching and (use := FIXED_WIDTH.search(code)):
                line_number = code.count("\n", 0, use.start()) + 1
                self.complain(self.repository / name, line_number, f"{use[0]} is used; include <cstdint>")

    def include_problem(self, folder, is_header, quoted, name):
        """What is wrong with an include, or None."""
        if name.startswith("symbind/"):
            return self.own_include_problem(folder, is_header, PurePosixPath(name).parent)
        if quoted:
            return f'"{name}" is not named from the repository root, as in "symbind/core/shape.h"'
        homes = [home for home, pattern in VENDOR_HEADERS.items() if re.fullmatch(pattern, name)]
        if homes and not any(home in ancestors(folder) for home in homes):
            return f"<{name}> may be included only in symbind/{' and symbind/'.join(homes)}"
        if is_header and not folder.startswith("backend") and re.fullmatch(PRIVATE_HEADERS, name):
            return f"<{name}> in a header would be asked of every user; include it in a .cc file"
        return None

    @staticmethod
    def own_include_problem(folder, is_header, target):
        if target == PurePosixPath("symbind"):
            return "the umbrella header is for users; include what is used" if folder != "." else None
        target = target.relative_to("symbind").as_posix()
        inside_backend = folder.startswith("backend")
        if is_header and not inside_backend and target.startswith("backend"):
            return f"{target} is not installed, so only .cc files may include it"
        if folder == "." or (target in GENERATED and not is_header):
            return None
        if allowed_folders(folder) is None:
            return f"{folder} has no row in the table"
        if not is_allowed(folder, target):
            return f"{folder} may not include {target}"
        return None

    @staticmethod
    def may_have_conditionals(folder):
        return any(f == "backend" or f in OPTIONAL for f in ancestors(folder))


def main():
    repository = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    errors = Checker(repository).check()
    for error in errors:
        print(error)
    print(f"layering: {len(errors)} problem(s)" if errors else "layering: every include is where it may be")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
