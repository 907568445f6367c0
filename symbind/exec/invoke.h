// Runs one operator on arrays immediately, through the same definitions and implementations as a plan.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct InvokeOptions {
  std::vector<NDArray> out = {};  // results go here (shapes must agree); may be an input for elementwise operators
  Context context = cpu();        // for operators without inputs
  bool is_train = false;
};

// The visible outputs. Auxiliary states among the inputs are updated in place.
std::vector<NDArray> invoke(const OpDef& op, std::span<const NDArray> inputs, const void* params,
                            const InvokeOptions& options = {});
// By name, with parameters as text.
std::vector<NDArray> invoke(const std::string& op, const std::vector<NDArray>& inputs,
                            const Attributes& attributes = {}, const InvokeOptions& options = {});
// From a parameter struct filled in C++: it is checked, and its count field, if any, is set to the number of inputs.
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
