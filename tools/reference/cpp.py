"""What C++ headers declare, with the comment above: enough of C++ for headers in this repository's style."""

import dataclasses
import os
import re


@dataclasses.dataclass
class Declaration:
    """One declaration at namespace level."""

    kind: str  # class, struct, enum, function, alias, constant
    name: str
    comment: str
    text: str  # as in the header, without bodies of functions and private parts
    header: str


def public_headers(root):
    """The headers that symbind/symbind.h includes."""
    with open(os.path.join(root, "symbind", "symbind.h"), encoding="utf-8") as file:
        return re.findall(r'#include "(symbind/[^"]+)"', file.read())


def declarations(root, header):
    """Every declaration of a header in namespace symbind (and init, metric, … inside it)."""
    with open(os.path.join(root, header), encoding="utf-8") as file:
        return list(_scan(file.read(), header))


def story(root, header):
    """The comment at the head of a header."""
    with open(os.path.join(root, header), encoding="utf-8") as file:
        lines = [line.rstrip() for line in file]
    count = next((index for index, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "\n".join(line.removeprefix("//").removeprefix(" ") for line in lines[:count])


def _scan(text, header):
    at, comment = 0, []
    spaces = []  # namespaces around this place
    while at < len(text):
        if text[at] == "\n":
            # A blank line ends a comment that belongs to nothing.
            if text[at : at + 2] == "\n\n":
                comment = []
            at += 1
        elif text[at].isspace():
            at += 1
        elif text.startswith("//", at):
            end = _line_end(text, at)
            comment.append(text[at + 2 : end].strip())
            at = end
        elif text[at] == "#":
            at = _line_end(text, at)
            comment = []
        elif match := re.compile(r"namespace\s+([\w:]*)\s*\{").match(text, at):
            spaces.append(match[1])
            at, comment = match.end(), []
        elif text[at] == "}":
            if spaces:
                spaces.pop()
            at += 1
        else:
            end = _declaration_end(text, at)
            if all(space not in ("", "detail", "std") for space in spaces):
                found = _describe(text[at:end], " ".join(comment), header, spaces)
                if found:
                    yield found
            at, comment = end, []


def _line_end(text, at):
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _skip(text, at):
    """Past a comment, a string or a character at `at`; `at` itself where there is none."""
    if text.startswith("//", at):
        return _line_end(text, at)
    if text[at] in "\"'" and not (at and text[at] == "'" and text[at - 1].isalnum()):
        end = at + 1
        while text[end] != text[at]:
            end += 2 if text[end] == "\\" else 1
        return end + 1
    return at


def _block_end(text, at):
    """Past the brace that closes the one at `at`."""
    depth = 0
    while at < len(text):
        beyond = _skip(text, at)
        if beyond > at:
            at = beyond
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    return at


def _declaration_end(text, at):
    begin, parens = at, 0
    while at < len(text):
        beyond = _skip(text, at)
        if beyond > at:
            at = beyond
        elif text[at] in "()":
            parens += 1 if text[at] == "(" else -1
            at += 1
        elif text[at] == ";" and parens == 0:
            return at + 1
        elif text[at] == "{":
            is_body = parens == 0 and _kind(text[begin:at]) == "function"
            at = _block_end(text, at)
            if is_body:
                return at
        else:
            at += 1
    return at


def _without_template(text):
    text = text.strip()
    while text.startswith("template"):
        depth, at = 0, text.index("<")
        while True:
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
        text = re.sub(r"^\s*requires\s+\([^)]*\)", "", text[at:]).strip()
    return text


def _kind(head):
    head = _without_template(head)
    for word, kind in (
        ("enum", "enum"),
        ("class", "class"),
        ("struct", "struct"),
        ("using", "alias"),
        ("concept", "alias"),
    ):
        if re.match(rf"{word}\b", head):
            return kind
    before_parens = head.split("(")[0]
    if "(" in head and not re.search(r"(?<![=!<>])=(?!=)", re.sub(r"operator[=!<>]*=", "", before_parens)):
        return "function"
    return "constant"


def _describe(text, comment, header, spaces):
    if text.strip() in (";", ""):
        return None
    bare = _without_template(text)
    kind = _kind(text)
    if kind in ("class", "struct", "enum"):
        if "{" not in bare or bare.index(";") < bare.index("{"):
            return None  # announced, defined elsewhere
        match = re.match(r"(?:enum\s+class|class|struct|enum)\s+(\w+)(<[^{]*>)?", bare)
    elif kind == "alias":
        match = re.match(r"(?:using|concept)\s+(\w+)", bare)
    elif kind == "function":
        match = re.search(r"(operator\s*(?:\(\)|[^\s(]+)|\w+)\s*$", bare[: _parameters(bare)])
    else:
        match = re.search(r"(\w+)\s*(?:=|;|\{)", bare)
    if not match or bare.startswith(("friend", "struct std::")):
        return None
    inner = [space.removeprefix("symbind").removeprefix("::") for space in spaces]
    name = "::".join([*(space for space in inner if space), match[1].replace(" ", "")])
    shown = _class_text(text) if kind in ("class", "struct") else _without_bodies(text)
    return Declaration(kind, name, comment, shown.strip(), header)


def _parameters(bare):
    """Where the parenthesis of a function's parameters opens: the first outside of template arguments."""
    at = bare.find("operator")
    if at >= 0:
        return bare.index("(", at + len("operator()") if bare.startswith("operator()", at) else at)
    depth = 0
    for at, character in enumerate(bare):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "(" and depth == 0:
            return at
    return bare.index("(")


def _class_text(text):
    """The class without its private parts and the bodies of its functions."""
    begin = text.index("{")
    lines, shown = [], not _without_template(text).startswith("class")
    for line in _without_bodies(text[begin + 1 : text.rindex("}")]).splitlines():
        access = re.match(r"\s*(public|private|protected):", line)
        if access:
            shown = access[1] != "private"
            if shown and access[1] == "protected":
                lines.append(line)
        elif shown:
            lines.append(line)
    body = "\n".join(lines).strip("\n").rstrip()
    return f"{text[:begin]}{{\n{body}\n}};" if body else f"{text[:begin]}{{}};"


def _without_bodies(text):
    """Function bodies replaced by a semicolon; braces of initialisers and of structs inside stay."""
    out, at, parens = "", 0, 0
    statement = 0  # where the present statement begins in `out`
    while at < len(text):
        beyond = _skip(text, at)
        if beyond > at:
            out += text[at:beyond]
            at = beyond
        elif text[at] == "{":
            end = _block_end(text, at)
            head = re.sub(r"//[^\n]*|\b(public|private|protected):", "", out[statement:])
            if parens == 0 and _kind(head) == "function":
                # The list of initialisers of a constructor goes with the body.
                kept = re.sub(r"\)\s*:\s*\w+\s*[({].*$", ")", out[statement:].rstrip(), flags=re.DOTALL)
                out = out[:statement] + kept + ";"
                statement = len(out)
            else:
                out += text[at:end]
            at = end
        else:
            parens += {"(": 1, ")": -1}.get(text[at], 0)
            out += text[at]
            if text[at] == ";" and parens == 0:
                statement = len(out)
            at += 1
    return out.replace(";;", ";")


def builders(root):
    """Operator → the C++ builders or functions that make it, from headers and registrations of symbind/ops."""
    folder = os.path.join(root, "symbind", "ops")
    by_struct, result = {}, {}
    sources, headers = "", ""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            if name.endswith(".h"):
                headers += file.read()
            elif name.endswith(".cc"):
                sources += file.read()
    for struct, builder in re.findall(r"inline constexpr Builder<(\w+)> (\w+);", headers):
        by_struct[struct] = builder
    for op, builder in re.findall(r'inline constexpr Builder<\w+<"(\w+)">> (\w+);', headers):
        result[op] = builder
    for function, op in re.findall(
        r'T (\w+)\(const T& \w+, const std::string& name = ""\) \{ return unary<"(\w+)">', headers
    ):
        result[op] = function
    structs = dict(re.findall(r"OpDef (define_\w+)\(Op<(\w+)> ", sources))
    for op, function in re.findall(r'\badd\(registry, "(\w+)", (define_\w+)\)', sources):
        if structs.get(function) in by_struct:
            result[op] = by_struct[structs[function]]
    for struct, op in re.findall(r'\badd<(\w+)>\(registry, "(\w+)"', sources):
        if struct in by_struct:
            result[op] = by_struct[struct]
    return result
