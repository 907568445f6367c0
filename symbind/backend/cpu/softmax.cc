#include "symbind/ops/softmax.h"

#include <algorithm>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/backend/vector_math.h"

namespace symbind::cpu_backend {
namespace {

// Rows of `length` numbers, `inner` apart, of an array (outer, length, inner).
struct Rows {
  int64_t outer, length, inner;
  Rows(const Shape& shape, int64_t given) {
    const int axis = shape.axis(given, "[softmax]");
    outer = shape.size(0, axis);
    length = shape[axis];
    inner = shape.size(axis + 1, shape.rank());
  }
  // Calls body(row, offset of its first number) for every row.
  template <class Body>
  void for_each(const Body& body) const {
    if (length == 0) return;
    for_elements(
        outer * inner,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) body(row, row / inner * length * inner + row % inner);
        },
        element_grain / 8 / length + 1);
  }
};

enum class Kind { softmax, log_softmax, softmin };

template <class C>
int64_t counted(const C* lengths, int64_t row, int64_t length) {
  return lengths ? std::clamp<int64_t>(static_cast<int64_t>(lengths[row]), 0, length) : length;
}

template <class C>
void softmax_row(const C* x, C* y, int64_t count, int64_t step, C factor, bool logarithm) {
  C most = x[0] * factor;
  for (int64_t k = 1; k < count; ++k) most = std::max(most, x[k * step] * factor);
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    const C power = vector_math::exp(static_cast<C>(x[k * step] * factor - most));
    sum += static_cast<double>(power);
    if (!logarithm) y[k * step] = power;
  }
  const C scale = static_cast<C>(1 / sum), shift = static_cast<C>(std::log(sum));
  // Beside a large maximum the logarithm would lose its digits: the maximum goes first, by itself.
  for (int64_t k = 0; k < count; ++k)
    y[k * step] = logarithm ? (x[k * step] * factor - most) - shift : y[k * step] * scale;
}

struct Setting {
  int64_t axis;
  double temperature;
  bool use_length;
};

std::unique_ptr<Kernel> build_forward(const NodeView& node, Kind kind, const Setting& setting) {
  const Rows rows(node.inputs[0].shape, setting.axis);
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    const C factor = static_cast<C>((kind == Kind::softmin ? -1 : 1) / setting.temperature);
    return [=](const C* const* in, C* const* out) {
      const C *x = in[0], *lengths = setting.use_length ? in[1] : nullptr;
      C* y = out[0];
      rows.for_each([=](int64_t row, int64_t start) {
        const int64_t count = counted(lengths, row, rows.length);
        if (count > 0) softmax_row(x + start, y + start, count, rows.inner, factor, kind == Kind::log_softmax);
        for (int64_t k = count; k < rows.length; ++k) y[start + k * rows.inner] = 0;
      });
    };
  });
}

// y·(dy - sum of dy·y), and for the logarithm dy - exp(y)·sum of dy.
std::unique_ptr<Kernel> build_backward(const NodeView& node, Kind kind, const Setting& setting) {
  const Rows rows(node.outputs[0].shape, setting.axis);
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    const C factor = static_cast<C>((kind == Kind::softmin ? -1 : 1) / setting.temperature);
    return [=](const C* const* in, C* const* out) {
      const C *dy = in[0], *y = in[1], *lengths = setting.use_length ? in[3] : nullptr;
      C* dx = out[0];
      const int64_t step = rows.inner;
      rows.for_each([=](int64_t row, int64_t start) {
        const int64_t count = counted(lengths, row, rows.length);
        double sum = 0;
        for (int64_t i = start, k = 0; k < count; ++k, i += step)
          sum += static_cast<double>(kind == Kind::log_softmax ? dy[i] : dy[i] * y[i]);
        const C total = static_cast<C>(sum);
        for (int64_t i = start, k = 0; k < count; ++k, i += step)
          dx[i] =
              factor * (kind == Kind::log_softmax ? dy[i] - vector_math::exp(y[i]) * total : y[i] * (dy[i] - total));
        for (int64_t k = count; k < rows.length; ++k) dx[start + k * step] = 0;
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
