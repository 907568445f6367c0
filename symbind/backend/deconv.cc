#include "symbind/backend/deconv.h"

#include <utility>
#include <vector>

#include "symbind/ops/deconv.h"

namespace symbind {
namespace {

// The kernel of another operator on some of a node's arrays: input i of it is input order[i] of the node, followed by
// an array of which only the shape is read.
class Borrowed final : public Kernel {
 public:
  template <class P>
  Borrowed(const NodeView& node, const P& params, std::vector<size_t> order, std::vector<Tensor> inputs)
      : order_(std::move(order)),
        inputs_(std::move(inputs)),
        outputs_{node.outputs[0]},
        params_(op_of<P>().checked_params(&params, node.name)) {
    const NodeView view{op_of<P>(), params_.get(), node.name, inputs_, outputs_, node.is_train, -1, node.context};
    kernel_ = choose(view).build(view);
    scratch_bytes = kernel_->scratch_bytes;
    cached_bytes = kernel_->cached_bytes;
    for (const int input : kernel_->cached_from)
      cached_from.push_back(static_cast<int>(order_.at(static_cast<size_t>(input))));
  }

  void prepare(const Args& args) override {
    lend(args, [&](const Args& inner) { kernel_->prepare(inner); });
  }
  void run(const Args& args) override {
    lend(args, [&](const Args& inner) { kernel_->run(inner); });
  }

 private:
  template <class Use>
  void lend(const Args& args, Use use) const {
    void* inputs[] = {nullptr, nullptr, nullptr};
    for (size_t i = 0; i < order_.size(); ++i) inputs[i] = args.inputs[order_[i]];
    Args inner = args;
    inner.inputs = inputs;
    use(inner);
  }

  const std::vector<size_t> order_;  // two at most
  const std::vector<Tensor> inputs_, outputs_;
  const std::shared_ptr<const void> params_;
  std::unique_ptr<Kernel> kernel_;
};

// The convolution's gradient, followed by the addition of the bias.
class WithBias final : public Kernel {
 public:
  WithBias(std::unique_ptr<Kernel> inner, std::function<void(const Args&)> add_bias)
      : inner_(std::move(inner)), add_bias_(std::move(add_bias)) {
    scratch_bytes = inner_->scratch_bytes;
    cached_bytes = inner_->cached_bytes;
    cached_from = inner_->cached_from;
  }
  void prepare(const Args& args) override { inner_->prepare(args); }
  void run(const Args& args) override {
    inner_->run(args);
    add_bias_(args);
  }

 private:
  const std::unique_ptr<Kernel> inner_;
  const std::function<void(const Args&)> add_bias_;
};

}  // namespace

std::unique_ptr<Kernel> build_deconvolution(const NodeView& node, std::function<void(const Args&)> add_bias) {
  const auto& p = node.as<Deconvolution>();
  const Tensor &data = node.inputs[0], &weight = node.inputs[1], &output = node.outputs[0];
  const ConvolutionGradData params{reversed(p, data.shape)};
  auto kernel = std::make_unique<Borrowed>(node, params, std::vector<size_t>{0, 1}, std::vector{data, weight, output});
  if (p.no_bias) return kernel;
  return std::make_unique<WithBias>(std::move(kernel), std::move(add_bias));
}

std::unique_ptr<Kernel> build_deconvolution_grad_data(const NodeView& node) {
  const Tensor &dy = node.inputs[0], &weight = node.inputs[1], &dx = node.outputs[0];
  const Convolution params = reversed(node.as<DeconvolutionGradData>(), dx.shape);
  return std::make_unique<Borrowed>(node, params, std::vector<size_t>{0, 1}, std::vector{dy, weight});
}

std::unique_ptr<Kernel> build_deconvolution_grad_weight(const NodeView& node) {
  const Tensor &dy = node.inputs[0], &data = node.inputs[1], &dw = node.outputs[0];
  const ConvolutionGradWeight params{reversed(node.as<DeconvolutionGradWeight>(), data.shape)};
  return std::make_unique<Borrowed>(node, params, std::vector<size_t>{1, 0}, std::vector{data, dy, dw});
}

}  // namespace symbind
