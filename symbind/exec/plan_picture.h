// A picture of a plan's memory: every buffer of the arena as a rectangle, from the step that first writes it to the
// last that reads it, as high as it is large, at its offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbind/passes/graph.h"
#include "symbind/passes/plan_memory.h"

namespace symbind {

// A piece of an arena and the steps during which it holds one buffer. Tensors that share memory on purpose (a view and
// its source, an output and the input it overwrites) are one buffer.
struct BufferLife {
  enum class Kind : uint8_t { forward, kept_for_backward, backward, scratch };
  Kind kind = Kind::forward;
  int arena = 0;
  size_t offset = 0, bytes = 0;
  size_t first_step = 0, last_step = 0;  // both included
  std::string name;                      // of the node that first writes it
};
std::vector<BufferLife> buffer_lives(const Graph& graph, const MemoryPlan& memory);

// As SVG: x is the step, y the offset; a panel per arena, each with a line for the bytes alive. Buffers too small to be
// visible are left out, and counted below.
std::string plan_picture(const Graph& graph, const MemoryPlan& memory, const std::string& title);

}  // namespace symbind
