// Offsets for pieces of memory that are needed for a while each: those whose times overlap must not overlap in memory.
#pragma once

#include <cstddef>
#include <vector>

namespace symbind {

// So many bytes are needed from time `first` to time `last`, both included.
struct Lifetime {
  int first = 0, last = 0;
  size_t bytes = 0;
  size_t offset = 0;
};

// The peak of the live bytes: no packing needs less.
size_t peak_live_bytes(const std::vector<Lifetime>& lifetimes);

// Gives every lifetime its offset; returns how many bytes all need together. Offsets are multiples of what all sizes
// are multiples of.
size_t pack(std::vector<Lifetime>& lifetimes);

}  // namespace symbind
