"""The reference: it is written whole, every operator has a page, and no link leads nowhere."""

import html.parser
import os
import re
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


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name == "href"]


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


def test_every_link_leads_somewhere(site):
    for folder, _, files in os.walk(site):
        for name in files:
            if name.endswith(".html"):
                text = open(os.path.join(folder, name), encoding="utf-8").read()
                for address in Links(text).addresses:
                    if "://" not in address and not address.startswith("#"):
                        target = os.path.normpath(os.path.join(folder, address.split("#")[0]))
                        inside = target.startswith(str(site))
                        assert not inside or os.path.exists(target), f"{name} links to {address}"


def test_classes_of_both_languages_have_pages(site):
    for page in ("cpp/Module.html", "cpp/Executor.html", "cpp/simple_bind.html", "cpp/init.Xavier.html"):
        assert (site / page).exists(), page
    for page in ("symbind.symbol.Symbol", "symbind.ndarray.NDArray", "symbind.io.NDArrayIter", "symbind.cpu"):
        assert (site / "python" / f"{page}.html").exists(), page
    text = (site / "cpp" / "Executor.html").read_text()
    assert "void backward(" in text and "private" not in text


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
  int count() const { return count_; }  // so far
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

bool operator==(const Counter& a, const Counter& b);

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
    assert list(found) == ["Counter", "add", "hook", "operator==", "counter", "Names", "inner::Kind"]
    assert found["Counter"].comment == "Counts things." and found["add"].comment == "Adds."
    shown = found["Counter"].text
    assert "explicit Counter(int start);" in shown and "int count() const;  // so far" in shown
    assert "count_" not in shown and "int step = 1;" in shown and "list = {1, 2};" in shown
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
