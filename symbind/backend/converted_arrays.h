// Operators that convert input i to the type of output i, or to its layout, which is a transposition.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind {

struct ConvertedArray {
  DType from, to;
  int64_t count;  // of elements
  // The array is a sequence of matrices of rows × columns, which are transposed. Both 1: the order stays.
  int64_t rows = 1, columns = 1;

  bool is_transposed() const { return rows > 1 && columns > 1; }
  int64_t matrices() const { return count / (rows * columns); }
};

inline std::vector<ConvertedArray> converted_arrays(const NodeView& node) {
  std::vector<ConvertedArray> arrays;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Tensor &in = node.inputs[i], &out = node.outputs[i];
    ConvertedArray array{in.dtype, out.dtype, out.shape.size()};
    if (array.count > 0 && !same_order(out.shape, in.layout, out.layout)) {
      array.rows = out.shape[1];
      array.columns = out.shape.size(2, out.shape.rank());
      if (in.layout == Layout::channels_last) std::swap(array.rows, array.columns);
    }
    arrays.push_back(array);
  }
  return arrays;
}

// Empty, or why the layouts of the arrays cannot be changed.
inline std::string refuse_layouts_of_arrays(const NodeView& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.inputs[i].layout != node.outputs[i].layout &&
        (block_of(node.inputs[i].layout) > 1 || block_of(node.outputs[i].layout) > 1))
      return "a blocked layout";
  return "";
}

}  // namespace symbind
