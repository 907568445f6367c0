// Operators written by users, without touching the library: derive from CustomOpProp (what the operator is) and from
// CustomOp (how it runs), register a factory under a name, and use it as custom(inputs, {.op_type = name}).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// What happens to a result: it is ignored, overwrites the array, or is added to it.
enum class OpReq : uint8_t { null, write, inplace, add };
std::string_view name_of(OpReq req);

// One instance of an operator. An executor creates one per node and uses it for every forward and backward pass, so
// forward() may leave data in its members for backward().
//
// The arrays are in the executor's own memory, on a CPU. Results are written into them; assign() of exec/arithmetic.h
// does so according to the request. An array that is kept beyond the call retains the values it had at the end of the
// call. Exceptions of these functions reach the caller of the executor unchanged.
class CustomOp {
 public:
  virtual ~CustomOp() = default;
  virtual void forward(bool is_train, const std::vector<OpReq>& req, const std::vector<NDArray>& in_data,
                       const std::vector<NDArray>& out_data, const std::vector<NDArray>& aux) = 0;
  // Arrays that declare_backward_dependency() left out are empty. Fails where it is not overridden.
  virtual void backward(const std::vector<OpReq>& req, const std::vector<NDArray>& out_grad,
                        const std::vector<NDArray>& in_data, const std::vector<NDArray>& out_data,
                        const std::vector<NDArray>& in_grad, const std::vector<NDArray>& aux);
};

// Of inputs, outputs and auxiliary states. Unknown ones are an unknown shape, or DType::none.
struct CustomShapes {
  std::vector<Shape> in, out, aux = {};
};
struct CustomTypes {
  std::vector<DType> in, out, aux = {};
};

// The definition of a custom operator. Every node has one such object; threads may call it concurrently.
class CustomOpProp {
 public:
  // Without need_top_grad it is a loss head: it starts the backward pass itself.
  explicit CustomOpProp(bool need_top_grad = true) : need_top_grad_(need_top_grad) {}
  virtual ~CustomOpProp() = default;
  bool need_top_grad() const { return need_top_grad_; }

  virtual Names list_arguments() const { return {"data"}; }
  virtual Names list_outputs() const { return {"output"}; }
  virtual Names list_auxiliary_states() const { return {}; }

  // Called as soon as the first input is known, or all the others. By default everything is like the first input.
  virtual CustomShapes infer_shape(const std::vector<Shape>& in_shapes) const;
  virtual CustomTypes infer_type(const std::vector<DType>& in_types) const;

  // Arrays are identified by numbers; the result lists those that backward reads. By default the gradients that arrive
  // (with need_top_grad), the inputs and the outputs.
  virtual std::vector<int> declare_backward_dependency(const std::vector<int>& out_grad,
                                                       const std::vector<int>& in_data,
                                                       const std::vector<int>& out_data) const;

  virtual std::shared_ptr<CustomOp> create_operator(Context context, const std::vector<Shape>& in_shapes,
                                                    const std::vector<DType>& in_types) const = 0;

 private:
  bool need_top_grad_;
};

// Creates the prop from the keywords (except op_type) as text. Registering a name again replaces the factory for nodes
// created from then on.
using CustomOpFactory = std::function<std::shared_ptr<CustomOpProp>(const Attributes& arguments)>;
void register_custom_op(const std::string& name, CustomOpFactory factory);
Names custom_op_names();

// A prop and the lists it returns, queried once.
struct CustomOpSpec {
  std::shared_ptr<const CustomOpProp> prop;
  Names arguments, outputs, aux;
};

struct Custom {
  Required<std::string> op_type = {};
  Attributes arguments = {};                           // all other keywords
  std::shared_ptr<const CustomOpSpec> spec = nullptr;  // made from the above
};
inline constexpr Builder<Custom> custom;

// (what backward reads, the inputs for their shapes alone, auxiliary states) → the gradient of each input.
struct CustomGrad {
  std::shared_ptr<const CustomOpSpec> spec;
  const Node* forward = nullptr;  // the node of the operator
  std::vector<bool> reads;        // of out_grads, in_data and out_data, in this order
  std::vector<bool> wants;        // the gradients that are requested
};
inline constexpr Builder<CustomGrad> custom_grad;

}  // namespace symbind
