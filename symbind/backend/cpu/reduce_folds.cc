// As in reduce_sums.cc, a fold is a sequence of stages over one (merged) axis each. The first takes elements, the
// others combine earlier results. Long stages with few results are split into segments, which one more stage combines;
// the split depends only on the shape.
#include "symbind/backend/cpu/reduce_folds.h"

#include <algorithm>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/float_folds.h"
#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/folds.h"
#include "symbind/backend/reduced_axes.h"
#include "symbind/backend/wide.h"

namespace symbind::cpu_backend {
namespace {

struct Stage : AxisView {
  int64_t segments, segment_length;
  int64_t results() const { return outer * segments * inner; }
};

constexpr int64_t column_width = 64;

std::vector<Stage> plan(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<Stage> stages;
  for (const AxisView& axis : reduced_one_by_one(shape, reduced)) {
    Stage stage{axis, 1, axis.length};
    if (axis.row_count() < 16 && axis.length * axis.inner >= 2 * element_grain) {
      stage.segment_length = element_grain / axis.inner;
      stage.segments = (axis.length + stage.segment_length - 1) / stage.segment_length;
    }
    stages.push_back(stage);
    if (stage.segments > 1) stages.push_back({{axis.outer, stage.segments, axis.inner}, 1, stage.segments});
  }
  // Even if no axis is reduced each element passes through once.
  if (stages.empty()) stages.push_back({{shape.size(), 1, 1}, 1, 1});
  return stages;
}

// The fold of a long row by a function written for it; null: there is none.
template <class Part, class In>
using RowFold = Part (*)(const In* row, int64_t length);

// Consecutive elements go to several partial results in turn, so that the operations are independent.
template <class Part, class In, class Take, class Join>
[[gnu::always_inline]] inline Part fold_row(const In* from, int64_t length, Part start, const Take& take,
                                            const Join& join, RowFold<Part, In> fold_long_row) {
  constexpr int64_t lanes = 256 / sizeof(Part);  // eight vectors of AVX2
  if (length < 2 * lanes) {
    for (int64_t i = 0; i < length; ++i) start = take(start, from[i]);
    return start;
  }
  if (fold_long_row) return fold_long_row(from, length);
  Part parts[lanes];
  std::fill(parts, parts + lanes, start);
  const int64_t whole = length / lanes * lanes;
  for (int64_t i = 0; i < whole; i += lanes)
    for (int64_t j = 0; j < lanes; ++j) parts[j] = take(parts[j], from[i + j]);
  for (int64_t i = whole; i < length; ++i) parts[i - whole] = take(parts[i - whole], from[i]);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) parts[j] = join(parts[j], parts[j + half]);
  return parts[0];
}

// Half of AVX-512's width: conversions to double, which most folds wait for, are no faster in the whole of it.
template <class Part, class In, class Take, class Join>
void run_stage(const Stage& stage, const In* in, Part* out, Part start, Take take, Join join,
               RowFold<Part, In> fold_long_row = nullptr) {
  const int64_t chunks = (stage.inner + column_width - 1) / column_width;
  const int64_t work = std::max<int64_t>(1, stage.segment_length * std::min(stage.inner, column_width));
  for_elements<InstructionSet::avx2>(
      stage.outer * stage.segments * chunks,
      [=](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t chunk = task % chunks, part = task / chunks;
          const int64_t segment = part % stage.segments, outer = part / stage.segments;
          const int64_t first = segment * stage.segment_length, column = chunk * column_width;
          const int64_t length = std::min(stage.segment_length, stage.length - first);
          const int64_t width = std::min(column_width, stage.inner - column);
          const In* const from = in + (outer * stage.length + first) * stage.inner + column;
          if (stage.inner == 1) {
            out[part] = fold_row(from, length, start, take, join, fold_long_row);
            continue;
          }
          Part parts[column_width];
          std::fill(parts, parts + width, start);
          for (int64_t row = 0; row < length; ++row)
            for (int64_t j = 0; j < width; ++j) parts[j] = take(parts[j], from[row * stage.inner + j]);
          std::copy(parts, parts + width, out + part * stage.inner + column);
        }
      },
      std::max<int64_t>(1, element_grain / work));
}

template <class T, class F>
std::unique_ptr<Kernel> build_for(const NodeView& node, const std::vector<Stage>& stages, Fold fold) {
  using C = functions::Wide<T>;
  using Part = typename F::Part;
  RowFold<Part, T> fold_long_row = nullptr;
  if constexpr (std::is_same_v<RowFold<Part, T>, FloatFold>)
    if (instruction_set() >= InstructionSet::avx2) fold_long_row = avx2_float_fold(fold);
  int64_t most = 1;
  for (const Stage& stage : stages) most = std::max(most, stage.results());
  return make_kernel(
      [=, results = node.outputs[0].shape.size(), type = node.outputs[0].dtype](const Args& args) {
        Part* turn[2] = {static_cast<Part*>(args.scratch), static_cast<Part*>(args.scratch) + most};
        const auto join = [](Part a, Part b) { return F::join(a, b); };
        run_stage(
            stages[0], args.in<T>(0), turn[0], F::start(),
            [](Part a, T x) { return F::take(a, static_cast<C>(widened(x))); }, join, fold_long_row);
        for (size_t i = 1; i < stages.size(); ++i)
          run_stage(stages[i], static_cast<const Part*>(turn[(i - 1) % 2]), turn[i % 2], F::start(), join, join);
        Part* const parts = turn[(stages.size() - 1) % 2];
        for (int64_t i = 0; i < results; ++i) parts[i] = F::finish(parts[i]);
        convert_array(args.outputs[0], type, parts, dtype_of<Part>(), results);
      },
      {.scratch_bytes = 2 * static_cast<size_t>(most) * sizeof(Part)});
}

}  // namespace

std::unique_ptr<Kernel> build_fold(const NodeView& node, const std::vector<bool>& reduced, Fold fold) {
  const auto stages = plan(node.inputs[0].shape, reduced);
  return visit_dtype(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    switch (fold) {
      case Fold::max:
        return build_for<T, folds::Largest<C>>(node, stages, fold);
      case Fold::min:
        return build_for<T, folds::Smallest<C>>(node, stages, fold);
      case Fold::product:
        return build_for<T, folds::Product<C, false>>(node, stages, fold);
      case Fold::product_of_numbers:
        return build_for<T, folds::Product<C, true>>(node, stages, fold);
      case Fold::norm1:
        return build_for<T, folds::NormOf<C, 1>>(node, stages, fold);
      case Fold::norm2:
        return build_for<T, folds::NormOf<C, 2>>(node, stages, fold);
    }
    return nullptr;
  });
}

}  // namespace symbind::cpu_backend
