#include "symbind/backend/linalg_element.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/visit_types.h"

namespace symbind::cuda_backend {
namespace {

template <class T, class Function>
__global__ void compute_elements(Function function, linalg::Arrays<T> in, T* out, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) out[i] = function(in, i);
}

std::string refuse(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

}  // namespace

void add_linalg_element(ImplementationTable& table) {
  linalg::for_each_element_operator([&](const OpDef& op, auto function_of) {
    const auto build = [function_of](const NodeView& node) {
      const auto function = function_of(node);
      const int64_t count = node.outputs[0].shape.size(), inputs = static_cast<int64_t>(node.inputs.size());
      return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
        return make_step(node, [=](const Args& args) {
          if (count == 0) return;  // a launch of no blocks is an error
          const linalg::Arrays<T> in(args, inputs);
          compute_elements<<<blocks_for(count), block_size, 0, stream_of(args)>>>(function, in, args.out<T>(), count);
        });
      });
    };
    table.add(op, {"cuda", refuse, build});
  });
}

}  // namespace symbind::cuda_backend
