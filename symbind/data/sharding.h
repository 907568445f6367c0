// Which samples one of several workers reads.
#pragma once

#include <cstdint>
#include <string_view>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

struct Shard {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// Part `part_index` of `count` samples cut into `num_parts` runs, whose lengths differ by at most one. Error messages
// start with `who`.
Shard shard_of(int64_t count, int64_t num_parts, int64_t part_index, std::string_view who);

}  // namespace symbind
