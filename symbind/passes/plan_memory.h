// Gives every tensor an address: lifetimes become offsets into one arena per context, scratch included, in place where
// a kernel allows it. What a user can see stays outside.
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
  PerNode<bool> skip;                   // outputs that are the inputs' memory already need no step
  std::vector<Context> arena_contexts;  // by arena
  std::vector<size_t> arena_bytes;      // by arena
  size_t unshared_bytes = 0;            // what the arenas would need if nothing were shared
  size_t lower_bound = 0;               // peak of the live bytes, in all arenas

  size_t total_bytes() const;  // of all arenas
};

// Where what a kernel derives from its inputs does not outlive the run, it follows the kernel's scratch, at this
// offset.
size_t kept_offset(const Kernel& kernel);
// What the node's kernel needs in the arena besides its arrays: scratch, and after it what it derives in every run.
size_t working_bytes(const GraphNode& node);

// outside: the outside array that holds the tensor, or -1.
MemoryPlan plan_memory(const Graph& graph, const PerTensor<int>& outside, bool share);

}  // namespace symbind
