#!/usr/bin/env python3
"""Do the tests notice? Changes one thing at a time in the sources, builds, runs the tests, and reports which changes
went unnoticed.

A change is a comparison flipped, an operator swapped, a constant moved by one, a condition negated, or a statement
removed (mutants.py). The tests that mirror the file run first; those of the folders that use it, and the Python tests,
are built and run only while nothing has failed. Each change is undone before the next, whatever happens; a run that was
killed is cleaned up by the next one. Results are kept in the build folder: the same command goes on where it stopped.

usage: tools/mutate.py PATH...                     changes anywhere in these files, or in the sources of these folders
       tools/mutate.py --base origin/main          changes in the lines that differ from a commit
       tools/mutate.py FILE:LINE                   changes in one line, all of them
       tools/mutate.py --again PATH...             after tests were added: what went unnoticed before, once more
"""

import argparse
import fcntl
import hashlib
import json
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

from mutants import ROOT, mutants_of

# The programs that run a folder's code beside the one that mirrors it, the quick ones first. Python's tests come last.
BROADER = {
    "core": ["graph", "files", "data", "ops", "exec", "train"],
    "graph": ["files", "fuzz", "oracle", "passes", "ops", "train", "exec"],
    "ops": ["oracle", "fuzz", "passes", "train", "exec"],
    "passes": ["oracle", "ops", "exec", "train"],
    "backend": ["ops", "oracle", "exec", "train"],
    "exec": ["ops", "oracle", "train"],
    "optim": ["oracle", "kvstore", "train"],
    "kvstore": ["train"],
    "image": ["data", "ops"],
    "data": ["fuzz", "train"],
    "files": ["fuzz", "optim", "train"],
    "train": ["oracle", "examples"],
}
# Tests of Python files whose name is another: by the folder and the stem of the file, its stem, or a folder it is in.
PYTHON_TESTS = {
    "__main__": ["main"],
    "_adamw": ["contrib", "optimizer"],
    "_as_mxnet": ["main", "seed_programs"],
    "_compat": ["compat"],
    "_functions": ["op", "ndarray", "symbol"],
    "_nested": ["control_flow"],
    "_parts": ["creation", "ndarray", "symbol"],
    "_launch": ["launch", "launch_hosts", "launch_stores", "launch_jobs"],
    "_test_arrays": ["test_utils"],
    "_test_data": ["test_utils"],
    "_test_generators": ["test_utils"],
    "attribute": ["attributes"],
    "base": ["attributes"],
    "base_module": ["module"],
    "convert": ["ndarray", "executor", "bad_input"],
    "context": ["creation"],
    "custom": ["operator"],
    "data": ["io"],
    "executor_group": ["module"],
    "files": ["creation", "model"],
    "held": ["collection"],
    "image": ["image", "image_iters", "detection"],
    "log": ["callback", "small_modules"],
    "mixins": ["collection", "metric"],
    "name": ["attributes"],
    "random": ["creation"],
    "runtime": ["contrib"],
    "updater": ["optimizer"],
    "kvstore/base": ["kvstore"],
    "rnn/io": ["rnn"],
}
SMALL_MODULES = {"engine", "util", "libinfo", "registry"}
PYTHON_FOLDER = ROOT / "tests/python"

TIMES = "--gtest_output=json:"
SLOW = 0.25  # seconds: tests that take longer run after the others of their program


# ---- which changes


def is_source(path):
    if path.parts[:2] == ("python", "symbind"):
        return path.suffix == ".py"
    in_library = path.parts[0] == "symbind" and len(path.parts) > 2
    return path.suffix in (".cc", ".h") and (in_library or path.parts[:2] == ("python", "src"))


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


def sources_in(folder, build):
    """The sources of a folder that the build compiles, and Python files. No headers: each rebuilds much."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    compiled = {Path(command["file"]) for command in commands}
    for path in sorted(folder.rglob("*")):
        if is_source(path.relative_to(ROOT)) and (path.suffix == ".py" or path in compiled):
            yield path.relative_to(ROOT)


def chosen_lines(arguments):
    """File → numbers of the lines that may change; none: all."""
    chosen = {}
    for name in arguments.paths:
        name, _, line = name.partition(":")
        path = Path(name).resolve()
        if path.is_dir():
            chosen.update((source, None) for source in sources_in(path, arguments.build_dir))
        elif not is_source(path.relative_to(ROOT)):
            sys.exit(f"{path} is not a source file of symbind/, python/src/ or python/symbind/")
        elif line:
            chosen.setdefault(path.relative_to(ROOT), set()).add(int(line))
        else:
            chosen[path.relative_to(ROOT)] = None
    if arguments.base:
        changed = changed_lines(arguments.base)
        chosen = {path: lines for path, lines in changed.items() if not arguments.paths or path in chosen}
    return chosen


def candidates(arguments):
    """All changes, in the order of the draw."""
    found = [mutant for path, lines in sorted(chosen_lines(arguments).items()) for mutant in mutants_of(path, lines)]
    random.Random(arguments.seed).shuffle(found)
    return found


def described(mutant):
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    line = mutant.line(source)
    return f"{mutant.path}:{line}: {mutant.what}: {source.splitlines()[line - 1].strip()[:80]}"


# ---- their tests


@dataclass(frozen=True)
class Stage:
    """Tests that are built and run together."""

    name: str
    targets: tuple  # of the build
    command: tuple


def program(module, build):
    name = f"test_{module}"
    return Stage(name, (name,), (str(build / "tests" / name), "--gtest_fail_fast", "--gtest_brief=1"))


def pytest(files, targets):
    names = " ".join(file.stem for file in files) if files else "pytest"
    paths = map(str, files or [PYTHON_FOLDER])
    return Stage(names, targets, (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *paths))


def python_tests(path):
    """The files that mirror a source, or else one of the folders it is in, the innermost first."""
    for stem in (f"{path.parent.name}/{path.stem}", path.stem, *reversed(path.parts[2:-1])):
        names = ["small_modules"] if stem in SMALL_MODULES else PYTHON_TESTS.get(stem, [stem])
        files = [PYTHON_FOLDER / f"test_{name}.py" for name in names]
        if all(file.exists() for file in files):
            return files
    return []


def stages_of(path, arguments):
    """The mirroring tests, and those of whatever uses the file."""
    if path.parts[0] == "symbind":
        build, module = arguments.build_dir, path.parts[1]
        mirroring = [program(module, build)] if module != "image" else []
        broader = [program(other, build) for other in BROADER.get(module, [])] + [pytest([], ("symbind", "_symbind"))]
    else:
        targets = () if path.suffix == ".py" else ("_symbind",)
        files = python_tests(path)
        mirroring = [pytest(files, targets)] if files else []
        broader = [pytest([], targets)]
    return mirroring if arguments.mirroring and mirroring else mirroring + broader


# ---- one change


class Workspace:
    """The tree with at most one change in it, by one run at a time. What a file was is kept under the build folder
    until it is back."""

    def __init__(self, build):
        self.lock = (build / "mutate.lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another run changes the sources of {build}")
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
        command, cwd=ROOT, env=env, text=True, errors="replace", start_new_session=True,
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


def failed_test(status, output):
    """The name of the test that failed, or how the program ended."""
    named = re.search(r"^(?:\[  FAILED  \]|FAILED|ERROR) (\S+)", output, re.M)
    if named:
        return named.group(1).rstrip(",")
    return f"signal {-status}" if status < 0 else f"status {status}"


class Runner:
    def __init__(self, arguments, workspace):
        self.arguments = arguments
        self.workspace = workspace
        self.env = {
            "GOMP_SPINCOUNT": "1000",  # waiting threads leave the processors to what is built beside
            **os.environ,
            "PYTHONPATH": str(arguments.build_dir / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.times = arguments.build_dir / "mutation_times"
        self.seconds = {}  # of each stage that passed, at most
        self.built = set()

    def build(self, targets):
        if not targets:
            return True
        self.built.update(targets)
        command = ["ninja", "-C", str(self.arguments.build_dir), f"-j{self.arguments.jobs}", *targets]
        status, output = run(command, None, self.env)
        if status != 0 and os.environ.get("MUTATE_VERBOSE"):
            print(output[-2000:])
        return status == 0

    def commands(self, stage):
        """The command of a stage, or, where the times of its tests are known, the quick ones and then the slow ones."""
        if not stage.targets or not stage.targets[0].startswith("test_"):
            return [stage.command]
        times = self.times / f"{stage.name}.json"
        if not times.exists():
            return [(*stage.command, f"{TIMES}{times}")]
        suites = json.loads(times.read_text(encoding="utf-8"))["testsuites"]
        tests = [(f"{suite['name']}.{test['name']}", test["time"]) for suite in suites for test in suite["testsuite"]]
        slow = ":".join(name for name, seconds in tests if float(seconds.rstrip("s")) > SLOW)
        if not slow:
            return [stage.command]
        return [(*stage.command, f"--gtest_filter=-{slow}"), (*stage.command, f"--gtest_filter={slow}")]

    def failure(self, stage):
        """What failed of a stage that was built; nothing where all passes."""
        usual = self.seconds.get(stage.name)
        limit = self.arguments.timeout if usual is None else min(self.arguments.timeout, 60 + 5 * usual)
        begin = time.monotonic()
        for command in self.commands(stage):
            status, output = run(command, limit, self.env)
            if status != 0:
                if command[-1].startswith(TIMES):  # only a whole run knows the times of all tests
                    Path(command[-1].removeprefix(TIMES)).unlink(missing_ok=True)
                return "hangs" if status is None else failed_test(status, output)
        self.seconds[stage.name] = max(usual or 0, time.monotonic() - begin)
        return None

    def passes_unchanged(self, stage):
        """Called with a change in the tree, which is gone afterwards."""
        if stage.name in self.seconds:
            return True
        self.workspace.restore()
        return self.build(stage.targets) and self.failure(stage) is None

    def verdict(self, mutant):
        """("noticed", by which test), ("unnoticed", "") or ("does not compile", "")."""
        self.workspace.apply(mutant)
        try:
            for stage in stages_of(mutant.path, self.arguments):
                if not self.build(stage.targets):
                    return "does not compile", ""
                failed = self.failure(stage)
                if failed and not self.passes_unchanged(stage):
                    sys.exit(f"{stage.name} fails without any change: {' '.join(stage.command)}")
                if failed:
                    return "noticed", f"{stage.name}: {failed}"
            return "unnoticed", ""
        finally:
            self.workspace.restore()


# ---- results


class Results:
    """What was found, kept in a file so that a run can go on where another stopped."""

    def __init__(self, arguments):
        self.file = arguments.build_dir / "mutations.jsonl"
        self.scope = "mirroring" if arguments.mirroring else "all"
        self.known = {}
        if self.file.exists():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.known[record["key"]] = (record["verdict"], record["by"])
        if arguments.again:
            self.known = {key: result for key, result in self.known.items() if result[0] != "unnoticed"}

    def key(self, mutant):
        digest = hashlib.sha256((ROOT / mutant.path).read_bytes()).hexdigest()[:16]
        return f"{self.scope} {mutant.path} {digest} {mutant.start} {mutant.end} {mutant.text}"

    def of(self, mutant):
        return self.known.get(self.key(mutant))

    def add(self, mutant, result):
        key = self.key(mutant)
        self.known[key] = result
        record = {"key": key, "what": described(mutant), "verdict": result[0], "by": result[1]}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def print_summary(results):
    counts = {}  # folder → verdict → how many
    for mutant, (verdict, _) in results.items():
        folder = str(Path(*mutant.path.parts[:2]))
        for row in (folder, "all"):
            counts.setdefault(row, {"noticed": 0, "unnoticed": 0, "does not compile": 0})[verdict] += 1
    print(f"\n{'':20} {'noticed':>8} {'unnoticed':>10} {'share':>6}   does not compile")
    for row in sorted(counts, key=lambda row: (row == "all", row)):
        noticed, unnoticed, broken = counts[row].values()
        share = f"{noticed / (noticed + unnoticed):.0%}" if noticed + unnoticed else "-"
        print(f"{row:20} {noticed:8} {unnoticed:10} {share:>6}   {broken:16}")
    unnoticed = [described(mutant) for mutant, (verdict, _) in results.items() if verdict == "unnoticed"]
    print("\n".join(["unnoticed:", *(f"  {what}" for what in unnoticed)]) if unnoticed else "all noticed")
    return len(unnoticed)


# ---- the command


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="source files, folders of them, or FILE:LINE")
    parser.add_argument("--base", help="change only lines that differ from this commit")
    parser.add_argument("--count", type=int, default=20, help="how many changes at most (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (%(default)s)")
    parser.add_argument("--build-dir", type=Path, default=Path("build/release"), help="(%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of the build (%(default)s)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each test program (%(default)s)")
    parser.add_argument("--mirroring", action="store_true", help="run only the tests that mirror the file")
    parser.add_argument("--again", action="store_true", help="try again what went unnoticed in an earlier run")
    parser.add_argument("--list", action="store_true", help="print the changes and run nothing")
    arguments = parser.parse_args()
    arguments.build_dir = (ROOT / arguments.build_dir).resolve()
    if not arguments.paths and not arguments.base:
        parser.error("name files, or a commit with --base")
    return arguments


def try_changes(found, runner, known, count):
    """Change → result, of the first `count` that compile. Those that were tried before are not tried again."""
    results = {}
    for mutant in found:
        if sum(verdict != "does not compile" for verdict, _ in results.values()) == count:
            break
        what, begin = described(mutant), time.monotonic()
        if known.of(mutant) is None:
            known.add(mutant, runner.verdict(mutant))
        results[mutant] = verdict, by = known.of(mutant)
        print(f"[{len(results)}] {verdict:16} {time.monotonic() - begin:4.0f} s  {what}  ({by})", flush=True)
    return results


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: everything is put back
    workspace = None if arguments.list else Workspace(arguments.build_dir)
    found = candidates(arguments)
    print(f"{len(found)} changes are possible; at most {arguments.count} are tried")
    if arguments.list:
        for mutant in found[: arguments.count]:
            print(described(mutant))
        return 0
    runner = Runner(arguments, workspace)
    try:
        results = try_changes(found, runner, Results(arguments), arguments.count)
    except KeyboardInterrupt:
        print("interrupted: the sources are as they were; the same command goes on from here")
        return 130
    finally:
        runner.build(sorted(runner.built))  # nothing built holds the last change
    return 1 if print_summary(results) else 0


if __name__ == "__main__":
    sys.exit(main())
