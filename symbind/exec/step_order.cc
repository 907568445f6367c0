#include "symbind/exec/step_order.h"

#include <algorithm>
#include <set>

namespace symbind {

std::vector<std::vector<size_t>> step_waits(std::span<const StepAccess> steps) {
  std::vector<std::vector<size_t>> waits(steps.size());
  std::vector<size_t> implied_for(steps.size(), steps.size());  // the last step that need not wait for it itself
  std::map<int, AccessHistory> spaces;
  std::vector<size_t> since;     // the steps since the last one that runs alone,
  std::optional<size_t> before;  // and that one
  for (size_t i = 0; i < steps.size(); ++i) {
    std::set<size_t> found;
    const auto wait_for = [&](size_t earlier) {
      if (earlier != i) found.insert(earlier);
    };
    if (before) wait_for(*before);
    if (steps[i].alone) std::ranges::for_each(since, wait_for);
    for (const ByteRange& range : steps[i].reads) spaces[range.space].read(range, AccessHistory::no_queue, i, wait_for);
    for (const ByteRange& range : steps[i].writes) spaces[range.space].write(range, i, wait_for);
    for (const size_t each : found)
      for (const size_t earlier : waits[each]) implied_for[earlier] = i;
    for (const size_t each : found)
      if (implied_for[each] != i) waits[i].push_back(each);
    if (steps[i].alone) {
      before = i;
      since.clear();
    } else {
      since.push_back(i);
    }
  }
  return waits;
}

size_t longest_chain(std::span<const std::vector<size_t>> waits) {
  std::vector<size_t> length(waits.size(), 1);
  for (size_t i = 0; i < waits.size(); ++i)
    for (const size_t earlier : waits[i]) length[i] = std::max(length[i], length[earlier] + 1);
  return waits.empty() ? 0 : *std::ranges::max_element(length);
}

}  // namespace symbind
