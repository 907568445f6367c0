// Text to learn from: a file, or the made-up sentences in data/. Words, characters and batches of them.
#pragma once

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/options.h"

namespace examples {

struct TextSource {
  std::string data = "", folder = "data";
  int64_t sentences = 2000;

  void add_to(Options& options) {
    options.add("--data", data, "a text, a sentence a line; made-up sentences without it", "FILE")
        .add("--folder", folder, "with the made-up sentences", "DIR")
        .add("--sentences", sentences, "how many of the made-up ones");
  }
};

// Lines of a file that are not empty.
inline std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), "cannot read ", path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) lines.push_back(std::move(line));
  }
  require(!lines.empty(), path, " has no text");
  return lines;
}
inline std::vector<std::string> read_lines(const TextSource& source) {
  if (!source.data.empty()) return read_lines(source.data);
  std::vector<std::string> lines = read_lines(source.folder + "/sentences.txt");
  lines.resize(std::min(lines.size(), static_cast<size_t>(source.sentences)));
  return lines;
}

inline std::vector<std::vector<std::string>> words_of(const std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> sentences;
  for (const std::string& line : lines) {
    std::istringstream text(line);
    auto& words = sentences.emplace_back();
    for (std::string word; text >> word;) words.push_back(std::move(word));
  }
  return sentences;
}

// A text as numbers of characters, and the characters in the order of their numbers.
struct Characters {
  std::string alphabet;
  std::vector<float> codes;

  Characters(const std::vector<std::string>& lines, const std::string& others) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    const std::string all = text + others;
    const std::set<char> found(all.begin(), all.end());
    alphabet.assign(found.begin(), found.end());
    for (const char letter : text) codes.push_back(static_cast<float>(alphabet.find(letter)));
  }

  // Pieces of `steps` characters, and the characters that follow each: (pieces, steps).
  std::pair<NDArray, NDArray> pieces(int64_t steps, int64_t batch_size) const {
    const int64_t rows = (static_cast<int64_t>(codes.size()) - 1) / steps;
    require(rows >= batch_size, "the text has ", rows, " pieces: lower --batch-size or --steps");
    const auto from = [&](int64_t first) {
      const auto begin = codes.begin() + first;
      return array(std::vector<float>(begin, begin + rows * steps), {rows, steps});
    };
    return {from(0), from(1)};
  }
};

}  // namespace examples
