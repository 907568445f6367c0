// Sorted rows. A row of up to 32 elements is sorted by a warp, which counts for each element how many come before it;
// one of up to 4096 by a block, in shared memory; longer ones are sorted together, first by their keys and then by
// their rows. All of these sorts are stable.
#include "symbind/ops/sort.h"

#include <algorithm>
#include <optional>

#include <cub/block/block_radix_sort.cuh>

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/generate.cuh"
#include "symbind/backend/cuda/radix_sort.h"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/sort_keys.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/units.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- What becomes of a sorted row -----------------------------------------------------------------------------------

__device__ void copy_element(void* to, int64_t at, const void* from, int64_t index, size_t bytes) {
  switch (bytes) {
    case 1:
      static_cast<uint8_t*>(to)[at] = static_cast<const uint8_t*>(from)[index];
      break;
    case 2:
      static_cast<uint16_t*>(to)[at] = static_cast<const uint16_t*>(from)[index];
      break;
    case 4:
      static_cast<uint32_t*>(to)[at] = static_cast<const uint32_t*>(from)[index];
      break;
    default:
      static_cast<uint64_t*>(to)[at] = static_cast<const uint64_t*>(from)[index];
  }
}

// The first `count` elements of each row are written: their values, their indices, a mask of them. Outputs that are not
// requested are null.
struct Results {
  AxisView rows;
  int64_t count;
  const void* data;
  size_t element;  // bytes
  void *values, *indices, *mask;
  DType index_type;
  uint64_t one;  // as an element of the mask

  __device__ int64_t index(int64_t row, int64_t position) const {
    const Divided at = divided(row, rows.inner);
    return (at.quotient * rows.length + position) * rows.inner + at.rest;
  }
  // Element `position` of a row becomes number `rank`.
  __device__ void write(int64_t row, int64_t rank, int64_t position) const {
    if (rank >= count) return;
    const Divided at = divided(row, rows.inner);
    const int64_t to = (at.quotient * count + rank) * rows.inner + at.rest, from = index(row, position);
    if (values) copy_element(values, to, data, from, element);
    if (indices) AnyOutput{indices, index_type}.set(to, position);
    if (mask) copy_element(mask, from, &one, 0, element);
  }
};

// ---- The sorts ------------------------------------------------------------------------------------------------------

constexpr int64_t warp_length = 32;

template <class Key>
__global__ void sort_in_warps(Keys keys, Results results) {
  const int lane = static_cast<int>(threadIdx.x % 32), length = static_cast<int>(results.rows.length);
  for (int64_t row = first_element() / 32; row < results.rows.row_count(); row += element_step() / 32) {
    const Key own = lane < length ? keys.at<Key>(results.index(row, lane)) : Key(0);
    int rank = 0;
    for (int other = 0; other < length; ++other) {
      const Key key = __shfl_sync(0xffffffffu, own, other);
      rank += key < own || (key == own && other < lane);
    }
    if (lane < length) results.write(row, rank, lane);
  }
}

// Keys and indices are staged in shared memory, so that global memory accesses are contiguous.
template <class Key, int threads, int items>
__global__ void __launch_bounds__(threads) sort_in_blocks(Keys keys, Results results, KeyBits bits) {
  using Sorter = cub::BlockRadixSort<Key, threads, items, int32_t>;
  __shared__ union {
    Key keys[threads * items];
    int32_t indices[threads * items];
    typename Sorter::TempStorage sorter;
  } shared;
  const int length = static_cast<int>(results.rows.length), first = static_cast<int>(threadIdx.x) * items;
  for (int64_t row = blockIdx.x; row < results.rows.row_count(); row += gridDim.x) {
#pragma unroll 1
    for (int k = static_cast<int>(threadIdx.x); k < threads * items; k += threads)  // padding keys stay after the end
      shared.keys[k] = k < length ? keys.at<Key>(results.index(row, k)) : static_cast<Key>(~Key(0));
    __syncthreads();
    Key key[items];
    int32_t index[items];
#pragma unroll
    for (int i = 0; i < items; ++i) {
      key[i] = shared.keys[first + i];
      index[i] = first + i;
    }
    __syncthreads();
    Sorter(shared.sorter).Sort(key, index, bits.first, bits.end);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < items; ++i) shared.indices[first + i] = index[i];
    __syncthreads();
#pragma unroll 1
    for (int rank = static_cast<int>(threadIdx.x); rank < length; rank += threads)
      results.write(row, rank, shared.indices[rank]);
    __syncthreads();  // the shared memory is reused
  }
}

// Element k of row r is number r · length + k here, for any layout.
template <class Key>
__global__ void write_keys(Keys keys, Results results, Key* sorted_by, uint32_t* numbers, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const Divided at = divided(i, results.rows.length);
    sorted_by[i] = keys.at<Key>(results.index(at.quotient, at.rest));
    numbers[i] = static_cast<uint32_t>(i);
  }
}

__global__ void write_rows(const uint32_t* numbers, uint32_t* rows, uint32_t length, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += element_step()) rows[i] = numbers[i] / length;
}

__global__ void write_results(const uint32_t* numbers, Results results, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const Divided at = divided(i, results.rows.length);
    results.write(at.quotient, at.rest, numbers[i] % static_cast<uint32_t>(results.rows.length));
  }
}

// The memory of a sort of all rows together: two arrays of keys, two of numbers, and the sorts' own scratch.
template <class Key>
class WholeSort {
 public:
  WholeSort(const AxisView& rows, KeyBits bits)
      : elements_(rows.size()),
        of_keys_(rounded(static_cast<size_t>(rows.size()) * sizeof(Key))),
        of_numbers_(rounded(static_cast<size_t>(rows.size()) * sizeof(uint32_t))),
        bits_(bits),
        is_one_row_(rows.row_count() == 1) {
    while (int64_t{1} << row_bits_ < rows.row_count()) ++row_bits_;
    of_sort_ = std::max(radix_sort_bytes<Key>(elements_, bits_), radix_sort_bytes<uint32_t>(elements_, {0, row_bits_}));
  }
  size_t bytes() const { return 2 * of_keys_ + 2 * of_numbers_ + of_sort_; }

  void queue(cudaStream_t stream, void* scratch, const Keys& keys, const Results& results) const {
    std::byte* const base = static_cast<std::byte*>(scratch);
    auto* const key = reinterpret_cast<Key*>(base);
    auto* const sorted_key = reinterpret_cast<Key*>(base + of_keys_);
    auto* const number = reinterpret_cast<uint32_t*>(base + 2 * of_keys_);
    auto* const sorted = reinterpret_cast<uint32_t*>(base + 2 * of_keys_ + of_numbers_);
    void* const memory = base + 2 * of_keys_ + 2 * of_numbers_;
    const unsigned blocks = blocks_for(elements_);
    write_keys<<<blocks, block_size, 0, stream>>>(keys, results, key, number, elements_);
    queue_radix_sort<Key>(stream, memory, of_sort_, key, sorted_key, number, sorted, elements_, bits_);
    if (is_one_row_) {
      write_results<<<blocks, block_size, 0, stream>>>(sorted, results, elements_);
      return;
    }
    auto* const row = reinterpret_cast<uint32_t*>(key);
    auto* const sorted_row = reinterpret_cast<uint32_t*>(sorted_key);
    write_rows<<<blocks, block_size, 0, stream>>>(sorted, row, static_cast<uint32_t>(results.rows.length), elements_);
    queue_radix_sort<uint32_t>(stream, memory, of_sort_, row, sorted_row, sorted, number, elements_, {0, row_bits_});
    write_results<<<blocks, block_size, 0, stream>>>(number, results, elements_);
  }

 private:
  static size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

  int64_t elements_;
  size_t of_keys_, of_numbers_, of_sort_ = 0;
  KeyBits bits_;
  int row_bits_ = 1;
  bool is_one_row_;
};

// ---- Building -------------------------------------------------------------------------------------------------------

// Outputs by number, -1 for none.
struct Wanted {
  int values = -1, indices = -1, mask = -1;
};

// A sort of one kind of keys, for rows of every length.
template <class Key>
class RowSort {
 public:
  RowSort(const NodeView& node, const AxisView& rows, int64_t count, bool ascend, const Wanted& wanted)
      : keys_{{nullptr, node.inputs[0].dtype}, ascend},
        results_{rows,    count,   nullptr,      size_of(node.inputs[0].dtype),   nullptr,
                 nullptr, nullptr, DType::int64, bits_of(1, node.inputs[0].dtype)},
        wanted_(wanted) {
    if (wanted.indices >= 0) results_.index_type = node.outputs[static_cast<size_t>(wanted.indices)].dtype;
    if (rows.length > longest_block && rows.size() > 0) {
      const CurrentDevice current(CudaDevice::of(node.context).id());
      whole_.emplace(rows, keys_.bits());
    }
  }
  size_t scratch_bytes() const { return whole_ ? whole_->bytes() : 0; }

  void queue(const Args& args) const {
    const auto output = [&](int number) { return number < 0 ? nullptr : args.outputs[number]; };
    const AxisView& rows = results_.rows;
    const cudaStream_t stream = stream_of(args);
    if (rows.size() == 0) return;
    Keys keys = keys_;
    Results results = results_;
    keys.data.data = results.data = args.inputs[0];
    results.values = output(wanted_.values);
    results.indices = output(wanted_.indices);
    results.mask = output(wanted_.mask);
    if (results.mask) cudaMemsetAsync(results.mask, 0, static_cast<size_t>(rows.size()) * results.element, stream);
    if (whole_)
      whole_->queue(stream, args.scratch, keys, results);
    else if (rows.length <= warp_length)
      sort_in_warps<Key><<<blocks_for(rows.row_count() * 32), block_size, 0, stream>>>(keys, results);
    else if (rows.length <= 512)
      queue_blocks<128, 4>(stream, keys, results);
    else
      queue_blocks<256, 16>(stream, keys, results);
  }

 private:
  static constexpr int64_t longest_block = 256 * 16;

  template <int threads, int items>
  static void queue_blocks(cudaStream_t stream, const Keys& keys, const Results& results) {
    sort_in_blocks<Key, threads, items>
        <<<blocks_for(results.rows.row_count(), 1), threads, 0, stream>>>(keys, results, keys.bits());
  }

  Keys keys_;
  Results results_;
  Wanted wanted_;
  std::optional<WholeSort<Key>> whole_;
};

std::unique_ptr<Kernel> build_sorted(const NodeView& node, const AxisView& rows, int64_t count, bool ascend,
                                     const Wanted& wanted) {
  const auto build = [&]<class Key>(Key) {
    const RowSort<Key> sort(node, rows, count, ascend, wanted);
    return make_step(node, [sort](const Args& args) { sort.queue(args); }, {.scratch_bytes = sort.scratch_bytes()});
  };
  return size_of(node.inputs[0].dtype) == 8 ? build(uint64_t{}) : build(uint32_t{});
}

template <class P>
AxisView rows_of(const NodeView& node, const Shape& shape) {
  return sorted_rows(node.as<P>().axis, shape, node.where());
}

std::unique_ptr<Kernel> build_sort(const NodeView& node) {
  const AxisView rows = rows_of<Sort>(node, node.inputs[0].shape);
  return build_sorted(node, rows, rows.length, node.as<Sort>().is_ascend, {.values = 0, .indices = 1});
}

std::unique_ptr<Kernel> build_argsort(const NodeView& node) {
  const AxisView rows = rows_of<Argsort>(node, node.inputs[0].shape);
  return build_sorted(node, rows, rows.length, node.as<Argsort>().is_ascend, {.indices = 0});
}

std::unique_ptr<Kernel> build_topk(const NodeView& node) {
  const auto& p = node.as<TopK>();
  const AxisView rows = rows_of<TopK>(node, node.inputs[0].shape);
  const Wanted wanted = p.ret_typ == "indices" ? Wanted{.indices = 0}
                        : p.ret_typ == "mask"  ? Wanted{.mask = 0}
                                               : Wanted{.values = 0, .indices = 1};
  return build_sorted(node, rows, p.k <= 0 ? rows.length : p.k, p.is_ascend, wanted);
}

// ---- The gradient ---------------------------------------------------------------------------------------------------

// Which element of out_grad each element of the result is: the last one, where rounded indices are the same.
__global__ void find_last(AnyArray indices, AxisView rows, int64_t count, int32_t* last) {
  const int64_t total = rows.row_count() * count;
  for (int64_t i = first_element(); i < total; i += element_step()) {
    const Divided at = divided(i, rows.inner);
    const int64_t given = indices.whole(i), index = given < 0 ? 0 : given < rows.length ? given : rows.length - 1;
    atomicMax(last + (divided(at.quotient, count).quotient * rows.length + index) * rows.inner + at.rest,
              static_cast<int32_t>(i));
  }
}

template <class Unit>
struct PutBack {
  const Unit* dy;
  const int32_t* last;
  __device__ Unit operator()(int64_t i) const { return last[i] < 0 ? Unit{} : dy[last[i]]; }
};

std::unique_ptr<Kernel> build_sort_grad(const NodeView& node) {
  const Tensor& out = node.outputs[0];
  const AxisView rows = rows_of<SortGrad>(node, out.shape);
  const int64_t count = rows.row_count() > 0 ? node.inputs[0].shape.size() / rows.row_count() : 0;
  const size_t of_last = static_cast<size_t>(out.shape.size()) * sizeof(int32_t);
  return make_step(
      node,
      [rows, count, of_last, index_type = node.inputs[1].dtype, element = size_of(out.dtype)](const Args& args) {
        if (rows.size() == 0) return;
        auto* const last = static_cast<int32_t*>(args.scratch);
        cudaMemsetAsync(last, 0xff, of_last, stream_of(args));
        if (count > 0)
          find_last<<<blocks_for(rows.row_count() * count), block_size, 0, stream_of(args)>>>(
              AnyArray{args.inputs[1], index_type}, rows, count, last);
        visit_unit(element, [&]<class Unit>(Unit) {
          queue_generate(stream_of(args), args.out<Unit>(), rows.size(), PutBack<Unit>{args.in<Unit>(0), last});
        });
      },
      {.scratch_bytes = of_last});
}

std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : {node.inputs[0], node.outputs[0]})
    if (tensor.shape.size() >= int64_t{1} << 31) return "2^31 elements or more";
  return refuse_layouts(node);
}

}  // namespace

void add_sort(ImplementationTable& table) {
  table.add<Sort>({"cuda", refuse, build_sort});
  table.add<Argsort>({"cuda", refuse, build_argsort});
  table.add<TopK>({"cuda", refuse, build_topk});
  table.add<SortGrad>({"cuda", refuse, build_sort_grad});
}

}  // namespace symbind::cuda_backend
