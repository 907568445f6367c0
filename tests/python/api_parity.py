"""Compares the Python package with the recorded interface of MXNet 1.9.1 (tests/oracle/recorded/api.json.gz).

A difference has a name: `metric.Foo` is missing; `metric.Foo.update(labels)` lacks that parameter, or has it at another
position; `metric.Foo(name='x')` has another default. api_differences.txt lists those that are meant, in groups with a
reason, and the table "What is missing" in docs/from_mxnet.md is written from it:

    python tests/python/api_parity.py            # differences that the list does not have, and lines of no use
    python tests/python/api_parity.py --prune    # drops the lines that match no difference any more
    python tests/python/api_parity.py --docs     # writes the table
"""

import ast
import fnmatch
import gzip
import importlib
import inspect
import itertools
import json
import os
import re
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RECORDED = os.path.join(ROOT, "tests", "oracle", "recorded", "api.json.gz")
DIFFERENCES = os.path.join(HERE, "api_differences.txt")
DOCS = os.path.join(ROOT, "docs", "from_mxnet.md")

sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))

from api_text import default_text, parameters_text  # noqa: E402


def recorded(part="modules"):
    with gzip.open(RECORDED) as file:
        return json.load(file)[part]


# ---- what ours take -------------------------------------------------------------------------------------------------


def native_parameters(signature):
    """The parameters in one of nanobind's signatures: its text, documentation, and the values of the defaults."""
    text, _, values = signature
    values = list(values or [])
    function = ast.parse(text.replace("\\", "_default") + ": ...").body[0].args
    positional = [*function.posonlyargs, *function.args]
    defaults = [None] * (len(positional) - len(function.defaults)) + list(function.defaults)
    found = []

    def default_of(node):
        if node is None:
            return None
        name = ast.unparse(node)
        return default_text(values[int(name[len("_default") :])]) if name.startswith("_default") else name

    for argument, default in zip(positional, defaults):
        found.append([argument.arg, "", default_of(default)])
    if function.vararg:
        found.append([function.vararg.arg, "*", None])
    for argument, default in zip(function.kwonlyargs, function.kw_defaults):
        found.append([argument.arg, "keyword", default_of(default)])
    if function.kwarg:
        found.append([function.kwarg.arg, "**", None])
    return found


def our_parameters(value):
    """The parameters of a function, one list for each of its overloads; of a class, those of its constructor."""
    if isinstance(value, type):
        constructor = value.__init__
        if hasattr(constructor, "__nb_signature__") or isinstance(constructor, types.FunctionType):
            return [parameters[1:] for parameters in our_parameters(constructor)]
    if hasattr(value, "__nb_signature__"):
        return [native_parameters(signature) for signature in value.__nb_signature__]
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    return [parameters_text(signature)]


# ---- comparing ------------------------------------------------------------------------------------------------------


def same_default(ours, theirs):
    if theirs is None or ours == theirs or theirs == "_Null":  # _Null: the default of the operator behind it
        return True
    if ours is None:
        return False

    def value(text):
        try:
            read = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
        return tuple(read) if isinstance(read, list) else read

    return value(ours) == value(theirs)


def operator_differences(name, ours, theirs):
    """Inputs and parameters of an operator that ours does not know. Their order follows from the operator's definition,
    and their defaults are compared case by case in tests/oracle."""
    known = {parameter for each in our_parameters(ours) for parameter, _, _ in each}
    for parameter, kind, _ in theirs:
        if not kind and parameter not in known and parameter not in ("name", "attr", "out"):
            yield f"{name}({parameter})"


def parameter_differences(ours, theirs):
    """What one overload of a function lacks, as the texts in parentheses."""
    by_name = {name: (position, kind, default) for position, (name, kind, default) in enumerate(ours)}
    stars = {kind for _, kind, _ in ours}
    known = {name for name, _, _ in theirs}
    missing = []
    for position, (name, kind, default) in enumerate(theirs):
        if kind in ("*", "**"):
            if kind not in stars:
                missing.append(kind + name)
        elif name == "_" and position < len(ours) and not ours[position][1]:
            known.add(ours[position][0])  # MXNet's name for what it does not look at
        elif name not in by_name:
            if not (name in ("self", "cls") and position == 0):
                missing.append(name)
        else:
            at, our_kind, our_default = by_name[name]
            if kind == "" and (at != position or our_kind == "keyword") and "*" not in stars:
                missing.append(name)
            elif not same_default(our_default, default):
                missing.append(f"{name}={default}")
    if not any(kind in ("*", "**") for _, kind, _ in theirs):
        for name, kind, default in ours:
            if name not in known and kind in ("", "keyword", "position") and default is None:
                missing.append(f"+{name}")  # ours asks for something that theirs does not know
    return missing


def function_differences(name, ours, theirs):
    if theirs is None:
        return
    overloads = our_parameters(ours)
    if not overloads:
        yield f"{name}(?)"
        return
    if theirs and theirs[0][0] in ("self", "cls") and overloads[0] and overloads[0][0][0] not in ("self", "cls"):
        theirs = theirs[1:]
    found = min((parameter_differences(each, theirs) for each in overloads), key=len)
    for text in found:
        yield f"{name}({text})"


def entry_differences(name, ours, entry):
    kind = entry["kind"]
    if kind == "class":
        if not isinstance(ours, type):
            yield f"{name}:class"
            return
        yield from function_differences(name, ours, entry["parameters"])
        for member, described in sorted(entry["members"].items()):
            if not hasattr(ours, member):
                yield f"{name}.{member}"
            elif described["kind"] == "function" and (member == "__call__" or not member.startswith("_")):
                value = getattr(ours, member)
                if callable(value):
                    yield from function_differences(f"{name}.{member}", value, described["parameters"])
                else:
                    yield f"{name}.{member}:function"
    elif kind == "operator":
        yield from operator_differences(name, ours, entry["parameters"])
    elif kind == "function":
        if callable(ours):
            yield from function_differences(name, ours, entry["parameters"])
        else:
            yield f"{name}:function"


def differences(package="symbind"):
    """The names of all differences. What is inside a missing thing, or is the same thing, is not named again."""
    missing = set()
    for path, entries in sorted(recorded().items(), key=lambda item: (item[0].count("."), item[0])):
        try:
            module = importlib.import_module(f"{package}.{path}" if path else package)
        except ImportError:
            missing.add(path)
            continue
        for name, entry in sorted(entries.items()):
            full = f"{path}.{name}" if path else name
            try:
                ours = getattr(module, name)
            except AttributeError:
                if not is_inside(entry.get("same_as", ""), missing):
                    missing.add(full)
                continue
            yield from entry_differences(full, ours, entry)
    yield from sorted(name for name in missing if not is_inside(name.rpartition(".")[0], missing))


def is_inside(name, names):
    """Is it one of the names, or in a module or class that is?"""
    parts = name.split(".")
    return any(".".join(parts[:count]) in names for count in range(1, len(parts) + 1))


# ---- the list -------------------------------------------------------------------------------------------------------


class Group:
    """Differences with one reason. `here` is the text of the table in the documentation; "" leaves it out there."""

    def __init__(self, what, here):
        self.what, self.here, self.patterns = what, here, []


def groups():
    """The groups of the list: a line "== what | here", then patterns as of a shell, one in a line; # is a comment."""
    found = []
    with open(DIFFERENCES, encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line.startswith("=="):
                what, _, here = line[2:].partition("|")
                found.append(Group(what.strip(), here.strip()))
            elif line and not line.startswith("#"):
                found[-1].patterns.append(line)
    return found


def parts_of(pattern):
    """ "a.{b,c}d" as [["a."], ["b", "c"], ["d"]]."""
    return [
        part[1:-1].split(",") if part.startswith("{") else [part] for part in re.split(r"(\{[^}]*\})", pattern) if part
    ]


def alternatives(pattern):
    """ "a.{b,c}" is a.b or a.c."""
    return ["".join(choice) for choice in itertools.product(*parts_of(pattern))]


def matches(name, pattern):
    """A pattern covers what is inside what it names."""
    for each in alternatives(pattern):
        escaped = each.replace("[", "[[]")
        if any(fnmatch.fnmatchcase(name, escaped + end) for end in ("", ".*", "(*", ":*")):
            return True
    return False


def without_stale(pattern, found):
    """The pattern with those of its alternatives that cover a difference; None where none does."""
    useful = [
        choice for choice in itertools.product(*parts_of(pattern)) if any(matches(n, "".join(choice)) for n in found)
    ]
    if not useful:
        return None
    kept = []
    for position, options in enumerate(parts_of(pattern)):
        left = [option for option in options if any(choice[position] == option for choice in useful)]
        kept.append(options[0] if len(options) == 1 else "{" + ",".join(left) + "}" if len(left) > 1 else left[0])
    return "".join(kept)


def has_module(name, package="symbind"):
    try:
        return importlib.import_module(f"{package}.{name}") is not None
    except ImportError:
        return False


def compare():
    """(differences that no pattern covers, {pattern of which a part covers none: what remains of it or None})"""
    found = list(differences())
    found += ["!" + name for name in recorded("left_out") if not has_module(name)]
    patterns = [pattern for group in groups() for pattern in group.patterns]
    unlisted = [name for name in found if not any(matches(name, pattern) for pattern in patterns)]
    remaining = {pattern: without_stale(pattern, found) for pattern in patterns}
    return unlisted, {pattern: rest for pattern, rest in remaining.items() if rest != pattern}


def prune(stale):
    with open(DIFFERENCES, encoding="utf-8") as file:
        lines = file.readlines()
    with open(DIFFERENCES, "w", encoding="utf-8") as file:
        for line in lines:
            rest = stale.get(line.strip(), line.strip())
            if rest is not None:
                file.write(rest + "\n")


# ---- the documentation ----------------------------------------------------------------------------------------------

BEGIN = "<!-- This table is written by tests/python/api_parity.py --docs from api_differences.txt. -->\n"
END = "<!-- End of the table. -->\n"


def table():
    rows = [f"| {group.what} | {group.here} |\n" for group in groups() if group.here and group.patterns]
    return "".join(["| MXNet | here |\n|---|---|\n", *rows])


def documented():
    """(text before the table, the table, text after it)"""
    with open(DOCS, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    inside, after = rest.split(END)
    return before, inside, after


def write_docs():
    before, _, after = documented()
    with open(DOCS, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + table() + END + after)


def main():
    unlisted, stale = compare()
    if "--prune" in sys.argv:
        prune(stale)
    if "--docs" in sys.argv:
        write_docs()
    for name in unlisted:
        print(name)
    for pattern, rest in stale.items():
        print("matches no difference:", pattern, "" if rest is None else f"but for {rest}")
    return 1 if unlisted or stale else 0


if __name__ == "__main__":
    sys.exit(main())
