#include "symbind/train/initializer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/files/params.h"

#include "tests/support/arrays.h"
#include "tests/support/oracle.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::same_bits;

NDArray initialized(const Initializer& initializer, const InitDesc& desc, const Shape& shape,
                    DType dtype = DType::float32) {
  NDArray array = full(shape, 77, cpu(), dtype);
  initializer(desc, array);
  return array;
}

NDArray weight(const Initializer& initializer, const Shape& shape, DType dtype = DType::float32) {
  return initialized(initializer, {"fc1_weight"}, shape, dtype);
}

double largest(const NDArray& array) {
  double result = 0;
  for (const double value : array.to_vector<double>()) result = std::max(result, std::abs(value));
  return result;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const NDArray& array) {
  std::vector<double> squares = array.to_vector<double>();
  for (double& value : squares) value *= value;
  return std::sqrt(mean(squares));
}

TEST(Initializer, NamesHaveTheirUsualValues) {
  const init::Uniform uniform;
  const auto value = [&](const std::string& name) { return initialized(uniform, {name}, {3}).to_vector<double>(); };
  const std::vector<double> zero(3, 0), one(3, 1);
  EXPECT_EQ(value("fc1_bias"), zero);
  EXPECT_EQ(value("bn_gamma"), one);
  EXPECT_EQ(value("bn_beta"), zero);
  EXPECT_EQ(value("data_min"), zero);
  EXPECT_EQ(value("data_max"), one);
}

TEST(Initializer, AnUnknownNameFailsAndSaysWhatToDo) {
  NDArray array = zeros({2});
  EXPECT_TRUE(fails_with([&] { init::Uniform()(InitDesc{"alpha"}, array); }, "alpha", "weight", "argument init"));
  EXPECT_TRUE(fails_with([&] { init::Uniform()(InitDesc{"bn_moving_mean"}, array); }, "bn_moving_mean"));
}

TEST(Initializer, APlainNameAlsoKnowsMovingStatistics) {
  const init::Uniform uniform;
  NDArray array = full({2}, 77);
  uniform("bn_moving_mean", array);
  EXPECT_EQ(array.to_vector<double>(), (std::vector<double>{0, 0}));
  uniform("bn_moving_var", array);
  EXPECT_EQ(array.to_vector<double>(), (std::vector<double>{1, 1}));
  uniform("fc_bias", array);
  EXPECT_EQ(array.to_vector<double>(), (std::vector<double>{0, 0}));
  NDArray kernel = zeros({1, 1, 4, 4});
  uniform("upsampling0_weight", kernel);
  EXPECT_EQ(kernel.reshape({16}).slice(4, 8).to_vector<double>(),
            (std::vector<double>{0.1875, 0.5625, 0.5625, 0.1875}));
}

TEST(Initializer, AVariablesOwnInitializerComesFirst) {
  const init::Uniform uniform;
  EXPECT_EQ(initialized(uniform, {"moving_var", {{"__init__", "[\"one\", {}]"}}}, {1}).item(), 1);
  EXPECT_EQ(initialized(uniform, {"any", {{"__init__", "zeros"}}}, {1}).item(), 0);
  EXPECT_EQ(initialized(uniform, {"fc_bias", {{"__init__", "[\"constant\", {\"value\": 2.5}]"}}}, {1}).item(), 2.5);
}

TEST(Initializer, SeedMakesItReproducible) {
  const init::Xavier xavier;
  seed(5);
  const NDArray first = weight(xavier, {7, 5}), second = weight(xavier, {7, 5});
  seed(5);
  EXPECT_TRUE(same_bits(weight(xavier, {7, 5}), first));
  EXPECT_TRUE(same_bits(weight(xavier, {7, 5}), second));
  seed(6);
  EXPECT_FALSE(same_bits(weight(xavier, {7, 5}), first));
  EXPECT_FALSE(same_bits(second, first));
}

TEST(Initializer, UniformFillsItsRange) {
  seed(1);
  EXPECT_NEAR(largest(weight(init::Uniform(), {100, 100})), 0.07, 0.0001);
  const NDArray wide = weight(init::Uniform(2), {100, 100});
  EXPECT_LE(largest(wide), 2);
  EXPECT_NEAR(mean(wide.to_vector<double>()), 0, 0.06);
  EXPECT_NEAR(deviation(wide), 2 / std::sqrt(3.0), 0.03);
}

TEST(Initializer, XavierFollowsTheNumbersOfInputsAndOutputs) {
  seed(1);
  EXPECT_NEAR(largest(weight(init::Xavier(), {100, 200})), std::sqrt(3 / 150.0), 1e-4);
  EXPECT_NEAR(largest(weight(init::Xavier({.factor_type = "in"}), {100, 200})), std::sqrt(3 / 200.0), 1e-4);
  EXPECT_NEAR(largest(weight(init::Xavier({.factor_type = "out", .magnitude = 2}), {100, 200})), std::sqrt(2 / 100.0),
              1e-4);
  EXPECT_NEAR(largest(weight(init::Xavier({.factor_type = "in"}), {64, 16, 5, 5})), std::sqrt(3 / 400.0), 1e-4);
  const NDArray normal = weight(init::Xavier({.rnd_type = "gaussian"}), {200, 200});
  EXPECT_NEAR(deviation(normal), std::sqrt(3 / 200.0), 0.002);
  EXPECT_GT(largest(normal), 3 * std::sqrt(3 / 200.0));
}

TEST(Initializer, EveryFloatingTypeGetsTheSameNumbers) {
  seed(3);
  const NDArray reference = weight(init::Uniform(1), {33});
  for (const DType dtype : {DType::float64, DType::float16, DType::bfloat16}) {
    seed(3);
    EXPECT_TRUE(same_bits(weight(init::Uniform(1), {33}, dtype), reference.astype(dtype))) << dtype;
  }
}

TEST(Initializer, BadUseIsSaid) {
  EXPECT_TRUE(fails_with([] { weight(init::Xavier(), {5}); }, "fc1_weight", "two axes", "(5"));
  EXPECT_TRUE(fails_with([] { weight(init::Uniform(), {5}, DType::int32); }, "fc1_weight", "int32"));
  EXPECT_TRUE(fails_with([] { init::Xavier({.rnd_type = "normal"}); }, "uniform or gaussian", "normal"));
  EXPECT_TRUE(fails_with([] { init::Xavier({.factor_type = "both"}); }, "avg, in or out", "both"));
}

TEST(Initializer, TextMakesTheSameInitializerAgain) {
  const std::string xavier = "[\"xavier\", {\"rnd_type\": \"gaussian\", \"factor_type\": \"in\", \"magnitude\": 2.34}]";
  EXPECT_EQ(init::Xavier({.rnd_type = "gaussian", .factor_type = "in", .magnitude = 2.34}).dumps(), xavier);
  EXPECT_EQ(create_initializer(xavier)->dumps(), xavier);
  EXPECT_EQ(create_initializer("Xavier")->dumps(), init::Xavier().dumps());
  EXPECT_EQ(create_initializer("[\"uniform\", {}]")->dumps(), "[\"uniform\", {\"scale\": 0.07}]");
  EXPECT_EQ(init::Zero().dumps(), "[\"zero\", {}]");
}

TEST(Initializer, BadTextIsSaid) {
  EXPECT_TRUE(fails_with([] { create_initializer("xaviar"); }, "xaviar", "xavier", "uniform"));
  EXPECT_TRUE(fails_with([] { create_initializer("[\"uniform\", {"); }, "[\"uniform\", {"));
  EXPECT_TRUE(fails_with([] { create_initializer("[\"uniform\", {\"scael\": 1}]"); }, "uniform", "scael"));
  EXPECT_TRUE(fails_with([] { create_initializer("[\"uniform\", {\"scale\": \"a\"}]"); }, "scale", "a number"));
  EXPECT_TRUE(fails_with([] { create_initializer("constant"); }, "constant", "value", "missing"));
}

class Seven final : public Initializer {
 public:
  std::string dumps() const override { return "[\"seven\", {}]"; }

 private:
  void init_weight(const InitDesc&, NDArray& array) const override { array.fill(7); }
};

TEST(Initializer, OnesOwnCanBeRegistered) {
  register_initializer("Seven", [](const std::string&) { return std::make_shared<Seven>(); });
  EXPECT_EQ(initialized(init::Zero(), {"any", {{"__init__", "seven"}}}, {1}).item(), 7);
}

TEST(Initializer, DeterministicOnesAreMXNets) {
  const auto recorded = testing::read_recorded("metrics.json.gz");
  int compared = 0;
  for (const auto& entry : recorded.at("initializers")) {
    if (!entry.contains("dumps")) continue;
    const std::string text = entry.at("dumps");
    const NDArray expected = testing::decode_array(entry.at("array"));
    const auto initializer = create_initializer(text);
    EXPECT_TRUE(same_bits(initialized(*initializer, {entry.at("parameter")}, expected.shape()), expected)) << text;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

TEST(Initializer, TextsAreMXNets) {
  const auto recorded = testing::read_recorded("metrics.json.gz");
  for (const auto& text : recorded.at("initializer_texts"))
    EXPECT_EQ(create_initializer(text.get<std::string>())->dumps(), text.get<std::string>());
}

// Counts its calls, and fills with them.
class Counting final : public Initializer {
 public:
  std::string dumps() const override { return "[\"counting\", {}]"; }
  void operator()(const InitDesc& desc, NDArray& array) const override { init_weight(desc, array); }
  mutable std::vector<std::pair<std::string, Shape>> calls;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override {
    calls.emplace_back(desc.name, array.shape());
    array.fill(static_cast<double>(calls.size()));
  }
};

TEST(Initializer, AFusedVectorHasMXNetsLayout) {
  const auto recorded = testing::read_recorded("metrics.json.gz");
  int compared = 0;
  for (const auto& entry : recorded.at("initializers")) {
    if (!entry.contains("parts")) continue;
    const auto counting = std::make_shared<Counting>();
    const init::FusedRNN fused({.init = counting,
                                .num_hidden = 3,
                                .num_layers = 2,
                                .mode = entry.at("mode"),
                                .bidirectional = entry.at("bidirectional"),
                                .forget_bias = 99});
    const auto values = weight(fused, {entry.at("size").get<int64_t>()}).to_vector<double>();
    std::map<std::string, double> number;
    for (size_t i = 0; i < counting->calls.size(); ++i) {
      const auto& [name, shape] = counting->calls[i];
      ASSERT_TRUE(entry.at("parts").contains(name)) << name;
      EXPECT_EQ(shape, Shape(entry.at("parts").at(name).at("shape").get<std::vector<int64_t>>())) << name;
      number[name] = static_cast<double>(i + 1);
    }
    for (const auto& [name, part] : entry.at("parts").items()) {
      const bool forget = entry.at("mode") == "lstm" && name.ends_with("_f_bias");
      const auto first = static_cast<size_t>(part.at("first").get<double>());
      const auto last = first + static_cast<size_t>(Shape(part.at("shape").get<std::vector<int64_t>>()).size()) - 1;
      EXPECT_EQ(values.at(first), forget ? 99 : number.at(name)) << name;
      EXPECT_EQ(values.at(last), forget ? 99 : number.at(name)) << name;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(Initializer, AFusedVectorWithoutItsOwnUsesTheGlobalOne) {
  const init::FusedRNN fused({.num_hidden = 2, .num_layers = 1, .mode = "lstm"});
  const auto values = initialized(init::Constant(3), {"parameters", {{"__init__", fused.dumps()}}}, {8 * (1 + 2 + 2)})
                          .to_vector<double>();
  EXPECT_EQ(std::count(values.begin(), values.end(), 3), 24);
  EXPECT_EQ(std::count(values.begin(), values.end(), 1), 4);
  EXPECT_EQ(std::count(values.begin(), values.end(), 0), 12);
  EXPECT_TRUE(fails_with([&] { weight(fused, {40}); }, "fc1_weight", "no initializer"));
  EXPECT_TRUE(fails_with([&] { initialized(init::Constant(3), {"p", {{"__init__", fused.dumps()}}}, {41}); }, "41"));
  EXPECT_TRUE(fails_with([] { init::FusedRNN({.num_hidden = 2, .num_layers = 1, .mode = "mlp"}); }, "mlp", "lstm"));
}

TEST(Initializer, NormalHasItsDeviation) {
  seed(2);
  EXPECT_NEAR(deviation(weight(init::Normal(), {200, 200})), 0.01, 0.0002);
  const NDArray wide = weight(init::Normal(2), {200, 200});
  EXPECT_NEAR(deviation(wide), 2, 0.03);
  EXPECT_NEAR(mean(wide.to_vector<double>()), 0, 0.04);
}

TEST(Initializer, MSRAPreluFollowsTheSlope) {
  seed(2);
  EXPECT_NEAR(deviation(weight(init::MSRAPrelu(), {200, 300})), std::sqrt(2 / (1 + 0.0625) / 250), 0.001);
  EXPECT_NEAR(deviation(weight(init::MSRAPrelu("in", 0), {200, 300})), std::sqrt(2 / 300.0), 0.001);
  EXPECT_TRUE(fails_with([] { init::MSRAPrelu("both"); }, "avg, in or out", "both"));
}

// The largest difference between the products of rows (or columns) and those of orthogonal ones of that length.
double defect(const NDArray& array, double length) {
  const int64_t rows = array.shape()[0], columns = array.shape().size(1, array.rank());
  const auto values = array.to_vector<double>();
  const bool wide = columns >= rows;
  const int64_t count = wide ? rows : columns, height = wide ? columns : rows;
  const auto at = [&](int64_t vector, int64_t i) {
    return values[static_cast<size_t>(wide ? vector * columns + i : i * columns + vector)];
  };
  double worst = 0;
  for (int64_t a = 0; a < count; ++a)
    for (int64_t b = 0; b <= a; ++b) {
      double product = 0;
      for (int64_t i = 0; i < height; ++i) product += at(a, i) * at(b, i);
      worst = std::max(worst, std::abs(product - (a == b ? length * length : 0)));
    }
  return worst;
}

TEST(Initializer, OrthogonalIsOrthogonal) {
  seed(4);
  for (const Shape& shape : {Shape{5, 5}, Shape{40, 7}, Shape{7, 40}, Shape{8, 3, 3, 3}, Shape{1, 9}, Shape{9, 1}}) {
    EXPECT_LT(defect(weight(init::Orthogonal(), shape, DType::float64), 1.414), 1e-14) << shape;
    EXPECT_LT(defect(weight(init::Orthogonal(2, "normal"), shape), 2), 1e-5) << shape;
  }
  // Every direction is as likely as its opposite.
  double sum = 0;
  for (int i = 0; i < 400; ++i) sum += weight(init::Orthogonal(1, "normal"), {3, 3}).to_vector<double>()[0];
  EXPECT_LT(std::abs(sum / 400), 0.1);
  EXPECT_TRUE(fails_with([] { weight(init::Orthogonal(), {5}); }, "fc1_weight", "two axes", "(5"));
  EXPECT_TRUE(fails_with([] { init::Orthogonal(1, "cauchy"); }, "uniform or normal", "cauchy"));
}

TEST(Initializer, LoadTakesValuesByName) {
  const NamedArrays params = {{"arg:a", array({1, 2})}, {"aux:b", array({3})}, {"c", array({4})}};
  const init::Load load(params, std::make_shared<init::One>());
  EXPECT_EQ(initialized(load, {"a", {{"__init__", "zeros"}}}, {2}).to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(initialized(load, {"a"}, {2}, DType::float16).to_vector<double>(), (std::vector<double>{1, 2}));
  NDArray plain = zeros({1});
  load("b", plain);
  EXPECT_EQ(plain.item(), 3);
  EXPECT_EQ(initialized(load, {"d_weight"}, {1}).item(), 1);
  EXPECT_TRUE(fails_with([&] { initialized(load, {"c"}, {2}); }, "'c'", "(2,)", "(1,)"));
  EXPECT_TRUE(fails_with([&] { initialized(init::Load(params), {"d_weight"}, {1}); }, "d_weight", "default"));
  EXPECT_THROW(load.dumps(), Error);

  const testing::TempDir folder;
  save(folder.file("some.params"), params);
  EXPECT_EQ(initialized(init::Load(folder.file("some.params")), {"b"}, {1}).item(), 3);
}

TEST(Initializer, MixedMatchesTheBeginningOfTheName) {
  const init::Mixed mixed({"bias", ".*fc"}, {std::make_shared<init::Constant>(5), std::make_shared<init::Constant>(6)});
  EXPECT_EQ(initialized(mixed, {"bias_weight"}, {1}).item(), 5);
  EXPECT_EQ(initialized(mixed, {"my_fc_weight"}, {1}).item(), 6);
  EXPECT_EQ(initialized(mixed, {"fc_bias"}, {1}).item(), 0);  // a Constant's bias
  EXPECT_EQ(initialized(mixed, {"bias", {{"__init__", "[\"one\", {}]"}}}, {1}).item(), 1);
  NDArray plain = ones({1});
  mixed("fc_moving_mean", plain);
  EXPECT_EQ(plain.item(), 0);
  EXPECT_TRUE(fails_with([&] { initialized(mixed, {"my_bias"}, {1}); }, "my_bias", "'.*'"));
  EXPECT_TRUE(fails_with([] { init::Mixed({"a"}, {}); }, "1 patterns", "0 initializers"));
  EXPECT_TRUE(fails_with([] { init::Mixed({"(a"}, {std::make_shared<init::Zero>()}); }, "(a"));
  EXPECT_THROW(mixed.dumps(), Error);
}

TEST(Initializer, AnLSTMsBiasHasFourGates) {
  EXPECT_TRUE(fails_with([] { weight(init::LSTMBias(), {6}); }, "four gates", "(6"));
}

// Text out of a file: nested deeply it must not exhaust the stack.
TEST(Initializer, ArgumentsNestedDeeplyAreRefused) {
  constexpr size_t depth = 100'000;
  for (const char* opening : {"[", "{\"a\":"}) {
    std::string nested;
    for (size_t i = 0; i < depth; ++i) nested += opening;
    nested += "1";
    nested.append(depth, *opening == '[' ? ']' : '}');
    const std::string text = "[\"xavier\", {\"magnitude\": " + nested + "}]";
    EXPECT_THROW(create_initializer(text), Error);
    EXPECT_THROW(create_initializer("[" + nested + "]"), Error);
    const Symbol variable = Symbol::variable("x", {.init = text});
    EXPECT_EQ(Symbol::load_json(variable.tojson()).attr("__init__"), text);
  }
}

// A network's own text is read without recursion, whatever is nested in it.
TEST(Initializer, NetworksNestedDeeplyAreErrors) {
  const std::string deep(100'000, '[');
  EXPECT_THROW(Symbol::load_json(deep), Error);
  EXPECT_THROW(Symbol::load_json("{\"nodes\": " + deep + std::string(100'000, ']') + ", \"heads\": []}"), Error);
}

}  // namespace
TEST(Initializer, AConstantArrayGoesToTextAndComesBack) {
  const init::Constant constant(array({{1, 2.5}, {3, 4}}));
  EXPECT_EQ(constant.dumps(), R"(["constant", {"value": [[1, 2.5], [3, 4]]}])");
  const auto back = create_initializer(constant.dumps());
  EXPECT_EQ(back->dumps(), constant.dumps());
  EXPECT_EQ(initialized(*back, {"x_weight"}, {2, 2}).to_vector<double>(), (std::vector<double>{1, 2.5, 3, 4}));
  EXPECT_EQ(initialized(*create_initializer(R"(["constant", {"value": 3.5}])"), {"x_weight"}, {2}).to_vector<double>(),
            (std::vector<double>{3.5, 3.5}));
}

TEST(Initializer, AConstantArrayIsRepeatedToFillTheShape) {
  EXPECT_EQ(initialized(init::Constant(array({1, 2})), {"x_weight"}, {2, 2}).to_vector<double>(),
            (std::vector<double>{1, 2, 1, 2}));
  EXPECT_EQ(initialized(init::Constant(array({{1}, {2}})), {"x_weight"}, {2, 2}).to_vector<double>(),
            (std::vector<double>{1, 1, 2, 2}));
  EXPECT_TRUE(fails_with([&] { initialized(init::Constant(array({1, 2})), {"x_weight"}, {3}); }, "(2,)", "(3,)"));
  EXPECT_TRUE(fails_with(
      [&] {
        initialized(init::Constant(array({{1, 2}, {1, 2}})), {"x_weight"}, {2});
      },
      "(2,2)", "(2,)"));
  for (const char* wrong : {R"(["constant", {"value": [1, [2]]}])", R"(["constant", {"value": [[1], [1, 2]]}])",
                            R"(["constant", {"value": ["x"]}])", R"(["constant", {}])"})
    EXPECT_TRUE(fails_with([&] { create_initializer(wrong); }, "value")) << wrong;
}

}  // namespace symbind
