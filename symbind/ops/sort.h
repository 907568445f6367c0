// Sorting along an axis. Sorts are stable.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

struct AxisView;

// No axis: the whole array as one row.
struct Sort {
  std::optional<int64_t> axis = -1;
  bool is_ascend = true;
};
inline constexpr Builder<Sort> sort;

struct Argsort {
  std::optional<int64_t> axis = -1;
  bool is_ascend = true;
  DType dtype = DType::float32;
};
inline constexpr Builder<Argsort> argsort;

struct TopK {
  std::optional<int64_t> axis = -1;
  int64_t k = 1;                    // 0: all
  std::string ret_typ = "indices";  // both, indices, mask, value
  bool is_ascend = false;
  DType dtype = DType::float32;  // of indices
};
inline constexpr Builder<TopK> topk;

// (out_grad, indices, data for its shape) → zeros with out_grad at the indices
struct SortGrad {
  std::optional<int64_t> axis = -1;
};
inline constexpr Builder<SortGrad> sort_grad;

// The rows of data of known shape; without an axis all of it is one row.
AxisView sorted_rows(const std::optional<int64_t>& axis, const Shape& data, std::string_view who);

}  // namespace symbind
