#include "symbind/data/image_list.h"

#include <charconv>
#include <cmath>

#include "symbind/core/error.h"
#include "symbind/core/input_file.h"
#include "symbind/data/text_rows.h"

namespace symbind {
namespace {

// Some programs write ids as floating-point numbers: "3.0".
uint64_t id_in(std::string_view word) {
  uint64_t id = 0;
  const char* const end = word.data() + word.size();
  if (const auto read = std::from_chars(word.data(), end, id); read.ptr == end && read.ec == std::errc{}) return id;
  const auto number = number_in<double>(word);
  if (!(number >= 0 && number < 0x1p64 && std::floor(number) == number))
    throw LineError{word.data(), join("expected a whole number from 0 on as id: found '", word.substr(0, 40), "'")};
  return static_cast<uint64_t>(number);
}

void parse_list_line(std::string_view line, int64_t label_width, LabelsById& labels) {
  std::vector<std::string_view> words;
  for (std::string_view rest = line;;) {
    const size_t tab = rest.find('\t');
    words.push_back(trimmed(rest.substr(0, tab)));
    if (tab == std::string_view::npos) break;
    rest.remove_prefix(tab + 1);
  }
  const bool fits = label_width < 0 ? words.size() >= 3 : static_cast<int64_t>(words.size()) - 2 == label_width;
  if (!fits)
    throw LineError{line.data(), join("expected an id, ", label_width < 0 ? "" : join(label_width, " "),
                                      label_width == 1 ? "label" : "labels", " and a path between tabs: found ",
                                      words.size(), " words")};
  std::vector<float>& of = labels[id_in(words[0])];
  of.clear();
  for (size_t i = 1; i + 1 < words.size(); ++i) of.push_back(number_in<float>(words[i]));
}

}  // namespace

LabelsById read_image_list(const std::string& path, int64_t label_width) {
  LabelsById all;
  std::vector<LabelsById> pieces(most_pieces());
  for_each_line_block(
      path,
      [&](std::string_view text, size_t piece) {
        pieces[piece].clear();
        while (!text.empty())
          if (const std::string_view line = take_line(text); !line.empty())
            parse_list_line(line, label_width, pieces[piece]);
      },
      [&](size_t piece) {
        for (auto& [id, labels] : pieces[piece]) all.insert_or_assign(id, std::move(labels));
      });
  return all;
}

const std::vector<float>& listed_labels(const LabelsById& list, uint64_t id, const std::string& path) {
  const auto found = list.find(id);
  require(found != list.end(), "its id ", id, " is not in ", path);
  return found->second;
}

}  // namespace symbind
