// Winograd convolutions against the plain ones in double precision: the same node, the same random numbers, in every
// layout, with the kernels of every instruction set this processor has.
#include "symbind/backend/cpu/winograd.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/loops.h"
#include "symbind/core/error.h"
#include "symbind/exec/executor.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/test_node.h"

namespace symbind {
namespace {

using cpu_backend::winograd::Kernels;
using Values = std::vector<double>;

std::vector<const Kernels*> all_kernels() {
  using namespace cpu_backend;
  std::vector<const Kernels*> kernels;
  if (instruction_set() >= InstructionSet::avx512) kernels.push_back(winograd::avx512_kernels());
  if (instruction_set() >= InstructionSet::avx2) kernels.push_back(winograd::avx2_kernels());
  std::erase(kernels, nullptr);
  return kernels;
}

Implementation winograd_of(const OpDef& op, const Kernels* kernels) {
  ImplementationTable table;
  cpu_backend::winograd::add_with(kernels, table);
  return table.of(op).front();
}

using TestNode = testing::TestNode<double>;
using testing::index_in_layout;

template <class P>
TestNode make_node(const P& params, const std::vector<Shape>& shapes) {
  return testing::make_test_node<double>(params, shapes);
}

// Memory between guards, filled with NaN: what is not assigned, or beyond its end, shows.
class Guarded {
 public:
  explicit Guarded(size_t bytes)
      : bytes_((bytes + 63) / 64 * 64), data_(std::aligned_alloc(64, bytes_ + 64), std::free) {
    std::memset(data_.get(), 0xff, bytes_ + 64);
  }
  ~Guarded() {
    for (size_t i = bytes_; i < bytes_ + 64; ++i)
      if (static_cast<unsigned char*>(data_.get())[i] != 0xff) {
        ADD_FAILURE() << "written past the end of " << bytes_ << " bytes";
        return;
      }
  }
  Guarded(Guarded&&) = delete;
  void* data() const { return data_.get(); }

 private:
  size_t bytes_;
  std::unique_ptr<void, decltype(&std::free)> data_;
};

// In place where the kernel allows it.
template <class T>
std::vector<Values> run(const TestNode& node, const Implementation& implementation) {
  const auto kernel = implementation.build(node.view());
  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<void*> addresses;
  for (const auto* tensors : {&node.inputs, &node.outputs})
    for (const Tensor& tensor : *tensors) {
      memory.push_back(std::make_unique<Guarded>(tensor.bytes()));
      addresses.push_back(memory.back()->data());
    }
  for (size_t i = 0; i < node.inputs.size(); ++i)
    for (size_t k = 0; k < node.values[i].size(); ++k)
      static_cast<T*>(addresses[i])[index_in_layout(node.inputs[i], k)] = static_cast<T>(node.values[i][k]);
  for (const auto& [input, output] : kernel->in_place)
    addresses[node.inputs.size() + static_cast<size_t>(output)] = addresses[static_cast<size_t>(input)];
  const Guarded scratch(kernel->scratch_bytes), cached(kernel->cached_bytes);
  const Args args{addresses.data(), addresses.data() + node.inputs.size(), scratch.data(), cached.data()};
  if (kernel->cached_bytes > 0) kernel->prepare(args);
  kernel->run(args);
  std::vector<Values> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    results.emplace_back(static_cast<size_t>(node.outputs[i].shape.size()));
    const auto* elements = static_cast<const T*>(addresses[node.inputs.size() + i]);
    for (size_t k = 0; k < results[i].size(); ++k)
      results[i][k] = static_cast<double>(elements[index_in_layout(node.outputs[i], k)]);
  }
  return results;
}

// In double precision, but for norms, which are folded into float32 alone.
std::vector<Values> reference(TestNode node) {
  if (node.op.name == op_of<ConvolutionFused>().name)
    return run<float>(node, Target::get(cpu()).implementations(node.op).back());
  for (auto* tensors : {&node.inputs, &node.outputs})
    for (Tensor& tensor : *tensors) tensor.dtype = DType::float64;
  return run<double>(node, Target::get(cpu()).implementations(node.op).back());
}

// Of the largest magnitude: sums of a few thousand products of numbers up to one.
constexpr double tolerance = 5e-6;

void expect_close(const std::vector<Values>& actual, const std::vector<Values>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t array = 0; array < actual.size(); ++array) {
    double largest = 1;
    for (const double value : expected[array]) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < actual[array].size(); ++i)
      if (!(std::abs(actual[array][i] - expected[array][i]) <= tolerance * largest)) {
        ADD_FAILURE() << what << ": array " << array << " element " << i << ": " << actual[array][i] << ", plain says "
                      << expected[array][i];
        return;
      }
  }
}

void set_layout(TestNode& node, Layout layout) {
  const bool grad_weight = node.op.name == op_of<ConvolutionGradWeight>().name;
  const auto set = [&](Tensor& tensor) {
    if (block_of(layout) == 1 || tensor.shape[1] % block_of(layout) == 0) tensor.layout = layout;
  };
  set(node.inputs[0]);
  set(grad_weight ? node.inputs[1] : node.outputs[0]);
  if (node.inputs.back().shape == node.outputs[0].shape) set(node.inputs.back());  // what is added
}

void compare(TestNode node, const std::string& what, const std::vector<Layout>& layouts, int most_threads) {
  const auto expected = reference(node);
  for (const Kernels* kernels : all_kernels()) {
    const Implementation winograd = winograd_of(node.op, kernels);
    if (winograd.refuse(node.view()).find("multiples") != std::string::npos) continue;
    for (const Layout layout : layouts)
      for (int threads = 1; threads <= most_threads; threads += 2) {
        set_layout(node, layout);
        const ThreadScope share({.threads = threads});
        for (const bool is_train : {true, false}) {
          node.is_train = is_train;
          expect_close(run<float>(node, winograd), expected,
                       join(what, " ", name_of(layout), " ", threads, " threads, vectors of ", kernels->width));
        }
      }
  }
}

ConvolutionFused fused(const Convolution& params, int what) {
  ConvolutionFused result{params};
  result.norm = what & 1;
  result.norm_eps = 1.5;  // values are above -1
  result.sum = what & 2;
  result.sum_is_spent = result.sum && params.no_bias;
  if (what & 4) result.act_type = "relu";
  return result;
}

void compare_all(const Shape& data, const Convolution& params, const std::vector<Layout>& layouts,
                 int most_threads = 1) {
  const TestNode forward = make_node(params, {data});
  const std::string what = join("data ", data, " pad ", params.pad[0], " filters ", params.num_filter);
  compare(forward, what, layouts, most_threads);
  compare(make_node(fused(params, 7), {data}), what + " fused", layouts, most_threads);
  const Shape weight = forward.inputs[1].shape, output = forward.outputs[0].shape;
  compare(make_node(ConvolutionGradData{params}, {output, weight, data}), what + " grad data", layouts, most_threads);
  compare(make_node(ConvolutionGradWeight{params}, {output, data, weight}), what + " grad weight", layouts,
          most_threads);
}

Convolution three_by_three(int64_t filters, int64_t pad = 1, bool no_bias = false) {
  return {.kernel = {3, 3}, .pad = {pad, pad}, .num_filter = filters, .no_bias = no_bias};
}

const std::vector<Layout> all_layouts{Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16};

class Winograd : public ::testing::Test {
  void SetUp() override {
    if (all_kernels().empty()) GTEST_SKIP() << "this processor has none of the instruction sets";
  }
};

TEST_F(Winograd, AgreesWithThePlainConvolutionInEveryLayout) {
  compare_all({2, 32, 9, 7}, three_by_three(48), all_layouts);
  compare_all({1, 80, 6, 10}, three_by_three(16, 0, true), all_layouts);
  compare_all({3, 16, 5, 5}, three_by_three(80, 2), all_layouts);
  compare_all({2, 8, 8, 8}, three_by_three(24), {Layout::plain, Layout::blocked8});
}

TEST_F(Winograd, FusesNormsSumsAndActivations) {
  for (const bool no_bias : {false, true})
    for (int around = 0; around < 8; ++around)
      compare(make_node(fused(three_by_three(48, 1, no_bias), around), {{3, 32, 9, 14}}), join("fused ", around),
              all_layouts, 1);
}

TEST_F(Winograd, TakesImagesOfAnySize) {
  for (const int64_t pad : {0, 1, 2, 3})
    for (int64_t size = 1; size <= 17; ++size) {
      const int64_t other = (size * 5 + pad) % 17 + 1;
      if (size + 2 * pad < 3 || other + 2 * pad < 3) continue;
      compare_all({size % 5 + 1, 16, size, other}, three_by_three(16, pad, size % 2 == 0), {Layout::blocked16});
    }
}

TEST_F(Winograd, TakesDifferentPaddingsOfTheAxes) {
  Convolution params = three_by_three(16);
  params.pad = {0, 2};
  compare_all({2, 16, 7, 5}, params, {Layout::channels_last});
}

TEST_F(Winograd, TakesChannelsLastByParameter) {
  Convolution params = three_by_three(32);
  params.layout = "NHWC";
  compare_all({2, 9, 6, 16}, params, {Layout::plain});
}

// Enough tiles for several blocks of them, and enough channels for several parts.
TEST_F(Winograd, GoesThroughManyTilesAndChannels) {
  compare_all({4, 16, 57, 30}, three_by_three(32), {Layout::blocked16}, 3);
  compare_all({5, 144, 14, 14}, three_by_three(160), {Layout::blocked16}, 3);
  compare_all({9, 272, 13, 15}, three_by_three(96, 1, true), {Layout::blocked16}, 3);
}

// Built for more threads than there are, which share the work in other ways than few do.
TEST_F(Winograd, RunsOnFewerThreadsThanItWasBuiltFor) {
  const Convolution params = three_by_three(64);
  const Shape data{2, 64, 28, 28}, weight{64, 64, 3, 3};
  for (TestNode node : {make_node(params, {data}), make_node(ConvolutionGradData{params}, {data, weight, data}),
                        make_node(ConvolutionGradWeight{params}, {data, data, weight})}) {
    const auto expected = reference(node);
    set_layout(node, Layout::blocked8);
    for (const int threads : {5, 60}) {
      Implementation winograd = winograd_of(node.op, all_kernels().back());
      winograd.build = [=, build = winograd.build](const NodeView& view) {
        const ThreadScope many({.threads = threads});
        return build(view);
      };
      const ThreadScope few({.threads = 2});
      expect_close(run<float>(node, winograd), expected, join(node.op.name, " built for ", threads, " threads"));
    }
  }
}

// Two layers of float32 beside the same in double precision, which the plain convolutions compute.
class Networks {
 public:
  Networks() : float_(bound(DType::float32)), double_(bound(DType::float64)) {}

  void set_arguments(uint64_t seed) {
    for (const auto& [name, array] : float_->arg_dict()) {
      const NDArray values = testing::random_array(array.shape(), seed++);
      values.copyto(array);
      values.astype(DType::float64).copyto(double_->arg_dict().at(name));
    }
  }
  void forward(bool is_train) {
    float_->forward(is_train);
    double_->forward(is_train);
    expect_close("output", float_->outputs()[0], double_->outputs()[0]);
  }
  void backward() {
    const NDArray grad = testing::random_array(float_->outputs()[0].shape(), 9);
    float_->backward({grad});
    double_->backward({grad.astype(DType::float64)});
    for (const auto& [name, array] : float_->grad_dict()) expect_close(name, array, double_->grad_dict().at(name));
  }
  std::string plans() const { return float_->debug_str(); }

 private:
  static ExecutorPtr bound(DType dtype) {
    const Symbol hidden = convolution(Symbol::variable("data"), three_by_three(32), "conv1");
    const Symbol net = convolution(activation(hidden, {.act_type = "relu"}), three_by_three(16), "conv2");
    return simple_bind(net, cpu(), {{"data", {2, 16, 15, 9}}}, {.type_dict = {{"data", dtype}}});
  }
  static void expect_close(const std::string& name, const NDArray& actual, const NDArray& expected) {
    EXPECT_TRUE(testing::all_close(actual.astype(DType::float64), expected, {.of_largest = tolerance})) << name;
  }

  ExecutorPtr float_, double_;
};

TEST_F(Winograd, IsChosenForTrainingAndInferenceAndFollowsTheWeights) {
  Networks networks;
  for (const uint64_t seed : {1, 100}) {
    networks.set_arguments(seed);
    networks.forward(false);
    networks.forward(true);
    networks.backward();
  }
  const std::string plans = networks.plans();
  EXPECT_NE(plans.find("winograd"), std::string::npos) << plans;
}

template <class P>
std::string refusal(const P& params, const Shape& data) {
  return winograd_of(op_of<P>(), all_kernels().front()).refuse(make_node(params, {data}).view());
}

TEST_F(Winograd, SaysWhyItRefuses) {
  const Shape data{2, 16, 8, 8};
  Convolution params = three_by_three(16);
  EXPECT_EQ(refusal(params, data), "");
  params.stride = {2, 1};
  EXPECT_EQ(refusal(params, data), "only without stride and dilation");
  params = three_by_three(16);
  params.dilate = {1, 2};
  EXPECT_EQ(refusal(params, data), "only without stride and dilation");
  params = three_by_three(16);
  params.kernel = {3, 1};
  params.pad = {1, 0};
  EXPECT_EQ(refusal(params, data), "only for kernels of 3 × 3");
  params = three_by_three(16);
  params.num_group = 2;
  EXPECT_EQ(refusal(params, data), "only for one group");
  EXPECT_NE(refusal(three_by_three(17), data).find("only for multiples of"), std::string::npos);
  ConvolutionFused with_tanh{three_by_three(16)};
  with_tanh.act_type = "tanh";
  EXPECT_EQ(refusal(with_tanh, data), "it has no tanh");
  TestNode half = make_node(three_by_three(16), {data});
  half.outputs[0].dtype = DType::float16;
  EXPECT_EQ(winograd_of(half.op, all_kernels().front()).refuse(half.view()), "only for float32");
  EXPECT_EQ(refusal(three_by_three(16), {1, 16, 8, 8}), "only 4 tiles");
  EXPECT_EQ(refusal(three_by_three(16), {9, 16, 2, 2}), "its tiles are mostly outside the image");
  EXPECT_EQ(winograd_of(half.op, nullptr).refuse(half.view()), "there are no kernels for this processor");
}

}  // namespace
}  // namespace symbind
