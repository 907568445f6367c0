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
Answer run(const RNN& params, const Shape& shape, DType dtype, Context context, bool is_train) {
  const Symbol net = rnn(Symbol::variable("data"), params, "r");
  auto executor = simple_bind(net, context, {{"data", shape}}, {.type_dict = {{"data", dtype}}});
  uint64_t number = 0;
  for (auto [name, array] : executor->arg_dict())
    random_array(array.shape(), ++number, -0.5, 0.5, dtype, context).copyto(array);
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

void compare(const RNN& params, const Shape& shape, DType dtype, bool is_train = true) {
  SCOPED_TRACE(join(params.mode.get(), " ", params.num_layers.get(), " layers, p ", params.p, ", ", dtype));
  const Answer expected = run(params, shape, dtype, cpu(), is_train),
               actual = run(params, shape, dtype, gpu(), is_train);
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

TEST_F(CudaRnn, LengthsAndClippedCellsRunOnTheHost) {
  RNN params{.state_size = 8, .num_layers = 1, .mode = "lstm"};
  params.lstm_state_clip_min = -0.25;
  params.lstm_state_clip_max = 0.25;
  compare(params, {5, 4, 6}, DType::float32);
}

}  // namespace
}  // namespace symbind::testing
