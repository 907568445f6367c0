// Searches the names of the reference. The index is a script (search_index.js) and not a file to fetch, so that it works
// from disk. An entry is [name, what it is, path of the page, summary].
"use strict";

// Case, underscores and dots do not count: "ndarrayiter" finds mx.io.NDArrayIter and NDArrayIter.
function normalize(text) {
  return text.toLowerCase().replace(/[\s_.:]/g, "");
}

// The best entries for a query, best first: the name itself, the end of a qualified name, a beginning, a part of a name,
// and last all words of the query somewhere in the name or the summary.
function search(index, query, limit) {
  const wanted = normalize(query);
  const words = query.toLowerCase().split(/\s+/).filter((word) => word);
  if (!wanted) return [];
  const scored = [];
  index.forEach((entry, position) => {
    const name = normalize(entry[0]);
    const last = normalize(entry[0].split(/\.|::/).pop());
    let score = 0;
    if (name === wanted) score = 6;
    else if (last === wanted) score = 5;
    else if (last.startsWith(wanted)) score = 4;
    else if (name.startsWith(wanted)) score = 3;
    else if (name.includes(wanted)) score = 2;
    else if (words.every((word) => (entry[0] + " " + entry[3]).toLowerCase().includes(word))) score = 1;
    if (score) scored.push({ entry, score, length: name.length, position });
  });
  scored.sort((a, b) => b.score - a.score || a.length - b.length || a.position - b.position);
  return scored.slice(0, limit).map((each) => each.entry);
}

function showResults(root) {
  const box = document.getElementById("search");
  const list = document.getElementById("results");
  list.replaceChildren();
  for (const [name, kind, path, summary] of search(SEARCH_INDEX, box.value, 40)) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + path;
    link.textContent = name;
    const note = document.createElement("span");
    note.textContent = " " + kind + (summary ? " – " + summary : "");
    item.append(link, note);
    list.append(item);
  }
}

function startSearch(root) {
  const box = document.getElementById("search");
  box.addEventListener("input", () => showResults(root));
  box.addEventListener("keydown", (event) => {
    const first = document.querySelector("#results a");
    if (event.key === "Enter" && first) window.location.href = first.href;
  });
  if (box.value) showResults(root); // the browser's "back" keeps what was typed
}

if (typeof module !== "undefined") module.exports = { search };
