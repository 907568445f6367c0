"""The Markdown that docs/ uses: headings, paragraphs, lists, tables, code, emphasis, links and pictures."""

import re

from .pages import escape


def inline(text, link_target):
    """One run of text; `link_target` maps the address of a link."""
    pieces = re.split(r"(`[^`]+`)", text)
    out = []
    for piece in pieces:
        if len(piece) > 2 and piece.startswith("`"):
            out.append(f"<code>{escape(piece[1:-1])}</code>")
            continue
        piece = escape(piece)
        piece = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", lambda m: f'<img alt="{m[1]}" src="{link_target(m[2])}">', piece)
        piece = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", lambda m: f'<a href="{link_target(m[2])}">{m[1]}</a>', piece)
        piece = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", piece)
        out.append(re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"<em>\1</em>", piece))
    return "".join(out)


def cells(line):
    """The cells of a table's row; a bar inside code or after a backslash is text."""
    parts = re.findall(r"(?:`[^`]*`|\\\||[^|])+", line.strip().strip("|"))
    return [part.replace("\\|", "|").strip() for part in parts]


def render(text, link_target=lambda address: address):
    """HTML of a page."""
    lines = text.splitlines()
    out = []
    at = 0

    def take_while(matches):
        nonlocal at
        taken = []
        while at < len(lines) and matches(lines[at]):
            taken.append(lines[at])
            at += 1
        return taken

    item = re.compile(r"(\s*)([-*]|\d+\.)\s+(.*)")

    def is_prose(each):
        return bool(each.strip()) and not each.startswith(("```", "#", "|")) and not item.match(each)

    while at < len(lines):
        line = lines[at]
        heading = re.match(r"(#{1,6})\s+(.*)", line)
        if not line.strip():
            at += 1
        elif line.startswith("```"):
            at += 1
            body = take_while(lambda each: not each.startswith("```"))
            at += 1
            out.append("<pre>" + escape("\n".join(body)) + "</pre>")
        elif line.startswith("    "):
            body = take_while(lambda each: each.startswith("    ") or not each.strip())
            out.append("<pre>" + escape("\n".join(each[4:] for each in body).rstrip()) + "</pre>")
        elif heading:
            level = len(heading[1])
            out.append(f"<h{level}>{inline(heading[2], link_target)}</h{level}>")
            at += 1
        elif line.startswith("|"):
            rows = [cells(row) for row in take_while(lambda each: each.startswith("|"))]
            body = [row for row in rows[1:] if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
            head = "".join(f"<th>{inline(cell, link_target)}</th>" for cell in rows[0])
            out.append(f"<table><tr>{head}</tr>")
            for row in body:
                out.append("<tr>" + "".join(f"<td>{inline(cell, link_target)}</td>" for cell in row) + "</tr>")
            out.append("</table>")
        elif item.match(line):
            block = take_while(lambda each: item.match(each) or (each.startswith(" ") and each.strip()))
            out.append(render_list(block, item, link_target))
        else:
            paragraph = [line]
            at += 1
            paragraph += take_while(is_prose)
            out.append(f"<p>{inline(' '.join(part.strip() for part in paragraph), link_target)}</p>")
    return "\n".join(out)


def render_list(block, item, link_target):
    """A list, with lists inside it by indentation."""
    entries = []  # [indent, tag, text]
    for line in block:
        match = item.match(line)
        if match:
            entries.append([len(match[1]), "ul" if match[2] in "-*" else "ol", match[3]])
        else:
            entries[-1][2] += " " + line.strip()
    out, open_lists = [], []
    for indent, tag, text in entries:
        while open_lists and open_lists[-1][0] > indent:
            out.append(f"</li></{open_lists.pop()[1]}>")
        if open_lists and open_lists[-1][0] == indent:
            out.append("</li>")
        else:
            open_lists.append((indent, tag))
            out.append(f"<{tag}>")
        out.append(f"<li>{inline(text, link_target)}")
    while open_lists:
        out.append(f"</li></{open_lists.pop()[1]}>")
    return "\n".join(out)
