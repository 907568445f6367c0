#include "symbind/ops/sequence.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Numbers = std::vector<double>;

// Three steps of two sequences: 0 2 4 and 1 3 5.
const NDArray& two_sequences() {
  static const NDArray data = array(Numbers{0, 1, 2, 3, 4, 5}, {3, 2});
  return data;
}

TEST(Sequence, LengthsSayWhereEachOneEnds) {
  const NDArray& data = two_sequences();
  const NDArray lengths = array({1, 3});
  EXPECT_EQ(sequence_mask(data, lengths, {.use_sequence_length = true, .value = -1}).to_vector<double>(),
            (Numbers{0, 1, -1, 3, -1, 5}));
  EXPECT_EQ(sequence_last(data, lengths, {.use_sequence_length = true}).to_vector<double>(), (Numbers{0, 5}));
  EXPECT_EQ(sequence_reverse(data, lengths, {.use_sequence_length = true}).to_vector<double>(),
            (Numbers{0, 5, 2, 3, 4, 1}));
}

TEST(Sequence, WithoutLengthsAllAreWhole) {
  const NDArray& data = two_sequences();
  EXPECT_EQ(sequence_mask(data).to_vector<double>(), data.to_vector<double>());
  EXPECT_EQ(sequence_last(data).to_vector<double>(), (Numbers{4, 5}));
  EXPECT_EQ(sequence_last(data, {.axis = 1}).to_vector<double>(), (Numbers{1, 3, 5}));
  EXPECT_EQ(sequence_reverse(data).to_vector<double>(), (Numbers{4, 5, 2, 3, 0, 1}));
}

TEST(Sequence, LengthsThatDoNotFitAreRefused) {
  const auto tried = [](const char* op, double length) {
    invoke(op, {two_sequences(), array({1, length})}, {{"use_sequence_length", "True"}});
  };
  for (const char* op : {"SequenceMask", "SequenceLast", "SequenceReverse"})
    for (const double length : {-1.0, std::nan("")})
      EXPECT_TRUE(fails_with([&] { tried(op, length); }, "sequence_length")) << op << " " << length;
  for (const char* op : {"SequenceLast", "SequenceReverse"})
    EXPECT_TRUE(fails_with([&] { tried(op, 4); }, "sequence_length 4 of sequence 1")) << op;
  EXPECT_TRUE(fails_with([&] { tried("SequenceLast", 0); }, "sequence_length 0 of sequence 1"));
  EXPECT_TRUE(fails_with([] { sequence_last(zeros({0, 2})); }, "sequence_length 0"));
}

TEST(Sequence, ALengthIsInferredForEachSequence) {
  const auto net = sequence_mask(Symbol::variable("x"), {.use_sequence_length = true, .axis = 1}, "mask");
  EXPECT_EQ(net.list_arguments(), (std::vector<std::string>{"x", "mask_sequence_length"}));
  EXPECT_EQ(infer_shape(net, {{"x", {4, 3, 2}}}).args[1], (std::vector<int64_t>{4}));
  EXPECT_EQ(infer_type(net, {{"x", DType::float64}}).args[1], DType::float64);
}

TEST(Sequence, LongOnesAreMovedByManyThreads) {
  constexpr int64_t steps = 300, batch = 40, row = 17;
  const NDArray data = arange(0, steps * batch * row).reshape({steps, batch, row});
  const NDArray lengths = arange(1, batch + 1, 1, 1, cpu(), DType::int32);
  const auto values = sequence_reverse(data, lengths, {.use_sequence_length = true}).to_vector<double>();
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t i = 0; i < batch; ++i) {
      const int64_t from = step <= i ? i - step : step;
      ASSERT_EQ(values[static_cast<size_t>((step * batch + i) * row + 5)],
                static_cast<double>((from * batch + i) * row + 5))
          << "step " << step << " of sequence " << i;
    }
}

}  // namespace
}  // namespace symbind::testing
