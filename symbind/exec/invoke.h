// One operator on arrays, now, through the same definitions and implementations as a plan.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/graph/builder.h"
#include "symbind/passes/target.h"

namespace symbind {

struct InvokeOptions {
  std::vector<NDArray> out = {};  // results go here (shapes must agree); may be an input for elementwise operators
  Context context = cpu();        // for operators without inputs
  bool is_train = false;
};

// An operator made ready for arrays of certain shapes and types: what invoke() works out at each call, to be kept. Used
// by one thread at a time.
class ReadyOp {
 public:
  ReadyOp() = default;
  // For inputs like these. Fails as invoke() does.
  ReadyOp(const OpDef& op, std::span<const NDArray> inputs, std::shared_ptr<const void> params,
          const InvokeOptions& options = {});

  // The visible outputs, in `out` where arrays are given. The inputs are like those it was made for.
  std::vector<NDArray> run(std::span<const NDArray> inputs, const std::vector<NDArray>& out = {}) const;
  // The same for an operator of one output without scratch, random numbers or states; `into` may be null.
  NDArray run_simple(std::span<const NDArray> inputs, const NDArray* into) const;
  bool simple() const { return simple_; }

 private:
  const OpDef* op_ = nullptr;
  std::shared_ptr<const void> params_;
  Context context_;
  std::vector<Tensor> outputs_;
  size_t visible_ = 0;
  bool random_ = false, simple_ = false;
  std::vector<bool> updated_;  // inputs that it writes
  std::shared_ptr<Kernel> kernel_;
  Target* target_ = nullptr;
};

// The visible outputs. Auxiliary states among the inputs are updated in place.
std::vector<NDArray> invoke(const OpDef& op, std::span<const NDArray> inputs, const void* params,
                            const InvokeOptions& options = {});
// By name, with parameters as text.
std::vector<NDArray> invoke(const std::string& op, const std::vector<NDArray>& inputs,
                            const Attributes& attributes = {}, const InvokeOptions& options = {});
// From a parameter struct filled in C++: checked, and given the number of inputs where it wants to know.
std::vector<NDArray> invoke_params(const OpDef& op, const std::vector<NDArray>& inputs, const void* params,
                                   const InvokeOptions& options);
// By builder: invoke(sgd_mom_update, {weight, grad, momentum}, {.lr = 0.1}, {.out = {weight}}).
template <class P>
std::vector<NDArray> invoke(const Builder<P>&, const std::vector<NDArray>& inputs,
                            const std::type_identity_t<P>& params = {}, const InvokeOptions& options = {}) {
  return invoke_params(op_of<P>(), inputs, &params, options);
}

// What Builder<P> calls on arrays: the first visible output.
NDArray invoke_struct(const OpDef& op, const std::vector<NDArray>& inputs, const void* params);

}  // namespace symbind
