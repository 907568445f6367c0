// Elements selected by indices in another array, or by a condition. Indices may be of any type; fractions are
// truncated.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

struct Take {
  int64_t axis = 0;
  std::string mode = "clip";  // how indices out of range are handled: clip, wrap, raise
};
inline constexpr Builder<Take> take;

struct Embedding {
  Required<int64_t> input_dim = {};
  Required<int64_t> output_dim = {};
  DType dtype = DType::float32;
  bool sparse_grad = false;
};
inline constexpr Builder<Embedding> embedding;

// (out_grad, indices, a for its shape) → zeros with every slice of out_grad added where it was taken
struct TakeGrad : Take {};
inline constexpr Builder<TakeGrad> take_grad;

struct OneHot {
  Required<int64_t> depth = {};
  double on_value = 1;
  double off_value = 0;
  DType dtype = DType::float32;
};
inline constexpr Builder<OneHot> one_hot;

struct Pick {
  std::optional<int64_t> axis = -1;
  bool keepdims = false;
  std::string mode = "clip";
};
inline constexpr Builder<Pick> pick;

// (out_grad, index, data for its shape) → zeros with out_grad where elements were picked
struct PickGrad : Pick {};
inline constexpr Builder<PickGrad> pick_grad;

struct BatchTake {};
inline constexpr Builder<BatchTake> batch_take;

// lhs with lhs[i, rhs[i]] = mhs[i].
struct FillElement {};
inline constexpr Builder<FillElement> fill_element_0index;

struct Where {};
inline constexpr Builder<Where> where;

struct GatherNd {};
inline constexpr Builder<GatherNd> gather_nd;
struct ScatterNd {
  Required<Tuple> shape = {};
};
inline constexpr Builder<ScatterNd> scatter_nd;

// (out_grad, indices, data for its shape) → zeros with every part of out_grad added where it was gathered
struct GatherNdGrad : GatherNd {};
inline constexpr Builder<GatherNdGrad> gather_nd_grad;

}  // namespace symbind
