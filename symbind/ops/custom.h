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

// What happens to a result: it is ignored, replaces what is there, or is added to it.
enum class OpReq : uint8_t { null, write, inplace, add };
std::string_view name_of(OpReq req);

// One operator at work. An executor makes one per node and uses it for every forward and backward pass, so what
// forward() leaves in its members backward() finds there.
//
// The arrays are in the executor's own memory, on a CPU. Results are written into them; assign() of
// exec/arithmetic.h does it as the request says. An array that is kept beyond the call keeps the values it had at its
// end. What these functions throw reaches the caller of the executor as it is.
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

// Of inputs, outputs and auxiliary states. What is not known yet is an unknown shape, or DType::none.
struct CustomShapes {
  std::vector<Shape> in, out, aux = {};
};
struct CustomTypes {
  std::vector<DType> in, out, aux = {};
};

// What a custom operator is. Every node has one such object; threads may call it concurrently.
class CustomOpProp {
 public:
  // Without need_top_grad it is a loss head: it starts the backward pass itself.
  explicit CustomOpProp(bool need_top_grad = true) : need_top_grad_(need_top_grad) {}
  virtual ~CustomOpProp() = default;
  bool need_top_grad() const { return need_top_grad_; }

  virtual Names list_arguments() const { return {"data"}; }
  virtual Names list_outputs() const { return {"output"}; }
  virtual Names list_auxiliary_states() const { return {}; }

  // Asked as soon as the first input is known, or all the others. By default everything is like the first input.
  virtual CustomShapes infer_shape(const std::vector<Shape>& in_shapes) const;
  virtual CustomTypes infer_type(const std::vector<DType>& in_types) const;

  // Arrays are named by numbers; the answer lists those that backward reads. By default the gradients that arrive
  // (with need_top_grad), the inputs and the outputs.
  virtual std::vector<int> declare_backward_dependency(const std::vector<int>& out_grad,
                                                       const std::vector<int>& in_data,
                                                       const std::vector<int>& out_data) const;

  virtual std::shared_ptr<CustomOp> create_operator(Context context, const std::vector<Shape>& in_shapes,
                                                    const std::vector<DType>& in_types) const = 0;

 private:
  bool need_top_grad_;
};

// Makes the prop from the keywords (op_type apart) as text. A name that is registered again is replaced, for nodes made
// from then on.
using CustomOpFactory = std::function<std::shared_ptr<CustomOpProp>(const Attributes& arguments)>;
void register_custom_op(const std::string& name, CustomOpFactory factory);
Names custom_op_names();

// A prop and what it lists, asked once.
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
  const Node* forward = nullptr;  // whose operator it is
  std::vector<bool> reads;        // of out_grads, in_data and out_data, in this order
  std::vector<bool> wants;        // the gradients that are asked for
};
inline constexpr Builder<CustomGrad> custom_grad;

}  // namespace symbind
