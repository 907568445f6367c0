#!/usr/bin/env python3
"""Do the tests notice? Changes one thing at a time in the sources, builds, runs the tests that mirror the file, and
reports which changes went unnoticed.

A change is a comparison flipped, an operator swapped, a constant moved by one, a condition negated, or a statement
removed. Each is undone before the next, whatever happens; a run that was killed is cleaned up by the next one.

usage: tools/mutate.py FILE...                     changes anywhere in these files
       tools/mutate.py --base origin/main          changes in the lines that differ from a commit
       tools/mutate.py FILE:LINE                   changes in one line, all of them
"""

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Rooms whose code is tested in others, too.
ROOMS = {"backend": ["backend", "ops"], "passes": ["passes", "exec"]}
# Tests of Python files whose name is another: by the stem of the file, or the folder it is in.
PYTHON_TESTS = {
    "__main__": ["main"],
    "_as_mxnet": ["main", "seed_programs"],
    "_functions": ["op", "ndarray", "symbol"],
    "attribute": ["attributes"],
    "base": ["attributes"],
    "base_module": ["module"],
    "convert": ["ndarray", "executor", "bad_input"],
    "context": ["creation"],
    "custom": ["operator"],
    "data": ["io"],
    "executor_group": ["module"],
    "executor_manager": ["small_modules"],
    "files": ["creation", "model"],
    "held": ["collection"],
    "log": ["callback", "small_modules"],
    "mixins": ["collection", "metric"],
    "name": ["attributes"],
    "random": ["creation"],
    "updater": ["optimizer"],
}
SMALL_MODULES = {"engine", "util", "profiler", "libinfo", "registry"}


@dataclass(frozen=True)
class Mutant:
    path: Path
    start: int  # characters of the text that are replaced
    end: int
    text: str
    what: str

    def line(self, source):
        return source.count("\n", 0, self.start) + 1

    def applied(self, source):
        return source[: self.start] + self.text + source[self.end :]


# ---- changes in C++


def code_only(source):
    """The text with comments, literals and preprocessor lines blanked, so that offsets stay the same."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^[ \t]*#(?:[^\n\\]|\\.)*", re.S | re.M
    )
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


SWAPS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "%": "*",
    "+=": "-=",
    "-=": "+=",
}
KEPT = "return|using|const|auto|break|static|if|for|case|throw"  # how statements begin that cannot simply go
STATEMENT = re.compile(rf"^[ \t]+(?!(?:{KEPT})\b)[^\n{{}};]*;$")
CALL_OR_ASSIGNMENT = re.compile(r"^\s*(?:[\w:.*>\-\[\]]+(?:\(.*\)|\[.*\])?\s*(?:=|\+=|-=)\s|[\w:.>\-]+\(|\+\+|--)")


def closing(code, opening):
    """Where the parenthesis that opens at `opening` closes."""
    depth = 0
    for at in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return None


def cpp_mutants(path, source):
    code = code_only(source)
    for match in re.finditer(r"(?<=\s)(<=|>=|==|!=|&&|\|\||\+=|-=|[<>+\-*/%])(?=\s)", code):
        old = match.group()
        yield Mutant(path, *match.span(), SWAPS[old], f"{old} becomes {SWAPS[old]}")
    for match in re.finditer(r"(?<![\w.\"'])(\d+)(?![\w.'])", code):
        number = int(match.group())
        yield Mutant(path, *match.span(), str(number + 1), f"{number} becomes {number + 1}")
    for match in re.finditer(r"\b(true|false)\b", code):
        other = "false" if match.group() == "true" else "true"
        yield Mutant(path, *match.span(), other, f"{match.group()} becomes {other}")
    for match in re.finditer(r"\bif \(", code):
        end = closing(code, match.end() - 1)
        inside = code[match.end() : end] if end else ";"
        if ";" not in inside:  # a declaration and a condition
            yield Mutant(path, match.end(), end, f"!({source[match.end():end]})", "the condition is negated")
    offset = 0
    for line in code.splitlines(keepends=True):
        if STATEMENT.match(line.rstrip("\n")) and CALL_OR_ASSIGNMENT.match(line) and line.count("(") == line.count(")"):
            begin, end = offset + len(line) - len(line.lstrip()), offset + len(line.rstrip())
            yield Mutant(path, begin, end, ";", "the statement is removed")
        offset += len(line)


# ---- changes in Python

PYTHON_SWAPS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


def python_mutants(path, source):
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def offset(node, end=False):
        row = node.end_lineno if end else node.lineno
        column = node.end_col_offset if end else node.col_offset
        text = source[lines[row - 1] : lines[row]]
        return lines[row - 1] + len(text.encode()[:column].decode())

    def swapped(kind, left, right):
        if type(kind) not in PYTHON_SWAPS:
            return
        old, new = PYTHON_SWAPS[type(kind)]
        begin, end = offset(left, end=True), offset(right)
        at = source[begin:end].find(old)
        if at >= 0:
            yield Mutant(path, begin + at, begin + at + len(old), new, f"{old} becomes {new}")

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            for left, kind, right in zip([node.left, *node.comparators], node.ops, node.comparators):
                yield from swapped(kind, left, right)
        elif isinstance(node, ast.BinOp):
            yield from swapped(node.op, node.left, node.right)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:]):
                yield from swapped(node.op, left, right)
        elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int)):
            new = repr(not node.value if isinstance(node.value, bool) else node.value + 1)
            yield Mutant(path, offset(node), offset(node, end=True), new, f"{node.value!r} becomes {new}")
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
            begin, end = offset(node.test), offset(node.test, end=True)
            yield Mutant(path, begin, end, f"(not ({source[begin:end]}))", "the condition is negated")
        elif isinstance(node, (ast.Assign, ast.AugAssign)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            if node.col_offset > 0:  # those of the module itself define its names
                yield Mutant(path, offset(node), offset(node, end=True), "pass", "the statement is removed")


def mutants_of(path, lines=None):
    """All changes of a file, in the order of their offsets; only in these lines, where some are given."""
    source = (ROOT / path).read_text(encoding="utf-8")
    found = (python_mutants if path.suffix == ".py" else cpp_mutants)(path, source)
    unique = {(mutant.start, mutant.end, mutant.text): mutant for mutant in found}
    return [m for _, m in sorted(unique.items()) if lines is None or m.line(source) in lines]


# ---- which files, and their tests


def changed_lines(base):
    """File → numbers of lines that differ from the commit."""
    diff = subprocess.run(
        ["git", "diff", "--unified=0", "--no-color", base, "--", "symbind", "python"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found, path = {}, None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = Path(line[6:]) if line.startswith("+++ b/") else None
        elif line.startswith("@@") and path:
            first, _, count = re.search(r"\+(\d+)(,(\d+))?", line).groups()
            found.setdefault(path, set()).update(range(int(first), int(first) + int(count or 1)))
    return {path: lines for path, lines in found.items() if is_source(path) and lines}


def is_source(path):
    if path.parts[:2] == ("python", "symbind"):
        return path.suffix == ".py"
    in_library = path.parts[0] == "symbind" and len(path.parts) > 2
    return path.suffix in (".cc", ".h") and (in_library or path.parts[:2] == ("python", "src"))


@dataclass(frozen=True)
class Tests:
    targets: tuple  # of the build
    commands: tuple


def tests_of(path, build):
    if path.parts[0] == "symbind":
        programs = [f"test_{room}" for room in ROOMS.get(path.parts[1], [path.parts[1]])]
        commands = tuple((str(build / "tests" / name), "--gtest_fail_fast", "--gtest_brief=1") for name in programs)
        return Tests(("symbind", *programs), commands)
    folder = ROOT / "tests/python"
    stem = path.parts[2] if len(path.parts) > 3 else path.stem
    names = ["small_modules"] if stem in SMALL_MODULES else PYTHON_TESTS.get(stem, [stem])
    files = [folder / f"test_{name}.py" for name in names]
    if not all(file.exists() for file in files):
        files = [folder]
    pytest = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, files))
    return Tests(("_symbind",) if path.suffix != ".py" else (), (pytest,))


# ---- one change


class Workspace:
    """The tree with at most one change in it. What a file was is kept under the build folder until it is back."""

    def __init__(self, build):
        self.kept = build / "mutate"
        self.restore()

    def apply(self, mutant):
        source = ROOT / mutant.path
        copy = self.kept / mutant.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        text = source.read_text(encoding="utf-8")
        source.write_text(mutant.applied(text), encoding="utf-8")

    def restore(self):
        if not self.kept.exists():
            return
        for copy in self.kept.rglob("*"):
            if copy.is_file():
                shutil.copyfile(copy, ROOT / copy.relative_to(self.kept))
        shutil.rmtree(self.kept)


def run(command, timeout, env):
    """(status, output); no status after a timeout. Ends with us: the group of processes goes with it."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def build_targets(build, targets, jobs, env):
    if not targets:
        return True
    status, output = run(["ninja", "-C", str(build), f"-j{jobs}", *targets], None, env)
    return status == 0 or not print_tail(output)


def print_tail(output):
    if os.environ.get("MUTATE_VERBOSE"):
        print(output[-2000:])
    return True


def verdict(tests, arguments, env):
    """ "noticed", "noticed (hangs)", "unnoticed", or "does not compile"."""
    if not build_targets(arguments.build_dir, tests.targets, arguments.jobs, env):
        return "does not compile"
    for command in tests.commands:
        status, output = run(command, arguments.timeout, env)
        if status is None:
            return "noticed (hangs)"
        if status != 0:
            print_tail(output)
            return "noticed"
    return "unnoticed"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="source files, or FILE:LINE")
    parser.add_argument("--base", help="change only lines that differ from this commit")
    parser.add_argument("--count", type=int, default=20, help="how many changes at most (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (%(default)s)")
    parser.add_argument("--build-dir", type=Path, default=Path("build/release"), help="(%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of the build (%(default)s)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for the tests of a change (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the changes and run nothing")
    arguments = parser.parse_args()
    arguments.build_dir = (ROOT / arguments.build_dir).resolve()
    if not arguments.files and not arguments.base:
        parser.error("name files, or a commit with --base")
    return arguments


def candidates(arguments):
    chosen = {}
    for name in arguments.files:
        name, _, line = name.partition(":")
        path = Path(name).resolve().relative_to(ROOT)
        if not is_source(path):
            sys.exit(f"{path} is not a source file of symbind/, python/src/ or python/symbind/")
        if line:
            chosen.setdefault(path, set()).add(int(line))
        else:
            chosen[path] = None
    if arguments.base:
        for path, lines in changed_lines(arguments.base).items():
            if not arguments.files or path in chosen:
                chosen[path] = lines
    found = [mutant for path, lines in sorted(chosen.items()) for mutant in mutants_of(path, lines)]
    random.Random(arguments.seed).shuffle(found)
    return found


def described(mutant):
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    line = mutant.line(source)
    return f"{mutant.path}:{line}: {mutant.what}: {source.splitlines()[line - 1].strip()[:80]}"


def main():
    arguments = parse_arguments()
    env = {**os.environ, "PYTHONPATH": str(arguments.build_dir / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: everything is put back
    workspace = Workspace(arguments.build_dir)
    found = candidates(arguments)
    print(f"{len(found)} changes are possible; at most {arguments.count} are tried")
    if arguments.list:
        for mutant in found[: arguments.count]:
            print(described(mutant))
        return 0

    healthy = {}  # tests → do they pass as things are?
    results = {}
    touched = set()
    try:
        for mutant in found:
            if sum(result != "does not compile" for result in results.values()) == arguments.count:
                break
            tests = tests_of(mutant.path, arguments.build_dir)
            if tests not in healthy:
                healthy[tests] = verdict(tests, arguments, env) == "unnoticed"
            if not healthy[tests]:
                sys.exit(f"the tests of {mutant.path} fail without any change: {tests.commands}")
            what, begin = described(mutant), time.monotonic()
            touched.update(tests.targets)
            workspace.apply(mutant)
            try:
                results[mutant] = verdict(tests, arguments, env)
            finally:
                workspace.restore()
            print(f"[{len(results)}] {results[mutant]:16} {time.monotonic() - begin:4.0f} s  {what}", flush=True)
    except KeyboardInterrupt:
        print("interrupted: the sources are as they were")
    finally:
        workspace.restore()
        if touched:
            build_targets(arguments.build_dir, sorted(touched), arguments.jobs, env)

    ran = {mutant: result for mutant, result in results.items() if result != "does not compile"}
    unnoticed = [mutant for mutant, result in ran.items() if result == "unnoticed"]
    if ran:
        noticed = len(ran) - len(unnoticed)
        print(f"\n{noticed} of {len(ran)} noticed ({noticed / len(ran):.0%}); unnoticed:")
        print("\n".join(f"  {described(mutant)}" for mutant in unnoticed) or "  none")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
