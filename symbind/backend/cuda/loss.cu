// Loss heads: softmax, and the gradients that start the backward pass.
#include "symbind/ops/loss.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/elementwise.cuh"
#include "symbind/backend/cuda/rows.cuh"
#include "symbind/backend/cuda/softmax.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/vector_math.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::string refuse(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  for (const auto& input : node.inputs) {
    if (input.dtype != dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "wants plain arrays";
  }
  return "";
}

// ---- SoftmaxOutput --------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_softmax(const NodeView& node) {
  const AxisView size = size_of(node.as<SoftmaxOutput>(), node.inputs[0].shape);
  return make_step(node,
                   [rows = SoftmaxRows{size}, dtype = node.outputs[0].dtype](const Args& args) {
                     queue_softmax(stream_of(args), dtype, args.inputs[0], args.outputs[0], rows);
                   },
                   {.in_place = {{0, 0}}});
}

struct SoftmaxGradient {
  int64_t classes, inner, count;  // count: of all elements
  bool distribution, use_ignore;
  int64_t ignore_label;
  double scale;                // before the valid labels are counted
  double at_label, elsewhere;  // target values of a class
};

// The number of valid elements, at least 1: labels other than the one to ignore, and numbers above a threshold. One
// block.
template <class T>
struct IsLabel {
  int64_t ignore_label;
  __device__ bool operator()(const T& label) const { return convert<int64_t>(load(label)) != ignore_label; }
};
template <class T>
struct IsAbove {
  compute_type<T> threshold;
  __device__ bool operator()(const T& value) const { return load(value) > threshold; }
};
template <class T, class Counts>
__global__ void count_valid(const T* values, int64_t count, Counts counts, int64_t* valid) {
  long long mine = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += counts(values[i]);
  mine = combine_block<Add>(mine);
  if (threadIdx.x == 0) *valid = mine > 1 ? mine : 1;
}

// dx may be y or dy. Indices are of 32 bits where they suffice: their division is several times faster.
template <class Index, class T>
__global__ void softmax_gradient(const T* dy, const T* y, const T* label, T* dx, const int64_t* valid,
                                 SoftmaxGradient g) {
  using C = compute_type<T>;
  const C scale = static_cast<C>(valid ? g.scale / static_cast<double>(*valid) : g.scale);
  for (int64_t i = first_element(); i < g.count; i += element_step()) {
    const auto at = static_cast<Index>(i), inner = static_cast<Index>(g.inner), classes = static_cast<Index>(g.classes);
    const Index line = at / inner, example = line / classes;
    const int64_t row = int64_t{example} * g.inner + (at - line * inner), k = line - example * classes;
    C target;
    bool ignored = false;
    if (g.distribution) {
      target = load(label[i]);
    } else {
      const auto wanted = convert<int64_t>(load(label[row]));
      target = static_cast<C>(k == wanted ? g.at_label : g.elsewhere);
      ignored = g.use_ignore && wanted == g.ignore_label;
    }
    C gradient = ignored ? C(0) : (load(y[i]) - target) * scale;
    if (dy) gradient *= load(dy[i]);
    dx[i] = store<T>(gradient);
  }
}

std::unique_ptr<Kernel> build_softmax_gradient(const NodeView& node) {
  const auto& p = node.as<SoftmaxOutputGrad>();
  const size_t first = p.out_grad ? 1 : 0;
  const Shape& shape = node.outputs[0].shape;
  const AxisView size = size_of(p, shape);
  const bool distribution = node.inputs[first + 1].shape == shape;
  const bool counts = !distribution && p.normalization == "valid";
  const double alpha = p.multi_output ? 0 : p.smooth_alpha;
  SoftmaxGradient g{};
  g.classes = size.length;
  g.inner = size.inner;
  g.count = shape.size();
  g.distribution = distribution;
  g.use_ignore = p.use_ignore;
  g.ignore_label = convert<int64_t>(p.ignore_label);
  g.scale = p.grad_scale;
  if (!distribution && !counts) g.scale /= static_cast<double>(size.inner);
  if (!distribution && p.normalization == "batch") g.scale /= static_cast<double>(size.outer);
  g.at_label = 1 - alpha;
  g.elsewhere = size.length > 1 ? alpha / static_cast<double>(size.length - 1) : 0;
  const int64_t labels = size.outer * size.inner;
  const bool has_dy = p.out_grad;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [=](const Args& args) {
          if (g.count == 0) return;
          const T *dy = has_dy ? args.in<T>(0) : nullptr, *y = args.in<T>(first), *label = args.in<T>(first + 1);
          int64_t* const valid = counts ? static_cast<int64_t*>(args.scratch) : nullptr;
          if (counts) count_valid<<<1, 1024, 0, stream_of(args)>>>(label, labels, IsLabel<T>{g.ignore_label}, valid);
          if (g.count < int64_t{1} << 31)
            softmax_gradient<uint32_t>
                <<<blocks_for(g.count), block_size, 0, stream_of(args)>>>(dy, y, label, args.out<T>(), valid, g);
          else
            softmax_gradient<int64_t>
                <<<blocks_for(g.count), block_size, 0, stream_of(args)>>>(dy, y, label, args.out<T>(), valid, g);
        },
        {.in_place = {{0, 0}, {static_cast<int>(first), 0}}, .scratch_bytes = counts ? sizeof(int64_t) : 0});
  });
}

// ---- Regression and MakeLoss ----------------------------------------------------------------------------------------

// The error of each element: its difference from the label, or the sign of it.
struct Difference {
  template <class C>
  constexpr C operator()(C y, C label, C scale) const {
    return (y - label) * scale;
  }
};
struct Side {
  template <class C>
  constexpr C operator()(C y, C label, C scale) const {
    return (y > label ? C(1) : C(-1)) * scale;
  }
};

template <class G, class Error>
std::unique_ptr<Kernel> build_regression_gradient(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  const int64_t count = shape.size(), per_example = shape[0] > 0 ? count / shape[0] : 1;
  // A float, as on a CPU.
  const float scale = static_cast<float>(node.as<G>().grad_scale) / static_cast<float>(per_example);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return build_map<2, T>(node, functions::WithNumbers<Error, C, 1>{static_cast<C>(scale)});
  });
}

std::unique_ptr<Kernel> build_logistic(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype,
                        [&]<class T>(std::type_identity<T>) { return build_map<1, T>(node, functions::Sigmoid{}); });
}

template <class T>
__global__ void fill_shares(T* out, int64_t count, double whole, const int64_t* valid) {
  const T value = convert_element<T>(whole / static_cast<double>(*valid));
  for (int64_t i = first_element(); i < count; i += element_step()) out[i] = value;
}

std::unique_ptr<Kernel> build_make_loss_gradient(const NodeView& node) {
  const auto& p = node.as<MakeLossGrad>();
  const Tensor& out = node.outputs[0];
  const int64_t count = out.shape.size();
  const double batch = out.shape.rank() > 0 ? static_cast<double>(out.shape[0]) : 1;
  const double value = p.normalization == "batch" ? p.grad_scale / batch : p.grad_scale;
  if (p.normalization != "valid")
    return make_step(node, [value, count, dtype = out.dtype](const Args& args) {
      if (count > 0) queue_fill(stream_of(args), args.outputs[0], dtype, count, value);
    });
  return visit_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    const IsAbove<T> is_valid{static_cast<compute_type<T>>(p.valid_thresh)};
    return make_step(node,
                     [=](const Args& args) {
                       if (count == 0) return;
                       auto* const valid = static_cast<int64_t*>(args.scratch);
                       count_valid<<<1, 1024, 0, stream_of(args)>>>(args.in<T>(0), count, is_valid, valid);
                       fill_shares<<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.out<T>(), count, value,
                                                                                          valid);
                     },
                     {.in_place = {{0, 0}}, .scratch_bytes = sizeof(int64_t)});
  });
}

// ---- SVMOutput and softmax_cross_entropy ----------------------------------------------------------------------------

// The label's score should be above the margin, all others below minus the margin.
template <class T>
__global__ void svm_gradient(const T* y, const T* label, T* dx, int64_t count, int64_t classes, compute_type<T> margin,
                             compute_type<T> factor, bool linear) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const C side = convert<int64_t>(load(label[i / classes])) == i % classes ? C(-1) : C(1);
    const C lack = margin + side * load(y[i]);
    dx[i] = store<T>(lack > C(0) ? side * factor * (linear ? C(1) : 2 * lack) : C(0));
  }
}

std::unique_ptr<Kernel> build_svm_gradient(const NodeView& node) {
  const auto& p = node.as<SVMOutputGrad>();
  const Shape& shape = node.outputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(node,
                     [count = shape.size(), classes = shape[shape.rank() - 1], margin = static_cast<C>(p.margin),
                      factor = static_cast<C>(p.regularization_coefficient), linear = p.use_linear](const Args& args) {
                       if (count == 0) return;
                       svm_gradient<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                           args.in<T>(0), args.in<T>(1), args.out<T>(), count, classes, margin, factor, linear);
                     },
                     {.in_place = {{0, 0}}});
  });
}

// The largest number of a row, and the sum of exp(x - largest).
template <class C>
struct RowPowers {
  C most, sum;
};
template <class Team, int width, class T>
__device__ RowPowers<compute_type<T>> powers_of(const T* row, int64_t length) {
  using C = compute_type<T>;
  C most = Largest<C>::identity();
  for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
    const auto pack = read_row<width>(row, k, 1);
#pragma unroll
    for (int i = 0; i < width; ++i) most = Largest<C>::combine(most, load(pack.element[i]));
  }
  most = Team::template combined<Largest>(most);
  C sum = 0;
  for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
    const auto pack = read_row<width>(row, k, 1);
#pragma unroll
    for (int i = 0; i < width; ++i) sum += vector_math::exp(load(pack.element[i]) - most);
  }
  return {most, Team::template combined<Add>(sum)};
}

template <class T>
struct CrossEntropyRows {
  using C = compute_type<T>;
  const T *x, *label;
  C* losses;
  int64_t classes;

  template <class Team, int width>
  __device__ void operator()(int64_t row, int64_t start) const {
    const auto [most, sum] = powers_of<Team, width>(x + start, classes);
    if (Team::lane() != 0) return;
    const auto wanted = convert<int64_t>(load(label[row]));
    C loss = 0;
    if (wanted >= 0 && wanted < classes) {
      // Probabilities are bounded from below, so that the loss stays finite.
      const C share = vector_math::exp(load(x[start + wanted]) - most) / sum;
      loss = -vector_math::log(share < C(1e-8) ? C(1e-8) : share);
    }
    losses[row] = loss;
  }
};

// One block, in a fixed order.
template <class T>
__global__ void sum_losses(const compute_type<T>* losses, int64_t count, T* out) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += static_cast<double>(losses[i]);
  sum = combine_block<Add>(sum);
  if (threadIdx.x == 0) *out = convert_element<T>(sum);
}

std::unique_ptr<Kernel> build_cross_entropy(const NodeView& node) {
  const AxisView rows{node.inputs[0].shape[0], node.inputs[0].shape[1], 1};
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(node,
                     [rows](const Args& args) {
                       const T* const x = args.in<T>(0);
                       auto* const losses = static_cast<C*>(args.scratch);
                       queue_rows<widest<T>>(stream_of(args), rows, aligned_for_packs(x),
                                             CrossEntropyRows<T>{x, args.in<T>(1), losses, rows.length});
                       sum_losses<<<1, 1024, 0, stream_of(args)>>>(losses, rows.outer, args.out<T>());
                     },
                     {.scratch_bytes = static_cast<size_t>(rows.outer) * sizeof(C)});
  });
}

template <class T>
struct CrossEntropyGradientRows {
  using C = compute_type<T>;
  const T *dy, *x, *label;
  T* dx;
  int64_t classes;

  template <class Team, int width>
  __device__ void operator()(int64_t row, int64_t start) const {
    const auto [most, sum] = powers_of<Team, width>(x + start, classes);
    const C scale = load(*dy), each = C(1) / sum;
    const auto wanted = convert<int64_t>(load(label[row]));
    for (int64_t k = Team::lane() * width; k < classes; k += Team::size() * width) {
      auto pack = read_row<width>(x + start, k, 1);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C share = vector_math::exp(load(pack.element[i]) - most) * each;
        pack.element[i] = store<T>((share - (k + i == wanted ? C(1) : C(0))) * scale);
      }
      write_row<width>(dx + start, k, 1, pack);
    }
  }
};

std::unique_ptr<Kernel> build_cross_entropy_gradient(const NodeView& node) {
  const AxisView rows{node.inputs[1].shape[0], node.inputs[1].shape[1], 1};
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [rows](const Args& args) {
                       const T* const x = args.in<T>(1);
                       T* const dx = args.out<T>();
                       queue_rows<widest<T>>(
                           stream_of(args), rows, aligned_for_packs(x) && aligned_for_packs(dx),
                           CrossEntropyGradientRows<T>{args.in<T>(0), x, args.in<T>(2), dx, rows.length});
                     },
                     {.in_place = {{1, 0}}});
  });
}

}  // namespace

void add_loss(ImplementationTable& table) {
  table.add<SoftmaxOutput>({"cuda", refuse, build_softmax});
  table.add<SoftmaxOutputGrad>({"cuda", refuse, build_softmax_gradient});
  table.add<LogisticRegressionOutput>({"cuda", refuse, build_logistic});
  table.add<LinearRegressionOutputGrad>(
      {"cuda", refuse, build_regression_gradient<LinearRegressionOutputGrad, Difference>});
  table.add<MAERegressionOutputGrad>({"cuda", refuse, build_regression_gradient<MAERegressionOutputGrad, Side>});
  table.add<SVMOutputGrad>({"cuda", refuse, build_svm_gradient});
  table.add<SoftmaxCrossEntropy>({"cuda", refuse, build_cross_entropy});
  table.add<SoftmaxCrossEntropyGrad>({"cuda", refuse, build_cross_entropy_gradient});
  table.add<MakeLossGrad>({"cuda", refuse, build_make_loss_gradient});
}

}  // namespace symbind::cuda_backend
