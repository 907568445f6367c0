// All three move rows: a row is one step of one sequence. Lengths are read in every run; invalid lengths fail, except
// for a mask, which has nothing to do for a sequence longer than the array.
#include "symbind/ops/sequence.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The offsets of the rows of `shape`, and the lengths of its sequences.
class Sequences {
 public:
  Sequences(const NodeView& node, const Shape& shape, int64_t axis, int lengths_input)
      : steps_(shape[static_cast<int>(axis)]),
        batch_(shape[axis == 0 ? 1 : 0]),
        row_(shape.size(2, shape.rank())),
        time_first_(axis == 0),
        lengths_input_(lengths_input),
        dtype_(lengths_input < 0 ? DType::int64 : node.inputs[static_cast<size_t>(lengths_input)].dtype),
        where_(node.where()) {
    if (lengths_input_ >= 0 || !time_first_) return;
    row_ *= batch_;  // all sequences have the same length: one step of all is one row
    batch_ = 1;
  }

  int64_t steps() const { return steps_; }
  int64_t batch() const { return batch_; }
  int64_t row() const { return row_; }  // elements
  int64_t grain() const { return std::max<int64_t>(1, element_grain / std::max<int64_t>(1, row_)); }
  size_t scratch_bytes() const { return static_cast<size_t>(batch_) * sizeof(int64_t); }

  int64_t offset(int64_t step, int64_t sequence) const {
    return (time_first_ ? step * batch_ + sequence : sequence * steps_ + step) * row_;
  }

  // The lengths, in scratch; every one is in [least, most].
  const int64_t* read(const Args& args, int64_t least, int64_t most) const {
    auto* const lengths = static_cast<int64_t*>(args.scratch);
    if (lengths_input_ < 0)
      std::fill_n(lengths, batch_, steps_);
    else
      convert_array(lengths, DType::int64, args.inputs[lengths_input_], dtype_, batch_);
    for (int64_t i = 0; i < batch_; ++i)
      require(lengths[i] >= least && lengths[i] <= most, where_, " sequence_length ", lengths[i], " of sequence ", i,
              " is not between ", least, " and ", most);
    return lengths;
  }

  // body(step, sequence) for every row.
  template <class Body>
  void for_rows(const Body& body) const {
    parallel_for(steps_ * batch_, grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i / batch_, i % batch_);
    });
  }

 private:
  int64_t steps_, batch_, row_;
  bool time_first_;
  int lengths_input_;  // -1: none
  DType dtype_;
  std::string where_;
};

template <class P>
Sequences sequences_of(const NodeView& node, const Shape& shape, int lengths_input) {
  const auto& p = node.as<P>();
  return Sequences(node, shape, p.axis, p.use_sequence_length ? lengths_input : -1);
}

std::unique_ptr<Kernel> build_mask(const NodeView& node) {
  const auto& p = node.as<SequenceMask>();
  if (!p.use_sequence_length) return build_copy(node);
  const auto sequences = sequences_of<SequenceMask>(node, node.inputs[0].shape, 1);
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel(
        [=, value = convert<T>(p.value)](const Args& args) {
          const T* const x = args.in<T>(0);
          T* const y = args.out<T>();
          const int64_t* const lengths = sequences.read(args, 0, std::numeric_limits<int64_t>::max());
          sequences.for_rows([&](int64_t step, int64_t sequence) {
            const int64_t at = sequences.offset(step, sequence);
            if (step >= lengths[sequence])
              std::fill_n(y + at, sequences.row(), value);
            else if (x != y)
              std::copy_n(x + at, sequences.row(), y + at);
          });
        },
        {.in_place = {{0, 0}}, .scratch_bytes = sequences.scratch_bytes()});
  });
}

std::unique_ptr<Kernel> build_reverse(const NodeView& node) {
  const auto sequences = sequences_of<SequenceReverse>(node, node.inputs[0].shape, 1);
  const auto row = static_cast<size_t>(sequences.row()), bytes = size_of(node.outputs[0].dtype);
  return make_kernel(
      [=](const Args& args) {
        const auto* const x = args.in<std::byte>(0);
        auto* const y = args.out<std::byte>();
        const int64_t* const lengths = sequences.read(args, 0, sequences.steps());
        sequences.for_rows([&](int64_t step, int64_t sequence) {
          const int64_t length = lengths[sequence], from = step < length ? length - 1 - step : step;
          std::memcpy(y + static_cast<size_t>(sequences.offset(step, sequence)) * bytes,
                      x + static_cast<size_t>(sequences.offset(from, sequence)) * bytes, row * bytes);
        });
      },
      {.scratch_bytes = sequences.scratch_bytes()});
}

std::unique_ptr<Kernel> build_last(const NodeView& node) {
  const auto sequences = sequences_of<SequenceLast>(node, node.inputs[0].shape, 1);
  const auto row = static_cast<size_t>(sequences.row()) * size_of(node.outputs[0].dtype);
  return make_kernel(
      [=, bytes = size_of(node.outputs[0].dtype)](const Args& args) {
        const auto* const x = args.in<std::byte>(0);
        auto* const y = args.out<std::byte>();
        const int64_t* const lengths = sequences.read(args, 1, sequences.steps());
        parallel_for(sequences.batch(), sequences.grain(), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            std::memcpy(y + static_cast<size_t>(i) * row,
                        x + static_cast<size_t>(sequences.offset(lengths[i] - 1, i)) * bytes, row);
        });
      },
      {.scratch_bytes = sequences.scratch_bytes()});
}

std::unique_ptr<Kernel> build_last_grad(const NodeView& node) {
  const auto sequences = sequences_of<SequenceLastGrad>(node, node.outputs[0].shape, 2);
  const auto row = static_cast<size_t>(sequences.row()) * size_of(node.outputs[0].dtype);
  return make_kernel(
      [=, bytes = size_of(node.outputs[0].dtype)](const Args& args) {
        const auto* const dy = args.in<std::byte>(0);
        auto* const dx = args.out<std::byte>();
        const int64_t* const lengths = sequences.read(args, 1, sequences.steps());
        sequences.for_rows([&](int64_t step, int64_t sequence) {
          auto* const to = dx + static_cast<size_t>(sequences.offset(step, sequence)) * bytes;
          if (step == lengths[sequence] - 1)
            std::memcpy(to, dy + static_cast<size_t>(sequence) * row, row);
          else
            std::memset(to, 0, row);
        });
      },
      {.scratch_bytes = sequences.scratch_bytes()});
}

}  // namespace

void add_sequence(ImplementationTable& table) {
  add_plain<SequenceMask>(table, build_mask);
  add_plain<SequenceReverse>(table, build_reverse);
  add_plain<SequenceLast>(table, build_last);
  add_plain<SequenceLastGrad>(table, build_last_grad);
}

}  // namespace symbind::cpu_backend
