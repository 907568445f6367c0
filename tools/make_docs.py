"""Writes the reference as plain HTML that opens from disk: a page for every operator in both languages and for every
type and function of the installed C++ headers and of the Python package, the pages of docs/, a search over all names.

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
from reference.builders import builders  # noqa: E402
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

        title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), source).replace("`", "")
        body = markdown.render(text, target)
        # `docs/tour.md` in code is how these pages name each other.
        for other, other_path in pages.items():
            body = body.replace(f"<code>{other}</code>", f"<code>{link(path, other_path, other)}</code>")
            if posixpath.dirname(other) == posixpath.dirname(source) == "docs":
                short = posixpath.basename(other)
                body = body.replace(f"<code>{short}</code>", f"<code>{link(path, other_path, short)}</code>")
        site.write(path, title, body)
        site.add_entry(title, "guide", path)
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
    """How the operator is called in C++."""
    inputs = ["inputs"] if op.takes_any else [*op.inputs, *op.aux]
    required = [f".{name} = …" for name, _, default, _ in op.fields if default is None]
    parameters = ["{" + ", ".join(required) + "}"] if required else []
    return f"{builder.name}({', '.join([*inputs, *parameters])})"


def write_operator(site, name, op, builder, structs):
    """`builder` is how C++ writes the operator, if it does; `structs` are the declarations of parameter structs."""
    from symbind import _functions

    path = site.path("operators", name)
    body = [f"<h1>{escape(name)}</h1>", f"<p>{escape(op.doc)}</p>"]
    if op.aliases:
        body.append("<p>Also: " + ", ".join(f"<code>{escape(alias)}</code>" for alias in op.aliases) + "</p>")
    body.append("<h2>Python</h2>")
    for prefix, symbolic in (("mx.sym", True), ("mx.nd", False)):
        module = f"{prefix}._internal" if name.startswith("_") else prefix
        body.append(code(f"{module}.{name}{_functions.signature_of(op, symbolic)}"))
    body.append("<h2>C++</h2>")
    if builder:
        body.append(code(f'#include "{builder.header}"') + code(cpp_call(builder, op)))
        if op.fields or not is_shared(structs[builder.struct]):
            body.append(code(structs[builder.struct].text))
    else:
        body.append(f"<p>By name:</p>{code(f'apply({chr(34)}{name}{chr(34)}, inputs, attributes)')}")
    body.append("<h2>Inputs</h2>")
    if op.takes_any:
        body.append("<p>Any number of arrays.</p>")
    else:
        listed = [f"<code>{escape(each)}</code>" for each in op.inputs]
        listed += [f"<code>{escape(each)}</code> (auxiliary state)" for each in op.aux]
        body.append(f"<p>{', '.join(listed) or 'None.'}</p>")
    body.append("<h2>Parameters</h2>")
    rows = []
    for field, kind, default, doc in op.fields:
        shown = "required" if default is None else f"<code>{escape(default or repr(''))}</code>"
        rows.append((f"<code>{escape(field)}</code>", escape(kind), shown, escape(doc)))
    body.append(table(("name", "type", "default", "meaning"), rows) if rows else "<p>None.</p>")
    site.write(path, name, "\n".join(body))
    for each in (name, *op.aliases):
        site.add_entry(each, "operator", path, op.doc)
    if builder:
        site.add_entry(builder.name, "operator in C++", path, op.doc)
        if not is_shared(structs[builder.struct]):
            site.add_entry(builder.struct, "parameters of an operator in C++", path, op.doc)
    return path, name


def operator_names(pages, builder_of):
    """Links to operators: the name in Python and files, and that in C++ where it is another."""
    items = []
    for path, name in pages:
        builder = builder_of.get(name)
        beside = f" {link('index.html', path, builder.name)}" if builder and builder.name != name else ""
        items.append(f"<span>{link('index.html', path, name)}<span class=\"beside\">{beside}</span></span>")
    return '<p class="names">' + " ".join(items) + "</p>"


# ---- C++ -------------------------------------------------------------------------------------------------------------


def all_declarations():
    """Name → declarations of the installed headers; symbind/fwd.h only repeats what others declare."""
    by_name = {}
    for header in cpp.public_headers(ROOT):
        if header != "symbind/fwd.h":
            for declaration in cpp.declarations(ROOT, header):
                by_name.setdefault(declaration.name, []).append(declaration)
    return by_name


def operator_structs(by_name):
    """The parameter structs of operators, by name."""
    return {
        name: found[0]
        for name, found in by_name.items()
        if found[0].kind == "struct" and found[0].header.startswith("symbind/ops/")
    }


def is_shared(struct):
    """Do several operators have this struct of parameters? Such structs are templates."""
    return struct.text.startswith("template")


def write_cpp(site, by_name, builder_of, python_classes):
    """One page per name, with all overloads. What belongs to one operator is on the operator's page."""
    on_operator_pages = {builder.name for builder in builder_of.values()}
    on_operator_pages |= {each.struct for each in builder_of.values() if not is_shared(by_name[each.struct][0])}
    builder_lines = {}  # struct → declarations of its builders
    for found in by_name.values():
        match = re.search(r"Builder<(\w+)", found[0].text) if found[0].kind == "constant" else None
        if match:
            builder_lines.setdefault(match[1], []).append(found[0])
    listed = {}
    for name, found in sorted(by_name.items(), key=lambda pair: pair[0].lower()):
        in_ops = found[0].header.startswith("symbind/ops/")
        is_builder = found[0].kind == "constant" and "Builder<" in found[0].text
        if in_ops and (is_builder or name in on_operator_pages):
            continue
        path = site.path("cpp", cpp_file(name))
        body = [f"<h1>{escape(name)}</h1>"]
        if name in python_classes:
            body.append(f"<p>In Python: {link(path, *python_classes[name])}</p>")
        for header in sorted({each.header for each in found}):
            body.append(code(f'#include "{header}"'))
            if not in_ops:
                body.append(markdown.render(cpp.story(ROOT, header)))
        for each in [*found, *builder_lines.get(name, [])]:
            body.append(markdown.render(each.comment) + code(each.text))
        site.write(path, name, "\n".join(body))
        site.add_entry(name, f"{found[0].kind} in C++", path, found[0].comment)
        for each in found:
            for member in each.members:
                site.add_entry(f"{name}::{member}", "member in C++", path)
        for each in builder_lines.get(name, []):
            if each.name not in on_operator_pages:
                site.add_entry(each.name, "operator of the library in C++", path)
        directory = f"symbind/{found[0].header.split('/')[1]}" if found[0].header.count("/") > 1 else "symbind"
        listed.setdefault(f"{directory}: gradients" if in_ops and "Grad" in name else directory, []).append(
            (path, name)
        )
    return dict(sorted(listed.items()))


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


def write_python(site, operator_names, by_name):
    """The pages by module, and (path, name) of each class that C++ has as well."""
    listed, in_both = {}, {}
    for item in python.items(operator_names):
        path = site.path("python", item.full_name)
        shown = item.full_name.replace("symbind", "mx", 1)
        body = [f"<h1>{escape(shown)}</h1>"]
        if inspect.isclass(item.value):
            in_cpp = cpp_class_of(item, by_name)
            if in_cpp:
                body.append(f"<p>In C++: {link(path, f'cpp/{cpp_file(in_cpp)}.html', in_cpp)}</p>")
                in_both.setdefault(in_cpp, (path, shown))
        body.append(code("\n".join(python.signatures(item.name, item.value, make_stubs.native_signatures))))
        body.append(python_doc(native_doc(item.value)))
        if inspect.isclass(item.value):
            for name, value, is_property in python.members(item.value):
                lines = [name] if is_property else python.signatures(name, value, make_stubs.native_signatures)
                body.append(f'<h2 id="{escape(name)}">{escape(name)}</h2>{code(chr(10).join(lines))}')
                body.append(python_doc(native_doc(value)))
                site.add_entry(f"{shown}.{name}", "member in Python", f"{path}#{name}", native_doc(value))
        site.write(path, shown, "\n".join(body))
        kind = "class" if inspect.isclass(item.value) else "function"
        site.add_entry(shown, f"{kind} in Python", path, native_doc(item.value))
        listed.setdefault(item.module.replace("symbind", "mx", 1), []).append((path, item.name))
    return listed, in_both


def cpp_class_of(item, by_name):
    """The C++ class of the same name as a class of Python: Module, metric::Accuracy; none if there is none."""
    module = {"initializer": "init", "optimizer": "optim"}.get(item.module.rsplit(".", 1)[-1])
    module = module or item.module.rsplit(".", 1)[-1]
    for name in (item.name, f"{module}::{item.name}"):
        if any(each.kind in ("class", "struct") and "/ops/" not in each.header for each in by_name.get(name, [])):
            return name
    return None


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
    builder_of = builders(ROOT)
    found = operators()
    by_name = all_declarations()
    structs = operator_structs(by_name)
    pages = [write_operator(site, name, op, builder_of.get(name), structs) for name, op in found.items()]
    every_name = set(found) | {alias for op in found.values() for alias in op.aliases}
    python_pages, in_both = write_python(site, every_name, by_name)
    cpp_pages = write_cpp(site, by_name, {name: builder_of[name] for name in found if name in builder_of}, in_both)

    body = ["<h1>Symbind</h1>", "<h2>Guides</h2>", "<ul>"]
    body += [f"<li>{link('index.html', path, title)}</li>" for path, title in guides]
    body += ["</ul>", "<h2>Operators</h2>", "<p>With their names in C++ where these are others.</p>"]
    body.append(operator_names([page for page in pages if not page[1].startswith("_")], builder_of))
    body.append("<h3>Internal</h3>")
    body.append(operator_names([page for page in pages if page[1].startswith("_")], builder_of))
    body.append("<h2>Python</h2>")
    body += [f"<h3>{escape(module)}</h3>{names('index.html', each)}" for module, each in python_pages.items()]
    body.append("<h2>C++</h2>")
    body += [f"<h3>{escape(directory)}</h3>{names('index.html', each)}" for directory, each in cpp_pages.items()]
    site.write("index.html", "Symbind", "\n".join(body))
    site.finish()
    print(f"{os.path.relpath(folder)}/index.html: {len(site.paths)} pages")


if __name__ == "__main__":
    main()
