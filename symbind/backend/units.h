// Elements that are only moved, as unsigned numbers of their size: a kernel is compiled per size instead of per type.
#pragma once

#include <cstddef>
#include <cstdint>

namespace symbind {

// Calls use() with an unsigned number of this size: 1, 2, 4 or 8 bytes.
template <class Use>
decltype(auto) visit_unit(size_t bytes, Use&& use) {
  switch (bytes) {
    case 1:
      return use(uint8_t{});
    case 2:
      return use(uint16_t{});
    case 4:
      return use(uint32_t{});
    default:
      return use(uint64_t{});
  }
}

}  // namespace symbind
