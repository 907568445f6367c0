// Recurrent layers of the CUDA backend against the CPU's. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/rnn.h"

#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

struct Answer {
  std::vector<NDArray> outputs;
  NamedArrays gradients;
};

// Forward and backward with the same arrays and the same seed.
Answer run(const RNN& params, const Shape& shape, DType dtype, Context context, bool is_train,
           const std::vector<double>& lengths) {
  const Symbol net = rnn(Symbol::variable("data"), params, "r");
  auto executor = simple_bind(net, context, {{"data", shape}}, {.type_dict = {{"data", dtype}}});
  uint64_t number = 0;
  for (auto [name, array] : executor->arg_dict())
    random_array(array.shape(), ++number, -0.5, 0.5, dtype, context).copyto(array);
  if (params.use_sequence_length) executor->arg_dict().at("r_sequence_length").copy_from(lengths);
  seed(11);
  Answer answer;
  for (const NDArray& output : executor->forward(is_train)) answer.outputs.push_back(output.copy());
  std::vector<NDArray> out_grads;
  for (const NDArray& output : answer.outputs)
    out_grads.push_back(random_array(output.shape(), ++number, -1, 1, dtype, context));
  executor->backward(out_grads, is_train);
  answer.gradients = executor->grad_dict();
  return answer;
}

void compare(const RNN& params, const Shape& shape, DType dtype, bool is_train = true,
             const std::vector<double>& lengths = {}) {
  SCOPED_TRACE(join(params.mode.get(), " ", params.num_layers.get(), " layers, p ", params.p, ", ", dtype));
  const Answer expected = run(params, shape, dtype, cpu(), is_train, lengths),
               actual = run(params, shape, dtype, gpu(), is_train, lengths);
  Tolerance tolerance = tolerance_of(dtype);
  tolerance.relative *= 16;
  tolerance.absolute *= 16;
  for (size_t i = 0; i < expected.outputs.size(); ++i)
    EXPECT_TRUE(all_close(actual.outputs[i].to_vector<double>(), expected.outputs[i].to_vector<double>(), tolerance,
                          expected.outputs[i].shape()))
        << "output " << i;
  for (const auto& [name, gradient] : expected.gradients)
    EXPECT_TRUE(all_close(actual.gradients.at(name).to_vector<double>(), gradient.to_vector<double>(), tolerance,
                          gradient.shape()))
        << "gradient of " << name;
}

using CudaRnn = GpuTest;
constexpr const char* modes[] = {"rnn_relu", "rnn_tanh", "lstm", "gru"};

TEST_F(CudaRnn, LayersAgreeWithTheCpu) {
  for (const char* mode : modes)
    for (const bool bidirectional : {false, true})
      for (const DType dtype : {DType::float32, DType::float64, DType::float16}) {
        RNN params{
            .state_size = 8, .num_layers = 2, .bidirectional = bidirectional, .mode = mode, .state_outputs = true};
        compare(params, {5, 4, 6}, dtype);
        compare(params, {5, 4, 6}, dtype, /*is_train=*/false);
      }
}

TEST_F(CudaRnn, DropsWhatTheCpuDrops) {
  for (const char* mode : modes)
    for (const bool bidirectional : {false, true}) {
      RNN params{.state_size = 7, .num_layers = 3, .bidirectional = bidirectional, .mode = mode};
      params.p = 0.5;
      compare(params, {4, 3, 5}, DType::float32);
    }
}

TEST_F(CudaRnn, ProjectionsAgreeWithTheCpu) {
  RNN params{.state_size = 8, .num_layers = 2, .mode = "lstm", .state_outputs = true};
  params.projection_size = 4;
  compare(params, {5, 4, 6}, DType::float32);
}

TEST_F(CudaRnn, SequencesOfDifferentLengthsAgreeWithTheCpu) {
  for (const char* mode : modes)
    for (const bool bidirectional : {false, true})
      for (const double p : {0.0, 0.5})
        for (const DType dtype : {DType::float32, DType::float16}) {
          RNN params{
              .state_size = 8, .num_layers = 2, .bidirectional = bidirectional, .mode = mode, .state_outputs = true};
          params.p = p;
          params.use_sequence_length = true;
          compare(params, {5, 4, 6}, dtype, true, {5, 2, 1, 4});
          if (p == 0) compare(params, {5, 4, 6}, dtype, /*is_train=*/false, {3, 3, 2, 5});
        }
  RNN projected{.state_size = 8, .num_layers = 2, .mode = "lstm", .state_outputs = true};
  projected.projection_size = 4;
  projected.use_sequence_length = true;
  compare(projected, {5, 4, 6}, DType::float32, true, {5, 2, 1, 4});
}

TEST_F(CudaRnn, ASequenceMayHaveNoSteps) {
  RNN params{.state_size = 8, .num_layers = 2, .bidirectional = true, .mode = "lstm", .state_outputs = true};
  params.use_sequence_length = true;
  compare(params, {5, 4, 6}, DType::float32, true, {0, 5, 3, 0});
}

TEST_F(CudaRnn, LengthsAreReadInEveryRun) {
  const RNN params{.state_size = 4, .num_layers = 1, .mode = "gru", .state_outputs = true, .use_sequence_length = true};
  const Symbol net = rnn(Symbol::variable("data"), params, "r");
  const auto on_gpu = simple_bind(net, gpu(), {{"data", Shape{5, 2, 3}}});
  uint64_t number = 0;
  for (auto [name, array] : on_gpu->arg_dict())
    random_array(array.shape(), ++number, -0.5, 0.5, DType::float32, gpu()).copyto(array);
  const NDArray lengths = on_gpu->arg_dict().at("r_sequence_length");
  for (const double length : {5.0, 2.0, 4.0, 1.0}) {
    lengths.copy_from(std::vector<double>{length, 5});
    const auto output = on_gpu->forward(false)[0].to_vector<double>();
    for (int64_t step = 0; step < 5; ++step)
      EXPECT_EQ(output[static_cast<size_t>(step * 8)] != 0, step < static_cast<int64_t>(length)) << step;
  }
  lengths.copy_from(std::vector<double>{6, 5});
  EXPECT_TRUE(fails_with([&] { on_gpu->forward(false); }, "sequence_length 6", "between 0 and 5"));
}

TEST_F(CudaRnn, ClippedCellsRunOnTheHost) {
  RNN params{.state_size = 8, .num_layers = 1, .mode = "lstm"};
  params.lstm_state_clip_min = -0.25;
  params.lstm_state_clip_max = 0.25;
  compare(params, {5, 4, 6}, DType::float32);
}

}  // namespace
}  // namespace symbind::testing
