"""The changes that mutate.py makes: what can be altered at one point of a C++ or Python source."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


# Warnings are errors, but a change that only makes the compiler wonder is a change.
UNUSED = ["variable", "but-set-variable", "parameter", "but-set-parameter", "function", "value", "result"]
WARNINGS = ["parentheses", "sign-compare", "type-limits", "extra", *(f"unused-{what}" for what in UNUSED)]
WITHOUT_WARNINGS = "".join(f'#pragma GCC diagnostic ignored "-W{name}"\n' for name in WARNINGS)


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
        changed = source[: self.start] + self.text + source[self.end :]
        return changed if self.path.suffix == ".py" else WITHOUT_WARNINGS + changed


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
DECLARATION = re.compile(r"(?:const )?[\w:<>]+[\s*&]+(?:const )?\w+ = ")  # of what is true or not
CAPACITY = re.compile(r"\breserve\([^\n]*;")  # how much room a container has ahead is no part of what a program does
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
    code = CAPACITY.sub(lambda match: " " * len(match.group()), code_only(source))
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
        if ";" not in inside and not DECLARATION.match(inside):
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
