// Each thread finds the step of the sequence that its element of the result comes from. Invalid lengths are reported
// when the device is synchronized (faults.h).
#include "symbind/ops/sequence.h"

#include <limits>

#include "symbind/backend/cuda/copy.h"
#include "symbind/backend/cuda/generate.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/sequence_length.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/units.cuh"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// An array of sequences whose steps are rows of `row` units, and the range of their lengths.
struct Sequences {
  int64_t steps, batch, row;
  bool time_first;
  AnyArray lengths;  // no data: all steps are valid
  LengthRange range;
  FaultNotes faults;

  struct At {
    int64_t step, sequence, column;
  };
  __device__ At at(int64_t i) const {
    const Divided in_row = divided(i, row), outer = divided(in_row.quotient, time_first ? batch : steps);
    return time_first ? At{outer.quotient, outer.rest, in_row.rest} : At{outer.rest, outer.quotient, in_row.rest};
  }
  __device__ int64_t index(const At& at) const {
    return (time_first ? at.step * batch + at.sequence : at.sequence * steps + at.step) * row + at.column;
  }
  __device__ int64_t length(int64_t sequence) const {
    if (!lengths.data) return steps;
    return length_of_sequence(lengths, sequence, range, faults);
  }
};

// The properties known when a kernel is built.
class SequencesInput {
 public:
  // `most`: -1 for the number of steps.
  SequencesInput(const NodeView& node, const Shape& shape, int64_t axis, int lengths_input, int64_t least, int64_t most)
      : input_(lengths_input), where_(node.where()) {
    sequences_.steps = shape[static_cast<int>(axis)];
    sequences_.batch = shape[axis == 0 ? 1 : 0];
    sequences_.row = shape.size(2, shape.rank());
    sequences_.time_first = axis == 0;
    sequences_.range = {least, most < 0 ? sequences_.steps : most};
    if (input_ >= 0) {
      sequences_.lengths.dtype = node.inputs[static_cast<size_t>(input_)].dtype;
      sequences_.faults = fault_notes(node);
    }
  }
  int64_t row() const { return sequences_.row; }
  int64_t elements() const { return sequences_.steps * sequences_.batch * sequences_.row; }

  Sequences of(const Args& args, int64_t units_in_row) const {
    require(sequences_.steps >= sequences_.range.least || sequences_.batch == 0, where_,
            " sequences without steps have no last one");
    Sequences sequences = sequences_;
    if (input_ >= 0) sequences.lengths.data = args.inputs[input_];
    sequences.row = units_in_row;
    return sequences;
  }

 private:
  Sequences sequences_ = {};
  int input_;
  std::string where_;
};

template <class P>
SequencesInput sequences_of(const NodeView& node, const Shape& shape, int lengths_input, int64_t least, int64_t most) {
  const auto& p = node.as<P>();
  return SequencesInput(node, shape, p.axis, p.use_sequence_length ? lengths_input : -1, least, most);
}

// ---- The mask -------------------------------------------------------------------------------------------------------

template <class Unit>
struct Masked {
  const Unit* data;
  Sequences sequences;
  Unit value;
  __device__ Unit operator()(int64_t i) const {
    const Sequences::At at = sequences.at(i);
    return at.step < sequences.length(at.sequence) ? data[i] : value;
  }
};

std::unique_ptr<Kernel> build_mask(const NodeView& node) {
  const auto& p = node.as<SequenceMask>();
  if (!p.use_sequence_length) return build_copy(node);
  const DType dtype = node.outputs[0].dtype;
  // A sequence may be longer than the array.
  const auto input = sequences_of<SequenceMask>(node, node.inputs[0].shape, 1, 0, std::numeric_limits<int64_t>::max());
  return make_step(node,
                   [input, element = size_of(dtype), value = bits_of(p.value, dtype)](const Args& args) {
                     if (input.elements() == 0) return;
                     const Sequences sequences = input.of(args, input.row());
                     visit_unit(element, [&]<class Unit>(Unit) {
                       queue_generate(stream_of(args), args.out<Unit>(), input.elements(),
                                      Masked<Unit>{args.in<Unit>(0), sequences, static_cast<Unit>(value)});
                     });
                   },
                   {.in_place = {{0, 0}}});
}

// ---- Rows moved -----------------------------------------------------------------------------------------------------

enum class Move { reverse, last, last_grad };

template <class Unit>
struct Moved {
  const Unit* from;
  Sequences sequences;
  Move move;
  __device__ Unit operator()(int64_t i) const {
    if (move == Move::last) {
      const Divided at = divided(i, sequences.row);
      return from[sequences.index({sequences.length(at.quotient) - 1, at.quotient, at.rest})];
    }
    Sequences::At at = sequences.at(i);
    const int64_t length = sequences.length(at.sequence);
    if (move == Move::last_grad) return at.step == length - 1 ? from[at.sequence * sequences.row + at.column] : Unit{};
    if (at.step < length) at.step = length - 1 - at.step;
    return from[sequences.index(at)];
  }
};

std::unique_ptr<Kernel> build_move(const NodeView& node, const SequencesInput& input, Move move) {
  return make_step(node, [input, move, element = size_of(node.outputs[0].dtype)](const Args& args) {
    const uint64_t row = static_cast<uint64_t>(input.row()) * element;
    const size_t unit =
        unit_dividing(row | reinterpret_cast<uintptr_t>(args.inputs[0]) | reinterpret_cast<uintptr_t>(args.outputs[0]));
    const auto units = static_cast<int64_t>(row / unit);
    const Sequences sequences = input.of(args, units);
    const int64_t rows = move == Move::last ? sequences.batch : sequences.batch * sequences.steps;
    visit_wide_unit(unit, [&]<class Unit>(Unit) {
      queue_generate(stream_of(args), args.out<Unit>(), rows * units, Moved<Unit>{args.in<Unit>(0), sequences, move});
    });
  });
}

}  // namespace

void add_sequence(ImplementationTable& table) {
  table.add<SequenceMask>({"cuda", refuse_layouts, build_mask});
  table.add<SequenceReverse>({"cuda", refuse_layouts, [](const NodeView& node) {
                                const Shape& shape = node.inputs[0].shape;
                                return build_move(node, sequences_of<SequenceReverse>(node, shape, 1, 0, -1),
                                                  Move::reverse);
                              }});
  table.add<SequenceLast>({"cuda", refuse_layouts, [](const NodeView& node) {
                             const Shape& shape = node.inputs[0].shape;
                             return build_move(node, sequences_of<SequenceLast>(node, shape, 1, 1, -1), Move::last);
                           }});
  table.add<SequenceLastGrad>({"cuda", refuse_layouts, [](const NodeView& node) {
                                 const Shape& shape = node.outputs[0].shape;
                                 return build_move(node, sequences_of<SequenceLastGrad>(node, shape, 2, 1, -1),
                                                   Move::last_grad);
                               }});
}

}  // namespace symbind::cuda_backend
