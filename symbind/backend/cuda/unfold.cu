#include "symbind/backend/unfold.h"

#include "symbind/backend/cuda/generate.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/units.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// The columns, by lines.
template <class T>
struct Unfolded {
  const T* in;
  UnfoldIndex index;
  __device__ UnfoldIndex::Line row(int64_t number) const { return index.line(number); }
  __device__ T element(const UnfoldIndex::Line& line, int64_t window) const {
    const int64_t column = line.first + window * index.stride[2];
    const bool inside = line.row >= 0 && column >= 0 && column < index.image[2];
    return inside ? in[line.row + column] : T{};
  }
};

template <class T>
__global__ void fold(UnfoldIndex index, int64_t count, const T* columns, T* out) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step())
    out[i] = store<T>(index.template sum_for<C>(i, [&](int64_t at) -> C { return load(columns[at]); }));
}

std::string refuse(const NodeView& node) {
  return node.inputs[0].layout == Layout::plain && node.outputs[0].layout == Layout::plain ? "" : "needs plain layouts";
}

template <class P>
std::unique_ptr<Kernel> build_unfold(const NodeView& node) {
  const UnfoldIndex index(unfold_size(node.as<P>(), node.inputs[0].shape));
  const int64_t count = node.outputs[0].shape.size();
  return make_step(node, [index, count, element = size_of(node.outputs[0].dtype)](const Args& args) {
    visit_unit(element, [&]<class Unit>(Unit) {
      queue_generate_rows(stream_of(args), args.out<Unit>(), count, index.windows[2],
                          Unfolded<Unit>{args.in<Unit>(0), index});
    });
  });
}

template <class P>
std::unique_ptr<Kernel> build_fold(const NodeView& node) {
  const UnfoldIndex index(unfold_size(node.as<P>(), node.outputs[0].shape));
  const int64_t count = node.outputs[0].shape.size();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [index, count](const Args& args) {
      if (count == 0) return;
      fold<<<blocks_for(count), block_size, 0, stream_of(args)>>>(index, count, args.in<T>(0), args.out<T>());
    });
  });
}

}  // namespace

void add_unfold(ImplementationTable& table) {
  table.add<Im2col>({"cuda", refuse, build_unfold<Im2col>});
  table.add<Im2colGrad>({"cuda", refuse, build_fold<Im2colGrad>});
  table.add<Col2im>({"cuda", refuse, build_fold<Col2im>});
}

}  // namespace symbind::cuda_backend
