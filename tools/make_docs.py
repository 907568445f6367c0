"""Writes the reference as plain HTML that opens from disk: a page for every operator in both languages, for every
public class and function of the C++ headers and of the Python package, and the pages of docs/.

usage: make_docs.py FOLDER        with the built package on PYTHONPATH
"""

import inspect
import os
import posixpath
import re
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "python", "tools")]

import make_stubs  # noqa: E402
from reference import cpp, markdown, python  # noqa: E402
from reference.pages import Site, code, escape, link, names, table  # noqa: E402

REPOSITORY_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")


# ---- docs/ -----------------------------------------------------------------------------------------------------------


def write_guides(site):
    """README, CHANGELOG and the pages of docs/; links between them become links between pages."""
    sources = [name for name in REPOSITORY_PAGES if os.path.exists(os.path.join(ROOT, name))]
    sources += sorted(f"docs/{name}" for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))
    pages = {source: guide_path(source) for source in sources}
    listed = []
    for source, path in pages.items():
        with open(os.path.join(ROOT, source), encoding="utf-8") as file:
            text = file.read()

        def target(address, source=source, path=path):
            address, _, part = address.partition("#")
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), address))
            if wanted not in pages:
                return address + (f"#{part}" if part else "")
            return posixpath.relpath(pages[wanted], posixpath.dirname(path) or ".")

        title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), source)
        body = markdown.render(text, target)
        # `docs/tour.md` in code is how these pages name each other.
        for other, other_path in pages.items():
            body = body.replace(f"<code>{other}</code>", f"<code>{link(path, other_path, other)}</code>")
            if posixpath.dirname(other) == posixpath.dirname(source) == "docs":
                short = posixpath.basename(other)
                body = body.replace(f"<code>{short}</code>", f"<code>{link(path, other_path, short)}</code>")
        site.write(path, title, body)
        listed.append((path, title))
    shutil.copytree(os.path.join(ROOT, "docs", "images"), os.path.join(site.folder, "guides", "images"))
    return listed


def guide_path(source):
    return (
        "guides/"
        + source.removeprefix("docs/").replace("README.md", "docs.md" if "docs/" in source else "readme.md")[:-3]
        + ".html"
    )


# ---- operators -------------------------------------------------------------------------------------------------------


def operators():
    """Every operator a user may call; gradients' own operators are not for users."""
    from symbind import _symbind

    found = {}
    for name in _symbind._list_ops():
        op = _symbind._find_op(name)
        if not op.name.startswith("_backward"):
            found[op.name] = op
    return dict(sorted(found.items(), key=lambda pair: (pair[0].startswith("_"), pair[0].lower())))


def cpp_call(builder, op):
    """How the operator is written in C++."""
    inputs = ["inputs"] if op.takes_any else [*op.inputs, *op.aux]
    required = [f".{name} = …" for name, _, default, _ in op.fields if default is None]
    parameters = ["{" + ", ".join(required) + "}"] if op.fields else []
    return f"{builder}({', '.join([*inputs, *parameters])})"


def write_operator(site, name, op, builder):
    from symbind import _functions

    path = site.path("operators", name)
    body = [f"<h1>{escape(name)}</h1>", f"<p>{escape(op.doc)}</p>"]
    if op.aliases:
        body.append("<p>Also: " + ", ".join(f"<code>{escape(alias)}</code>" for alias in op.aliases) + "</p>")
    body.append("<h2>Python</h2>")
    for prefix, symbolic in (("mx.sym", True), ("mx.nd", False)):
        place = f"{prefix}._internal" if name.startswith("_") else prefix
        body.append(code(f"{place}.{name}{_functions.signature_of(op, symbolic)}"))
    body.append("<h2>C++</h2>")
    if builder:
        body.append(code(cpp_call(builder, op)))
    else:
        body.append(f"<p>By name:</p>{code(f'apply({chr(34)}{name}{chr(34)}, inputs, attributes)')}")
    body.append("<h2>Inputs</h2>")
    if op.takes_any:
        body.append("<p>Any number of arrays.</p>")
    else:
        rows = [(f"<code>{escape(each)}</code>", "") for each in op.inputs]
        rows += [(f"<code>{escape(each)}</code>", "auxiliary state") for each in op.aux]
        body.append(table(("name", ""), rows) if rows else "<p>None.</p>")
    body.append("<h2>Parameters</h2>")
    rows = []
    for field, kind, default, doc in op.fields:
        shown = "required" if default is None else f"<code>{escape(default or repr(''))}</code>"
        rows.append((f"<code>{escape(field)}</code>", escape(kind), shown, escape(doc)))
    body.append(table(("name", "type", "default", "meaning"), rows) if rows else "<p>None.</p>")
    site.write(path, name, "\n".join(body))
    return path, name


# ---- C++ -------------------------------------------------------------------------------------------------------------


def write_cpp(site):
    """One page per name: overloads stand together. Parameter structs of operators belong to the operators' pages."""
    by_name = {}
    for header in cpp.public_headers(ROOT):
        for declaration in cpp.declarations(ROOT, header):
            if not header.startswith("symbind/ops/") or is_for_users(declaration):
                by_name.setdefault(declaration.name, []).append(declaration)
    listed = {}
    for name, found in sorted(by_name.items(), key=lambda pair: pair[0].lower()):
        path = site.path("cpp", cpp_file(name))
        body = [f"<h1>{escape(name)}</h1>"]
        for header in sorted({each.header for each in found}):
            body.append(code(f'#include "{header}"'))
            if not header.startswith("symbind/ops/"):
                body.append(markdown.render(cpp.story(ROOT, header)))
        for each in found:
            if each.comment:
                body.append(f"<p>{markdown.inline(each.comment, str)}</p>")
            body.append(code(each.text))
        site.write(path, name, "\n".join(body))
        listed.setdefault(found[0].header.split("/")[1], []).append((path, name))
    return listed


def is_for_users(declaration):
    """Of the headers of operators: parameter structs and functions, not gradients and what only the library calls."""
    if declaration.kind == "function":
        return "unary<" in declaration.text or declaration.name == "register_custom_op"
    return declaration.kind in ("struct", "class") and "Grad" not in declaration.name


def cpp_file(name):
    """A name of C++ as part of a file's name: operators in words."""
    words = {"+": "plus", "-": "minus", "*": "times", "/": "over", "=": "equal", "<": "less", ">": "more", "!": "not"}
    words |= {"[": "at", "]": "", "(": "call", ")": "", ":": ".", "%": "mod", "&": "and", "|": "or", "^": "xor"}
    return re.sub(r"[^\w.]", lambda match: words.get(match[0], "_"), name.replace("::", "."))


# ---- Python ----------------------------------------------------------------------------------------------------------


def python_doc(text):
    """A docstring: its paragraphs, and parameters as they are laid out."""
    if not text:
        return ""
    text = inspect.cleandoc(text)
    if "\n----" in text:
        return code(text)
    return "".join(f"<p>{markdown.inline(' '.join(part.split()), str)}</p>" for part in text.split("\n\n"))


def write_python(site, operator_names):
    listed = {}
    for item in python.items(operator_names):
        path = site.path("python", item.full_name)
        shown = item.full_name.replace("symbind", "mx", 1)
        body = [f"<h1>{escape(shown)}</h1>"]
        body.append(code("\n".join(python.signatures(item.name, item.value, make_stubs.native_signatures))))
        body.append(python_doc(native_doc(item.value)))
        if inspect.isclass(item.value):
            for name, value, is_property in python.members(item.value):
                lines = [name] if is_property else python.signatures(name, value, make_stubs.native_signatures)
                body.append(f'<h2 id="{escape(name)}">{escape(name)}</h2>{code(chr(10).join(lines))}')
                body.append(python_doc(native_doc(value)))
        site.write(path, shown, "\n".join(body))
        listed.setdefault(item.module.replace("symbind", "mx", 1), []).append((path, item.name))
    return listed


def native_doc(value):
    """A docstring; of a function of the extension without the signature that nanobind puts before it."""
    if isinstance(value, property):
        return make_stubs.property_doc(value)
    docs = [doc for _, doc in make_stubs.native_signatures(value) if doc]
    return docs[0] if docs else (None if getattr(value, "__nb_signature__", None) else value.__doc__)


# ---- all of it -------------------------------------------------------------------------------------------------------


def main():
    folder = os.path.abspath(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    site = Site(folder)
    guides = write_guides(site)
    builders = cpp.builders(ROOT)
    found = operators()
    pages = [write_operator(site, name, op, builders.get(name)) for name, op in found.items()]
    every_name = set(found) | {alias for op in found.values() for alias in op.aliases}
    python_pages = write_python(site, every_name)
    cpp_pages = write_cpp(site)

    body = ["<h1>Symbind</h1>", "<h2>Guides</h2>", "<ul>"]
    body += [f"<li>{link('index.html', path, title)}</li>" for path, title in guides]
    body += ["</ul>", "<h2>Operators</h2>"]
    body.append(names("index.html", [page for page in pages if not page[1].startswith("_")]))
    body.append("<h3>Internal</h3>" + names("index.html", [page for page in pages if page[1].startswith("_")]))
    body.append("<h2>Python</h2>")
    body += [f"<h3>{escape(module)}</h3>{names('index.html', each)}" for module, each in python_pages.items()]
    body.append("<h2>C++</h2>")
    body += [f"<h3>symbind/{escape(room)}</h3>{names('index.html', each)}" for room, each in cpp_pages.items()]
    site.write("index.html", "Symbind", "\n".join(body))
    site.finish()
    print(f"{os.path.relpath(folder)}/index.html: {len(site.paths)} pages")


if __name__ == "__main__":
    main()
