// A reduction is a sequence of stages, each over one (merged) axis: (outer, length, inner) → (outer, inner), the
// innermost axis first. Within a stage sums run over short blocks in the element type and the blocks' sums are added in
// double, so that long float sums stay accurate. Long stages with few results are split into segments for several
// threads; the split, and so the rounding, depends only on the shape.
#include "symbind/backend/cpu/reduce_sums.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/reduced_axes.h"
#include "symbind/backend/wide.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t lanes = 32;
constexpr int64_t block_length = 1024;  // elements of a row summed in the element type
constexpr int64_t block_rows = 64;      // the same for sums down columns
constexpr int64_t column_width = 128;   // columns summed side by side

template <class C>
using Total = std::conditional_t<std::is_same_v<C, float>, double, C>;

// What a sum takes of an element: all of it, or nothing where it is NaN.
struct Element {
  template <class C>
  static C of(C x) {
    return x;
  }
};
struct NumberOrZero {
  template <class C>
  static C of(C x) {
    return x == x ? x : C(0);
  }
};

struct Stage : AxisView {
  int64_t segments, segment_length;

  int64_t chunks() const { return (inner + column_width - 1) / column_width; }
  int64_t results() const { return row_count(); }
};

Stage make_stage(const AxisView& axis) {
  Stage stage{axis, 1, axis.length};
  if (axis.outer * stage.chunks() < 16 && axis.length * axis.inner >= 2 * element_grain) {
    stage.segment_length = std::max<int64_t>(block_rows, element_grain / std::min(axis.inner, column_width));
    stage.segments = (axis.length + stage.segment_length - 1) / stage.segment_length;
  }
  return stage;
}

template <class Term, class C>
Total<C> sum_row(const C* row, int64_t length) {
  Total<C> total = 0;
  for (int64_t at = 0; at < length; at += block_length) {
    const int64_t count = std::min(block_length, length - at);
    C sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int64_t j = 0; j < lanes; ++j) sums[j] = functions::add(sums[j], Term::of(row[at + i + j]));
    for (int64_t j = 0; i < count; ++i, ++j) sums[j] = functions::add(sums[j], Term::of(row[at + i]));
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      for (int64_t j = 0; j < half; ++j) sums[j] = functions::add(sums[j], sums[j + half]);
    total = functions::add(total, static_cast<Total<C>>(sums[0]));
  }
  return total;
}

// Sums of `width` columns, `step` elements from row to row.
template <class Term, class C>
void sum_columns(const C* rows, int64_t length, int64_t step, int64_t width, Total<C>* totals) {
  std::fill(totals, totals + width, Total<C>(0));
  for (int64_t at = 0; at < length; at += block_rows) {
    const int64_t count = std::min(block_rows, length - at);
    C sums[column_width] = {};
    for (int64_t r = 0; r < count; ++r) {
      const C* row = rows + (at + r) * step;
      for (int64_t j = 0; j < width; ++j) sums[j] = functions::add(sums[j], Term::of(row[j]));
    }
    for (int64_t j = 0; j < width; ++j) totals[j] = functions::add(totals[j], static_cast<Total<C>>(sums[j]));
  }
}

// partial[(outer, segment, inner)]; `out` takes them directly where there is one segment.
template <class Term, class C>
void run_stage(const Stage& stage, const C* in, C* out, Total<C>* partial) {
  const int64_t tasks = stage.outer * stage.segments * stage.chunks();
  const int64_t work = std::max<int64_t>(1, stage.segment_length * std::min(stage.inner, column_width));
  const auto run_tasks = [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t chunk = task % stage.chunks(), segment = task / stage.chunks() % stage.segments;
      const int64_t outer = task / (stage.chunks() * stage.segments);
      const int64_t first = segment * stage.segment_length, column = chunk * column_width;
      const int64_t length = std::min(stage.segment_length, stage.length - first);
      const int64_t width = std::min(column_width, stage.inner - column);
      const C* from = in + (outer * stage.length + first) * stage.inner + column;
      Total<C> totals[column_width];
      if (stage.inner == 1)
        totals[0] = sum_row<Term>(from, length);
      else
        sum_columns<Term>(from, length, stage.inner, width, totals);
      if (stage.segments == 1) {
        for (int64_t j = 0; j < width; ++j) out[outer * stage.inner + column + j] = static_cast<C>(totals[j]);
      } else {
        std::copy(totals, totals + width, partial + (outer * stage.segments + segment) * stage.inner + column);
      }
    }
  };
  for_elements(tasks, run_tasks, std::max<int64_t>(1, element_grain / work));
  if (stage.segments == 1) return;
  for (int64_t outer = 0; outer < stage.outer; ++outer)
    for (int64_t j = 0; j < stage.inner; ++j) {
      const Total<C>* parts = partial + outer * stage.segments * stage.inner + j;
      Total<C> total = 0;
      for (int64_t s = 0; s < stage.segments; ++s) total = functions::add(total, parts[s * stage.inner]);
      out[outer * stage.inner + j] = static_cast<C>(total);
    }
}

std::vector<Stage> plan_stages(const Shape& shape, const std::vector<bool>& reduced, bool numbers_alone) {
  std::vector<Stage> stages;
  for (const AxisView& axis : reduced_one_by_one(shape, reduced)) stages.push_back(make_stage(axis));
  // Where nothing is added, NaN becomes zero all the same.
  if (stages.empty() && numbers_alone) stages.push_back(make_stage({shape.size(), 1, 1}));
  return stages;
}

// The first stage takes elements, the others sums, which are NaN where infinities met.
template <class C>
void run_stage(const Stage& stage, const C* in, C* out, Total<C>* partial, bool numbers_alone) {
  if constexpr (std::is_floating_point_v<C>)
    if (numbers_alone) return run_stage<NumberOrZero>(stage, in, out, partial);
  run_stage<Element>(stage, in, out, partial);
}

// Computes the mean and converts to a narrow type. Integers are truncated to their own type before the division.
template <class C, class T>
void finish(const C* sums, T* out, int64_t results, int64_t divisor) {
  for_elements(results, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<T, bool>)
        out[i] = convert<T>(sums[i]);
      else if constexpr (std::is_integral_v<T>)
        out[i] = static_cast<T>(divisor == 0 ? 0 : static_cast<int64_t>(static_cast<T>(sums[i])) / divisor);
      else
        out[i] = convert<T>(sums[i] / static_cast<C>(divisor));
    }
  });
}

// Layout of the scratch: the widened input, the stages' results in turn, the segments' sums.
template <class C>
struct Workspace {
  int64_t widened = 0, results = 0, partial = 0;
  size_t bytes() const {
    return static_cast<size_t>(widened + 2 * results) * sizeof(C) + static_cast<size_t>(partial + 1) * sizeof(Total<C>);
  }
};

template <class C, class T>
std::unique_ptr<Kernel> build_for(const NodeView& node, const std::vector<Stage>& stages, int64_t divisor,
                                  bool numbers_alone) {
  const int64_t elements = node.inputs[0].shape.size(), results = node.outputs[0].shape.size();
  Workspace<C> space;
  if (!std::is_same_v<C, T>) space.widened = elements;
  for (const Stage& stage : stages) {
    space.results = std::max(space.results, stage.results());
    if (stage.segments > 1) space.partial = std::max(space.partial, stage.outer * stage.segments * stage.inner);
  }
  return make_kernel(
      [=](const Args& args) {
        auto* partial = static_cast<Total<C>*>(args.scratch);
        C* const widened = reinterpret_cast<C*>(partial + space.partial);
        C* turn[2] = {widened + space.widened, widened + space.widened + space.results};
        const C* from = widened;
        if constexpr (std::is_same_v<C, T>)
          from = args.in<C>(0);
        else
          convert_array(widened, dtype_of<C>(), args.inputs[0], dtype_of<T>(), elements);
        const bool finishes = divisor != 1 || !std::is_same_v<C, T>;
        for (size_t i = 0; i < stages.size(); ++i) {
          C* to = turn[i % 2];
          if constexpr (std::is_same_v<C, T>)
            if (i + 1 == stages.size() && !finishes) to = args.out<C>();
          run_stage(stages[i], from, to, partial, numbers_alone && i == 0);
          from = to;
        }
        if (finishes) finish(from, args.out<T>(), results, divisor);
      },
      {.scratch_bytes = space.bytes()});
}

}  // namespace

std::unique_ptr<Kernel> build_reduction(const NodeView& node, const std::vector<bool>& reduced, Reduction reduction) {
  const Shape& shape = node.inputs[0].shape;
  const bool numbers_alone = reduction == Reduction::sum_of_numbers;
  const auto stages = plan_stages(shape, reduced, numbers_alone);
  if (stages.empty()) return build_copy(node);
  int64_t divisor = 1;
  if (reduction == Reduction::mean)
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (reduced[static_cast<size_t>(axis)]) divisor *= shape[axis];
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return build_for<functions::Wide<T>, T>(node, stages, divisor, numbers_alone);
  });
}

}  // namespace symbind::cpu_backend
