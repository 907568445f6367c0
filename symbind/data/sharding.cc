#include "symbind/data/sharding.h"

#include <limits>

#include "symbind/core/error.h"

namespace symbind {

Shard shard_of(int64_t count, int64_t num_parts, int64_t part_index, std::string_view who) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();  // so that no product below overflows
  require(num_parts >= 1 && num_parts <= most, "[", who, "] num_parts must be at least 1 and at most ", most, ": ",
          num_parts);
  require(part_index >= 0 && part_index < num_parts, "[", who, "] part_index must be between 0 and ", num_parts - 1,
          " when num_parts is ", num_parts, ": ", part_index);
  // floor(count · i / num_parts)
  const int64_t whole = count / num_parts, rest = count % num_parts;
  const auto border = [&](int64_t i) { return whole * i + rest * i / num_parts; };
  return {border(part_index), border(part_index + 1)};
}

}  // namespace symbind
