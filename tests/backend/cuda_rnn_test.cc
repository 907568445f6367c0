// Recurrent layers of the CUDA backend against the CPU's. Skipped where there is no GPU.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/rnn.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

struct Answer {
  std::vector<NDArray> outputs;
  NamedArrays gradients;
};

// Forward and backward with the same arrays and the same seed. One cell is not a number if those are clipped.
Answer run(const RNN& params, const Shape& shape, DType dtype, Context context, bool is_train,
           const std::vector<double>& lengths) {
  const Symbol net = rnn(Symbol::variable("data"), params, "r");
  auto executor = simple_bind(net, context, {{"data", shape}}, {.type_dict = {{"data", dtype}}});
  uint64_t number = 0;
  for (auto [name, array] : executor->arg_dict())
    random_array(array.shape(), ++number, -0.5, 0.5, dtype, context).copyto(array);
  if (params.use_sequence_length) executor->arg_dict().at("r_sequence_length").copy_from(lengths);
  if (params.lstm_state_clip_nan) {
    const NDArray cells = executor->arg_dict().at("r_state_cell");
    std::vector<double> values = cells.to_vector<double>();
    values[1] = std::nan("");
    cells.copy_from(values);
  }
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

// Limits that many cells of the arrays above reach.
RNN clipped_lstm(int64_t layers, bool bidirectional) {
  RNN params{
      .state_size = 8, .num_layers = layers, .bidirectional = bidirectional, .mode = "lstm", .state_outputs = true};
  params.lstm_state_clip_min = -0.125;
  params.lstm_state_clip_max = 0.1875;
  return params;
}

TEST_F(CudaRnn, LengthsAreReadInEveryRun) {
  RNN by_cudnn{.state_size = 8, .num_layers = 1, .mode = "gru", .state_outputs = true};
  for (RNN params : {by_cudnn, clipped_lstm(1, false)}) {
    params.use_sequence_length = true;
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
        EXPECT_EQ(output[static_cast<size_t>(step * 16)] != 0, step < static_cast<int64_t>(length)) << step;
    }
    lengths.copy_from(std::vector<double>{6, 5});
    EXPECT_TRUE(
        fails_with([&] { on_gpu->forward(false)[0].to_vector<double>(); }, "sequence_length 6", "between 0 and 5"));
  }
}

TEST_F(CudaRnn, ClippedCellsAgreeWithTheCpu) {
  for (const int64_t layers : {1, 2, 3})
    for (const bool bidirectional : {false, true})
      for (const DType dtype : float_types) {
        const RNN params = clipped_lstm(layers, bidirectional);
        compare(params, {5, 4, 6}, dtype);
        compare(params, {5, 4, 6}, dtype, /*is_train=*/false);
      }
}

TEST(CudaRnnCells, SomeButNotAllReachTheirLimits) {
  const std::vector<double> cells =
      run(clipped_lstm(2, true), {5, 4, 6}, DType::float32, cpu(), true, {}).outputs[2].to_vector<double>();
  const auto clipped = std::count_if(cells.begin(), cells.end(), [](double c) { return c == -0.125 || c == 0.1875; });
  EXPECT_GT(clipped, 0);
  EXPECT_LT(clipped, static_cast<int64_t>(cells.size()));
}

TEST_F(CudaRnn, ClippedCellsHaveDropoutProjectionsAndLengths) {
  for (const double p : {0.0, 0.5})
    for (const bool projected : {false, true})
      for (const bool has_lengths : {false, true})
        for (const DType dtype : {DType::float32, DType::bfloat16}) {
          SCOPED_TRACE(join("projected ", projected, ", has_lengths ", has_lengths));
          RNN params = clipped_lstm(3, true);
          params.p = p;
          if (projected) params.projection_size = 3;
          params.use_sequence_length = has_lengths;
          compare(params, {5, 4, 6}, dtype, true, {5, 2, 0, 4});
        }
}

TEST_F(CudaRnn, ClippedCellsHaveOddSizes) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{7, 3, 5}, Shape{3, 65, 17}}) {
    RNN params = clipped_lstm(2, true);
    params.state_size = 5;
    compare(params, shape, DType::float32);
    compare(params, shape, DType::float64);
  }
}

TEST_F(CudaRnn, CellsThatAreNoNumbersAreClippedWhereAsked) {
  for (const bool bidirectional : {false, true}) {
    RNN params = clipped_lstm(2, bidirectional);
    params.lstm_state_clip_nan = true;
    compare(params, {5, 4, 6}, DType::float32);
    for (const double cell : run(params, {5, 4, 6}, DType::float32, gpu(), true, {}).outputs[2].to_vector<double>())
      EXPECT_FALSE(std::isnan(cell));
  }
}

TEST_F(CudaRnn, ClippedCellsHaveTheSameBitsInEveryRun) {
  RNN params = clipped_lstm(2, true);
  const Symbol net = rnn(Symbol::variable("data"), params, "r");
  const auto executor = simple_bind(net, gpu(), {{"data", Shape{5, 4, 6}}});
  uint64_t number = 0;
  for (auto [name, array] : executor->arg_dict())
    random_array(array.shape(), ++number, -0.5, 0.5, DType::float32, gpu()).copyto(array);
  std::vector<NDArray> out_grads;
  for (const NDArray& output : executor->forward(true))
    out_grads.push_back(random_array(output.shape(), ++number, -1, 1, DType::float32, gpu()));
  Answer first;
  for (int again = 0; again < 4; ++again) {  // later runs are captured
    executor->forward(true);
    executor->backward(out_grads);
    if (again == 0) {
      for (const NDArray& output : executor->outputs()) first.outputs.push_back(output.copy());
      for (const auto& [name, gradient] : executor->grad_dict()) first.gradients.emplace(name, gradient.copy());
      continue;
    }
    for (size_t i = 0; i < first.outputs.size(); ++i)
      EXPECT_TRUE(same_bits(executor->outputs()[i], first.outputs[i])) << "output " << i;
    for (const auto& [name, gradient] : executor->grad_dict())
      EXPECT_TRUE(same_bits(gradient, first.gradients.at(name))) << "gradient of " << name;
  }
}

TEST(CudaRnnCells, ClippedOnesHaveKernelsOnTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  const RNN params = clipped_lstm(2, true);
  const RnnSize size = size_of(params, {5, 4, 6});
  const Shape data{5, 4, 6}, states{4, 4, 8}, output{5, 4, 16};
  const DeviceCase forward{.op = "RNN",
                           .inputs = {data, {size.parameter_count()}, states, states},
                           .attributes = op_of<RNN>().print_params(&params)};
  DeviceCase backward{
      .op = "_backward_RNN",
      .inputs = {output, data, {size.parameter_count()}, states, states, output, {size.reserve_count()}},
      .dtypes = {DType::float64},
      .params = std::make_shared<RNNGrad>(RNNGrad{params})};
  std::vector<DeviceCase> cases{forward, backward};
  backward.dtypes = {DType::float32, DType::float16, DType::bfloat16};
  backward.input_types = std::vector<DType>(6, DType::none);
  backward.input_types.push_back(DType::float32);
  cases.push_back(backward);
  expect_accepted(cases);
}

}  // namespace
}  // namespace symbind::testing
