"""The reference: every operator and public type has a page, every link and index entry resolves."""

import html
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import symbind as mx

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tools"))

from reference import cpp, markdown  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make_docs.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def entries(site):
    """What the search looks through: [name, kind, path, summary]."""
    text = (site / "search_index.js").read_text()
    return json.loads(text.removeprefix("const SEARCH_INDEX = ").removesuffix(";\n"))


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.addresses, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("href", "src")]
        self.ids |= {value for name, value in attributes if name == "id"}


def test_every_operator_has_a_page_in_both_languages(site):
    index = (site / "index.html").read_text()
    for name in mx._symbind._list_ops():
        op = mx._symbind._find_op(name)
        if op.name.startswith("_backward"):
            continue
        found = re.search(rf'<a href="(operators/[^"]+)">{re.escape(op.name)}</a>', index)
        assert found, f"{op.name} is not listed"
        page = (site / found[1]).read_text()
        assert f"mx.sym.{'_internal.' if op.name.startswith('_') else ''}{op.name}(" in page
        for field, _, _, _ in op.fields:
            assert f"<code>{field}</code>" in page
    page = (site / "operators" / "Convolution.html").read_text()
    assert "convolution(data, weight, bias, {.kernel = …, .num_filter = …})" in page
    assert "number of output channels" in page


def test_every_operator_and_every_parameter_is_documented():
    for name in mx._symbind._list_ops():
        op = mx._symbind._find_op(name)
        if op.name.startswith("_backward"):
            continue
        assert len(op.doc) >= 15 and op.doc.endswith("."), f"{op.name}: {op.doc!r} is no sentence"
        for field, _, _, doc in op.fields:
            assert len(doc) >= 10 and not doc.endswith("."), f"{field} of {op.name}: {doc!r} says too little"


def test_every_link_and_script_exists(site):
    for folder, _, files in os.walk(site):
        for name in files:
            if name.endswith(".html"):
                text = open(os.path.join(folder, name), encoding="utf-8").read()
                for address in set(Links(text).addresses):
                    if "://" not in address and not address.startswith("#"):
                        target = os.path.normpath(os.path.join(folder, address.split("#")[0]))
                        inside = target.startswith(str(site))
                        assert not inside or os.path.exists(target), f"{name} links to {address}"


def test_every_index_entry_resolves(site, entries):
    ids = {}
    for name, kind, path, _ in entries:
        page, _, anchor = path.partition("#")
        if page not in ids:
            assert (site / page).exists(), f"{name} ({kind}) leads to {path}"
            ids[page] = Links((site / page).read_text()).ids
        assert not anchor or anchor in ids[page], f"{name} ({kind}) leads to {path}"


def installed_types():
    """(header, name) of each type that the installed headers define, found by the layout of the code."""
    for header in cpp.public_headers(ROOT):
        spaces = []
        for line in open(os.path.join(ROOT, header), encoding="utf-8"):
            if match := re.match(r"namespace (?:SYMBIND_API )?([\w:]+) \{", line):
                spaces.append(match[1])
            elif re.match(r"\}.*// namespace", line):
                spaces.pop()
            match = re.match(r"(?:class|struct|enum class|using|concept) (\w+(?:::\w+)?)[^;]*( \{| =)", line)
            if match and spaces and "detail" not in spaces and header != "symbind/fwd.h":
                inner = [space.removeprefix("symbind").removeprefix("::") for space in spaces]
                yield header, "::".join([space for space in inner if space] + [match[1]])


def test_every_type_of_the_installed_headers_has_a_page(site, entries):
    paths = {name: path for name, kind, path, _ in entries if kind.endswith("in C++") and not kind.startswith("member")}
    types = list(installed_types())
    assert {"Shape", "DType", "Tuple", "OpReq", "GradReqs", "Arrays", "Attributes", "Storage"} <= {t for _, t in types}
    for header, name in types:
        assert name in paths, f"{name} of {header} has no page"
        page = html.unescape((site / paths[name]).read_text())
        if paths[name].startswith("cpp/"):
            assert f'#include "{header}"' in page, f"the page of {name} does not name {header}"
        assert re.search(rf"\b{re.escape(name.rsplit('::')[-1])}\b", page)


def test_signatures_have_no_bodies_initialisers_attributes_or_private_parts():
    for header in cpp.public_headers(ROOT):
        for each in cpp.declarations(ROOT, header):
            where = f"{each.name} of {header}:\n{each.text}"
            assert re.fullmatch(r"[\w:]+|(\w+::)*operator\W+", each.name), where
            code = re.sub(r"//[^\n]*", "", each.text)
            bodies = r"\[\[|= default\b|\bprivate:|\breturn\b|\)\s*(noexcept\s*)?:\s*\w+\s*[({]"
            assert not re.search(bodies, code), where
            if each.kind == "function":
                assert code.rstrip().endswith(";") and not re.search(r"\)[^(]*\{", code.replace("= {}", "")), where


def test_classes_of_both_languages_have_pages_that_link_to_each_other(site):
    for page in ("cpp/Module.html", "cpp/Executor.html", "cpp/simple_bind.html", "cpp/init.Xavier.html"):
        assert (site / page).exists(), page
    for page in ("symbind.symbol.Symbol", "symbind.ndarray.NDArray", "symbind.io.NDArrayIter", "symbind.cpu"):
        assert (site / "python" / f"{page}.html").exists(), page
    text = (site / "cpp" / "Executor.html").read_text()
    assert "void backward(" in text and "private" not in text
    assert "../python/symbind.executor.Executor.html" in text
    assert "../cpp/Executor.html" in (site / "python" / "symbind.executor.Executor.html").read_text()


def test_the_index_shows_names_of_operators_in_both_languages(site):
    index = (site / "index.html").read_text()
    for name in ("FullyConnected", "fully_connected", "SoftmaxOutput", "softmax_output", "BlockGrad", "stop_gradient"):
        assert re.search(rf'<a href="operators/[^"]+">{name}</a>', index), name


@pytest.mark.skipif(not shutil.which("node"), reason="needs node to run the search's script")
def test_the_search_finds_exact_names_first_and_needs_no_server(site):
    assert "fetch(" not in (site / "search.js").read_text()
    queries = ["Shape", "fully_connected", "ndarrayiter", "copy_params_from", "batch norm", "largest magnitude axes"]
    program = (
        "const fs = require('fs'), vm = require('vm'); const { search } = require(process.argv[1] + '/search.js');"
        "const text = fs.readFileSync(process.argv[1] + '/search_index.js', 'utf8');"
        "const index = vm.runInNewContext(text + 'SEARCH_INDEX');"
        "console.log(JSON.stringify(process.argv.slice(2).map((query) => search(index, query, 3))));"
    )
    run = subprocess.run(["node", "-e", program, str(site), *queries], capture_output=True, text=True, check=True)
    found = dict(zip(queries, json.loads(run.stdout), strict=True))
    assert found["Shape"][0][2] == "cpp/Shape.html"
    assert found["fully_connected"][0][2] == "operators/FullyConnected.html"
    assert {each[0] for each in found["ndarrayiter"][:2]} == {"NDArrayIter", "mx.io.NDArrayIter"}
    assert "Executor::copy_params_from" in [each[0] for each in found["copy_params_from"]]
    assert found["batch norm"][0][2] == "operators/BatchNorm.html"
    assert len(found["largest magnitude axes"]) <= 3


def test_guides_are_rendered(site):
    text = (site / "guides" / "decisions.html").read_text()
    assert "<h1>Decisions</h1>" in text and "<strong>" in text


HEADER = """
// A story.
#pragma once

namespace symbind {

class Later;

// Counts things.
class Counter : public Base {
 public:
  explicit Counter(int start) : count_(start) {}
  Counter(int start, int step) : Base(step), count_{start}, list{1} {}
  ~Counter() override = default;
  friend bool operator==(const Counter&, const Counter&) = default;
  [[nodiscard]] int count() const { return count_; }  // so far
  std::function<void(int)> listener;
  struct Options {
    int step = 1;
  };
  std::vector<int> list = {1, 2};

 private:
  int count_;
};

// Adds.
template <class T>
T add(const T& a, std::map<T, int> b = {}) {
  return a;
}
std::function<void()> hook(std::function<void()> check);
[[noreturn]] void give_up();  // always throws
template <class T>
requires(!std::is_class_v<T>) class Box<T> {};
template <class T>
decltype(auto) visit(T&& value) {
  return value;
}
class Counter::Part {};
int Counter::later() const { return 1; }

bool operator==(const Counter& a, const Counter& b);

#define FIELDS \\
  int left;    \\
  int right;
struct Pair {
  FIELDS
};

inline constexpr Builder<Counter> counter;
using Names = std::vector<std::string>;
namespace inner {
enum class Kind { one, two };
}
}  // namespace symbind
"""


def test_headers_are_understood(tmp_path):
    (tmp_path / "h.h").write_text(HEADER)
    found = {each.name: each for each in cpp.declarations(str(tmp_path), "h.h")}
    assert list(found) == (
        "Counter add hook give_up Box visit Counter::Part operator== Pair counter Names inner::Kind".split()
    )
    assert found["Counter"].comment == "Counts things." and found["add"].comment == "Adds."
    shown = found["Counter"].text
    assert "explicit Counter(int start);" in shown and "int count() const;  // so far" in shown
    assert "  Counter(int start, int step);\n  friend bool operator==(const Counter&, const Counter&);\n" in shown
    assert "nodiscard" not in shown and "~Counter" not in shown and found["Counter"].members == ["count"]
    assert (
        "count_" not in shown and "  struct Options {\n    int step = 1;\n  };" in shown and "list = {1, 2};" in shown
    )
    assert found["give_up"].text == "void give_up();  // always throws" and found["visit"].comment == ""
    assert found["Pair"].text == "struct Pair {\n  int left;\n  int right;\n};"
    assert found["add"].text == "template <class T>\nT add(const T& a, std::map<T, int> b = {});"
    assert found["hook"].kind == found["operator=="].kind == "function"


def test_markdown_is_rendered():
    text = "# A `b`\n\nOne *two*\n**three** [four](five.md) <.\n\n- x\n  y\n  - z\n- w\n\n"
    text += "| a | b |\n|---|---|\n| `1|2` | 3 |\n\n```\n<i>\n```\n"
    assert markdown.render(text, lambda address: address.replace(".md", ".html")).replace("\n", "") == (
        "<h1>A <code>b</code></h1>"
        '<p>One <em>two</em> <strong>three</strong> <a href="five.html">four</a> &lt;.</p>'
        "<ul><li>x y<ul><li>z</li></ul></li><li>w</li></ul>"
        "<table><tr><th>a</th><th>b</th></tr><tr><td><code>1|2</code></td><td>3</td></tr></table>"
        "<pre>&lt;i&gt;</pre>"
    )
