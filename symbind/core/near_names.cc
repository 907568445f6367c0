#include "symbind/core/near_names.h"

#include <algorithm>
#include <numeric>

#include "symbind/core/error.h"
#include "symbind/core/text.h"

namespace symbind {
namespace {

// How many letters must be inserted, removed or changed to turn one word into the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known) {
  const size_t most = 1 + name.size() / 6;
  const std::string wanted = lower_case(name);
  std::vector<std::string> near;
  for (const std::string& each : known) {
    const size_t apart = each.size() > name.size() ? each.size() - name.size() : name.size() - each.size();
    if (apart <= most && distance(lower_case(each), wanted) <= most) near.push_back(each);
  }
  std::sort(near.begin(), near.end());
  return near;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> near = near_names(name, known);
  std::string text;
  for (size_t i = 0; i < near.size() && i < 5; ++i) text += join(i == 0 ? "; did you mean '" : "' or '", near[i]);
  return text.empty() ? text : text + "'?";
}

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  if (known.empty()) return "; there are none";
  if (std::string text = did_you_mean(name, known); !text.empty()) return text;
  constexpr size_t most = 20;
  const std::vector<std::string> first(known.begin(),
                                       known.begin() + static_cast<std::ptrdiff_t>(std::min(most, known.size())));
  return join("; there are ", comma_separated(first), known.size() > most ? ", …" : "");
}

}  // namespace symbind
