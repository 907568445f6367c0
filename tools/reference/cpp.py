"""What C++ headers declare, with the comment above: enough of C++ for headers in this repository's style."""

import dataclasses
import os
import re


@dataclasses.dataclass
class Declaration:
    """One declaration at namespace level."""

    kind: str  # class, struct, enum, function, alias, constant
    name: str
    comment: str  # Markdown
    text: str  # as in the header, without bodies of functions, private parts and attributes
    header: str
    members: list[str] = dataclasses.field(default_factory=list)  # names of a class's public functions


def public_headers(root):
    """The headers that are installed: the list in cmake/PublicHeaders.cmake and the families in ops/all.h."""
    with open(os.path.join(root, "cmake", "PublicHeaders.cmake"), encoding="utf-8") as file:
        headers = [f"symbind/{name}" for name in re.findall(r"^\s+([\w/]+\.h)\b", file.read(), re.MULTILINE)]
    with open(os.path.join(root, "symbind", "ops", "all.h"), encoding="utf-8") as file:
        return headers + re.findall(r'#include "(symbind/[^"]+)"', file.read())


def declarations(root, header):
    """Every declaration of a header in namespace symbind (and init, metric, … inside it)."""
    with open(os.path.join(root, header), encoding="utf-8") as file:
        return list(_scan(_preprocessed(file.read()), header))


def story(root, header):
    """The comment at the head of a header."""
    with open(os.path.join(root, header), encoding="utf-8") as file:
        lines = [line.rstrip() for line in file]
    count = next((index for index, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "\n".join(_comment_text(line) for line in lines[:count])


def _comment_text(line):
    return line.strip().removeprefix("//").removeprefix(" ")


def _preprocessed(text):
    """The text without directives and marks for linters; macros without arguments that it defines are expanded."""
    macros = {}

    def directive(match):
        define = re.match(r"#define\s+(\w+)(?!\()\s+(.*)", match[0], re.DOTALL)
        if define:
            lines = [line.removesuffix("\\").rstrip() for line in define[2].split("\n")]
            macros[define[1]] = "\n".join(line for line in lines if line).lstrip()
        return ""

    text = re.sub(r"[ \t]*// NOLINT[^\n]*", "", text)
    text = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*$", directive, text, flags=re.MULTILINE)
    for name, body in macros.items():
        text = re.sub(rf"\b{name}\b", lambda _, body=body: body, text)
    return text


def _scan(text, header):
    at, comment = 0, []
    spaces = []  # the namespaces that are open here
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
            if "clang-format" not in text[at:end]:
                comment.append(_comment_text(text[at:end]))
            at = end
        elif match := re.compile(r"namespace\s+(?:SYMBIND_API\s+)?([\w:]*)\s*\{").match(text, at):
            spaces.append(match[1])
            at, comment = match.end(), []
        elif text[at] == "}":
            if spaces:
                spaces.pop()
            at += 1
        else:
            end = _declaration_end(text, at)
            beside = re.compile(r"[ \t]*//[^\n]*").match(text, end)
            if spaces and all(space not in ("", "detail", "std") for space in spaces):
                found = _describe(text[at:end], "\n".join(comment), header, spaces)
                if found:
                    found.text += beside[0] if beside else ""
                    yield found
            at, comment = beside.end() if beside else end, []


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


def _block_end(text, at, pair="{}"):
    """Past the bracket that closes the one at `at`."""
    depth = 0
    while at < len(text):
        beyond = _skip(text, at)
        if beyond > at:
            at = beyond
            continue
        depth += {pair[0]: 1, pair[1]: -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    return at


def _declaration_end(text, at):
    """Past the declaration that begins at `at`: after its semicolon, or after the body of a function."""
    begin, initialisers = at, False
    while at < len(text):
        beyond = _skip(text, at)
        if beyond > at:
            at = beyond
        elif text[at] == "(":
            at = _block_end(text, at, "()")
        elif text[at] == ";":
            return at + 1
        elif _opens_initialisers(text, begin, at):
            initialisers = True
            at += 1
        elif text[at] == "{":
            # In a constructor's list of initialisers a brace after a name belongs to the list: count_{0}.
            is_body = _kind(text[begin:at]) == "function" and not (
                initialisers and text[begin:at].rstrip()[-1] not in ")}"
            )
            at = _block_end(text, at)
            if is_body:
                return at
        else:
            at += 1
    return at


def _opens_initialisers(text, begin, at):
    """Is this the colon before a constructor's initialisers?"""
    return (
        text[at] == ":"
        and ":" not in (text[at - 1], text[at + 1 : at + 2])
        and re.search(r"\)\s*(noexcept\s*)?$", text[begin:at]) is not None
    )


def _without_template(text):
    """A declaration without `template <…>` and the requirements after it."""
    text = text.strip()
    while text.startswith("template"):
        text = text[_block_end(text, text.index("<"), "<>") :].lstrip()
        while re.match(r"(requires\b|&&|\|\|)", text):
            text = re.sub(r"^(requires\b|&&|\|\|)\s*", "", text)
            name = re.match(r"[\w:]*", text)
            at = name.end()
            if text[at : at + 1] in ("(", "<"):
                at = _block_end(text, at, "()" if text[at] == "(" else "<>")
            text = text[at:].lstrip()
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
        if re.match(rf"(friend\s+)?{word}\b", head):
            return kind
    if "operator" not in head and "(" not in _outside_angles(head):
        return "constant"  # a std::function<…(…)>, say
    before_parens = re.sub(r"decltype\([^)]*\)", "auto", head).split("(")[0]
    if "(" in head and not re.search(r"(?<![=!<>])=(?!=)", re.sub(r"operator[=!<>+*/-]*=", "", before_parens)):
        return "function"
    return "constant"


def _outside_angles(text):
    """The text without template arguments."""
    out, depth = "", 0
    for before, character in zip(" " + text, text, strict=False):
        depth += {"<": 1, ">": -1}.get(character, 0) if before != "-" else 0
        out += character if depth == 0 else ""
    return out


def _name(kind, bare):
    """The name that a declaration without its template declares; none if it is declared elsewhere."""
    if kind in ("class", "struct", "enum"):
        if "{" not in bare or bare.index(";") < bare.index("{"):
            return None  # announced, defined elsewhere
        match = re.match(r"(?:enum\s+class|class|struct|enum)\s+([\w:]+)", bare)
    elif kind == "alias":
        match = re.match(r"(?:using|concept)\s+(\w+)", bare)
    elif kind == "function":
        match = re.search(r"((?:\w+::)*(?:operator\s*(?:\(\)|[^\s(]+|\s\w+)|~?\w+))\s*$", bare[: _parameters(bare)])
        if match and "::" in match[1]:
            return None  # a member, defined outside of its class
    else:
        match = re.search(r"(\w+)\s*(?:=|;|\{)", bare)
    return match[1].replace(" ", "") if match else None


def _describe(text, comment, header, spaces):
    if text.strip() in (";", ""):
        return None
    bare = _without_template(text)
    kind = _kind(text)
    name = None if bare.startswith("friend") else _name(kind, bare)
    if not name:
        return None
    inner = [space.removeprefix("symbind").removeprefix("::") for space in spaces]
    members = []
    shown = _shown(text.strip(), members)
    return Declaration(kind, "::".join([*(space for space in inner if space), name]), comment, shown, header, members)


def _parameters(bare):
    """Where the parenthesis of a function's parameters opens: the first outside of template arguments."""
    if operator := re.search(r"\boperator\b", bare):
        at = operator.start()
        return bare.index("(", at + len("operator()") if bare.startswith("operator()", at) else at)
    depth = 0
    for at, character in enumerate(bare):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "(" and depth == 0 and not bare[:at].endswith("decltype"):
            return at
    return bare.index("(")


def _shown(text, members):
    """A declaration as documentation shows it; names of public member functions are added to `members`."""
    kind = _kind(text)
    text = re.sub(r"\[\[[^\]]*\]\]\s*", "", text)
    if kind in ("class", "struct"):
        return _class_text(text, members)
    if kind == "function":
        return _signature(text)
    return text


def _signature(text):
    """A function without its body and a constructor's initialisers."""
    at = 0
    while at < len(text) and text[at] not in ";{" and not _opens_initialisers(text, 0, at):
        beyond = _skip(text, at)
        at = beyond if beyond > at else _block_end(text, at, "()") if text[at] == "(" else at + 1
    head = re.sub(r"\s*=\s*default$", "", text[:at].rstrip())
    return re.sub(r"^((?:template <[^\n]*\s)?)inline\s+", r"\1", head) + ";"


def _class_text(text, members):
    """The class without its private parts and the bodies of its functions."""
    if "{" not in text:
        return text
    begin = text.index("{")
    is_class = _without_template(text).startswith("class")
    body = _public_part(text[begin + 1 : text.rindex("}")], not is_class, members)
    if is_class and body:
        body = f" public:\n{body}"
    indent = re.search(r" *$", text[: text.rindex("}")])[0]
    return f"{text[:begin]}{{\n{body}\n{indent}}};" if body else f"{text[:begin]}{{}};"


def _public_part(body, is_public, members):
    """The lines of a class's body that are not private; `is_public` says whether it begins so."""
    out, before = "", ""  # `before`: spaces and comments above the next declaration
    at = 0
    while at < len(body):
        access = re.compile(r"(public|private|protected):").match(body, at)
        if body[at].isspace() or body.startswith("//", at):
            end = _line_end(body, at) if body[at] == "/" else at + 1
            before += body[at:end]
        elif access:
            end = access.end()
            is_public = access[1] != "private"
            before = f"\n\n {access[0]}" if access[1] == "protected" else ""
        else:
            end = _declaration_end(body, at)
            statement = body[at:end]
            bare = _without_template(statement)
            if is_public and not re.match(r"friend (class|struct)\b|(virtual )?~\w+\(\)[^;]*= default;", bare):
                out += before + _shown(statement, members)
                name = _name("function", bare) if _kind(statement) == "function" else None
                if name and re.fullmatch(r"(?!operator)[a-z]\w*", name) and name not in members:
                    members.append(name)
                beside = re.compile(r"[ \t]*//[^\n]*").match(body, end)
                if beside:
                    out += beside[0]
                    end = beside.end()
                before = ""
            elif is_public:
                before = re.sub(r"(\n *//[^\n]*)*\n *$", "", before)
            else:
                before = ""
        at = end
    return re.sub(r"\n{3,}", "\n\n", out).strip("\n").rstrip()
