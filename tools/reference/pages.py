"""Pages of plain HTML that link to each other relatively, so that they open from disk, and the index to search them."""

import html
import json
import os
import posixpath
import re
import shutil

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
nav { margin-bottom: 1.5rem; }
nav input { font: inherit; margin-left: 1rem; width: 20rem; }
#results { list-style: none; padding: 0; }
#results span, .beside { color: #666; }
a { color: #0b5394; text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { background: #f6f6f4; padding: .8rem 1rem; overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border: 1px solid #ddd; padding: .3rem .6rem; text-align: left; vertical-align: top; }
h1 { font-size: 1.7rem; }
h2 { font-size: 1.3rem; margin-top: 2rem; }
.names a { margin-right: 1rem; }
"""


class Site:
    """Collects pages; writes them with a link home."""

    def __init__(self, folder):
        self.folder = folder
        self.paths = set()
        self._taken = set()
        self._entries = []  # of the search: (name, kind, path, summary)

    def path(self, folder, name):
        """A unique path for a page, also on file systems that ignore case (Concat, concat)."""
        path, number = f"{folder}/{name}.html", 2
        while path.lower() in self._taken:
            path, number = f"{folder}/{name}-{number}.html", number + 1
        self._taken.add(path.lower())
        return path

    def write(self, path, title, body):
        """`path` is relative to the site, with forward slashes; links in the body are relative to it."""
        self.paths.add(path)
        up = "../" * path.count("/")
        text = (
            f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<link rel="stylesheet" href="{up}style.css"></head>\n<body>'
            f'<nav><a href="{up}index.html">Symbind</a> · <a href="{up}names.html">all names</a>'
            f'<input id="search" type="search" placeholder="search" aria-label="search" autocomplete="off">'
            f'<ul id="results"></ul></nav>\n{body}\n'
            f'<script src="{up}search_index.js"></script><script src="{up}search.js"></script>'
            f'<script>startSearch("{up}")</script>\n</body>\n</html>\n'
        )
        target = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)

    def add_entry(self, name, kind, path, summary=""):
        """Makes a name findable: by the search and on the page of all names."""
        summary = re.sub(r"<[^>]*>|`", "", (summary or "").strip()).split("\n\n")[0].replace("\n", " ")
        self._entries.append((name, kind, path, re.split(r"(?<=[.:;]) ", summary)[0][:120]))

    def finish(self):
        """Writes the page of all names, the search and the style."""
        entries = sorted(set(self._entries), key=lambda entry: (entry[0].lstrip("_").lower(), entry))
        rows = [(link("names.html", path, name), escape(kind), escape(text)) for name, kind, path, text in entries]
        self.write("names.html", "All names", "<h1>All names</h1>" + table(("name", "", ""), rows))
        with open(os.path.join(self.folder, "search_index.js"), "w", encoding="utf-8") as file:
            lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
            file.write(f"const SEARCH_INDEX = [\n{lines}\n];\n")
        shutil.copy(os.path.join(os.path.dirname(__file__), "search.js"), self.folder)
        with open(os.path.join(self.folder, "style.css"), "w", encoding="utf-8") as file:
            file.write(STYLE.lstrip())


def escape(text):
    return html.escape(str(text))


def link(source, target, text):
    """A link from one page of the site to another."""
    return f'<a href="{posixpath.relpath(target, posixpath.dirname(source) or ".")}">{escape(text)}</a>'


def code(text):
    return f"<pre>{escape(text)}</pre>"


def table(head, rows):
    """Cells are HTML."""
    lines = ["<table><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</table>"])


def names(source, pages):
    """A paragraph of links: (target, text)."""
    return '<p class="names">' + " ".join(link(source, target, text) for target, text in pages) + "</p>"
