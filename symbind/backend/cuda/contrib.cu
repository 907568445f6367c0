#include "symbind/ops/contrib.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/positions.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

template <class T, class Number>
__global__ void write_numbers(Number number, int64_t count, T* out) {
  for (int64_t i = first_element(); i < count; i += element_step()) out[i] = convert_element<T>(number(i));
}

// out[i] = number(i)
template <class T, class Number>
std::unique_ptr<Kernel> step_of(const NodeView& node, const Number& number) {
  return make_step(node, [number, count = node.outputs[0].shape.size()](const Args& args) {
    if (count == 0) return;
    write_numbers<<<blocks_for(count), block_size, 0, stream_of(args)>>>(number, count, args.out<T>());
  });
}

std::unique_ptr<Kernel> build_arange_like(const NodeView& node) {
  const auto& p = node.as<ArangeLike>();
  return visit_dtype(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;
    return step_of<T>(node, ArangeNumber<C>{convert<C>(p.start), convert<C>(p.step), p.repeat});
  });
}

std::unique_ptr<Kernel> build_index_array(const NodeView& node) {
  return step_of<int64_t>(node, IndexNumber(node.as<IndexArray>(), node.inputs[0].shape));
}

std::string refuse(const NodeView& node) {
  return node.outputs[0].layout == Layout::plain ? "" : "needs plain layouts";
}

}  // namespace

void add_contrib(ImplementationTable& table) {
  table.add<ArangeLike>({"cuda", refuse, build_arange_like});
  table.add<IndexArray>({"cuda", refuse, build_index_array});
}

}  // namespace symbind::cuda_backend
