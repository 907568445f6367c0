#include "symbind/graph/symbol.h"

#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/graph/builder.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/concat.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/math.h"
#include "symbind/passes/infer.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::fc;
using testing::relu;
using testing::softmax;
using testing::var;
using Strings = std::vector<std::string>;

Symbol small_net() { return softmax(fc(relu(fc(var("data"), 4, "fc1"), "relu1"), 3, "fc2")); }

// ---- making --------------------------------------------------------------------------------------------------------

TEST(Symbol, MissingInputsBecomeVariablesNamedAfterTheNode) {
  EXPECT_EQ(small_net().list_arguments(),
            (Strings{"data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias", "softmax_label"}));
  EXPECT_EQ(small_net().list_outputs(), (Strings{"softmax_output"}));
}

TEST(Symbol, StatesOfAnOperatorAreNoArguments) {
  const Symbol net = apply("BatchNorm", var("data"), {}, "bn0");
  EXPECT_EQ(net.list_arguments(), (Strings{"data", "bn0_gamma", "bn0_beta"}));
  EXPECT_EQ(net.list_auxiliary_states(), (Strings{"bn0_moving_mean", "bn0_moving_var"}));
  EXPECT_EQ(net.list_inputs(), (Strings{"data", "bn0_gamma", "bn0_beta", "bn0_moving_mean", "bn0_moving_var"}));
  EXPECT_EQ(net.list_outputs(), (Strings{"bn0_output"}));
}

TEST(Symbol, NoBiasMeansNoBias) {
  const Symbol net = apply("FullyConnected", var("data"), {{"num_hidden", "2"}, {"no_bias", "True"}}, "fc");
  EXPECT_EQ(net.list_arguments(), (Strings{"data", "fc_weight"}));
}

TEST(Symbol, InputsMayBeGivenByName) {
  Inputs inputs(std::vector<Symbol>{});
  inputs.add("weight", var("w"));
  inputs.add("data", var("x"));
  const Symbol net = apply("FullyConnected", inputs, {{"num_hidden", "2"}}, "fc");
  EXPECT_EQ(net.list_arguments(), (Strings{"x", "w", "fc_bias"}));
}

TEST(Symbol, AnUnknownInputIsAnErrorThatListsTheRightOnes) {
  Inputs inputs(std::vector<Symbol>{});
  inputs.add("wieght", var("w"));
  EXPECT_TRUE(fails_with(
      [&] {
        apply("FullyConnected", inputs, {{"num_hidden", "2"}}, "fc7");
      },
      "FullyConnected", "fc7", "wieght", "weight", "bias"));
}

TEST(Symbol, TooManyInputsAreAnError) {
  const Symbol x = var("x");
  EXPECT_TRUE(fails_with([&] { apply("elemwise_add", {x, x, x}, {}, "sum7"); }, "elemwise_add", "sum7", "2", "3"));
}

TEST(Symbol, AnInputGivenTwiceIsAnError) {
  Inputs inputs(std::vector<Symbol>{var("x")});
  inputs.add("data", var("y"));
  EXPECT_TRUE(fails_with(
      [&] {
        apply("FullyConnected", inputs, {{"num_hidden", "2"}}, "fc7");
      },
      "fc7", "data", "twice"));
}

TEST(Symbol, WholeNumbersMayBeWrittenAsFloatsButHaveNoFraction) {
  const auto hidden = [](const std::string& text) {
    return apply("FullyConnected", var("x"), {{"num_hidden", text}}, "fc");
  };
  for (const char* five : {"5", "5.0", " +5 ", "5L", "5e0"})
    EXPECT_EQ(infer_shape(hidden(five), {{"x", {2, 3}}}).outputs[0], (std::vector<int64_t>{2, 5})) << five;
  for (const char* none : {"5.5", "1e300", "five", "", "5 5", "5x"})
    EXPECT_TRUE(fails_with([&] { hidden(none); }, "FullyConnected fc", "num_hidden", "a whole number")) << none;
}

TEST(Symbol, OfAnUnknownOperatorIsAnErrorWithNearNames) {
  EXPECT_TRUE(fails_with([] { apply("FullyConected", var("x"), {}); }, "FullyConected", "FullyConnected"));
  EXPECT_TRUE(fails_with([] { apply("rlu", var("x"), {}); }, "rlu", "relu")) << "one letter of a short name";
}

TEST(Symbol, AVariableNeedsAName) { EXPECT_THROW(var(""), Error); }

TEST(Symbol, TheSameNodeIsOneArgumentHoweverOftenUsed) {
  const Symbol x = var("x");
  EXPECT_EQ((x + x * x).list_arguments(), (Strings{"x"}));
}

TEST(Symbol, ArgumentsAreInTheOrderOfADepthFirstWalk) {
  const Symbol a = var("a"), b = var("b"), c = var("c");
  EXPECT_EQ((c * (a + b)).list_arguments(), (Strings{"c", "a", "b"}));
  EXPECT_EQ(((a + b) * c).list_arguments(), (Strings{"a", "b", "c"}));
  EXPECT_EQ(((b + c) * (b + a)).list_arguments(), (Strings{"b", "c", "a"}));
}

// ---- automatic names -----------------------------------------------------------------------------------------------

TEST(Names, AreTheOperatorsLowerCaseNameAndACounter) {
  const NameManager fresh;
  const Symbol x = var("x");
  EXPECT_EQ(apply("FullyConnected", x, {{"num_hidden", "2"}}).name(), "fullyconnected0");
  EXPECT_EQ(apply("FullyConnected", x, {{"num_hidden", "2"}}).name(), "fullyconnected1");
  EXPECT_EQ(apply("Activation", x, {{"act_type", "relu"}}).name(), "activation0");
  EXPECT_EQ(apply("FullyConnected", x, {{"num_hidden", "2"}}, "mine").name(), "mine");
  EXPECT_EQ(apply("FullyConnected", x, {{"num_hidden", "2"}}).name(), "fullyconnected2");
}

TEST(Names, OfArithmeticSayWhatItDoes) {
  const NameManager fresh;
  const Symbol a = var("a"), b = var("b");
  EXPECT_EQ((a + b).name(), "_plus0");
  EXPECT_EQ((a - b).name(), "_minus0");
  EXPECT_EQ((a * b).name(), "_mul0");
  EXPECT_EQ((a / b).name(), "_div0");
  EXPECT_EQ((a + 1).name(), "_plusscalar0");
  EXPECT_EQ((1 + a).name(), "_plusscalar1");
  EXPECT_EQ((1 - a).name(), "_rminusscalar0");
  EXPECT_EQ((-a).name(), "_mulscalar0");
  EXPECT_EQ(pow(a, b).name(), "_power0");
  EXPECT_EQ((a > b).name(), "_greater0");
  EXPECT_EQ((a <= 2).name(), "_lesser_equal_scalar0");
}

TEST(Names, CountFromZeroInEveryManagerAndOnEveryThread) {
  const NameManager outer;
  const Symbol x = var("x");
  EXPECT_EQ((x + x).name(), "_plus0");
  {
    const NameManager inner;
    EXPECT_EQ((x + x).name(), "_plus0");
  }
  EXPECT_EQ((x + x).name(), "_plus1");
  std::string elsewhere;
  std::thread([&] { elsewhere = (x + x).name(); }).join();
  EXPECT_EQ(elsewhere, "_plus0");
}

TEST(Names, GetAPrefixGivenOrMade) {
  const NameManager fresh;
  const Symbol x = var("x");
  {
    const Prefix prefix("net_");
    EXPECT_EQ(fc(x, 2, "fc").list_arguments(), (Strings{"x", "net_fc_weight", "net_fc_bias"}));
    EXPECT_EQ((x + x).name(), "net__plus0");
  }
  EXPECT_EQ((x + x).name(), "_plus0");
}

// ---- attributes ----------------------------------------------------------------------------------------------------

TEST(Attributes, OfAVariableAreFoundUnderBothSpellings) {
  const Symbol x = Symbol::variable("x", {.attr = {{"mood", "calm"}}, .lr_mult = 0.5, .wd_mult = 2});
  EXPECT_EQ(x.attr("mood"), "calm");
  EXPECT_EQ(std::stod(x.attr("lr_mult").value()), 0.5);
  EXPECT_EQ(x.attr("__lr_mult__"), x.attr("lr_mult"));
  EXPECT_EQ(std::stod(x.attr("__wd_mult__").value()), 2);
  EXPECT_FALSE(x.attr("nothing").has_value());
  EXPECT_FALSE(x.attr("__mood__").has_value());
}

TEST(Attributes, ShapeAndTypeOfAVariableAreStored) {
  const Symbol x = Symbol::variable("x", {.shape = {4, 0}, .dtype = DType::float16, .init = "zeros"});
  EXPECT_EQ(x.attr("__shape__"), "(4, 0)");
  EXPECT_EQ(x.attr("__dtype__"), "2");
  EXPECT_EQ(x.attr("__init__"), "zeros");
}

TEST(Attributes, OfAScopeReachTheNodeAndItsOwnVariables) {
  const AttrScope scope(Attributes{{"ctx_group", "stage1"}, {"lr_mult", "3"}});
  const Symbol net = fc(var("x"), 2, "fc");
  const auto all = net.attr_dict();
  for (const std::string name : {"x", "fc", "fc_weight", "fc_bias"}) {
    EXPECT_EQ(all.at(name).at("__ctx_group__"), "stage1") << name;
    EXPECT_EQ(all.at(name).at("lr_mult"), "3") << name;
  }
}

TEST(Attributes, OfTheInnerScopeWin) {
  const AttrScope outer(Attributes{{"ctx_group", "outer"}, {"lr_mult", "2"}});
  {
    const AttrScope inner(Attributes{{"ctx_group", "inner"}});
    const Symbol x = var("x");
    EXPECT_EQ(x.attr("ctx_group"), "inner");
    EXPECT_EQ(x.attr("lr_mult"), "2");
  }
  EXPECT_EQ(var("y").attr("ctx_group"), "outer");
}

TEST(Attributes, OfTheSymbolItselfWinOverTheScope) {
  const AttrScope scope(Attributes{{"lr_mult", "2"}});
  EXPECT_EQ(Symbol::variable("x", {.attr = {{"__lr_mult__", "7"}}}).attr("lr_mult"), "7");
}

TEST(Attributes, ParametersOfAnOperatorAreAmongThem) {
  const Symbol net = fc(var("x"), 5, "fc");
  EXPECT_EQ(net.attr("num_hidden"), "5");
  EXPECT_EQ(net.list_attr(), (Attributes{{"num_hidden", "5"}}));
}

TEST(Attributes, MayBeSetLater) {
  Symbol net = fc(var("x"), 5, "fc");
  net.set_attr({{"lr_mult", "4"}, {"__layout__", "NC"}});
  EXPECT_EQ(net.attr("__lr_mult__"), "4");
  EXPECT_EQ(net.attr("__layout__"), "NC");
  EXPECT_THROW(Symbol::group({net, var("y")}).set_attr({{"lr_mult", "1"}}), Error);
}

TEST(Attributes, StatesKnowHowTheyStart) {
  const auto all = apply("BatchNorm", var("x"), {}, "bn").attr_dict();
  ASSERT_TRUE(all.contains("bn_moving_var"));
  EXPECT_NE(all.at("bn_moving_var").at("__init__").find("one"), std::string::npos);
}

// ---- parts ---------------------------------------------------------------------------------------------------------

TEST(Parts, OutputsAreFoundByNumberAndByName) {
  const Symbol both = Symbol::group({fc(var("x"), 2, "a"), fc(var("y"), 2, "b")});
  EXPECT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].name(), "b");
  EXPECT_EQ(both["a_output"].name(), "a");
  EXPECT_EQ(both.name(), "");
  EXPECT_TRUE(fails_with([&] { both[2]; }, "2"));
  EXPECT_TRUE(fails_with([&] { both["c_output"]; }, "c_output", "a_output", "b_output"));
  EXPECT_TRUE(fails_with([&] { Symbol::group({fc(var("x"), 2, "a"), fc(var("y"), 2, "a")})["a_output"]; }, "a_output"));
}

TEST(Parts, GroupsMayBeGroupedAgain) {
  const Symbol x = var("x"), y = var("y");
  EXPECT_EQ(Symbol::group({Symbol::group({x, y}), x}).list_outputs(), (Strings{"x", "y", "x"}));
  EXPECT_TRUE(fails_with([] { Symbol::group({}); }, "at least one symbol"));
  EXPECT_TRUE(fails_with([] { Symbol(std::vector<Entry>()); }, "at least one output"));
}

TEST(Parts, InternalsAreEveryOutputOfEveryNode) {
  const Symbol internals = small_net().get_internals();
  EXPECT_EQ(internals.list_outputs(),
            (Strings{"data", "fc1_weight", "fc1_bias", "fc1_output", "relu1_output", "fc2_weight", "fc2_bias",
                     "fc2_output", "softmax_label", "softmax_output"}));
  const Symbol features = internals["relu1_output"];
  EXPECT_EQ(features.list_arguments(), (Strings{"data", "fc1_weight", "fc1_bias"}));
}

TEST(Parts, ChildrenAreTheInputsOfANode) {
  EXPECT_EQ(fc(var("x"), 2, "fc").get_children()->list_outputs(), (Strings{"x", "fc_weight", "fc_bias"}));
  EXPECT_FALSE(var("x").get_children().has_value());
}

TEST(Parts, HiddenOutputsAreSeenOnlyWhenAskedFor) {
  EXPECT_EQ(apply("BatchNorm", var("x"), {}, "bn").list_outputs(), (Strings{"bn_output"}));
  EXPECT_EQ(apply("BatchNorm", var("x"), {{"output_mean_var", "True"}}, "bn").list_outputs(),
            (Strings{"bn_output", "bn_mean", "bn_var"}));
}

// ---- composition ---------------------------------------------------------------------------------------------------

TEST(Composition, ReplacesVariablesByName) {
  const Symbol stem = fc(var("x"), 3, "stem"), head = fc(var("y"), 2, "head");
  const Symbol joined = head({{"y", stem}});
  EXPECT_EQ(joined.list_arguments(), (Strings{"x", "stem_weight", "stem_bias", "head_weight", "head_bias"}));
  EXPECT_EQ(head.list_arguments(), (Strings{"y", "head_weight", "head_bias"})) << "the original is unchanged";
}

TEST(Composition, ReplacesVariablesInOrder) {
  const Symbol head = var("a") * var("b");
  EXPECT_EQ(head(std::vector<Symbol>{var("x"), var("y")}).list_arguments(), (Strings{"x", "y"}));
  EXPECT_EQ(head(std::vector<Symbol>{var("x")}).list_arguments(), (Strings{"x", "b"}));
  EXPECT_THROW(head(std::vector<Symbol>{var("x"), var("y"), var("z")}), Error);
}

TEST(Composition, TakesAnyOutputOfANodeWithSeveral) {
  const Symbol parts = apply("SliceChannel", var("x"), {{"num_outputs", "3"}}, "split");
  const Symbol head = fc(var("y"), 2, "head");
  for (const size_t i : {0, 1, 2}) {
    const std::string chosen = "split_output" + std::to_string(i);
    EXPECT_EQ(head({{"y", parts[i]}}).get_children()->list_outputs(), (Strings{chosen, "head_weight", "head_bias"}));
    EXPECT_EQ(var("y")({{"y", parts[i]}}).list_outputs(), (Strings{chosen}));
    const Symbol inside =
        relu(parts[i], "relu")({{"x", var("z")}});  // a node that is copied keeps its outputs' numbers
    EXPECT_EQ(inside.get_children()->list_outputs(), (Strings{chosen}));
    EXPECT_EQ(inside.list_arguments(), (Strings{"z"}));
  }
}

TEST(Composition, OfAnUnknownNameListsTheRightOnes) {
  EXPECT_TRUE(fails_with([] { small_net()({{"dta", var("x")}}); }, "dta", "data", "fc1_weight"));
}

TEST(Composition, WithAGroupIsAnError) {
  const Symbol pair = Symbol::group({var("a"), var("b")});
  EXPECT_THROW(fc(pair, 2, "fc"), Error);
  EXPECT_THROW(small_net()({{"data", pair}}), Error);
}

TEST(Composition, OfABareVariableGivesTheReplacement) {
  EXPECT_EQ(var("x")({{"x", fc(var("y"), 2, "fc")}}).name(), "fc");
}

TEST(Composition, KeepsSharingInsideTheNetwork) {
  const Symbol x = var("x"), both = fc(x, 2, "a") + fc(x, 2, "b");
  EXPECT_EQ(both({{"x", var("z")}}).list_arguments(), (Strings{"z", "a_weight", "a_bias", "b_weight", "b_bias"}));
}

// ---- text ----------------------------------------------------------------------------------------------------------

TEST(Json, IsReadBackAsTheSameNetwork) {
  for (const auto& network : testing::all_networks()) {
    const std::string text = network.symbol.tojson();
    const Symbol again = Symbol::load_json(text);
    EXPECT_EQ(again.tojson(), text) << network.name;
    EXPECT_EQ(again.list_arguments(), network.symbol.list_arguments()) << network.name;
    EXPECT_EQ(again.list_auxiliary_states(), network.symbol.list_auxiliary_states()) << network.name;
    EXPECT_EQ(again.list_outputs(), network.symbol.list_outputs()) << network.name;
    EXPECT_EQ(again.attr_dict(), network.symbol.attr_dict()) << network.name;
  }
}

TEST(Json, GoesThroughAFile) {
  const testing::TempDir folder;
  small_net().save(folder.file("net-symbol.json"));
  EXPECT_EQ(Symbol::load(folder.file("net-symbol.json")).tojson(), small_net().tojson());
  EXPECT_TRUE(fails_with([&] { Symbol::load(folder.file("missing.json")); }, "missing.json"));
}

TEST(Json, KeepsNamesWithOddCharacters) {
  const Symbol net = fc(var("a \"quoted\" \\ name\n\tand é"), 2, "fc");
  EXPECT_EQ(Symbol::load_json(net.tojson()).list_arguments(), net.list_arguments());
}

// As MXNet 1.9.1 writes it.
TEST(Json, WritesMoreThanTenItemsOfAListOnLinesOfTheirOwn) {
  const auto joined = [](int count) {
    std::vector<Symbol> parts;
    for (int i = 0; i < count; ++i) parts.push_back(var("v" + std::to_string(i)));
    return apply("Concat", parts, {{"num_args", std::to_string(count)}}, "joined").tojson();
  };
  EXPECT_NE(joined(10).find("\"arg_nodes\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], \n"), std::string::npos) << joined(10);
  EXPECT_NE(joined(11).find("\"arg_nodes\": [\n    0, \n    1, \n"), std::string::npos) << joined(11);
}

TEST(Json, CountsHowOftenAStateWasUpdated) {
  const Symbol mean = var("mean"), variance = var("variance");
  const auto norm = [&](const Symbol& data, const std::string& name) {
    Inputs inputs(std::vector<Symbol>{data});
    inputs.add("moving_mean", mean);
    inputs.add("moving_var", variance);
    return apply("BatchNorm", inputs, {}, name);
  };
  const std::string text = norm(norm(var("x"), "first"), "second").tojson();
  EXPECT_NE(text.find("[[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1]]"), std::string::npos) << text;
  EXPECT_NE(text.find("[[5, 0, 0], [6, 0, 0], [7, 0, 0], [3, 0, 2], [4, 0, 2]]"), std::string::npos) << text;
}

TEST(Json, IsTheSameForTypedBuildersAndForText) {
  const NameManager fresh;
  const Symbol net = apply("Convolution", var("x"), {{"kernel", "(3, 3)"}, {"num_filter", "4"}}, "conv");
  const Symbol from_spaces = apply("Convolution", var("x"), {{"kernel", "(3,3)"}, {"num_filter", "4"}}, "conv");
  EXPECT_EQ(net.attr("kernel"), "(3, 3)");
  EXPECT_EQ(convolution(var("x"), {.kernel = {3}, .num_filter = 4}, "conv").attr("kernel"), "(3,)");
  EXPECT_EQ(from_spaces.list_arguments(), net.list_arguments());
}

// ---- parameters ----------------------------------------------------------------------------------------------------

TEST(Parameters, OfARequiredFieldKnowIfTheyWereGiven) {
  const FullyConnected missing{.no_bias = true}, given{.num_hidden = 10};
  EXPECT_FALSE(missing.num_hidden.given());
  EXPECT_TRUE(given.num_hidden.given());
  const int64_t value = given.num_hidden;
  EXPECT_EQ(value * given.num_hidden, 100);
  const Convolution window{.kernel = {3, 3}};
  EXPECT_TRUE(window.kernel.given());
  EXPECT_EQ(window.kernel.size(), 2u);
  const Tuple kernel = window.kernel;
  EXPECT_EQ(kernel, (Tuple{3, 3}));
  Convolution grown;
  EXPECT_FALSE(grown.kernel.given());
  grown.kernel.push_back(3);
  EXPECT_TRUE(grown.kernel.given());
  EXPECT_TRUE(fails_with([] { fully_connected(var("x"), {.no_bias = true}, "fc"); }, "fc", "num_hidden must be given"));
}

// No value stands for a missing one.
TEST(Parameters, AreCheckedWhateverTheirValue) {
  const std::string least = std::to_string(std::numeric_limits<int64_t>::min());
  const auto refused = [](const std::string& op, const Attributes& attributes, const char* field) {
    return fails_with([&] { apply(op, var("x"), attributes, "node"); }, "node", field);
  };
  EXPECT_TRUE(refused("LeakyReLU", {{"act_type", std::string(1, '\0')}}, "act_type"));
  EXPECT_TRUE(refused("SequenceReverse", {{"axis", least}}, "axis"));
  EXPECT_TRUE(refused("topk", {{"ret_typ", std::string(1, '\0')}}, "ret_typ"));
  EXPECT_TRUE(refused("FullyConnected", {{"num_hidden", least}}, "num_hidden must be at least 1"));
  EXPECT_TRUE(refused("Dropout", {{"p", "nan"}}, "p must be between"));
  EXPECT_TRUE(refused("BatchNorm", {{"eps", "nan"}}, "eps must not be NaN"));
  EXPECT_TRUE(refused("Convolution", {{"kernel", "(" + least + ",)"}, {"num_filter", "1"}}, "kernel"));
  EXPECT_TRUE(fails_with([] { cast(var("x"), {.dtype = DType::none}, "node"); }, "node", "dtype must be a type"));
  EXPECT_NO_THROW(clip(var("x"), {.a_min = std::numeric_limits<double>::quiet_NaN(), .a_max = 1}));
}

TEST(Parameters, CountAsManyInputsAsThereAre) {
  const Symbol a = var("a"), b = var("b");
  EXPECT_TRUE(fails_with(
      [&] {
        apply("Concat", {a, b}, {{"num_args", "3"}}, "joined");
      },
      "joined", "num_args is 3", "2"));
  EXPECT_TRUE(fails_with([&] { concat(Inputs({a, b}), {.num_args = 3}, "joined"); }, "joined", "num_args is 3", "2"));
  for (const char* op : {"stack", "add_n", "khatri_rao", "Concat"}) {
    EXPECT_TRUE(fails_with([&] { apply(op, {a, b}, {{"num_args", "3"}}, "node"); }, "node", "num_args is 3")) << op;
    EXPECT_TRUE(fails_with([&] { apply(op, {a, b}, {{"num_args", "1"}}, "node"); }, "node")) << op;
    EXPECT_EQ(apply(op, {a, b}, {{"num_args", "2"}}, "node").list_arguments(), (Strings{"a", "b"})) << op;
    EXPECT_EQ(apply(op, Inputs(std::vector<Symbol>{}), {{"num_args", "2"}}, "n").list_arguments(),
              (Strings{"n_arg0", "n_arg1"}))
        << op;
  }
  EXPECT_TRUE(fails_with(
      [&] {
        apply("multi_sum_sq", {a, b}, {{"num_arrays", "10000000000"}}, "node");
      },
      "num_arrays"));
  // The weight of a bilinear UpSampling may be left out whether it is counted or not.
  for (const char* count : {"1", "2"})
    EXPECT_EQ(apply("UpSampling", a,
                    {{"scale", "2"}, {"sample_type", "bilinear"}, {"num_filter", "1"}, {"num_args", count}}, "up")
                  .list_arguments(),
              (Strings{"a", "up_weight"}));
}

// ---- internal operators --------------------------------------------------------------------------------------------

TEST(InternalOperators, CannotBeNamedByUsersOrFiles) {
  const auto file = [](const std::string& op) {
    return R"({"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "y", "inputs": []},
               {"op": ")" +
           op + R"(", "name": "node", "inputs": [[0, 0, 0], [1, 0, 0]]}],
               "arg_nodes": [0, 1], "heads": [[2, 0, 0]]})";
  };
  EXPECT_NO_THROW(Symbol::load_json(file("_plus")));
  for (const char* op : {"_backward_relu", "_sum_to_like", "_backward_pick", "_cast_like"}) {
    EXPECT_TRUE(fails_with([&] { Symbol::load_json(file(op)); }, "node", op, "internal")) << op;
    EXPECT_TRUE(fails_with([&] { apply(op, {var("x"), var("y")}); }, op, "internal")) << op;
  }
}

TEST(InternalOperators, AreThoseThatNoUserNeeds) {
  const OpRegistry& registry = OpRegistry::get();
  for (const OpDef* op : registry.all()) EXPECT_TRUE(!op->name.starts_with("_backward_") || op->internal) << op->name;
  for (const char* name :
       {"_plus", "_arange", "_mul_scalar", "_random_uniform", "_slice_assign", "sgd_update", "_copy"})
    EXPECT_FALSE(registry.find_public(name).internal) << name;
  for (const char* name : {"_BatchNorm_Relu", "_Convolution_Fused", "_pointwise", "_pointwise_cell", "_reorder",
                           "_FullyConnected_Activation"})
    EXPECT_TRUE(registry.find(name).internal) << name;
  EXPECT_LT(registry.all_public().size(), registry.all().size());
}

}  // namespace
}  // namespace symbind
