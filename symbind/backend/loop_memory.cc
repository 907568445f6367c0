#include "symbind/backend/loop_memory.h"

#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

template <class Make>
std::unique_ptr<SubPlan> plan_of(std::span<const Tensor> tensors, Context context, Make make) {
  if (tensors.empty()) return nullptr;
  std::vector<Symbol> variables, made;
  for (size_t i = 0; i < tensors.size(); ++i) {
    variables.push_back(Symbol::variable("array" + std::to_string(i)));
    made.push_back(make(variables.back()));
  }
  return std::make_unique<SubPlan>(Symbol::group(made), variables, tensors, SubPlanOptions{.context = context});
}

}  // namespace

Tensor slice_of(const Tensor& whole) { return {whole.shape.slice(1, whole.shape.rank()), whole.dtype, Layout::plain}; }

std::unique_ptr<SubPlan> make_copy_plan(std::span<const Tensor> tensors, Context context) {
  return plan_of(tensors, context, [](const Symbol& array) { return apply("_copy", array); });
}
std::unique_ptr<SubPlan> make_zero_plan(std::span<const Tensor> tensors, Context context) {
  return plan_of(tensors, context, [](const Symbol& array) { return zeros_like(array); });
}

void run_zero_plan(const std::unique_ptr<SubPlan>& plan, const Args& inner, std::span<void* const> arrays) {
  if (!plan) return;
  const std::vector<void*> unread(arrays.size(), nullptr);
  plan->forward(inner, {.inputs = unread, .outputs = arrays});
}

}  // namespace symbind
