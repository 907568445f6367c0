// Shared by the forward and backward kernels of recurrent layers. The sequences of a batch are independent: a thread
// runs some of them, in one direction, through all steps of a layer without waiting for others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/rnn_cells.h"
#include "symbind/backend/rnn_step.h"
#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/ops/rnn.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// Blocks of memory one after the other, in elements of type T.
class Blocks {
 public:
  int64_t add(int64_t count) {
    const int64_t at = total_;
    total_ += (count + 15) / 16 * 16;
    return at;
  }
  template <class T>
  size_t bytes() const {
    return static_cast<size_t>(total_) * sizeof(T);
  }

 private:
  int64_t total_ = 0;
};

// Sequences [first, last) of a batch in one direction.
struct SomeSequences {
  int64_t direction, first, last;
  int64_t count() const { return last - first; }
};

// Calls body(SomeSequences) for all sequences in all directions, in parallel.
template <class Body>
void for_sequences(const RnnSize& size, const Body& body) {
  const int64_t products = size.steps * size.gate_width() * (size.output + 16);
  parallel_for(size.directions * size.batch, std::max<int64_t>(1, (1 << 17) / std::max<int64_t>(products, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t direction = 0; direction < size.directions; ++direction) {
                   const int64_t first = std::max(begin, direction * size.batch) - direction * size.batch;
                   const int64_t last = std::min(end - direction * size.batch, size.batch);
                   if (first < last) body(SomeSequences{direction, first, last});
                 }
               });
}

// The number of valid steps of each sequence.
class Lengths {
 public:
  Lengths() = default;  // all steps are valid
  // `numbers` is memory for one per sequence. Fails on one that does not fit.
  Lengths(const void* given, DType dtype, int64_t* numbers, const RnnSize& size, const std::string& where)
      : numbers_(numbers) {
    convert_array(numbers, DType::int64, given, dtype, size.batch);
    for (int64_t i = 0; i < size.batch; ++i)
      require(numbers[i] >= 0 && numbers[i] <= size.steps, where, " sequence_length ", numbers[i], " of sequence ", i,
              " is not between 0 and ", size.steps);
  }
  bool given() const { return numbers_ != nullptr; }
  bool is_valid(int64_t step, int64_t sequence) const { return !numbers_ || step < numbers_[sequence]; }

 private:
  const int64_t* numbers_ = nullptr;
};

using rnn_step::CellLimits;
using rnn_step::limits_of;
using rnn_step::StepOrder;

// Kernels of float or double arrays.
std::unique_ptr<Kernel> build_rnn_grad(const NodeView& node);

}  // namespace symbind::cpu_backend
