// Several elementwise operators as one: a small program that passes/fuse_pointwise.cc builds. Each element of the
// result is a function of the same element of each input, so intermediate values need no arrays.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "symbind/graph/builder.h"

namespace symbind {

// An elementwise operator over registers. The inputs of the program are the registers 0, 1, …; the result of each
// instruction is the next one.
struct PointwiseInstruction {
  const OpDef* op = nullptr;
  std::shared_ptr<const void> params;
  std::vector<int> operands;
};

// The result is that of the last instruction.
struct Pointwise {
  Required<int64_t> num_args = {};
  std::string program;  // the instructions as text, for tables of plans
  std::vector<PointwiseInstruction> instructions = {};
};

// The same for matrices with `columns` columns, with several results: those that others read too. An array may hold
// several of the matrices side by side, such as the gates of a recurrent cell.
struct PointwiseCell {
  // Columns [offset, offset + columns) of an array (rows, stride).
  struct Window {
    int array = 0;  // index of the input or output
    int64_t offset = 0, stride = 0;
  };
  struct Result {
    int source = 0;  // its register
    Window window;
  };
  Required<int64_t> num_args = {};
  int64_t num_outputs = 1;
  int64_t columns = 1;
  std::string program;             // as above
  std::vector<Window> reads = {};  // of the inputs: the registers 0, 1, …
  std::vector<PointwiseInstruction> instructions = {};
  std::vector<Result> results = {};

  // Is the matrix the whole array?
  bool is_whole(const Window& window) const { return window.stride == columns; }
};

// Appends the instructions of an operator whose operands are in these registers; the first result gets register `next`.
// A sum of many arrays becomes a chain of sums.
void append_instructions(const OpDef& op, const std::shared_ptr<const void>& params, const std::vector<int>& operands,
                         int next, std::vector<PointwiseInstruction>& program);

// "2 mul, add, tanh": for Pointwise::program.
std::string program_text(const std::vector<PointwiseInstruction>& instructions);

}  // namespace symbind
