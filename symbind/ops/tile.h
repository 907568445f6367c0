// Arrays repeated along axes.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Tile {
  Required<Tuple> reps = {};
};
inline constexpr Builder<Tile> tile;

struct Repeat {
  Required<int64_t> repeats = {};
  std::optional<int64_t> axis = std::nullopt;  // none: the elements of the whole array as one row
};
inline constexpr Builder<Repeat> repeat;

// (out_grad, data for its shape) → data_grad
struct TileGrad : Tile {};
inline constexpr Builder<TileGrad> tile_grad;
struct RepeatGrad : Repeat {};
inline constexpr Builder<RepeatGrad> repeat_grad;

// A repeated array as a row of axes of which some are repetitions.
struct RepeatedAxis {
  int64_t extent;
  bool repeats;
};
std::vector<RepeatedAxis> repeated_axes(const Tile& params, const Shape& data);
std::vector<RepeatedAxis> repeated_axes(const Repeat& params, const Shape& data);

}  // namespace symbind
