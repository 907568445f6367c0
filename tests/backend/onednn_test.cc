// oneDNN's implementations against the plain ones: the same node, the same random arrays, in every layout that is
// preferred.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/exec/executor.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/loss.h"
#include "symbind/ops/pool.h"
#include "symbind/passes/target.h"

#include "tests/support/test_node.h"

namespace symbind {
namespace {

using Values = std::vector<float>;

const Implementation* implementation(const OpDef& op, const std::string& name) {
  for (const Implementation& candidate : Target::get(cpu()).implementations(op))
    if (candidate.name == name) return &candidate;
  return nullptr;
}

using TestNode = testing::TestNode<float>;
using testing::index_in_layout;

template <class P>
TestNode make_node(const P& params, const std::vector<Shape>& shapes, DType dtype = DType::float32) {
  return testing::make_test_node<float>(params, shapes, dtype);
}

struct Aligned {
  explicit Aligned(size_t bytes) : data(std::aligned_alloc(64, (bytes + 64) / 64 * 64), std::free) {
    std::memset(data.get(), 0xff, (bytes + 64) / 64 * 64);  // NaN: what is not assigned shows
  }
  std::unique_ptr<void, decltype(&std::free)> data;
};

template <class Function>
void with_type(DType dtype, Function function) {
  visit_floating(dtype, function);
}

Aligned stored(const Tensor& tensor, const Values& values) {
  Aligned memory(tensor.bytes());
  with_type(tensor.dtype, [&](auto type) {
    auto* elements = static_cast<typename decltype(type)::type*>(memory.data.get());
    for (size_t i = 0; i < values.size(); ++i) elements[index_in_layout(tensor, i)] = values[i];
  });
  return memory;
}

Values loaded(const Tensor& tensor, const Aligned& memory) {
  Values values(static_cast<size_t>(tensor.shape.size()));
  with_type(tensor.dtype, [&](auto type) {
    const auto* elements = static_cast<const typename decltype(type)::type*>(memory.data.get());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(elements[index_in_layout(tensor, i)]);
  });
  return values;
}

// The outputs, then the inputs as the kernel left them (auxiliary states change).
std::vector<Values> run(const TestNode& node, const Implementation& implementation) {
  const auto kernel = implementation.build(node.view());
  std::vector<Aligned> memory;
  for (size_t i = 0; i < node.inputs.size(); ++i) memory.push_back(stored(node.inputs[i], node.values[i]));
  for (const Tensor& output : node.outputs) memory.emplace_back(output.bytes());
  std::vector<void*> addresses;
  for (const Aligned& array : memory) addresses.push_back(array.data.get());
  const Aligned scratch(kernel->scratch_bytes), cached(kernel->cached_bytes);
  const Args args{addresses.data(), addresses.data() + node.inputs.size(), scratch.data.get(), cached.data.get()};
  if (kernel->cached_bytes > 0) kernel->prepare(args);
  kernel->run(args);
  std::vector<Values> results;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    results.push_back(loaded(node.outputs[i], memory[node.inputs.size() + i]));
  for (size_t i = 0; i < node.inputs.size(); ++i) results.push_back(loaded(node.inputs[i], memory[i]));
  return results;
}

void expect_close(const std::vector<Values>& actual, const std::vector<Values>& expected, float tolerance,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t array = 0; array < actual.size(); ++array) {
    float largest = 1;
    for (const float value : expected[array])
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < actual[array].size(); ++i)
      if (actual[array][i] != expected[array][i] &&
          !(std::abs(actual[array][i] - expected[array][i]) <= tolerance * largest)) {
        ADD_FAILURE() << what << ": array " << array << " element " << i << ": " << actual[array][i] << ", plain says "
                      << expected[array][i];
        return;
      }
  }
}

bool has_channels(const Shape& shape) { return shape.rank() >= 3 && shape.rank() <= 5; }

// Plain, then in the layouts the implementation prefers when its inputs are in each of them.
void compare(const TestNode& node, const std::string& what, float tolerance = 2e-5f,
             const std::string& name = "onednn") {
  const Implementation* tested = implementation(node.op, name);
  const Implementation* plain = implementation(node.op, "plain");
  ASSERT_NE(plain, nullptr);
  ASSERT_NE(tested, nullptr);
  // A node that is left to a faster implementation is right all the same.
  const bool is_convolution = &node.op == &op_of<Convolution>() || &node.op == &op_of<ConvolutionFused>() ||
                              &node.op == &op_of<ConvolutionGradData>() || &node.op == &op_of<ConvolutionGradWeight>();
  const std::string reason = tested->refuse(node.view());
  ASSERT_TRUE(is_convolution || reason.empty() || reason.starts_with("dot products along rows")) << what << reason;
  const auto expected = run(node, *plain);
  expect_close(run(node, *tested), expected, tolerance, what + " plain");
  if (!tested->preferred_layouts) return;
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    TestNode asking = node;
    for (Tensor& input : asking.inputs)
      if (has_channels(input.shape) && input.shape[1] % block_of(layout) == 0) input.layout = layout;
    const auto preferred = tested->preferred_layouts(asking.view());
    if (!preferred) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) asking.inputs[i].layout = preferred->inputs[i];
    for (size_t i = 0; i < node.outputs.size(); ++i) asking.outputs[i].layout = preferred->outputs[i];
    expect_close(run(asking, *tested), expected, tolerance, join(what, " preferred with ", name_of(layout)));
  }
}

class OneDnn : public ::testing::Test {
  void SetUp() override {
    if (!implementation(op_of<Dot>(), "onednn")) GTEST_SKIP() << "built without oneDNN";
  }
};

// ---- Convolution ----------------------------------------------------------------------------------------------------

struct ConvCase {
  Shape data;
  Convolution params;
};

const std::vector<ConvCase> conv_cases = {
    {{2, 1, 12, 12}, {.kernel = {5, 5}, .num_filter = 20}},
    {{4, 20, 12, 12}, {.kernel = {5, 5}, .num_filter = 50}},
    {{2, 3, 9, 11}, {.kernel = {3, 2}, .stride = {2, 3}, .pad = {1, 1}, .num_filter = 7}},
    {{2, 16, 8, 8}, {.kernel = {3, 3}, .dilate = {2, 1}, .pad = {2, 1}, .num_filter = 16, .no_bias = true}},
    {{2, 6, 7, 7}, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 9, .num_group = 3}},
    {{2, 8, 7, 7}, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .num_filter = 8, .num_group = 8}},
    {{3, 4, 17}, {.kernel = {3}, .stride = {2}, .pad = {1}, .num_filter = 5}},
    {{3, 4, 17}, {.kernel = {1}, .num_filter = 1}},
    {{2, 3, 5, 6, 7}, {.kernel = {2, 3, 3}, .pad = {0, 1, 1}, .num_filter = 4}},
    {{2, 3, 9, 11}, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .num_filter = 32}},
    {{2, 32, 9, 11}, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 48, .no_bias = true}},
    {{2, 64, 6, 5}, {.kernel = {1, 1}, .num_filter = 16}},
    {{2, 32, 6, 5}, {.kernel = {3, 3}, .num_filter = 64, .num_group = 2}},
    {{2, 32, 6, 5}, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 32, .num_group = 32}},
    {{2, 16, 11}, {.kernel = {3}, .num_filter = 16}},
    {{2, 16, 4, 5, 6}, {.kernel = {3, 3, 3}, .pad = {1, 1, 1}, .num_filter = 16}},
    {{2, 7, 9, 3}, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 6, .layout = "NHWC"}},
    {{2, 7, 9, 4}, {.kernel = {3, 3}, .num_filter = 6, .num_group = 2, .layout = "NHWC"}},
};

TEST_F(OneDnn, ConvolutionsAgreeWithThePlainOnes) {
  for (const auto& [data, params] : conv_cases) {
    const TestNode forward = make_node(params, {data});
    const std::string what = join("data ", data, " weight ", forward.inputs[1].shape);
    compare(forward, what);
    const Shape weight = forward.inputs[1].shape, output = forward.outputs[0].shape;
    compare(make_node(ConvolutionGradData{params}, {output, weight, data}), what + " grad data");
    compare(make_node(ConvolutionGradWeight{params}, {output, data, weight}), what + " grad weight");
  }
}

ConvolutionFused with_activation(const Convolution& params, const std::string& act_type) {
  ConvolutionFused fused{params};
  fused.act_type = act_type;
  return fused;
}

TEST_F(OneDnn, ConvolutionsTakeActivationsAlong) {
  for (const char* act_type : {"relu", "sigmoid", "tanh", "softrelu"})
    for (const auto& [data, params] : {conv_cases[0], conv_cases[2], conv_cases[4], conv_cases[6]})
      compare(make_node(with_activation(params, act_type), {data}), join(act_type, " data ", data));
}

TEST_F(OneDnn, ConvolutionsTakeNormsSumsAndActivationsAlong) {
  for (const auto& [data, params] : conv_cases)
    for (int what = 0; what < 32; ++what) {
      ConvolutionFused fused{params};
      const bool padded = std::any_of(params.pad.begin(), params.pad.end(), [](int64_t pad) { return pad > 0; });
      fused.norm_before = (what & 1) && !padded;
      fused.norm = what & 2;
      fused.norm_eps = fused.norm_before_eps = 1.5;  // values are above -1
      fused.norm_fix_gamma = what & 4;
      fused.sum = what & 8;
      fused.sum_is_spent = what & 16;
      if (what % 3 == 1) fused.act_type = "relu";
      compare(make_node(fused, {data}), join("data ", data, " fused ", what));
    }
}

TEST_F(OneDnn, ConvolutionsMixLayouts) {
  for (const auto& [data, params] : {conv_cases[1], conv_cases[2]}) {
    TestNode node = make_node(params, {data});
    const auto expected = run(node, *implementation(node.op, "plain"));
    node.outputs[0].layout = Layout::channels_last;
    expect_close(run(node, *implementation(node.op, "onednn")), expected, 2e-5f, "plain to channels last");
    std::swap(node.outputs[0].layout, node.inputs[0].layout);
    expect_close(run(node, *implementation(node.op, "onednn")), expected, 2e-5f, "channels last to plain");
  }
}

// ---- Pooling --------------------------------------------------------------------------------------------------------

struct PoolCase {
  Shape data;
  Pooling params;
};

const std::vector<PoolCase> pool_cases = {
    {{4, 20, 8, 8}, {.kernel = {2, 2}, .stride = {2, 2}}},
    {{2, 70, 9, 7}, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}}},
    {{2, 5, 9, 9}, {.kernel = {2, 2}, .stride = {2, 2}}},
    {{2, 5, 10, 10}, {.kernel = {3, 3}, .pooling_convention = "full", .stride = {2, 2}}},
    {{2, 5, 6, 6}, {.kernel = {2, 3}}},
    {{2, 5, 9, 9}, {.kernel = {2, 2}, .stride = {4, 3}}},
    {{2, 3, 6, 5}, {.global_pool = true}},
    {{2, 3, 11}, {.kernel = {3}, .stride = {2}, .pad = {1}}},
    {{2, 3, 4, 6, 5}, {.kernel = {2, 2, 2}, .stride = {2, 1, 2}, .pad = {0, 1, 0}}},
    {{2, 6, 7, 5}, {.kernel = {2, 2}, .stride = {2, 1}, .layout = "NHWC"}},
};

TEST_F(OneDnn, PoolingAgreesWithThePlainOne) {
  for (auto [data, params] : pool_cases)
    for (const char* type : {"max", "avg"})
      for (const bool count_padding : {true, false}) {
        params.pool_type = type;
        params.count_include_pad = count_padding;
        const TestNode forward = make_node(params, {data});
        const std::string what =
            join(type, count_padding ? " with padding" : "", " data ", data, " output ", forward.outputs[0].shape);
        const Shape output = forward.outputs[0].shape;
        const TestNode backward = make_node(PoolingGrad{params}, {output, data, output});
        const Implementation* onednn = implementation(forward.op, "onednn");
        if (!onednn->refuse(forward.view()).empty()) {
          EXPECT_EQ(params.pooling_convention, "full") << what;
          continue;
        }
        compare(forward, what);
        compare(backward, what + " grad");
      }
}

TEST_F(OneDnn, TheFirstMaximumGetsTheGradient) {
  for (const auto& [data, params] : pool_cases) {
    const Shape output = make_node(params, {data}).outputs[0].shape;
    TestNode node = make_node(PoolingGrad{params}, {output, data, output});
    for (float& value : node.values[1]) value = std::round(value);
    compare(node, join("ties, data ", data), 1e-6f);
    for (float& value : node.values[1]) value = value > 0 ? -INFINITY : value;
    compare(node, join("infinities, data ", data), 1e-6f);
  }
}

// ---- BatchNorm ------------------------------------------------------------------------------------------------------

// Forward and gradient, the latter with the statistics of its very data as forward gives them.
template <class Forward, class Backward>
void compare_norm(const BatchNorm& params, const Shape& data, bool is_train, const std::string& what) {
  constexpr bool relu = std::is_same_v<Backward, BatchNormReluGrad>;
  TestNode forward = make_node(Forward{params}, {data});
  forward.is_train = is_train;
  for (float& value : forward.values[4]) value = std::abs(value) + 0.1f;  // moving_var
  compare(forward, what, 2e-5f, "lanes");

  const Shape channel = forward.inputs[1].shape;
  Backward of_gradient{params};
  std::vector<Shape> shapes{data, data, channel, channel, channel};
  if constexpr (relu) {
    of_gradient.with_sum = data.rank() % 2 == 0;
    shapes.push_back(channel);
    if (of_gradient.with_sum) shapes.push_back(data);
  }
  TestNode backward = make_node(of_gradient, shapes);
  backward.is_train = is_train;
  TestNode same = forward;
  same.values[0] = backward.values[1];
  const auto results = run(same, *implementation(same.op, "plain"));
  backward.values[relu ? 4 : 3] = results[1];
  backward.values[relu ? 5 : 4] = results[2];
  compare(backward, what + " grad", 1e-4f, "lanes");
}

TEST(BatchNormLanes, AgreesWithThePlainOne) {
  for (const Shape& data : {Shape{4, 20, 8, 8}, Shape{3, 5, 7}, Shape{6, 10}, Shape{2, 3, 4, 5, 6}, Shape{32, 64, 8, 8},
                            Shape{2, 160, 9, 9}, Shape{2, 24, 3, 50}})
    for (const bool fix_gamma : {true, false})
      for (const bool use_global_stats : {true, false})
        for (const bool is_train : {true, false})
          for (const int64_t axis : {1, -1}) {
            const BatchNorm params{.fix_gamma = fix_gamma, .use_global_stats = use_global_stats, .axis = axis};
            const std::string what =
                join("data ", data, fix_gamma ? " fix_gamma" : "", use_global_stats ? " use_global_stats" : "",
                     is_train ? " train" : "", " axis ", axis);
            compare_norm<BatchNorm, BatchNormGrad>(params, data, is_train, what);
            compare_norm<BatchNormRelu, BatchNormReluGrad>(params, data, is_train, what + " relu");
          }
}

// ---- Products and softmax -------------------------------------------------------------------------------------------

TEST_F(OneDnn, ProductsAgreeWithThePlainOnes) {
  for (const bool a : {false, true})
    for (const bool b : {false, true})
      for (const auto& [m, k, n] :
           {std::tuple{20, 21, 22}, {64, 128, 64}, {1, 700, 30}, {99, 1, 100}, {130, 64, 200}}) {
        const Dot params{.transpose_a = a, .transpose_b = b};
        const Shape lhs = a ? Shape{k, m} : Shape{m, k}, rhs = b ? Shape{n, k} : Shape{k, n}, out{m, n};
        const std::string what = join(lhs, a ? "T" : "", " by ", rhs, b ? "T" : "");
        compare(make_node(params, {lhs, rhs}), what);
        compare(make_node(DotLhsGrad{params}, {out, rhs, lhs}), what + " grad lhs");
        compare(make_node(DotRhsGrad{params}, {lhs, out, rhs}), what + " grad rhs");
      }
  compare(make_node(Dot{}, {{4, 5, 16}, {16, 13, 5}}), "rank 3");
}

TEST_F(OneDnn, FullyConnectedAgreesWithThePlainOne) {
  for (const bool no_bias : {false, true})
    for (const bool flatten : {true, false}) {
      const FullyConnected params{.num_hidden = 200, .no_bias = no_bias, .flatten = flatten};
      compare(make_node(params, {{6, 5, 7}}), join("no_bias ", no_bias, " flatten ", flatten));
      for (const char* act_type : {"relu", "sigmoid", "tanh", "softrelu"})
        compare(make_node(FullyConnectedActivation{params, act_type}, {{6, 5, 7}}), act_type);
    }
  compare(make_node(FullyConnected{.num_hidden = 128}, {{64, 784}}), "MLP");
}

TEST_F(OneDnn, SoftmaxAgreesWithThePlainOne) {
  compare(make_node(SoftmaxOutput{}, {{64, 10}}), "rows");
  compare(make_node(SoftmaxOutput{}, {{64, 1000}}), "long rows");
  compare(make_node(SoftmaxOutput{.preserve_shape = true}, {{4, 7, 5}}), "preserve_shape");
}

// ---- What is refused ------------------------------------------------------------------------------------------------

template <class P>
std::string refusal(const P& params, const std::vector<Shape>& shapes, DType dtype = DType::float32) {
  const TestNode node = make_node(params, shapes, dtype);
  return implementation(node.op, "onednn")->refuse(node.view());
}

TEST_F(OneDnn, RefusalsHaveReasons) {
  EXPECT_EQ(refusal(Dot{}, {{64, 64}, {64, 64}}, DType::float64), "element type float64");
  EXPECT_EQ(refusal(Dot{}, {{2, 3}, {3, 4}}), "only 24 multiply-adds");
  EXPECT_EQ(refusal(Dot{}, {{0, 30}, {30, 40}}), "no elements");
  EXPECT_EQ(refusal(FullyConnectedActivation{{.num_hidden = 64}, "softsign"}, {{80, 64}}), "activation softsign");
  EXPECT_EQ(refusal(Pooling{.kernel = {2, 2}, .pool_type = "sum"}, {{1, 1, 4, 4}}), "pool_type sum");
  EXPECT_EQ(refusal(Pooling{.kernel = {3, 3}, .pool_type = "avg", .pooling_convention = "full", .stride = {2, 2}},
                    {{1, 1, 6, 6}}),
            "a mean over a window that reaches beyond the padding");
}

// Shapes for which one way is several times faster than the others.
TEST_F(OneDnn, ConvolutionsAreLeftToTheProductOverPatchesWhereVectorsOfChannelsWouldBeEmpty) {
  const auto is_accepted = [](const Convolution& params, const Shape& data) { return refusal(params, {data}).empty(); };
  EXPECT_TRUE(is_accepted({.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 64}, {2, 64, 28, 28}));
  EXPECT_TRUE(is_accepted({.kernel = {1, 1}, .num_filter = 256}, {2, 64, 28, 28}));
  EXPECT_FALSE(is_accepted({.kernel = {5, 5}, .pad = {2, 2}, .num_filter = 2}, {4, 3, 60, 60}));
  EXPECT_FALSE(is_accepted({.kernel = {3, 3}, .num_filter = 24, .num_group = 8}, {4, 16, 60, 60}));
}

// Building one throws, so whatever is accepted must build in every layout it may get.
TEST_F(OneDnn, ReferenceKernelsAreRefused) {
  EXPECT_EQ(refusal(SoftmaxOutput{.multi_output = true}, {{4, 7, 5, 3}}),
            "oneDNN has only its reference loops for this");
  EXPECT_EQ(refusal(Convolution{.kernel = {3, 3, 3}, .num_filter = 64, .num_group = 64}, {{1, 64, 6, 7, 8}}),
            "the product over patches is faster: channels read 1, written 1");
  const std::vector<ConvCase> only_reference_in_blocks = {
      {{2, 16, 20, 20}, {.kernel = {3, 3}, .pad = {3, 3}, .num_filter = 32}},
      {{2, 32, 12, 12}, {.kernel = {3, 3}, .dilate = {2, 2}, .num_filter = 32, .num_group = 32}},
      {{1, 16, 8, 8, 8}, {.kernel = {3, 3, 3}, .dilate = {2, 2, 2}, .num_filter = 32}},
      {{1, 64, 6, 7, 8}, {.kernel = {3, 3, 3}, .num_filter = 64, .num_group = 64}},
      {{2, 16, 30, 30}, {.kernel = {11, 11}, .stride = {3, 3}, .num_filter = 32}},
      {{3, 1, 26, 50}, {.kernel = {3, 50}, .num_filter = 48}},
      {{2, 129, 5, 5}, {.kernel = {1, 1}, .num_filter = 154}},
  };
  for (const auto& [data, params] : only_reference_in_blocks)
    for (const bool with_sum : {false, true}) {
      ConvolutionFused fused{params};
      fused.sum = with_sum;
      fused.act_type = "relu";
      const TestNode forward = make_node(fused, {data});
      const Shape weight = forward.inputs[1].shape, output = forward.outputs[0].shape;
      for (const TestNode& node : {forward, make_node(ConvolutionGradData{params}, {output, weight, data}),
                                   make_node(ConvolutionGradWeight{params}, {output, data, weight})})
        for (const Layout layout : {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
          TestNode laid = node;
          for (auto* tensors : {&laid.inputs, &laid.outputs})
            for (Tensor& tensor : *tensors)
              if (tensor.shape[0] == data[0] && tensor.shape.rank() == data.rank() && !(tensor.shape == weight) &&
                  tensor.shape[1] % block_of(layout) == 0)
                tensor.layout = layout;
          const Implementation* onednn = implementation(node.op, "onednn");
          const auto expected = run(node, *implementation(node.op, "plain"));
          expect_close(run(laid, *onednn), expected, 2e-5f, join(node.op.name, " data ", data, " ", name_of(layout)));
        }
    }
}

// oneDNN chooses among its kernels by the number of threads too, and a small node is built for one: the question
// whether it has more than its reference loops is asked for the same number.
TEST_F(OneDnn, BuildsEveryConvolutionThatItAccepts) {
  std::mt19937_64 dice(7);
  const auto roll = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(dice() % (most - least + 1));
  };
  for (int number = 0; number < 300; ++number) {
    const Convolution params{.kernel = {roll(1, 4), roll(1, 4)},
                             .stride = {roll(1, 3), roll(1, 3)},
                             .dilate = {roll(1, 2), roll(1, 2)},
                             .pad = {roll(0, 2), roll(0, 2)},
                             .num_filter = roll(1, 40)};
    const auto extent = [&](size_t i) { return (params.kernel[i] - 1) * params.dilate[i] + roll(1, 8); };
    const Shape data{roll(1, 3), roll(1, number % 2 == 0 ? 4 : 40), extent(0), extent(1)};
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      const TestNode forward = make_node(params, {data}, dtype);
      const Shape weight = forward.inputs[1].shape, output = forward.outputs[0].shape;
      for (const TestNode& node : {forward, make_node(ConvolutionGradData{params}, {output, weight, data}, dtype),
                                   make_node(ConvolutionGradWeight{params}, {output, data, weight}, dtype)}) {
        const Implementation* onednn = implementation(node.op, "onednn");
        if (!onednn->refuse(node.view()).empty()) continue;
        EXPECT_NO_THROW(onednn->build(node.view()))
            << node.op.name << " of " << dtype << " data " << data << " weight " << weight << " output " << output;
      }
    }
  }
}

TEST_F(OneDnn, HalfPrecisionAgreesWhereTheProcessorHasIt) {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    std::vector<TestNode> nodes = {
        make_node(Dot{}, {{20, 30}, {30, 40}}, dtype), make_node(conv_cases[2].params, {conv_cases[2].data}, dtype),
        make_node(pool_cases[1].params, {pool_cases[1].data}, dtype), make_node(SoftmaxOutput{}, {{64, 10}}, dtype)};
    for (const TestNode& node : nodes) {
      if (!implementation(node.op, "onednn")->refuse(node.view()).empty()) continue;
      compare(node, join(dtype, " ", node.op.name), 2e-2f);
    }
  }
}

// Some of oneDNN's kernels never work again in a process in which their first use failed. In a process of its own,
// since here oneDNN has been used before.
TEST(OneDnnMemory, FullyConnectedSurvivesTooLittleMemoryAtItsFirstUse) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need any amount of address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto computes = [] {
    const ThreadScope one({.threads = 1});  // a thread needs memory, too
    const Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 64}, "fc");
    const auto executor = simple_bind(net, cpu(), {{"data", {64, 64}}}, {.grad_req = "null"});
    for (const auto& [name, array] : executor->arg_dict()) array.fill(1);
    rlimit before{};
    getrlimit(RLIMIT_AS, &before);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + (1 << 20));
    setrlimit(RLIMIT_AS, &tight);
    const float first = executor->forward()[0].to_vector<float>()[0];
    setrlimit(RLIMIT_AS, &before);
    const float second = executor->forward()[0].to_vector<float>()[0];
    return first == 65 && second == 65;
  };
  EXPECT_EXIT(std::_Exit(computes() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace symbind
