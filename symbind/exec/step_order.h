// The order that the steps of a plan need: a step waits for an earlier one where one of the two writes what the other
// reads or writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "symbind/core/context.h"

namespace symbind {

// The bytes [begin, end) of an arena, by number, or of memory outside, by address.
struct ByteRange {
  static constexpr int outside = -1;
  int space = outside;
  uintptr_t begin = 0, end = 0;
};

struct StepAccess {
  Context context;
  std::vector<ByteRange> reads, writes;
  bool alone = false;  // has state beside these bytes: no other step runs at the same time
};

// The steps that last accessed each byte of an address space. A write clears the history of its bytes: waiting for the
// writer implies waiting for everything the writer waited for.
class AccessHistory {
 public:
  // A step reads bytes: it comes after their writer. Of the steps in a queue, which run one after the other, the last
  // reader is remembered; of steps in none, all.
  static constexpr size_t no_queue = ~size_t{0};
  template <class Wait>
  void read(const ByteRange& range, size_t queue, size_t step, Wait wait_for) {
    each(range, [&](Bytes& bytes) {
      if (bytes.writer) wait_for(*bytes.writer);
      if (queue != no_queue)
        for (auto& [reader, last] : bytes.readers)
          if (reader == queue) return void(last = step);
      bytes.readers.emplace_back(queue, step);
    });
  }
  // A step writes bytes: it comes after their writer and readers.
  template <class Wait>
  void write(const ByteRange& range, size_t step, Wait wait_for) {
    const auto [first, end] = each(range, [&](Bytes& bytes) {
      if (bytes.writer) wait_for(*bytes.writer);
      for (const auto& [reader, last] : bytes.readers) wait_for(last);
    });
    if (first == end) return;
    bytes_.erase(std::next(first), end);
    first->second = {step, {}};
  }

 private:
  struct Bytes {
    std::optional<size_t> writer;                    // the last step
    std::vector<std::pair<size_t, size_t>> readers;  // queues and their last steps, since then
  };
  using Pieces = std::map<uintptr_t, Bytes>;  // by begin; each ends where the next starts

  template <class Visit>
  std::pair<Pieces::iterator, Pieces::iterator> each(const ByteRange& range, Visit visit) {
    if (range.begin >= range.end) return {bytes_.end(), bytes_.end()};
    const auto end = split(range.end), first = split(range.begin);
    for (auto piece = first; piece != end; ++piece) visit(piece->second);
    return {first, end};
  }
  Pieces::iterator split(uintptr_t at) {
    const auto after = bytes_.upper_bound(at), holds = std::prev(after);
    return holds->first == at ? holds : bytes_.emplace_hint(after, at, holds->second);
  }

  Pieces bytes_{{0, {}}};
};

// Of each step the earlier ones that must have ended before it begins, in ascending order; those that another of them
// waits for itself are left out.
std::vector<std::vector<size_t>> step_waits(std::span<const StepAccess> steps);
// The most steps of which each waits for the one before.
size_t longest_chain(std::span<const std::vector<size_t>> waits);

}  // namespace symbind
