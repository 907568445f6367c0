// Optimal packing is hard in general, but easy for most networks: several fast heuristics are tried, and the best
// result is used. Best fit in the order of time is optimal for chains; placing the largest first, at the lowest offset
// that is free for its whole lifetime, is better for networks whose sizes differ much.
#include "symbind/passes/packing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <set>

namespace symbind {
namespace {

using Offsets = std::vector<size_t>;
using Order = std::vector<size_t>;
constexpr size_t most_steps = 10'000'000;         // of the improvement search: about 10 ms
constexpr size_t most_comparisons = 100'000'000;  // of placement in a given order: about 100 ms

struct Packed {
  Offsets offsets;
  size_t bytes = 0;
};

// ---- In the order of time -------------------------------------------------------------------------------------------

// Free and used space.
class Space {
 public:
  size_t take(size_t bytes) {
    const auto gap = by_size_.lower_bound({bytes, 0});
    if (gap == by_size_.end()) return extend(bytes);
    const auto [size, offset] = *gap;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give(size_t offset, size_t bytes) {
    // Merges with the gaps on both sides.
    const auto after = by_offset_.find(offset + bytes);
    if (after != by_offset_.end()) {
      const size_t size = after->second;
      remove(offset + bytes, size);
      bytes += size;
    }
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [begin, size] = *std::prev(next);
      if (begin + size == offset) {
        remove(begin, size);
        offset = begin;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

  size_t size() const { return end_; }

 private:
  // A gap at the very end is extended before new space is added.
  size_t extend(size_t bytes) {
    size_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [begin, size] = *by_offset_.rbegin();
      if (begin + size == end_) {
        remove(begin, size);
        offset = begin;
      }
    }
    end_ = offset + bytes;
    return offset;
  }
  void insert(size_t offset, size_t bytes) {
    by_offset_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  void remove(size_t offset, size_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<size_t, size_t> by_offset_;
  std::set<std::pair<size_t, size_t>> by_size_;
  size_t end_ = 0;
};

// Allocates space at the start of a lifetime and frees it at its end; or, with time reversed, the opposite.
Packed pack_by_time(const std::vector<Lifetime>& lifetimes, bool reversed) {
  const auto begin = [&](size_t i) { return reversed ? -lifetimes[i].last : lifetimes[i].first; };
  const auto end = [&](size_t i) { return reversed ? -lifetimes[i].first : lifetimes[i].last; };
  Order order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return begin(a) < begin(b); });

  Packed packed{Offsets(lifetimes.size()), 0};
  Space space;
  using Ending = std::pair<int, size_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  for (const size_t i : order) {
    for (; !endings.empty() && endings.top().first < begin(i); endings.pop()) {
      const size_t over = endings.top().second;
      space.give(packed.offsets[over], lifetimes[over].bytes);
    }
    packed.offsets[i] = space.take(lifetimes[i].bytes);
    endings.emplace(end(i), i);
  }
  packed.bytes = space.size();
  return packed;
}

// ---- In a given order -----------------------------------------------------------------------------------------------

// Each takes the lowest offset where it overlaps no other live buffer. Each is compared with all others: `comparisons`
// is the remaining budget, which is counted down; there is no result if it is exhausted.
std::optional<Packed> pack_in_order(const std::vector<Lifetime>& lifetimes, const Order& order, size_t& comparisons) {
  struct Taken {
    size_t begin, end;
    int first, last;
  };
  std::vector<Taken> taken;  // by begin
  taken.reserve(lifetimes.size());
  Packed packed{Offsets(lifetimes.size()), 0};
  for (const size_t i : order) {
    const auto [first, last, bytes, unused] = lifetimes[i];
    size_t offset = 0, looked_at = 0;
    for (const Taken& other : taken) {
      ++looked_at;
      if (other.last < first || other.first > last) continue;
      if (other.begin >= offset + bytes) break;
      offset = std::max(offset, other.end);
    }
    if (looked_at > comparisons) return std::nullopt;
    comparisons -= looked_at;
    packed.offsets[i] = offset;
    packed.bytes = std::max(packed.bytes, offset + bytes);
    const auto position = std::upper_bound(taken.begin(), taken.end(), offset,
                                           [](size_t value, const Taken& other) { return value < other.begin; });
    taken.insert(position, {offset, offset + bytes, first, last});
  }
  return packed;
}

template <class Weight>
Order heaviest_first(const std::vector<Lifetime>& lifetimes, Weight weight) {
  Order order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weight(lifetimes[a]) > weight(lifetimes[b]); });
  return order;
}

bool is_good(size_t bytes, size_t bound) { return bytes <= bound + bound / 200; }

// Moves the buffer that reaches highest to an earlier position, as long as that improves the result often enough.
std::optional<Packed> improved(const std::vector<Lifetime>& lifetimes, Order order, size_t bound, size_t& comparisons) {
  std::optional<Packed> first = pack_in_order(lifetimes, order, comparisons);
  if (!first) return first;
  Packed best = std::move(*first);
  const size_t count = lifetimes.size();
  const size_t rounds = std::min<size_t>(100, most_steps / (count * count + 1));
  std::minstd_rand random;
  for (size_t round = 0; round < rounds && !is_good(best.bytes, bound); ++round) {
    Order other = order;
    const auto reaches_top = [&](size_t i) { return best.offsets[i] + lifetimes[i].bytes == best.bytes; };
    const auto top = std::find_if(other.begin(), other.end(), reaches_top);
    if (top == other.begin()) break;
    // Moved to a random position before its own.
    const auto position = other.begin() + static_cast<ptrdiff_t>(random() % static_cast<size_t>(top - other.begin()));
    std::rotate(position, top, top + 1);
    std::optional<Packed> packed = pack_in_order(lifetimes, other, comparisons);
    if (!packed) break;
    if (packed->bytes > best.bytes) continue;
    best = std::move(*packed);
    order = std::move(other);
  }
  return best;
}

double duration(const Lifetime& life) { return static_cast<double>(life.last) - life.first + 1; }

}  // namespace

size_t peak_live_bytes(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::pair<int, int64_t>> changes;  // of the bytes needed, by time
  changes.reserve(2 * lifetimes.size());
  for (const Lifetime& life : lifetimes) {
    changes.emplace_back(life.first, static_cast<int64_t>(life.bytes));
    changes.emplace_back(life.last + 1, -static_cast<int64_t>(life.bytes));
  }
  std::sort(changes.begin(), changes.end());  // at the same time, ends come first
  int64_t now = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return static_cast<size_t>(most);
}

size_t pack(std::vector<Lifetime>& lifetimes) {
  const size_t bound = peak_live_bytes(lifetimes);
  Packed best = pack_by_time(lifetimes, false);
  const auto consider = [&](Packed other) {
    if (other.bytes < best.bytes) best = std::move(other);
  };
  if (best.bytes > bound) consider(pack_by_time(lifetimes, true));
  // Placement in an order takes quadratic time: it is skipped for very many buffers.
  size_t comparisons = most_comparisons;
  const auto try_order = [&](auto weight) {
    const bool is_enough = lifetimes.size() > 3'000 ? is_good(best.bytes, bound) : best.bytes == bound;
    if (is_enough) return;
    if (std::optional<Packed> packed = improved(lifetimes, heaviest_first(lifetimes, weight), bound, comparisons))
      consider(std::move(*packed));
  };
  try_order([](const Lifetime& life) { return std::pair(static_cast<double>(life.bytes), duration(life)); });
  try_order([](const Lifetime& life) { return std::pair(duration(life), static_cast<double>(life.bytes)); });
  try_order([](const Lifetime& life) { return static_cast<double>(life.bytes) * duration(life); });
  for (size_t i = 0; i < lifetimes.size(); ++i) lifetimes[i].offset = best.offsets[i];
  return best.bytes;
}

}  // namespace symbind
