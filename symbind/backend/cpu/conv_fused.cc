// The plain implementation of a fused convolution: folded weights, the plain convolution, and a loop over its result.
#include "symbind/ops/conv_fused.h"

#include "symbind/backend/cpu/activation.h"
#include "symbind/backend/cpu/as_float.h"
#include "symbind/backend/cpu/fold_norm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

class FusedConvolution final : public Kernel {
 public:
  explicit FusedConvolution(const NodeView& node)
      : params_(node.as<ConvolutionFused>()), weight_(node.inputs[1]), output_(node.outputs[0]) {
    Convolution inner = params_;
    if (params_.has_norms()) inner.no_bias = false;
    inner_params_ = std::make_shared<Convolution>(inner);
    std::vector<Tensor> tensors{node.inputs[0], weight_};
    if (!inner.no_bias) tensors.push_back({{params_.num_filter}, weight_.dtype});
    const NodeView view{op_of<Convolution>(), inner_params_.get(), node.name,        tensors,
                        node.outputs,         node.is_train,       node.random_slot, node.context};
    inner_ = last_resort(view.op, cpu()).build(view);
    scratch_bytes = inner_->scratch_bytes;
    if (!params_.has_norms()) return;
    cached_bytes = weight_.bytes() + static_cast<size_t>(params_.num_filter) * sizeof(float);
    cached_from = folded_inputs(params_);
  }

  void prepare(const Args& args) override {
    fold_norms(params_, weight_, args, static_cast<float*>(args.cached), folded_bias(args));
  }

  void run(const Args& args) override {
    void* inputs[] = {args.inputs[0], args.inputs[1], params_.no_bias ? nullptr : args.inputs[2]};
    if (params_.has_norms()) {
      inputs[1] = args.cached;
      inputs[2] = folded_bias(args);
    }
    Args inner = args;
    inner.inputs = inputs;
    inner_->run(inner);
    visit_floating(output_.dtype, [&](auto type) { finish<typename decltype(type)::type>(args); });
  }

 private:
  float* folded_bias(const Args& args) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(args.cached) + weight_.bytes());
  }

  template <class T>
  void finish(const Args& args) const {
    T* const out = args.out<T>();
    const int sum = inputs_of(params_).sum;
    const T* const more = sum < 0 ? nullptr : args.in<T>(static_cast<size_t>(sum));
    if (more)
      for_elements(output_.shape.size(), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          out[i] = static_cast<T>(static_cast<compute_type<T>>(out[i]) + static_cast<compute_type<T>>(more[i]));
      });
    apply_activation(params_.act_type, out, output_.shape.size());
  }

  const ConvolutionFused params_;
  const Tensor weight_, output_;
  std::shared_ptr<const Convolution> inner_params_;
  std::unique_ptr<Kernel> inner_;
};

// Weights are derived from others in float32 only.
std::unique_ptr<Kernel> build(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  const bool is_derived = node.as<ConvolutionFused>().has_norms() || node.inputs[1].dtype != dtype;
  if (is_derived && dtype != DType::float32) return build_as_float(node);
  return std::make_unique<FusedConvolution>(node);
}

}  // namespace

void add_conv_fused(ImplementationTable& table) { add_plain<ConvolutionFused>(table, build); }

}  // namespace symbind::cpu_backend
