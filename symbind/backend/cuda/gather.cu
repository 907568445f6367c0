// Slices taken at indices, and added or stored at indices. A gradient first sorts the indices by a stable sort
// (index_sort.h): each sum is then computed by one thread, over its terms in the order of the indices, as on a CPU. Of
// several slices that scatter_nd stores at one index the last one wins.
#include "symbind/ops/gather.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/faults.cuh"
#include "symbind/backend/cuda/gather.h"
#include "symbind/backend/cuda/index_sort.h"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/units.cuh"
#include "symbind/backend/functions.h"
#include "symbind/backend/wide.h"
#include "symbind/core/axis_view.h"
#include "symbind/core/error_kinds.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- Which slice an index means -------------------------------------------------------------------------------------

// An array of slices (outer, length, inner), and how many of the `length` are taken or stored.
struct Slices : AxisView {
  int64_t count;
};

enum class Outside { clip, wrap, raise };

// The slice that each index refers to.
struct SliceIndices {
  AnyArray indices;
  int64_t length;
  Outside outside;
  FaultNotes faults;

  __device__ int64_t of(int64_t i) const {
    const int64_t index = indices.index(i);
    if (outside == Outside::wrap) {
      const int64_t rest = index % length;
      return rest < 0 ? rest + length : rest;
    }
    if (index >= 0 && index < length) return index;
    if (outside == Outside::raise) note_fault(faults, FaultKind::index, -1, index, 0, length - 1);
    return index < 0 ? 0 : length - 1;
  }
};

// The columns of indices (depth, count): each has an index along `depth` axes; a negative one counts from the end.
struct SliceIndicesNd {
  AnyArray indices;
  int64_t count;
  int depth;
  int64_t extent[Shape::max_rank];
  FaultNotes faults;

  __device__ int64_t of(int64_t i) const {
    int64_t slice = 0;
    for (int axis = 0; axis < depth; ++axis) {
      const int64_t given = indices.whole(axis * count + i);
      int64_t index = given < 0 ? given + extent[axis] : given;
      if (index < 0 || index >= extent[axis]) {
        note_fault(faults, FaultKind::index, axis, given, 0, extent[axis] - 1);
        index = index < 0 ? 0 : extent[axis] - 1;
      }
      slice = slice * extent[axis] + index;
    }
    return slice;
  }
};

// The properties of the indices known when a kernel is built; of() adds their address in a run.
class IndexAlong {
 public:
  IndexAlong(const NodeView& node, size_t input, int64_t length, const std::string& mode)
      : input_(input),
        slice_indices_{{nullptr, node.inputs[input].dtype},
                       length,
                       mode == "wrap"    ? Outside::wrap
                       : mode == "raise" ? Outside::raise
                                         : Outside::clip,
                       {}} {
    if (slice_indices_.outside == Outside::raise) slice_indices_.faults = fault_notes(node);
    if (length == 0 && node.inputs[input].shape.size() > 0)
      refused_ = join(node.where(), " there is nothing to take from along an axis without elements");
  }
  SliceIndices of(const Args& args) const {
    require(refused_.empty(), refused_);
    SliceIndices slice_indices = slice_indices_;
    slice_indices.indices.data = args.inputs[input_];
    return slice_indices;
  }

 private:
  size_t input_;
  SliceIndices slice_indices_;
  std::string refused_;
};

class IndexNd {
 public:
  IndexNd(const NodeView& node, size_t input, const Shape& whole) : input_(input), slice_indices_{} {
    const Shape& indices = node.inputs[input].shape;
    slice_indices_.indices = {nullptr, node.inputs[input].dtype};
    slice_indices_.count = indices.size(1, indices.rank());
    slice_indices_.depth = static_cast<int>(indices[0]);
    slice_indices_.faults = fault_notes(node);
    for (int axis = 0; axis < slice_indices_.depth; ++axis) {
      slice_indices_.extent[axis] = whole[axis];
      if (whole[axis] == 0 && slice_indices_.count > 0)
        refused_ = join(node.where(), " every index is outside of axis ", axis, " of length 0");
    }
  }
  SliceIndicesNd of(const Args& args) const {
    require_as<IndexError>(refused_.empty(), refused_);
    SliceIndicesNd slice_indices = slice_indices_;
    slice_indices.indices.data = args.inputs[input_];
    return slice_indices;
  }

 private:
  size_t input_;
  SliceIndicesNd slice_indices_;
  std::string refused_;
};

// An array by the indices (depth, …) of its first axes.
Slices slices_nd(const Shape& indices, const Shape& whole) {
  const int depth = static_cast<int>(indices[0]);
  return {{1, whole.size(0, depth), whole.size(depth, whole.rank())}, indices.size(1, indices.rank())};
}

// ---- Taking ---------------------------------------------------------------------------------------------------------

template <class Unit, class Index>
__global__ void take_slices(const Unit* from, Unit* out, Index index, Slices slices) {
  const int64_t units = slices.outer * slices.count * slices.inner;
  for (int64_t i = first_element(); i < units; i += element_step()) {
    const Divided at = divided(i, slices.inner), slice = divided(at.quotient, slices.count);
    out[i] = from[(slice.quotient * slices.length + index.of(slice.rest)) * slices.inner + at.rest];
  }
}

template <class Index>
std::unique_ptr<Kernel> build_take(const NodeView& node, size_t from, const Index& index, const Slices& slices) {
  return make_step(node, [from, index, slices, element = size_of(node.outputs[0].dtype)](const Args& args) {
    if (slices.outer * slices.count == 0) return;
    const auto slice_indices = index.of(args);
    if (slices.inner == 0) return;
    const uint64_t row = static_cast<uint64_t>(slices.inner) * element;
    const size_t unit = unit_dividing(row | reinterpret_cast<uintptr_t>(args.inputs[from]) |
                                      reinterpret_cast<uintptr_t>(args.outputs[0]));
    Slices of_units = slices;
    of_units.inner = static_cast<int64_t>(row / unit);
    visit_wide_unit(unit, [&]<class Unit>(Unit) {
      take_slices<<<blocks_for(slices.outer * slices.count * of_units.inner), block_size, 0, stream_of(args)>>>(
          args.in<Unit>(from), args.out<Unit>(), slice_indices, of_units);
    });
  });
}

// ---- Adding ---------------------------------------------------------------------------------------------------------

template <class Index>
__global__ void write_indices(Index index, uint32_t* indices, uint32_t* order, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    indices[i] = static_cast<uint32_t>(index.of(i));
    order[i] = static_cast<uint32_t>(i);
  }
}

// `lanes` threads process a term; if it is the first with its index, they sum the slices of all terms with that index.
template <class T>
__global__ void add_slices(const T* dy, IndexSort::Sorted sorted, T* out, Slices slices, int lanes) {
  using C = functions::Wide<T>;
  for (int64_t first = first_element() / lanes; first < slices.count; first += element_step() / lanes) {
    const uint32_t index = sorted.indices[first];
    if (first > 0 && sorted.indices[first - 1] == index) continue;
    for (int64_t column = threadIdx.x % lanes; column < slices.outer * slices.inner; column += lanes) {
      const Divided at = divided(column, slices.inner);
      C sum = 0;
      for (int64_t i = first; i < slices.count && sorted.indices[i] == index; ++i)
        sum = functions::add(
            sum, static_cast<C>(load(dy[(at.quotient * slices.count + sorted.order[i]) * slices.inner + at.rest])));
      out[(at.quotient * slices.length + index) * slices.inner + at.rest] = convert_element<T>(sum);
    }
  }
}

// Threads for a slice of this many elements: a power of two.
int lanes_for(int64_t elements) {
  int lanes = 1;
  while (lanes < block_size && lanes < elements) lanes *= 2;
  return lanes;
}

template <class Index>
std::unique_ptr<Kernel> build_add(const NodeView& node, const Index& index, const Slices& slices) {
  const CurrentDevice current(CudaDevice::of(node.context).id());
  const IndexSort sort(slices.count, slices.length);
  return visit_dtype(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [index, slices, sort, bytes = node.outputs[0].bytes()](const Args& args) {
                       const cudaStream_t stream = stream_of(args);
                       if (bytes > 0) cudaMemsetAsync(args.outputs[0], 0, bytes, stream);
                       if (slices.count == 0) return;
                       const auto slice_indices = index.of(args);
                       if (bytes == 0) return;
                       write_indices<<<blocks_for(slices.count), block_size, 0, stream>>>(
                           slice_indices, sort.indices(args.scratch), sort.order(args.scratch), slices.count);
                       const IndexSort::Sorted sorted = sort.queue(stream, args.scratch);
                       const int lanes = lanes_for(slices.outer * slices.inner);
                       add_slices<<<blocks_for(slices.count * lanes), block_size, 0, stream>>>(
                           args.in<T>(0), sorted, args.out<T>(), slices, lanes);
                     },
                     {.scratch_bytes = sort.bytes()});
  });
}

// ---- Storing --------------------------------------------------------------------------------------------------------

__global__ void find_last(SliceIndicesNd index, int32_t* last, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step())
    atomicMax(last + index.of(i), static_cast<int32_t>(i));
}

template <class Unit>
__global__ void store_slices(const Unit* data, Unit* out, const int32_t* last, int64_t units, int64_t inner) {
  for (int64_t i = first_element(); i < units; i += element_step()) {
    const Divided at = divided(i, inner);
    const int32_t from = last[at.quotient];
    out[i] = from < 0 ? Unit{} : data[from * inner + at.rest];
  }
}

// The number of the slice that each slice of the result holds is in scratch, -1 where there is none.
std::unique_ptr<Kernel> build_scatter(const NodeView& node) {
  const Tensor& whole = node.outputs[0];
  const Slices slices = slices_nd(node.inputs[1].shape, whole.shape);
  const size_t of_last = static_cast<size_t>(slices.length) * sizeof(int32_t);
  return make_step(
      node,
      [index = IndexNd(node, 1, whole.shape), slices, of_last, element = size_of(whole.dtype)](const Args& args) {
        const auto slice_indices = index.of(args);
        if (slices.length * slices.inner == 0) return;
        const cudaStream_t stream = stream_of(args);
        auto* const last = static_cast<int32_t*>(args.scratch);
        cudaMemsetAsync(last, 0xff, of_last, stream);
        if (slices.count > 0)
          find_last<<<blocks_for(slices.count), block_size, 0, stream>>>(slice_indices, last, slices.count);
        const uint64_t row = static_cast<uint64_t>(slices.inner) * element;
        const size_t unit = unit_dividing(row | reinterpret_cast<uintptr_t>(args.inputs[0]) |
                                          reinterpret_cast<uintptr_t>(args.outputs[0]));
        const auto inner = static_cast<int64_t>(row / unit), units = slices.length * inner;
        visit_wide_unit(unit, [&]<class Unit>(Unit) {
          store_slices<<<blocks_for(units), block_size, 0, stream>>>(args.in<Unit>(0), args.out<Unit>(), last, units,
                                                                     inner);
        });
      },
      {.scratch_bytes = of_last});
}

// ---- All of them ----------------------------------------------------------------------------------------------------

std::string refuse_slices(const NodeView& node, const Slices& slices) {
  if (slices.length >= IndexSort::most || slices.count >= IndexSort::most) return "2^31 slices or more";
  return refuse_layouts(node);
}

Slices slices_along(const NodeView& node, int64_t axis, const Shape& whole, const Tensor& indices) {
  return {view_along(whole, whole.axis(axis, node.where())), indices.shape.size()};
}

template <class P>
Slices slices_of_take(const NodeView& node, const Shape& whole) {
  return slices_along(node, node.as<P>().axis, whole, node.inputs[1]);
}

// Embedding reads (indices, weight).
Slices slices_of_embedding(const NodeView& node) { return slices_along(node, 0, node.inputs[1].shape, node.inputs[0]); }

void add_taking(ImplementationTable& table) {
  table.add<Take>(
      {"cuda",
       [](const NodeView& node) { return refuse_slices(node, slices_of_take<Take>(node, node.inputs[0].shape)); },
       [](const NodeView& node) {
         const Slices slices = slices_of_take<Take>(node, node.inputs[0].shape);
         return build_take(node, 0, IndexAlong(node, 1, slices.length, node.as<Take>().mode), slices);
       }});
  table.add<Embedding>({"cuda", [](const NodeView& node) { return refuse_slices(node, slices_of_embedding(node)); },
                        [](const NodeView& node) {
                          const Slices slices = slices_of_embedding(node);
                          return build_take(node, 1, IndexAlong(node, 0, slices.length, "clip"), slices);
                        }});
  table.add<GatherNd>(
      {"cuda",
       [](const NodeView& node) { return refuse_slices(node, slices_nd(node.inputs[1].shape, node.inputs[0].shape)); },
       [](const NodeView& node) {
         const Shape& whole = node.inputs[0].shape;
         return build_take(node, 0, IndexNd(node, 1, whole), slices_nd(node.inputs[1].shape, whole));
       }});
}

}  // namespace

void add_gather(ImplementationTable& table) {
  add_taking(table);
  table.add<TakeGrad>(
      {"cuda",
       [](const NodeView& node) { return refuse_slices(node, slices_of_take<TakeGrad>(node, node.outputs[0].shape)); },
       [](const NodeView& node) {
         const Slices slices = slices_of_take<TakeGrad>(node, node.outputs[0].shape);
         return build_add(node, IndexAlong(node, 1, slices.length, node.as<TakeGrad>().mode), slices);
       }});
  table.add<GatherNdGrad>(
      {"cuda",
       [](const NodeView& node) { return refuse_slices(node, slices_nd(node.inputs[1].shape, node.outputs[0].shape)); },
       [](const NodeView& node) {
         const Shape& whole = node.outputs[0].shape;
         return build_add(node, IndexNd(node, 1, whole), slices_nd(node.inputs[1].shape, whole));
       }});
  table.add<ScatterNd>(
      {"cuda",
       [](const NodeView& node) { return refuse_slices(node, slices_nd(node.inputs[1].shape, node.outputs[0].shape)); },
       build_scatter});
  add_gathered_elements(table);
}

}  // namespace symbind::cuda_backend
