// Assigns offsets to buffers with lifetimes: buffers whose lifetimes overlap must not overlap in memory.
#pragma once

#include <cstddef>
#include <vector>

namespace symbind {

// `bytes` are needed from time `first` to time `last`, both included.
struct Lifetime {
  int first = 0, last = 0;
  size_t bytes = 0;
  size_t offset = 0;
};

// The peak of the live bytes: no packing needs less.
size_t peak_live_bytes(const std::vector<Lifetime>& lifetimes);

// Sets the offset of every lifetime; returns the total number of bytes. If all sizes are multiples of an alignment, so
// are the offsets.
size_t pack(std::vector<Lifetime>& lifetimes);

}  // namespace symbind
