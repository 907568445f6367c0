// Passes the plan's memory to a user-defined operator as arrays. The executor's kernels of one node, forward and
// backward, in training and inference, share one operator instance.
#include "symbind/ops/custom.h"

#include "symbind/backend/cpu/plain.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Arrays over the plan's memory for one call. An array that the user keeps gets its own memory at the end of the call.
class Loan {
 public:
  explicit Loan(Context context) : device_(Device::get(context)) {}
  // Arrays that are still referenced are copied to their own memory; if there is no free memory they stay in the
  // executor's.
  ~Loan() {
    try {
      for (const auto& storage : borrowed_)
        if (storage.use_count() > 1) storage->copy_borrowed();
    } catch (const Error&) {  // NOLINT: a destructor cannot throw
    }
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  NDArray array(void* data, const Tensor& tensor) {
    borrowed_.push_back(Storage::borrowed(device_, data, tensor.bytes()));
    return {borrowed_.back(), 0, tensor.shape, tensor.dtype};
  }

 private:
  Device& device_;
  std::vector<std::shared_ptr<Storage>> borrowed_;
};

using Arrays = std::vector<NDArray>;

class CustomKernel final : public Kernel {
 public:
  CustomKernel(const NodeView& node, std::shared_ptr<CustomOp> op)
      : op_(std::move(op)),
        context_(node.context),
        is_train_(node.is_train),
        arguments_(node.as<Custom>().spec->arguments.size()),
        inputs_(node.inputs.begin(), node.inputs.end()),
        outputs_(node.outputs.begin(), node.outputs.end()) {}

  void run(const Args& args) override {
    Loan loan(context_);
    Arrays in, out, aux;
    for (size_t i = 0; i < inputs_.size(); ++i)
      (i < arguments_ ? in : aux).push_back(loan.array(args.inputs[i], inputs_[i]));
    for (size_t i = 0; i < outputs_.size(); ++i) out.push_back(loan.array(args.outputs[i], outputs_[i]));
    op_->forward(is_train_, std::vector(out.size(), OpReq::write), in, out, aux);
  }

 private:
  std::shared_ptr<CustomOp> op_;
  Context context_;
  bool is_train_;
  size_t arguments_;
  std::vector<Tensor> inputs_, outputs_;
};

class CustomGradKernel final : public Kernel {
 public:
  CustomGradKernel(const NodeView& node, std::shared_ptr<CustomOp> op)
      : op_(std::move(op)),
        context_(node.context),
        params_(node.as<CustomGrad>()),
        inputs_(node.inputs.begin(), node.inputs.end()),
        outputs_(node.outputs.begin(), node.outputs.end()) {}

  void run(const Args& args) override {
    const CustomOpSpec& spec = *params_.spec;
    Loan loan(context_);
    Arrays out_grad, in_data, out_data, in_grad, aux;
    size_t next = 0, asked = 0;
    const auto take = [&](Arrays& arrays, size_t count) {
      for (size_t i = 0; i < count; ++i, ++asked) {
        arrays.push_back(params_.reads[asked] ? loan.array(args.inputs[next], inputs_[next]) : NDArray());
        if (params_.reads[asked]) ++next;
      }
    };
    take(out_grad, spec.outputs.size());
    take(in_data, spec.arguments.size());
    take(out_data, spec.outputs.size());
    next += spec.arguments.size();  // read for their shapes
    for (; next < inputs_.size(); ++next) aux.push_back(loan.array(args.inputs[next], inputs_[next]));
    std::vector<OpReq> req;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      in_grad.push_back(loan.array(args.outputs[i], outputs_[i]));
      req.push_back(params_.wants[i] ? OpReq::write : OpReq::null);
    }
    op_->backward(req, out_grad, in_data, out_data, in_grad, aux);
  }

 private:
  std::shared_ptr<CustomOp> op_;
  Context context_;
  CustomGrad params_;
  std::vector<Tensor> inputs_, outputs_;
};

std::shared_ptr<CustomOp> make_operator(const NodeView& node) {
  const CustomOpSpec& spec = *node.as<Custom>().spec;
  std::vector<Shape> shapes;
  std::vector<DType> types;
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    shapes.push_back(node.inputs[i].shape);
    types.push_back(node.inputs[i].dtype);
  }
  auto op = spec.prop->create_operator(node.context, shapes, types);
  require(op != nullptr, node.where(), " create_operator() returned null");
  return op;
}

std::unique_ptr<Kernel> build_custom(const NodeView& node) {
  if (!node.objects) return std::make_unique<CustomKernel>(node, make_operator(node));
  std::shared_ptr<void>& stored = (*node.objects)[node.source];
  if (!stored) stored = make_operator(node);
  return std::make_unique<CustomKernel>(node, std::static_pointer_cast<CustomOp>(stored));
}

std::unique_ptr<Kernel> build_custom_grad(const NodeView& node) {
  const auto& p = node.as<CustomGrad>();
  const auto stored = node.objects ? node.objects->find(p.forward) : NodeObjects::iterator();
  require(node.objects && stored != node.objects->end(), node.where(),
          " runs backward without a forward pass before it");
  return std::make_unique<CustomGradKernel>(node, std::static_pointer_cast<CustomOp>(stored->second));
}

}  // namespace

void add_custom(ImplementationTable& table) {
  add_plain<Custom>(table, build_custom);
  add_plain<CustomGrad>(table, build_custom_grad);
}

}  // namespace symbind::cpu_backend
