// Assigns every tensor an address: lifetimes become offsets into one arena per context, scratch included, in place
// where a kernel allows it. Arrays that the user sees are outside.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/passes/graph.h"

namespace symbind {

// An address that is known up to the base of an arena or of an outside array.
struct Location {
  enum class Kind : uint8_t { nowhere, arena, outside };
  Kind kind = Kind::nowhere;
  int index = 0;  // which arena, or which outside array
  size_t offset = 0;
};

struct MemoryPlan {
  PerTensor<Location> tensors;
  PerNode<Location> scratch;
  PerNode<bool> skip;                   // nodes whose outputs already are the inputs' memory need no step
  std::vector<Context> arena_contexts;  // by arena
  std::vector<size_t> arena_bytes;      // by arena
  size_t unshared_bytes = 0;            // size of the arenas if nothing were shared
  size_t lower_bound = 0;               // peak of the live bytes, in all arenas

  size_t total_bytes() const;  // of all arenas
};

// The offset, after the kernel's scratch, of data that the kernel derives from its inputs in every run.
size_t cached_offset(const Kernel& kernel);
// What the node's kernel needs in the arena besides its arrays: scratch, followed by the data it derives in every run.
size_t working_bytes(const GraphNode& node);

// outside: the outside array that holds the tensor, or -1.
MemoryPlan plan_memory(const Graph& graph, const PerTensor<int>& outside, bool share);
// Every tensor in memory of its own, except for views and pieces: no step waits for another to reuse its memory.
MemoryPlan plan_separate_memory(const Graph& graph, const PerTensor<int>& outside);

}  // namespace symbind
