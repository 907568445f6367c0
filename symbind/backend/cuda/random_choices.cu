// Random choices among classes, and random orders: the same as on a CPU, which draws them sequentially. Their
// dependencies are resolved in parallel.
#include "symbind/backend/cuda/random_choices.h"

#include <bit>

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/units.cuh"
#include "symbind/backend/distributions.h"
#include "symbind/ops/random.h"

namespace symbind::cuda_backend {
namespace {

using Number = unsigned long long;  // the type that atomic functions support

uint64_t slot_of(const NodeView& node) { return static_cast<uint64_t>(std::max(node.random_slot, 0)); }

// The sum of the values of the threads before this one; *total is that of all. The block has `block_size` threads.
template <class T>
__device__ T sum_before(T value, T* total) {
  __shared__ T sums[2][block_size];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // the sums of an earlier call have been read
  sums[0][thread] = value;
  int now = 0;
  for (int offset = 1; offset < block_size; offset *= 2) {
    __syncthreads();
    sums[1 - now][thread] = sums[now][thread] + (thread >= offset ? sums[now][thread - offset] : T(0));
    now = 1 - now;
  }
  __syncthreads();
  *total = sums[now][block_size - 1];
  return thread == 0 ? T(0) : sums[now][thread - 1];
}

// ---- multinomial ----------------------------------------------------------------------------------------------------

// sums[row, k] = probabilities[row, 0] + … + probabilities[row, k]: a thread for each row, or for long rows a block,
// whose threads process neighbouring pieces.
template <class T>
__global__ void sum_up_threads(const T* probabilities, int64_t rows, int64_t classes, double* sums) {
  for (int64_t row = first_element(); row < rows; row += element_step()) {
    double sum = 0;
    for (int64_t k = row * classes; k < (row + 1) * classes; ++k)
      sums[k] = sum += static_cast<double>(load(probabilities[k]));
  }
}
template <class T>
__global__ void sum_up_blocks(const T* probabilities, int64_t rows, int64_t classes, double* sums) {
  const int64_t piece = (classes + block_size - 1) / block_size;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t first = threadIdx.x * piece < classes ? threadIdx.x * piece : classes;
    const int64_t last = first + piece < classes ? first + piece : classes;
    const T* const own = probabilities + row * classes;
    double sum = 0, total;
    for (int64_t k = first; k < last; ++k) sum += static_cast<double>(load(own[k]));
    double before = sum_before(sum, &total);
    double within = 0;
    for (int64_t k = first; k < last; ++k) {
      within += static_cast<double>(load(own[k]));
      sums[row * classes + k] = before + within;
    }
  }
}

template <class T>
__global__ void choose_classes(const T* data, const double* sums, AnyOutput indices, T* logs, int64_t count,
                               int64_t each, int64_t classes, const RandomCursor* cursor, uint64_t slot) {
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    sampling::RandomStream stream(key, draw, static_cast<uint64_t>(i));
    const int64_t row = i / each;
    const int64_t chosen = sampling::class_of(sums + row * classes, classes, stream.uniform());
    if (indices.data) indices.set(i, chosen);
    if (logs) logs[i] = store<T>(libm::log(load(data[row * classes + chosen])));
  }
}

struct MultinomialSize {
  int64_t classes, rows, each;
  MultinomialSize(const Shape& data, int64_t count)
      : classes(data[data.rank() - 1]),
        rows(data.size(0, data.rank() - 1)),
        each(rows == 0 ? 1 : std::max<int64_t>(1, count / rows)) {}
};

std::unique_ptr<Kernel> build_multinomial(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t count = node.outputs[0].shape.size();
  const MultinomialSize size(shape, count);
  const bool prob = node.as<SampleMultinomial>().get_prob;
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [=, slot = slot_of(node), dtype = node.outputs[0].dtype](const Args& args) {
          if (count == 0) return;
          const cudaStream_t stream = stream_of(args);
          const T* const data = args.in<T>(0);
          auto* const sums = static_cast<double*>(args.scratch);
          if (size.classes <= 256)
            sum_up_threads<<<blocks_for(size.rows), block_size, 0, stream>>>(data, size.rows, size.classes, sums);
          else
            sum_up_blocks<<<blocks_for(size.rows, 1), block_size, 0, stream>>>(data, size.rows, size.classes, sums);
          choose_classes<<<blocks_for(count), block_size, 0, stream>>>(data, sums, AnyOutput{args.outputs[0], dtype},
                                                                       prob ? args.out<T>(1) : nullptr, count,
                                                                       size.each, size.classes, args.random, slot);
        },
        {.scratch_bytes = static_cast<size_t>(shape.size()) * sizeof(double)});
  });
}

// Without classes there is nothing to draw, which the host reports.
std::string refuse_multinomial(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  if (!is_floating(node.inputs[0].dtype)) return "wants floating numbers";
  return shape[shape.rank() - 1] == 0 && node.outputs[0].shape.size() > 0 ? "there are no classes" : "";
}

// log p has the slope 1 / p at the classes that were drawn: each class sums the gradients of the draws that chose it,
// in order.
template <class T>
__global__ void sum_choices(const T* dy, const T* data, AnyInput indices, T* out, int64_t elements, int64_t each,
                            int64_t classes) {
  for (int64_t at = first_element(); at < elements; at += element_step()) {
    const int64_t row = at / classes, own = at % classes;
    double sum = 0;
    for (int64_t i = row * each; i < (row + 1) * each; ++i) {
      const int64_t index = indices.at<int64_t>(i);
      const int64_t chosen = index < 0 ? 0 : index < classes ? index : classes - 1;
      if (chosen == own) sum += static_cast<double>(load(dy[i])) / static_cast<double>(load(data[at]));
    }
    out[at] = convert_element<T>(sum);
  }
}

std::unique_ptr<Kernel> build_multinomial_gradient(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  const int64_t rows = shape.size(0, shape.rank() - 1), each = rows == 0 ? 1 : node.inputs[0].shape.size() / rows;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [each, elements = shape.size(), classes = shape[shape.rank() - 1],
                            dtype = node.inputs[2].dtype](const Args& args) {
      if (elements == 0) return;
      sum_choices<<<blocks_for(elements), block_size, 0, stream_of(args)>>>(
          args.in<T>(0), args.in<T>(1), AnyInput{args.inputs[2], dtype}, args.out<T>(), elements, each, classes);
    });
  });
}

// ---- Different classes ----------------------------------------------------------------------------------------------

// The classes of a row that have been drawn, by open addressing, and the first draw of each. A power of two of entries,
// at least twice as many as classes.
struct SeenClasses {
  Number *classes, *firsts;
  Number entries;
  static constexpr Number none = ~Number{0};

  __device__ void clear() const {
    for (Number at = threadIdx.x; at < entries; at += blockDim.x) classes[at] = firsts[at] = none;
  }
  // The entry of the class, which is added if it is new, with the earliest draw.
  __device__ Number enter(Number chosen, Number draw) const {
    Number at = (chosen * 0x9E3779B97F4A7C15ull >> 20) % entries;
    while (true) {
      const Number there = atomicCAS(classes + at, none, chosen);
      if (there == none || there == chosen) break;
      at = (at + 1) % entries;
    }
    atomicMin(firsts + at, draw);
    return at;
  }
};

// Classes are drawn until there are enough distinct ones: a block for each row makes as many draws at a time as it has
// threads, and keeps those that are the first of their class. Whichever thread is first, the result is that of draws in
// order.
__global__ void draw_different(int64_t* classes, int64_t* tries, int64_t rows, int64_t wanted, int64_t range_max,
                               const RandomCursor* cursor, uint64_t slot, Number* scratch, Number entries) {
  const SeenClasses seen{scratch + blockIdx.x * 2 * entries, scratch + (blockIdx.x * 2 + 1) * entries, entries};
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    __syncthreads();
    seen.clear();
    __syncthreads();
    int64_t found = 0;
    for (int64_t first = 0; found < wanted; first += blockDim.x) {
      const int64_t own = first + threadIdx.x;
      // Number `own` of the row's stream: two numbers to a block.
      const PhiloxBlock block = philox(key, draw, static_cast<uint64_t>(row) + (static_cast<uint64_t>(own / 2) << 40));
      const double number = unit_double(block.words[own % 2 * 2], block.words[own % 2 * 2 + 1]);
      const int64_t chosen = sampling::zipfian_class(number, range_max);
      const Number at = seen.enter(static_cast<Number>(chosen), static_cast<Number>(own));
      __syncthreads();
      const int is_first = seen.firsts[at] == static_cast<Number>(own);
      int total;
      const int64_t index = found + sum_before(is_first, &total);
      if (is_first && index < wanted) {
        if (classes) classes[row * wanted + index] = chosen;
        if (tries && index == wanted - 1) tries[row] = own + 1;
      }
      found += total;
      __syncthreads();
    }
    if (wanted == 0 && threadIdx.x == 0 && tries) tries[row] = 0;
  }
}

constexpr int64_t zipfian_blocks = 64;

std::unique_ptr<Kernel> build_unique_zipfian(const NodeView& node) {
  const auto& p = node.as<SampleUniqueZipfian>();
  const int64_t rows = p.shape[0], wanted = p.shape[1], range_max = p.range_max;
  const auto entries = std::bit_ceil(static_cast<Number>(2 * (wanted + block_size)));
  const int64_t blocks = std::clamp<int64_t>(rows, 1, zipfian_blocks);
  return make_step(node,
                   [=, slot = slot_of(node)](const Args& args) {
                     if (rows == 0) return;
                     draw_different<<<static_cast<unsigned>(blocks), block_size, 0, stream_of(args)>>>(
                         args.out<int64_t>(0), args.out<int64_t>(1), rows, wanted, range_max, args.random, slot,
                         static_cast<Number*>(args.scratch), entries);
                   },
                   {.scratch_bytes = static_cast<size_t>(blocks) * 2 * entries * sizeof(Number)});
}

// ---- Random orders --------------------------------------------------------------------------------------------------

__global__ void count_up(int64_t* order, Number* reserved, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    order[i] = i;
    reserved[i] = 0;
  }
}

// The swaps of Fisher and Yates: for left = count, …, 2 the elements left - 1 and below(left). A block performs as many
// swaps at a time as it has threads. Each reserves its two elements for the earliest swap that needs them (the greatest
// `left`); a thread that has both swaps them, the others try again: the order is that of sequential swaps.
constexpr int swap_threads = 1024;
__global__ void __launch_bounds__(swap_threads)
    swap_elements(int64_t* order, Number* reserved, int64_t count, const RandomCursor* cursor, uint64_t slot) {
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t most = count; most > 1; most -= swap_threads) {
    const int64_t left = most - threadIdx.x;
    bool waits = left > 1;
    int64_t other = 0;
    if (waits) {
      sampling::RandomStream stream(key, draw, static_cast<uint64_t>(left));
      other = static_cast<int64_t>(stream.below(static_cast<uint64_t>(left)));
    }
    while (__syncthreads_or(waits)) {
      if (waits) {
        atomicMax(reserved + left - 1, static_cast<Number>(left));
        atomicMax(reserved + other, static_cast<Number>(left));
      }
      __syncthreads();
      const bool swaps =
          waits && reserved[left - 1] == static_cast<Number>(left) && reserved[other] == static_cast<Number>(left);
      __syncthreads();
      if (waits) reserved[left - 1] = reserved[other] = 0;
      if (swaps) {
        const int64_t kept = order[left - 1];
        order[left - 1] = order[other];
        order[other] = kept;
        waits = false;
      }
    }
  }
}

template <class Unit>
__global__ void take_rows(const Unit* from, const int64_t* order, Unit* to, int64_t units, int64_t per_row) {
  for (int64_t i = first_element(); i < units; i += element_step()) {
    const int64_t row = i / per_row;
    to[i] = from[order[row] * per_row + (i - row * per_row)];
  }
}

std::unique_ptr<Kernel> build_shuffle(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  const size_t row_bytes = static_cast<size_t>(rows == 0 ? 0 : shape.size() / rows) * size_of(node.inputs[0].dtype);
  return make_step(node,
                   [=, slot = slot_of(node)](const Args& args) {
                     if (rows == 0 || row_bytes == 0) return;
                     const cudaStream_t stream = stream_of(args);
                     auto* const order = static_cast<int64_t*>(args.scratch);
                     auto* const reserved = reinterpret_cast<Number*>(order + rows);
                     count_up<<<blocks_for(rows), block_size, 0, stream>>>(order, reserved, rows);
                     swap_elements<<<1, swap_threads, 0, stream>>>(order, reserved, rows, args.random, slot);
                     const size_t unit = unit_dividing(row_bytes | reinterpret_cast<uintptr_t>(args.inputs[0]) |
                                                       reinterpret_cast<uintptr_t>(args.outputs[0]));
                     visit_wide_unit(unit, [&]<class Unit>(Unit) {
                       const auto per_row = static_cast<int64_t>(row_bytes / sizeof(Unit));
                       take_rows<<<blocks_for(rows * per_row), block_size, 0, stream>>>(
                           args.in<Unit>(0), order, args.out<Unit>(), rows * per_row, per_row);
                     });
                   },
                   {.scratch_bytes = static_cast<size_t>(rows) * (sizeof(int64_t) + sizeof(Number))});
}

std::string accept(const NodeView&) { return ""; }
std::string refuse_layouts(const NodeView& node) {
  return node.inputs[0].layout == Layout::plain ? "" : "wants plain arrays";
}

}  // namespace

void add_random_choices(ImplementationTable& table) {
  table.add<SampleMultinomial>({"cuda", refuse_multinomial, build_multinomial});
  table.add<SampleMultinomialGrad>({"cuda", accept, build_multinomial_gradient});
  table.add<SampleUniqueZipfian>({"cuda", accept, build_unique_zipfian});
  table.add<Shuffle>({"cuda", refuse_layouts, build_shuffle});
}

}  // namespace symbind::cuda_backend
