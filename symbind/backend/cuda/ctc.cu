// A block processes a sequence: its threads are the states of a step, and synchronize between steps. See backend/ctc.h
// for the method. Labels and lengths that are not valid make the loss and the gradient of their sequence NaN: nothing
// here waits for the device to report them.
#include "symbind/ops/ctc.h"

#include "symbind/backend/ctc.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Scratch memory, in the order of its members. Of each sequence there are `longest` labels and links between them.
struct Memory {
  double* log_sums;  // of each step of each sequence: log Σ e^x over the classes
  double* reaches;   // of each step of each sequence and each state; then the probability of being in it
  double* leaves;    // two rows of states of each sequence
  double* totals;    // the logarithm of the probability of each sequence
  int64_t* labels;
  int64_t* links;  // index of the next equal label, -1: none; -2 minus that for one that is not the first
  int64_t* steps;
  int64_t* counts;  // of labels; -1: labels or lengths are not valid

  static int64_t words(const ctc::Size& size) {
    const int64_t rows = size.steps * size.batch;
    return rows + rows * size.states() + size.batch * (2 * size.states() + 1 + 2 * size.longest + 2);
  }
  Memory(const ctc::Size& size, void* scratch) {
    const int64_t rows = size.steps * size.batch;
    log_sums = static_cast<double*>(scratch);
    reaches = log_sums + rows;
    leaves = reaches + rows * size.states();
    totals = leaves + size.batch * 2 * size.states();
    labels = reinterpret_cast<int64_t*>(totals + size.batch);
    links = labels + size.batch * size.longest;
    steps = links + size.batch * size.longest;
    counts = steps + size.batch;
  }
};

// A block sums a row of scores.
template <class T>
__global__ void sum_scores(const T* data, Memory memory, ctc::Size size) {
  using C = compute_type<T>;
  for (int64_t row = blockIdx.x; row < size.steps * size.batch; row += gridDim.x) {
    const T* const scores = data + row * size.classes;
    C largest = Largest<C>::identity();
    for (int64_t k = threadIdx.x; k < size.classes; k += blockDim.x)
      largest = Largest<C>::combine(largest, load(scores[k]));
    largest = combine_block<Largest>(largest);
    const C base = largest > Largest<C>::identity() ? largest : C(0);
    C sum = 0;
    for (int64_t k = threadIdx.x; k < size.classes; k += blockDim.x) sum += vector_math::exp(load(scores[k]) - base);
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) memory.log_sums[row] = static_cast<double>(base) + static_cast<double>(vector_math::log(sum));
  }
}

// Counts the labels of a sequence where their number is not given, checks them, and links equal ones.
__global__ void read_labels(Memory memory, ctc::Size size, bool steps_given, bool counts_given) {
  __shared__ int64_t shared_count;
  for (int64_t n = blockIdx.x; n < size.batch; n += gridDim.x) {
    const int64_t* const labels = memory.labels + n * size.longest;
    if (threadIdx.x == 0) {
      if (!steps_given) memory.steps[n] = size.steps;
      int64_t count = counts_given ? memory.counts[n] : ctc::count_labels(size, labels);
      if (memory.steps[n] < 0 || memory.steps[n] > size.steps || count > size.longest) count = -1;
      for (int64_t i = 0; i < count; ++i)
        if (!size.is_label(labels[i])) count = -1;
      memory.counts[n] = shared_count = count < 0 ? -1 : count;
    }
    __syncthreads();
    const int64_t count = shared_count;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      bool first = true;
      for (int64_t k = 0; k < i && first; ++k) first = labels[k] != labels[i];
      int64_t next = i + 1;
      while (next < count && labels[next] != labels[i]) ++next;
      const int64_t link = next < count ? next : -1;
      memory.links[n * size.longest + i] = first ? link : -2 - (link + 1);
    }
    __syncthreads();  // all read the count before it is overwritten by the next sequence
  }
}
__device__ int64_t next_of(int64_t link) { return link >= -1 ? link : -3 - link; }
__device__ bool is_first(int64_t link) { return link >= -1; }

// One sequence, processed by the threads of a block.
template <class T>
struct Alignment {
  using C = compute_type<T>;

  const T* data;
  Memory memory;
  ctc::Size size;
  int64_t sequence, steps, states;
  ctc::States of_states;

  __device__ Alignment(const T* data_, const Memory& memory_, const ctc::Size& size_, int64_t sequence_)
      : data(data_),
        memory(memory_),
        size(size_),
        sequence(sequence_),
        steps(memory_.steps[sequence_]),
        states(2 * memory_.counts[sequence_] + 1),
        of_states{memory_.labels + sequence_ * size_.longest, size_.blank()} {}

  __device__ double* reach(int64_t step) const {
    return memory.reaches + (sequence * size.steps + step) * size.states();
  }
  __device__ double* leave(int64_t step) const { return memory.leaves + (2 * sequence + step % 2) * size.states(); }
  __device__ double emits(int64_t step, int64_t state) const {
    return static_cast<double>(load(data[size.row(step, sequence) + of_states.class_of(state)])) -
           memory.log_sums[step * size.batch + sequence];
  }

  // The logarithm of the probability of the labels, for all threads.
  __device__ double forward() const {
    for (int64_t s = threadIdx.x; s < states; s += blockDim.x) reach(0)[s] = s < 2 ? emits(0, s) : ctc::impossible;
    __syncthreads();
    for (int64_t t = 1; t < steps; ++t) {
      double* const here = reach(t);
      const double* const before = reach(t - 1);
      for (int64_t s = threadIdx.x; s < states; s += blockDim.x)
        here[s] = ctc::log_sum<C>(before[s], s >= 1 ? before[s - 1] : ctc::impossible,
                                  of_states.skips(s) ? before[s - 2] : ctc::impossible) +
                  emits(t, s);
      __syncthreads();
    }
    const double* const last = reach(steps - 1);
    const double total =
        ctc::log_sum<C>(last[states - 1], states >= 2 ? last[states - 2] : ctc::impossible, ctc::impossible);
    __syncthreads();  // backward() overwrites what all have read
    return total;
  }

  // Replaces the forward variable of a state by the probability of being in it.
  __device__ void backward(double total) const {
    for (int64_t t = steps - 1; t >= 0; --t) {
      const double* const after = leave(t + 1);
      for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
        double remains = s >= states - 2 ? 0.0 : ctc::impossible;
        if (t < steps - 1)
          remains = ctc::log_sum<C>(after[s], s + 1 < states ? after[s + 1] : ctc::impossible,
                                    s + 2 < states && of_states.skips(s + 2) ? after[s + 2] : ctc::impossible);
        reach(t)[s] = static_cast<double>(ctc::probability<C>(reach(t)[s] + remains - total));
        leave(t)[s] = remains + emits(t, s);
      }
      __syncthreads();
    }
  }
};

template <class T>
__global__ void align(const T* data, Memory memory, T* losses, ctc::Size size, bool with_gradient) {
  for (int64_t n = blockIdx.x; n < size.batch; n += gridDim.x) {
    double total = ctc::impossible;
    if (memory.counts[n] >= 0 && memory.steps[n] > 0) {
      const Alignment<T> alignment(data, memory, size, n);
      total = alignment.forward();
      if (with_gradient && total != ctc::impossible) alignment.backward(total);
    }
    if (threadIdx.x == 0) {
      memory.totals[n] = total;
      const double loss = total == ctc::impossible ? 0.0 : -total;
      losses[n] = store<T>(static_cast<compute_type<T>>(
          memory.counts[n] < 0 ? static_cast<double>(freestanding::quiet_nan<float>()) : loss));
    }
  }
}

// A block writes a row: the softmax of each class, minus the probability of being in one of its states. The states of a
// class are summed by one thread in their order, those of the blank by all.
template <class T>
__global__ void write_gradient(const T* data, Memory memory, T* gradient, ctc::Size size) {
  using C = compute_type<T>;
  for (int64_t row = blockIdx.x; row < size.steps * size.batch; row += gridDim.x) {
    const int64_t step = row / size.batch, n = row % size.batch, count = memory.counts[n];
    const T* const scores = data + row * size.classes;
    T* const out = gradient + row * size.classes;
    const bool valid = count >= 0;
    if (!valid || step >= memory.steps[n] || memory.totals[n] == ctc::impossible) {
      for (int64_t k = threadIdx.x; k < size.classes; k += blockDim.x)
        out[k] = store<T>(valid ? C(0) : static_cast<C>(freestanding::quiet_nan<float>()));
      continue;  // for all threads of the block
    }
    const double log_sum = memory.log_sums[row];
    const auto softmax = [&](int64_t k) { return ctc::probability<C>(static_cast<double>(load(scores[k])) - log_sum); };
    for (int64_t k = threadIdx.x; k < size.classes; k += blockDim.x) out[k] = store<T>(softmax(k));
    const double* const in_state = memory.reaches + (n * size.steps + step) * size.states();
    C blank = 0;
    for (int64_t i = threadIdx.x; i <= count; i += blockDim.x) blank += static_cast<C>(in_state[2 * i]);
    blank = combine_block<Add>(blank);  // every thread has written its classes when this returns
    if (threadIdx.x == 0) out[size.blank()] = store<T>(softmax(size.blank()) - blank);
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      const int64_t* const links = memory.links + n * size.longest;
      if (!is_first(links[i])) continue;
      C sum = 0;
      for (int64_t k = i; k >= 0; k = next_of(links[k])) sum += static_cast<C>(in_state[2 * k + 1]);
      const int64_t label = memory.labels[n * size.longest + i];
      out[label] = store<T>(softmax(label) - sum);
    }
  }
}

void queue_whole_numbers(cudaStream_t stream, int64_t* dst, const void* src, DType from, int64_t count) {
  if (count == 0) return;
  if (from == DType::int64)
    cudaMemcpyAsync(dst, src, static_cast<size_t>(count) * sizeof(int64_t), cudaMemcpyDeviceToDevice, stream);
  else
    queue_cast(stream, dst, DType::int64, src, from, count);
}

std::string refuse(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const auto& p = node.as<CTCLoss>();
  const Shape &data = node.inputs[0].shape, &label = node.inputs[1].shape;
  const ctc::Size size{data[0], data[1], data[2], label[1], p.blank_label == "first"};
  std::vector<DType> types;
  for (const auto& input : node.inputs) types.push_back(input.dtype);
  // As many threads as there are states, in whole warps.
  const auto threads = static_cast<unsigned>(std::clamp<int64_t>((size.states() + 31) / 32 * 32, 32, block_size));
  return visit_floating(types[0], [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [=, steps_given = p.use_data_lengths, counts_given = p.use_label_lengths](const Args& args) {
          if (size.batch == 0) return;
          const cudaStream_t stream = stream_of(args);
          const Memory memory(size, args.scratch);
          const int64_t rows = size.steps * size.batch;
          const auto batch_blocks = blocks_for(size.batch, 1), row_blocks = blocks_for(rows, 1);
          queue_whole_numbers(stream, memory.labels, args.inputs[1], types[1], size.batch * size.longest);
          if (steps_given) queue_whole_numbers(stream, memory.steps, args.inputs[2], types[2], size.batch);
          if (counts_given)
            queue_whole_numbers(stream, memory.counts, args.inputs[types.size() - 1], types.back(), size.batch);
          read_labels<<<batch_blocks, 32, 0, stream>>>(memory, size, steps_given, counts_given);
          if (rows > 0) sum_scores<T><<<row_blocks, 128, 0, stream>>>(args.in<T>(0), memory, size);
          T* const gradient = args.out<T>(1);
          align<T>
              <<<batch_blocks, threads, 0, stream>>>(args.in<T>(0), memory, args.out<T>(0), size, gradient != nullptr);
          if (gradient && rows > 0)
            write_gradient<T><<<row_blocks, 128, 0, stream>>>(args.in<T>(0), memory, gradient, size);
        },
        {.scratch_bytes = static_cast<size_t>(Memory::words(size)) * sizeof(double)});
  });
}

}  // namespace

void add_ctc(ImplementationTable& table) { table.add<CTCLoss>({"cuda", refuse, build}); }

}  // namespace symbind::cuda_backend
