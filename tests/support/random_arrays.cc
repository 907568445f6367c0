#include <algorithm>

#include "tests/support/random_graph_generator.h"

namespace symbind::testing {

RandomGraphGenerator::Made RandomGraphGenerator::combine(const Value& x) {
  Value y = alike(x);
  if (chance(0.1)) y = Value{add_variable(x.shape), x.shape, 1};
  switch (between(0, 8)) {
    case 0:
      return add(elemwise_mul(x.symbol, y.symbol), x.magnitude * y.magnitude);
    case 1:  // but nothing from itself: zeros are a poor test
      if (y.symbol.entries()[0].node == x.symbol.entries()[0].node) return {};
      return add(elemwise_sub(x.symbol, y.symbol), x.magnitude + y.magnitude);
    case 2:
      return add(add_n({x.symbol, y.symbol, x.symbol}, {.num_args = 3}, fresh("add_n")), 2 * x.magnitude + y.magnitude);
    case 3:
      return add(chance(0.5) ? elemwise_maximum(x.symbol, y.symbol) : elemwise_minimum(x.symbol, y.symbol),
                 std::max(x.magnitude, y.magnitude));
    case 4:
      return add(x.symbol / (square(y.symbol) + 1), x.magnitude);
    default:
      return add(elemwise_add(x.symbol, y.symbol), x.magnitude + y.magnitude);
  }
}

RandomGraphGenerator::Made RandomGraphGenerator::with_number(const Value& x) {
  switch (between(0, 4)) {
    case 0:
      return add(x.symbol + 0.25, x.magnitude + 0.25);
    case 1:
      return add(1.5 - x.symbol, x.magnitude + 1.5);
    case 2:
      return add(-x.symbol, x.magnitude);
    case 3:
      return add(x.symbol / 1.25, x.magnitude);
    default:
      return add(x.symbol * 0.75, x.magnitude);
  }
}

RandomGraphGenerator::Made RandomGraphGenerator::map(const Value& x) {
  switch (between(0, 8)) {
    case 0:
      return add(apply("BlockGrad", x.symbol), x.magnitude);
    case 1:
      return add(clip(x.symbol, {.a_min = -0.5, .a_max = 0.75}), 0.75);
    case 2:
      return add(apply("abs", x.symbol), x.magnitude);
    case 3:
      return add(apply("sqrt", square(x.symbol) + 0.5), x.magnitude + 1);
    case 4:
      return add(apply("relu", x.symbol), x.magnitude);
    case 5:
      return add(apply("identity", x.symbol), x.magnitude);
    case 6:
      return add(cast_like(cast(x.symbol, {.dtype = DType::float64}) * 0.5, x.symbol), x.magnitude);
    default:
      return add(square(x.symbol), x.magnitude * x.magnitude);
  }
}

RandomGraphGenerator::Made RandomGraphGenerator::join_up(const Value& x) {
  const size_t axis = chance(0.85) ? 1 : static_cast<size_t>(between(0, static_cast<int64_t>(x.shape.size()) - 1));
  if (axis >= x.shape.size()) return {};
  std::vector<Symbol> parts{x.symbol};
  double magnitude = x.magnitude;
  for (int64_t i = between(1, 2); i > 0; --i) {
    const auto y = another([&](const Value& value) {
      if (value.shape.size() != x.shape.size()) return false;
      for (size_t k = 0; k < x.shape.size(); ++k)
        if (k != axis && value.shape[k] != x.shape[k]) return false;
      return true;
    });
    parts.push_back(y->symbol);
    magnitude = std::max(magnitude, y->magnitude);
  }
  if (chance(0.1) && x.rank() < 4) {
    const auto y = alike(x);
    return add(stack({x.symbol, y.symbol}, {.axis = between(0, x.rank()), .num_args = 2}),
               std::max(x.magnitude, y.magnitude));
  }
  return add(concat(parts, {.num_args = static_cast<int64_t>(parts.size()), .dim = static_cast<int64_t>(axis)},
                    fresh("concat")),
             magnitude);
}

RandomGraphGenerator::Made RandomGraphGenerator::cut(const Value& x) {
  const int64_t axis = chance(0.7) ? 1 : between(0, static_cast<int64_t>(x.shape.size()) - 1);
  if (axis >= static_cast<int64_t>(x.shape.size())) return {};
  const int64_t extent = x.shape[static_cast<size_t>(axis)];
  if (extent < 2) return {};
  if (extent % 2 == 0 && chance(0.5))
    return add(slice_channel(x.symbol, {.num_outputs = 2, .axis = axis}, fresh("split")), x.magnitude);
  if (extent <= 4 && chance(0.3))
    return add(
        slice_channel(x.symbol, {.num_outputs = extent, .axis = axis, .squeeze_axis = x.rank() > 2}, fresh("cut")),
        x.magnitude);
  const int64_t begin = chance(0.5) ? 0 : between(0, extent - 2);
  return add(slice_axis(x.symbol, {.axis = axis, .begin = begin, .end = between(begin + 1, extent)}), x.magnitude);
}

RandomGraphGenerator::Made RandomGraphGenerator::rearrange(const Value& x) {
  if (chance(0.1)) return add(reverse(x.symbol, {.axis = {between(0, x.rank() - 1)}}), x.magnitude);
  if (x.rank() == 5)
    return chance(0.5) ? add(reshape(x.symbol, {.shape = {0, 0, -3, 0}}), x.magnitude)
                       : add(transpose(x.symbol, {.axes = {0, 4, 2, 3, 1}}), x.magnitude);
  if (x.shape.size() == 4) switch (between(0, 5)) {
      case 0:
        return add(transpose(x.symbol, {.axes = {0, 2, 3, 1}}), x.magnitude);
      case 1:
        return add(transpose(x.symbol, {.axes = {0, 1, 3, 2}}), x.magnitude);
      case 2:
        return add(reshape(x.symbol, {.shape = {0, 0, -1}}), x.magnitude);
      case 3:
        return add(reshape(x.symbol, {.shape = {0, -1, x.shape[2], x.shape[3]}}), x.magnitude);
      case 4:
        return add(reshape(x.symbol, {.shape = {0, x.shape[2], -1, x.shape[3]}}), x.magnitude);
      default:
        return add(flatten(x.symbol), x.magnitude);
    }
  if (x.shape.size() == 3)
    return chance(0.5) ? add(transpose(x.symbol, {.axes = {0, 2, 1}}), x.magnitude)
                       : add(expand_dims(x.symbol, {.axis = between(0, 3)}), x.magnitude);
  if (x.shape.size() == 2 && x.shape[1] % 4 == 0) return add(reshape(x.symbol, {.shape = {0, -1, 2, 2}}), x.magnitude);
  return chance(0.5) ? add(transpose(x.symbol), x.magnitude) : add(flatten(x.symbol), x.magnitude);
}

RandomGraphGenerator::Made RandomGraphGenerator::enlarge(const Value& x) {
  switch (between(0, 3)) {
    case 0: {
      if (x.spatial() < 2) return {};
      Tuple width(static_cast<size_t>(2 * x.rank()), 0);
      for (size_t i = 4; i < width.size(); ++i) width[i] = between(0, 2);
      return add(pad(x.symbol, {.mode = chance(0.5) ? "constant" : "edge", .pad_width = width}), x.magnitude);
    }
    case 1:
      if (x.spatial() != 2) return {};
      return add(up_sampling(x.symbol, {.scale = 2, .sample_type = "nearest", .num_args = 1}), x.magnitude);
    case 2:
      return add(tile(x.symbol, {.reps = {2}}), x.magnitude);
    default:
      return add(repeat(x.symbol, {.repeats = 2, .axis = between(0, x.rank() - 1)}), x.magnitude);
  }
}

RandomGraphGenerator::Made RandomGraphGenerator::multiply(const Value& x) {
  if (x.rank() == 3) {
    const Value y = alike(x);
    return add(batch_dot(x.symbol, y.symbol, {.transpose_b = true}), x.magnitude * y.magnitude * 3);
  }
  if (x.rank() != 2) return {};
  const bool transpose_a = chance(0.3), transpose_b = chance(0.3);
  const auto y = another([&](const Value& value) {
    return value.rank() == 2 && value.shape[transpose_b ? 1 : 0] == x.shape[transpose_a ? 0 : 1];
  });
  if (!y) return {};
  return add(dot(x.symbol, y->symbol, {.transpose_a = transpose_a, .transpose_b = transpose_b}),
             x.magnitude * y->magnitude * 3);
}

RandomGraphGenerator::Made RandomGraphGenerator::spread(const Value& x) {
  std::vector<int64_t> shape(x.shape.size(), 1);
  const size_t axis = shape.size() > 1 && chance(0.8) ? 1 : 0;
  shape[axis] = x.shape[axis];
  const Symbol other = add_variable(shape);
  if (chance(0.5)) return add(broadcast_mul(x.symbol, other), x.magnitude);
  return chance(0.5) ? add(broadcast_add(x.symbol, other), x.magnitude + 1)
                     : add(broadcast_sub(other, x.symbol), x.magnitude + 1);
}

RandomGraphGenerator::Made RandomGraphGenerator::gather_up(const Value& x) {
  const auto rank = static_cast<int64_t>(x.shape.size());
  const Tuple axes = rank == 4 && chance(0.5) ? Tuple{2, 3} : Tuple{between(0, rank - 1)};
  if (rank < 2) return {};
  return chance(0.7) ? add(mean(x.symbol, {.axis = axes, .keepdims = chance(0.5)}), x.magnitude)
                     : add(sum(x.symbol, {.axis = axes, .keepdims = chance(0.5)}), 4 * x.magnitude);
}

}  // namespace symbind::testing
