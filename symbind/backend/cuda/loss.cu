// Loss heads: softmax, and the gradients that start the backward pass.
#include "symbind/ops/loss.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/softmax.h"
#include "symbind/backend/cuda/step.h"
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
  double at_label, elsewhere;  // what a class should be
};

// One block counts, in a fixed order.
template <class T>
__global__ void count_valid(const T* label, int64_t count, int64_t ignore_label, int64_t* valid) {
  long long mine = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    mine += static_cast<int64_t>(load(label[i])) != ignore_label;
  mine = combine_block<Add>(mine);
  if (threadIdx.x == 0) *valid = mine > 1 ? mine : 1;
}

// dx may be y or dy.
template <class T>
__global__ void softmax_gradient(const T* dy, const T* y, const T* label, T* dx, const int64_t* valid,
                                 SoftmaxGradient g) {
  using C = compute_type<T>;
  const C scale = static_cast<C>(valid ? g.scale / static_cast<double>(*valid) : g.scale);
  for (int64_t i = first_element(); i < g.count; i += element_step()) {
    const int64_t row = i / (g.classes * g.inner) * g.inner + i % g.inner, k = i / g.inner % g.classes;
    C target;
    bool ignored = false;
    if (g.distribution) {
      target = load(label[i]);
    } else {
      const auto wanted = static_cast<int64_t>(load(label[row]));
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
  g.ignore_label = static_cast<int64_t>(p.ignore_label);
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
          if (counts) count_valid<<<1, 1024, 0, stream_of(args)>>>(label, labels, g.ignore_label, valid);
          softmax_gradient<<<blocks_for(g.count), block_size, 0, stream_of(args)>>>(dy, y, label, args.out<T>(), valid,
                                                                                    g);
        },
        {.in_place = {{0, 0}, {static_cast<int>(first), 0}}, .scratch_bytes = counts ? sizeof(int64_t) : 0});
  });
}

// ---- LinearRegressionOutput and MakeLoss ----------------------------------------------------------------------------

template <class T>
__global__ void scaled_difference(const T* a, const T* b, T* out, int64_t count, compute_type<T> scale) {
  for (int64_t i = first_element(); i < count; i += element_step())
    out[i] = store<T>((load(a[i]) - load(b[i])) * scale);
}

std::unique_ptr<Kernel> build_regression_gradient(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  const int64_t count = shape.size(), per_example = shape[0] > 0 ? count / shape[0] : 1;
  // A float, as on a CPU.
  const float scale =
      static_cast<float>(node.as<LinearRegressionOutputGrad>().grad_scale) / static_cast<float>(per_example);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [=](const Args& args) {
                       if (count == 0) return;
                       scaled_difference<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                           args.in<T>(0), args.in<T>(1), args.out<T>(), count, static_cast<compute_type<T>>(scale));
                     },
                     {.in_place = {{0, 0}, {1, 0}}});
  });
}

std::string refuse_make_loss_gradient(const NodeView& node) {
  return node.as<MakeLossGrad>().normalization == "valid" ? "valid elements are counted on the host" : refuse(node);
}

std::unique_ptr<Kernel> build_make_loss_gradient(const NodeView& node) {
  const auto& p = node.as<MakeLossGrad>();
  const Tensor& out = node.outputs[0];
  const double batch = out.shape.rank() > 0 ? static_cast<double>(out.shape[0]) : 1;
  const double value = p.normalization == "batch" ? p.grad_scale / batch : p.grad_scale;
  return make_step(node, [value, dtype = out.dtype, count = out.shape.size()](const Args& args) {
    if (count > 0) queue_fill(stream_of(args), args.outputs[0], dtype, count, value);
  });
}

}  // namespace

void add_loss(ImplementationTable& table) {
  table.add<SoftmaxOutput>({"cuda", refuse, build_softmax});
  table.add<SoftmaxOutputGrad>({"cuda", refuse, build_softmax_gradient});
  table.add<LinearRegressionOutputGrad>({"cuda", refuse, build_regression_gradient});
  table.add<MakeLossGrad>({"cuda", refuse_make_loss_gradient, build_make_loss_gradient});
}

}  // namespace symbind::cuda_backend
