// A tensor as passes and backends see it: its shape, type and layout in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "symbind/core/dtype.h"
#include "symbind/core/shape.h"

namespace symbind {

struct Node;

// The order of the elements of an array (batch, channels, space…) in memory. Arrays a user can see are always plain.
// Blocked is (batch, channels / block, space…, block): only for channels that are a multiple of the block, so no layout
// has padding and elementwise operators work on any.
enum class Layout : uint8_t { plain, channels_last, blocked8, blocked16 };

constexpr int64_t block_of(Layout layout) {  // 1 if not blocked
  return layout == Layout::blocked8 ? 8 : layout == Layout::blocked16 ? 16 : 1;
}
std::string_view name_of(Layout layout);
// Are the elements of an array of this shape in the same order in both?
bool same_order(const Shape& shape, Layout a, Layout b);

struct Tensor {
  Shape shape;
  DType dtype = DType::none;
  Layout layout = Layout::plain;

  size_t bytes() const { return static_cast<size_t>(shape.size()) * size_of(dtype); }
};

// Objects that kernels keep for a node, shared by all plans of one executor.
using NodeObjects = std::unordered_map<const Node*, std::shared_ptr<void>>;

}  // namespace symbind
