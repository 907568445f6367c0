#include "symbind/ops/softmax.h"

#include <algorithm>

#include "symbind/backend/cpu/lane_sums.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/backend/cpu/rows.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/backend/vector_math.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t work = 8;  // of a number

Rows rows_of(const Shape& shape, int64_t axis) { return rows_along(shape, shape.axis(axis, "[softmax]")); }

enum class Kind { softmax, log_softmax, softmin };

template <class C>
int64_t counted(const C* lengths, int64_t row, int64_t length) {
  return lengths ? std::clamp<int64_t>(static_cast<int64_t>(lengths[row]), 0, length) : length;
}

// Added to a large maximum the logarithm of the sum would lose precision: the maximum is subtracted first, separately.
template <class C>
[[gnu::always_inline]] inline void softmax_row(const C* x, C* y, int64_t count, C factor, bool logarithm) {
  const C most = largest_of(x, count, x[0] * factor, [=](auto value) { return value * factor; });
  for (int64_t k = 0; k < count; ++k) y[k] = vector_math::exp(static_cast<C>(x[k] * factor - most));
  const double sum = sum_in_lanes(count, [=](int64_t k) { return y[k]; });
  const C scale = static_cast<C>(1 / sum), shift = static_cast<C>(std::log(sum));
  if (logarithm)
    for (int64_t k = 0; k < count; ++k) y[k] = (x[k] * factor - most) - shift;
  else
    for (int64_t k = 0; k < count; ++k) y[k] *= scale;
}

// Adjacent rows, `step` from one number of each to the next; all of the same length.
template <class C>
[[gnu::always_inline]] inline void softmax_rows(const C* x, C* y, int64_t rows, int64_t length, int64_t step, C factor,
                                                bool logarithm) {
  C most[rows_together];
  double sums[rows_together];
  for (int64_t j = 0; j < rows; ++j) most[j] = x[j] * factor, sums[j] = 0;
  for (int64_t k = 1; k < length; ++k)
    for (int64_t j = 0; j < rows; ++j) {
      const C value = x[k * step + j] * factor;
      most[j] = most[j] < value ? value : most[j];
    }
  for (int64_t k = 0; k < length; ++k)
    for (int64_t j = 0; j < rows; ++j) {
      const C power = vector_math::exp(static_cast<C>(x[k * step + j] * factor - most[j]));
      y[k * step + j] = power;
      sums[j] += static_cast<double>(power);
    }
  C after[rows_together];
  for (int64_t j = 0; j < rows; ++j) after[j] = static_cast<C>(logarithm ? std::log(sums[j]) : 1 / sums[j]);
  for (int64_t k = 0; k < length; ++k)
    for (int64_t j = 0; j < rows; ++j) {
      const int64_t i = k * step + j;
      y[i] = logarithm ? (x[i] * factor - most[j]) - after[j] : y[i] * after[j];
    }
}

// y·(dy - sum of dy·y), and for the logarithm dy - exp(y)·sum of dy.
template <class C>
[[gnu::always_inline]] inline void grad_row(const C* dy, const C* y, C* dx, int64_t count, C factor, bool logarithm) {
  if (logarithm) {
    const C total = static_cast<C>(sum_in_lanes(count, [=](int64_t k) { return dy[k]; }));
    for (int64_t k = 0; k < count; ++k) dx[k] = factor * (dy[k] - vector_math::exp(y[k]) * total);
  } else {
    const C total = static_cast<C>(sum_in_lanes(count, [=](int64_t k) { return dy[k] * y[k]; }));
    for (int64_t k = 0; k < count; ++k) dx[k] = factor * (y[k] * (dy[k] - total));
  }
}

template <class C>
[[gnu::always_inline]] inline void grad_rows(const C* dy, const C* y, C* dx, int64_t rows, int64_t length, int64_t step,
                                             C factor, bool logarithm) {
  double sums[rows_together] = {};
  for (int64_t k = 0; k < length; ++k)
    for (int64_t j = 0; j < rows; ++j) {
      const int64_t i = k * step + j;
      sums[j] += static_cast<double>(logarithm ? dy[i] : dy[i] * y[i]);
    }
  C totals[rows_together];
  for (int64_t j = 0; j < rows; ++j) totals[j] = static_cast<C>(sums[j]);
  for (int64_t k = 0; k < length; ++k)
    for (int64_t j = 0; j < rows; ++j) {
      const int64_t i = k * step + j;
      dx[i] = factor * (logarithm ? dy[i] - vector_math::exp(y[i]) * totals[j] : y[i] * (dy[i] - totals[j]));
    }
}

struct Setting {
  int64_t axis;
  double temperature;
  bool use_length;
};

// Calls one_row(offset, count) for each row, or where rows are adjacent and none is shortened together(offset, rows).
template <class C, class OneRow, class Together>
void for_rows(const Rows& rows, const C* lengths, const OneRow& one_row, const Together& together) {
  if (rows.length == 0) return;
  if (rows.inner == 1 || lengths)
    rows.for_each(work, [&](int64_t row, int64_t start) { one_row(start, counted(lengths, row, rows.length)); });
  else
    rows.for_each_block(work, together);
}

std::unique_ptr<Kernel> build_forward(const NodeView& node, Kind kind, const Setting& setting) {
  const Rows rows = rows_of(node.inputs[0].shape, setting.axis);
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    const C factor = static_cast<C>((kind == Kind::softmin ? -1 : 1) / setting.temperature);
    const bool logarithm = kind == Kind::log_softmax;
    return [=](const C* const* in, C* const* out) {
      const C* const x = in[0];
      C* const y = out[0];
      for_rows(
          rows, setting.use_length ? in[1] : nullptr,
          [=](int64_t start, int64_t count) {
            if (count > 0 && rows.inner == 1)
              softmax_row(x + start, y + start, count, factor, logarithm);
            else if (count > 0)
              softmax_rows(x + start, y + start, 1, count, rows.inner, factor, logarithm);
            for (int64_t k = count; k < rows.length; ++k) y[start + k * rows.inner] = 0;
          },
          [=](int64_t start, int64_t count) {
            softmax_rows(x + start, y + start, count, rows.length, rows.inner, factor, logarithm);
          });
    };
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node, Kind kind, const Setting& setting) {
  const Rows rows = rows_of(node.outputs[0].shape, setting.axis);
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    const C factor = static_cast<C>((kind == Kind::softmin ? -1 : 1) / setting.temperature);
    const bool logarithm = kind == Kind::log_softmax;
    return [=](const C* const* in, C* const* out) {
      const C *const dy = in[0], *const y = in[1];
      C* const dx = out[0];
      for_rows(
          rows, setting.use_length ? in[3] : nullptr,
          [=](int64_t start, int64_t count) {
            if (rows.inner == 1)
              grad_row(dy + start, y + start, dx + start, count, factor, logarithm);
            else
              grad_rows(dy + start, y + start, dx + start, 1, count, rows.inner, factor, logarithm);
            for (int64_t k = count; k < rows.length; ++k) dx[start + k * rows.inner] = 0;
          },
          [=](int64_t start, int64_t count) {
            grad_rows(dy + start, y + start, dx + start, count, rows.length, rows.inner, factor, logarithm);
          });
    };
  });
}

using Build = std::unique_ptr<Kernel> (*)(const NodeView&, Kind, const Setting&);

template <FixedString name>
void add_one(ImplementationTable& table, Kind kind, Build build) {
  add_plain<SoftmaxLike<name>>(table, [=](const NodeView& node) {
    const auto& p = node.as<SoftmaxLike<name>>();
    return build(node, kind, {p.axis, p.temperature.value_or(1), p.use_length.value_or(false)});
  });
}

}  // namespace

void add_softmax(ImplementationTable& table) {
  add_softmax_rows(table);
  add_one<"softmax">(table, Kind::softmax, build_forward);
  add_one<"log_softmax">(table, Kind::log_softmax, build_forward);
  add_one<"softmin">(table, Kind::softmin, build_forward);
  add_one<"_backward_softmax">(table, Kind::softmax, build_backward);
  add_one<"_backward_log_softmax">(table, Kind::log_softmax, build_backward);
  add_one<"_backward_softmin">(table, Kind::softmin, build_backward);
  add_plain<SoftmaxActivation>(table, [](const NodeView& node) {
    return build_forward(node, Kind::softmax, {node.as<SoftmaxActivation>().mode == "channel" ? 1 : -1, 1, false});
  });
}

}  // namespace symbind::cpu_backend
