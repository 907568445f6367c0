#include "symbind/ops/loss.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/backend/vector_math.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// ---- SoftmaxOutput --------------------------------------------------------------------------------------------------

// Softmax of `classes` numbers that are `step` apart. y may be x.
template <class T>
void softmax_row(const T* x, T* y, int64_t classes, int64_t step) {
  using C = compute_type<T>;
  C most = static_cast<C>(x[0]);
  for (int64_t k = 1; k < classes; ++k) most = std::max(most, static_cast<C>(x[k * step]));
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k)
    sum += static_cast<double>(vector_math::exp(static_cast<C>(static_cast<C>(x[k * step]) - most)));
  const C scale = static_cast<C>(1 / sum);
  for (int64_t k = 0; k < classes; ++k)
    y[k * step] = static_cast<T>(vector_math::exp(static_cast<C>(static_cast<C>(x[k * step]) - most)) * scale);
}

// The same for contiguous numbers: each exponential is computed once and stored unrounded in `powers`.
template <class T>
void softmax_row(const T* x, T* y, int64_t classes, compute_type<T>* powers) {
  using C = compute_type<T>;
  C most = static_cast<C>(x[0]);
  for (int64_t k = 1; k < classes; ++k) most = static_cast<C>(x[k]) > most ? static_cast<C>(x[k]) : most;
  for (int64_t k = 0; k < classes; ++k) powers[k] = vector_math::exp(static_cast<C>(static_cast<C>(x[k]) - most));
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += static_cast<double>(powers[k]);
  const C scale = static_cast<C>(1 / sum);
  for (int64_t k = 0; k < classes; ++k) y[k] = static_cast<T>(powers[k] * scale);
}

template <class T>
std::unique_ptr<Kernel> build_softmax(const NodeView& node) {
  const AxisView size = size_of(node.as<SoftmaxOutput>(), node.inputs[0].shape);
  return make_kernel(
      [size](const Args& args) {
        const T* x = args.in<T>(0);
        T* y = args.out<T>();
        if (size.length == 0) return;
        for_elements(
            size.outer * size.inner,
            [=](int64_t begin, int64_t end) {
              std::vector<compute_type<T>> powers(static_cast<size_t>(size.inner == 1 ? size.length : 0));
              for (int64_t row = begin; row < end; ++row) {
                const int64_t start = row / size.inner * size.length * size.inner + row % size.inner;
                if (size.inner == 1)
                  softmax_row(x + start, y + start, size.length, powers.data());
                else
                  softmax_row(x + start, y + start, size.length, size.inner);
              }
            },
            element_grain / 8 / size.length + 1);
      },
      {.in_place = {{0, 0}}});
}

// The factor of the gradient of every element.
template <class T>
double gradient_scale(const SoftmaxOutput& p, const AxisView& size, const T* label) {
  // Many labels per example share the weight of one, unless the valid ones are counted.
  if (p.normalization == "null") return p.grad_scale / static_cast<double>(size.inner);
  if (p.normalization == "batch")
    return p.grad_scale / static_cast<double>(size.inner) / static_cast<double>(size.outer);
  int64_t valid = 0;
  for (int64_t i = 0; i < size.outer * size.inner; ++i)
    valid += convert<int64_t>(label[i]) != convert<int64_t>(p.ignore_label);
  return p.grad_scale / static_cast<double>(std::max<int64_t>(valid, 1));
}

template <class T>
std::unique_ptr<Kernel> build_softmax_grad(const NodeView& node) {
  using C = compute_type<T>;
  const auto p = node.as<SoftmaxOutputGrad>();
  const size_t first = p.out_grad ? 1 : 0;
  const Shape& shape = node.outputs[0].shape;
  const AxisView size = size_of(p, shape);
  const bool distribution = node.inputs[first + 1].shape == shape;
  // Smoothing is for one label per example; a distribution is used unchanged.
  const double alpha = p.multi_output ? 0 : p.smooth_alpha;
  const C elsewhere = static_cast<C>(size.length > 1 ? alpha / static_cast<double>(size.length - 1) : 0);
  return make_kernel(
      [=](const Args& args) {
        const T *dy = p.out_grad ? args.in<T>(0) : nullptr, *y = args.in<T>(first), *label = args.in<T>(first + 1);
        T* dx = args.out<T>();
        if (size.outer * size.inner * size.length == 0) return;
        const C scale = static_cast<C>(distribution ? p.grad_scale : gradient_scale(p, size, label));
        for_elements(
            size.outer * size.inner,
            [=](int64_t begin, int64_t end) {
              for (int64_t row = begin; row < end; ++row) {
                const int64_t start = row / size.inner * size.length * size.inner + row % size.inner;
                const int64_t wanted = distribution ? 0 : convert<int64_t>(label[row]);
                const bool ignored = !distribution && p.use_ignore && wanted == convert<int64_t>(p.ignore_label);
                for (int64_t k = 0; k < size.length; ++k) {
                  const int64_t i = start + k * size.inner;
                  const C target = distribution  ? static_cast<C>(label[i])
                                   : k == wanted ? static_cast<C>(1 - alpha)
                                                 : elsewhere;
                  C gradient = ignored ? C(0) : (static_cast<C>(y[i]) - target) * scale;
                  if (dy) gradient *= static_cast<C>(dy[i]);
                  dx[i] = static_cast<T>(gradient);
                }
              }
            },
            element_grain / size.length + 1);
      },
      {.in_place = {{0, 0}, {static_cast<int>(first), 0}}});
}

// ---- Regression and MakeLoss ----------------------------------------------------------------------------------------

// The error of each element: its difference from the label, or the sign of it.
template <class G, class C>
C error_of(C y, C label) {
  if constexpr (std::is_same_v<G, MAERegressionOutputGrad>)
    return y > label ? C(1) : C(-1);
  else
    return y - label;
}

template <class G, class T>
std::unique_ptr<Kernel> build_regression_grad(const NodeView& node) {
  using C = compute_type<T>;
  const Shape& shape = node.outputs[0].shape;
  const int64_t count = shape.size(), per_example = shape[0] > 0 ? count / shape[0] : 1;
  // A float, as MXNet's grad_scale: this makes float64 gradients agree too.
  const float scale = static_cast<float>(node.as<G>().grad_scale) / static_cast<float>(per_example);
  return make_kernel(
      [=](const Args& args) {
        const T *y = args.in<T>(0), *label = args.in<T>(1);
        T* dx = args.out<T>();
        for_elements(count, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            dx[i] = static_cast<T>(error_of<G>(static_cast<C>(y[i]), static_cast<C>(label[i])) * scale);
        });
      },
      {.in_place = {{0, 0}, {1, 0}}});
}

template <class T>
std::unique_ptr<Kernel> build_make_loss_grad(const NodeView& node) {
  using C = compute_type<T>;
  const auto p = node.as<MakeLossGrad>();
  const Shape& shape = node.outputs[0].shape;
  const int64_t count = shape.size();
  const double batch = shape.rank() > 0 ? static_cast<double>(shape[0]) : 1;
  return make_kernel([=](const Args& args) {
    double divisor = p.normalization == "batch" ? batch : 1;
    if (p.normalization == "valid") {
      const T* x = args.in<T>(0);
      int64_t valid = 0;
      for (int64_t i = 0; i < count; ++i) valid += static_cast<C>(x[i]) > static_cast<C>(p.valid_thresh);
      divisor = static_cast<double>(std::max<int64_t>(valid, 1));
    }
    std::fill_n(args.out<T>(), count, static_cast<T>(static_cast<C>(p.grad_scale / divisor)));
  });
}

template <class G>
void add_regression_grad(ImplementationTable& table) {
  add_plain<G>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_regression_grad<G, typename decltype(type)::type>(node); });
  });
}

// ---- SVMOutput and softmax_cross_entropy ----------------------------------------------------------------------------

// The label's score should be above the margin, all others below minus the margin. The violation is the hinge loss; the
// gradient of its square is twice that.
std::unique_ptr<Kernel> build_svm_grad(const NodeView& node) {
  const auto p = node.as<SVMOutputGrad>();
  const int64_t rows = node.inputs[1].shape.size(), classes = node.outputs[0].shape[node.outputs[0].shape.rank() - 1];
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    const C margin = static_cast<C>(p.margin), factor = static_cast<C>(p.regularization_coefficient);
    return [=](const C* const* in, C* const* out) {
      const C *y = in[0], *label = in[1];
      C* dx = out[0];
      for_elements(
          rows,
          [=](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row)
              for (int64_t k = 0; k < classes; ++k) {
                const C side = convert<int64_t>(label[row]) == k ? C(-1) : C(1);
                const C lack = margin + side * y[row * classes + k];
                dx[row * classes + k] = lack > C(0) ? side * factor * (p.use_linear ? C(1) : 2 * lack) : C(0);
              }
          },
          element_grain / std::max<int64_t>(1, classes) + 1);
    };
  });
}

// exp(x - most) of a row into `powers`; returns their sum.
template <class C>
double powers_of_row(const C* x, int64_t classes, C* powers) {
  const C most = *std::max_element(x, x + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += static_cast<double>(powers[k] = vector_math::exp(x[k] - most));
  return sum;
}

std::unique_ptr<Kernel> build_cross_entropy(const NodeView& node) {
  const int64_t rows = node.inputs[0].shape[0], classes = node.inputs[0].shape[1];
  return widened_kernel(
      node,
      [=](auto type) {
        using C = typename decltype(type)::type;
        return [=](const C* const* in, C* const* out) {
          C *losses = out[1], *powers = losses + rows;
          for_elements(
              rows,
              [=](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  C* const own = powers + row * classes;
                  const double sum = classes > 0 ? powers_of_row(in[0] + row * classes, classes, own) : 1;
                  const auto wanted = convert<int64_t>(in[1][row]);
                  const bool there = wanted >= 0 && wanted < classes;
                  // Probabilities are bounded from below, so that the loss stays finite.
                  losses[row] =
                      there ? static_cast<C>(-std::log(std::max(static_cast<double>(own[wanted]) / sum, 1e-8))) : C(0);
                }
              },
              element_grain / 8 / std::max<int64_t>(1, classes) + 1);
          double total = 0;
          for (int64_t row = 0; row < rows; ++row) total += static_cast<double>(losses[row]);
          out[0][0] = static_cast<C>(total);
        };
      },
      rows * (classes + 1) + 1);
}

std::unique_ptr<Kernel> build_cross_entropy_grad(const NodeView& node) {
  const int64_t rows = node.inputs[1].shape[0], classes = node.inputs[1].shape[1];
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      const C scale = in[0][0];
      if (classes == 0) return;
      for_elements(
          rows,
          [=](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
              C* const dx = out[0] + row * classes;
              const C each = static_cast<C>(1 / powers_of_row(in[1] + row * classes, classes, dx));
              const auto wanted = convert<int64_t>(in[2][row]);
              for (int64_t k = 0; k < classes; ++k) dx[k] = (dx[k] * each - (k == wanted ? C(1) : C(0))) * scale;
            }
          },
          element_grain / 8 / classes + 1);
    };
  });
}

}  // namespace

void add_loss(ImplementationTable& table) {
  add_plain<SoftmaxOutput>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_softmax<typename decltype(type)::type>(node); });
  });
  add_plain<SoftmaxOutputGrad>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_softmax_grad<typename decltype(type)::type>(node); });
  });
  add_plain<LinearRegressionOutput>(table, build_copy);
  add_plain<LogisticRegressionOutput>(table, [](const NodeView& node) {
    return build_map(node, map_loop_for<1>(node.outputs[0].dtype, [](auto) { return functions::Sigmoid{}; }));
  });
  add_plain<MAERegressionOutput>(table, build_copy);
  add_regression_grad<LinearRegressionOutputGrad>(table);
  add_regression_grad<MAERegressionOutputGrad>(table);
  add_plain<SVMOutput>(table, build_copy);
  add_plain<SVMOutputGrad>(table, build_svm_grad);
  add_plain<SoftmaxCrossEntropy>(table, build_cross_entropy);
  add_plain<SoftmaxCrossEntropyGrad>(table, build_cross_entropy_grad);
  add_plain<MakeLoss>(table, build_copy);
  add_plain<MakeLossGrad>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_make_loss_grad<typename decltype(type)::type>(node); });
  });
}

}  // namespace symbind::cpu_backend
