#include "symbind/backend/cpu/deconv.h"

#include <utility>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/core/error.h"
#include "symbind/ops/deconv.h"

namespace symbind::cpu_backend {
namespace {

// The kernel of another operator on some of a node's arrays.
class Borrowed {
 public:
  template <class P>
  Borrowed(const NodeView& node, const P& params, std::vector<Tensor> inputs, std::vector<Tensor> outputs)
      : inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        params_(op_of<P>().checked_params(&params, node.name)) {
    NodeView view{op_of<P>(), params_.get(), node.name, inputs_, outputs_, node.is_train, -1, node.context};
    for (const Implementation& implementation : Target::get(node.context).implementations(view.op)) {
      if (implementation.refuse && !implementation.refuse(view).empty()) continue;
      kernel_ = implementation.build(view);
      return;
    }
    fail(node.where(), " cannot run on ", node.context);
  }
  Kernel& kernel() const { return *kernel_; }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::shared_ptr<const void> params_;
  std::shared_ptr<Kernel> kernel_;
};

template <class T>
void add_bias(T* y, const T* bias, const Shape& shape) {
  using C = compute_type<T>;
  const int64_t channels = shape[1], space = shape.size(2, shape.rank());
  parallel_for(shape[0] * channels, element_grain / std::max<int64_t>(1, space) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      for (int64_t i = plane * space; i < (plane + 1) * space; ++i)
        y[i] = static_cast<T>(static_cast<C>(y[i]) + static_cast<C>(bias[plane % channels]));
  });
}

// Nothing goes in or nothing comes out.
bool is_empty(const NodeView& node) { return node.inputs[0].shape.size() == 0 || node.outputs[0].shape.size() == 0; }

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Tensor& output = node.outputs[0];
  return visit_floating(output.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return build_deconvolution(
        node, [shape = output.shape](const Args& args) { add_bias(args.out<T>(), args.in<T>(2), shape); });
  });
}

std::unique_ptr<Kernel> run_on(const Borrowed& borrowed, std::vector<size_t> order) {
  return make_kernel(
      [=](const Args& args) {
        std::vector<void*> inputs;
        for (const size_t input : order) inputs.push_back(args.inputs[input]);
        inputs.push_back(nullptr);  // an array of which only the shape counts
        Args inner = args;
        inner.inputs = inputs.data();
        borrowed.kernel().run(inner);
      },
      {.scratch_bytes = borrowed.kernel().scratch_bytes});
}

}  // namespace

std::unique_ptr<Kernel> build_deconvolution(const NodeView& node, std::function<void(const Args&)> add_bias) {
  if (is_empty(node)) return build_fill(node, 0);
  const auto& p = node.as<Deconvolution>();
  const Tensor &data = node.inputs[0], &weight = node.inputs[1], &output = node.outputs[0];
  const Borrowed borrowed(node, ConvolutionGradData{reversed(p, data.shape)}, {data, weight, output}, {output});
  return make_kernel(
      [borrowed, with_bias = !p.no_bias, add_bias = std::move(add_bias)](const Args& args) {
        void* const inputs[] = {args.inputs[0], args.inputs[1], nullptr};
        Args inner = args;
        inner.inputs = inputs;
        borrowed.kernel().run(inner);
        if (with_bias) add_bias(args);
      },
      {.scratch_bytes = borrowed.kernel().scratch_bytes});
}

std::unique_ptr<Kernel> build_deconvolution_grad_data(const NodeView& node) {
  if (is_empty(node)) return build_fill(node, 0);
  const Tensor &dy = node.inputs[0], &weight = node.inputs[1], &dx = node.outputs[0];
  return run_on(Borrowed(node, reversed(node.as<DeconvolutionGradData>(), dx.shape), {dy, weight}, {dx}), {0, 1});
}

std::unique_ptr<Kernel> build_deconvolution_grad_weight(const NodeView& node) {
  if (is_empty(node)) return build_fill(node, 0);
  const Tensor &dy = node.inputs[0], &data = node.inputs[1], &dw = node.outputs[0];
  const ConvolutionGradWeight params{reversed(node.as<DeconvolutionGradWeight>(), data.shape)};
  return run_on(Borrowed(node, params, {data, dy, dw}, {dw}), {1, 0});
}

void add_deconv(ImplementationTable& table) {
  add_plain<Deconvolution>(table, build_forward);
  add_plain<DeconvolutionGradData>(table, build_deconvolution_grad_data);
  add_plain<DeconvolutionGradWeight>(table, build_deconvolution_grad_weight);
}

}  // namespace symbind::cpu_backend
