// Bad input is an Error that names what was wrong, never a crash, and nothing the caller had is lost.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/files/params.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::fc;
using testing::read_file;
using testing::TempDir;
using testing::var;
using testing::write_file;

Symbol net() { return testing::mlp().symbol; }
const NamedShapes shapes{{"data", {6, 12}}, {"softmax_label", {6}}};

NamedArrays all_arguments() {
  NamedArrays args;
  auto executor = simple_bind(net(), cpu(), shapes);
  for (const auto& [name, array] : executor->arg_dict()) args[name] = array.copy();
  return args;
}

// ---- binding -------------------------------------------------------------------------------------------------------

TEST(BadInput, AnUnknownArgumentNameListsTheRightOnes) {
  EXPECT_TRUE(fails_with([] { simple_bind(net(), cpu(), {{"dta", {6, 12}}}); }, "dta", "data", "fc1_weight"));
  NamedArrays args = all_arguments();
  args["fc9_weight"] = zeros({1});
  EXPECT_TRUE(fails_with([&] { bind(net(), cpu(), args); }, "fc9_weight", "fc1_weight"));
  auto executor = simple_bind(net(), cpu(), shapes);
  EXPECT_TRUE(fails_with([&] { executor->forward(false, {{"dta", zeros({6, 12})}}); }, "dta", "data"));
  EXPECT_TRUE(fails_with([] { simple_bind(net(), cpu(), shapes, {.type_dict = {{"dta", DType::float64}}}); }, "dta"));
}

TEST(BadInput, AMissingArgumentIsNamed) {
  NamedArrays args = all_arguments();
  args.erase("fc2_bias");
  EXPECT_TRUE(fails_with([&] { bind(net(), cpu(), args); }, "fc2_bias"));
  EXPECT_TRUE(fails_with([] { bind(var("a") + var("b"), cpu(), std::vector<NDArray>{zeros({2})}); }, "a, b"));
  const Symbol norm = apply("BatchNorm", var("x"), {}, "bn");
  const NamedArrays without_states{{"x", zeros({2, 3})}, {"bn_gamma", zeros({3})}, {"bn_beta", zeros({3})}};
  EXPECT_TRUE(fails_with([&] { bind(norm, cpu(), without_states); }, "bn_moving_mean"));
}

TEST(BadInput, AWrongShapeNamesTheNodeTheArgumentAndBothShapes) {
  EXPECT_TRUE(fails_with(
      [] {
        simple_bind(net(), cpu(), {{"data", {6, 12}}, {"fc1_weight", {16, 11}}});
      },
      "FullyConnected", "fc1", "weight", "(16,11)", "(6,12)"));
  NamedArrays args = all_arguments();
  args["fc2_bias"] = zeros({7});
  EXPECT_TRUE(fails_with([&] { bind(net(), cpu(), args); }, "fc2", "bias", "(8,)", "(7,)"));
  auto executor = simple_bind(net(), cpu(), shapes);
  EXPECT_TRUE(fails_with([&] { executor->forward(false, {{"data", zeros({5, 12})}}); }, "data", "(6,12)", "(5,12)"));
  EXPECT_TRUE(fails_with(
      [] {
        bind(var("x") * 2, cpu(), {{"x", zeros({2})}}, {.args_grad = {{"x", zeros({3})}}});
      },
      "x", "(2,)", "(3,)"));
}

TEST(BadInput, AWrongTypeNamesBothTypes) {
  NamedArrays args = all_arguments();
  args["fc1_weight"] = zeros({16, 12}, cpu(), DType::float64);
  EXPECT_TRUE(fails_with([&] { bind(net(), cpu(), args); }, "fc1", "float32", "float64"));
  EXPECT_TRUE(fails_with(
      [] {
        bind(var("x") * 2, cpu(), {{"x", zeros({2})}}, {.args_grad = {{"x", zeros({2}, cpu(), DType::int32)}}});
      },
      "x", "float32", "int32"));
  EXPECT_TRUE(fails_with([] { dtype_from_name("float31"); }, "float31", "float32"));
}

TEST(BadInput, AMissingShapeIsNamed) {
  EXPECT_TRUE(fails_with([] { simple_bind(net(), cpu(), {}); }, "data"));
  EXPECT_TRUE(fails_with([] { simple_bind(net(), cpu(), {{"data", {0, 12}}}); }, "data"));
  EXPECT_TRUE(fails_with([] { simple_bind(net(), cpu(), {{"softmax_label", {6}}}); }, "data"));
}

TEST(BadInput, DuplicateNamesAreRefusedWhereArraysAreByName) {
  const Symbol twice = fc(fc(var("data"), 4, "fc"), 4, "fc");
  EXPECT_TRUE(fails_with([&] { simple_bind(twice, cpu(), {{"data", {2, 4}}})->arg_dict(); }, "two arguments", "fc_"));
  const Symbol states = apply("BatchNorm", {apply("BatchNorm", {var("data")}, {}, "bn")}, {}, "bn");
  EXPECT_TRUE(fails_with([&] { simple_bind(states, cpu(), {{"data", {2, 4}}}); }, "bn_moving_mean"));
}

TEST(BadInput, ABadGradReqListsTheRightOnes) {
  EXPECT_TRUE(fails_with([] { simple_bind(net(), cpu(), shapes, {.grad_req = "sometimes"}); }, "sometimes", "write"));
  const std::map<std::string, std::string> unknown{{"dta", "write"}};
  EXPECT_NO_THROW(simple_bind(net(), cpu(), shapes, {.grad_req = unknown})) << "a warning names it";
  const std::vector<std::string> few{"write", "null"};
  EXPECT_TRUE(fails_with([&] { simple_bind(net(), cpu(), shapes, {.grad_req = few}); }, "2", "8"));
}

TEST(BadInput, NegativeAndOverflowingDimensionsAreRefused) {
  EXPECT_TRUE(fails_with([] { simple_bind(net(), cpu(), {{"data", {6, -12}}}); }, "-12"));
  const int64_t huge = int64_t{1} << 40;
  EXPECT_THROW(simple_bind(net(), cpu(), {{"data", {huge, huge}}}), Error);
  EXPECT_THROW(simple_bind(fc(var("x"), huge, "fc"), cpu(), {{"x", {2, huge}}}), Error);
  EXPECT_THROW(invoke("_zeros", {}, {{"shape", "(1099511627776, 1099511627776)"}}), Error);
  EXPECT_THROW(invoke("_zeros", {}, {{"shape", "(-3, 2)"}}), Error);
  EXPECT_THROW(invoke("_zeros", {}, {{"shape", "(99999999999999999999, 2)"}}), Error);
  EXPECT_THROW(invoke("Reshape", {zeros({4})}, {{"shape", "(4611686018427387904, 4)"}}), Error);
  EXPECT_THROW(invoke("Concat", {zeros({2}), zeros({2})}, {{"dim", "-3"}}), Error);
}

TEST(BadInput, DimensionsThatOverflowInInferenceAreRefused) {
  const int64_t huge = int64_t{1} << 62;
  const Symbol joined = apply("Concat", {var("a"), var("b")}, {{"dim", "0"}}, "joined");
  EXPECT_TRUE(fails_with([&] { infer_shape(joined, {{"a", {huge}}, {"b", {huge}}}); }, "[Concat joined]", "too long"));
  const Symbol sum = joined + var("c");
  EXPECT_TRUE(fails_with([&] { infer_shape(sum, {{"a", {5}}, {"b", {0}}, {"c", {3}}}); }, "[Concat joined]", "5", "3"));
  EXPECT_THROW(apply("Concat", {var("a")}, {{"num_args", "99999999999"}}), Error);
  const Symbol reshaped = apply("Reshape", var("a"), {{"shape", "(-1,)"}}) + var("c");
  EXPECT_THROW(infer_shape(reshaped, {{"a", {huge, huge, 0}}, {"c", {3}}}), Error);
  const Symbol conv = apply("Convolution", {var("x"), var("w")},
                            {{"kernel", "(1,)"}, {"num_filter", "8"}, {"num_group", "8"}, {"no_bias", "1"}}, "conv");
  EXPECT_TRUE(fails_with([&] { infer_shape(conv, {{"x", {1, 0, 1}}, {"w", {8, huge, 1}}}); }, "[Convolution conv]"));
}

TEST(BadInput, MoreMemoryThanThereIsIsAnErrorAndNothingIsLost) {
  auto executor = testing::bind_with_values(testing::mlp());
  const NDArray expected = executor->forward()[0].copy();
  EXPECT_THROW(executor->reshape({{"data", {int64_t{1} << 42, 12}}, {"softmax_label", {int64_t{1} << 42}}},
                                 {.allow_up_sizing = true}),
               Error);
  EXPECT_TRUE(testing::same_bits(executor->forward()[0], expected));
}

// ---- running -------------------------------------------------------------------------------------------------------

TEST(BadInput, BackwardBeforeForwardIsRefused) {
  auto executor = simple_bind(net(), cpu(), shapes);
  EXPECT_TRUE(fails_with([&] { executor->backward(); }, "forward"));
  EXPECT_NO_THROW(executor->forward(true));
  EXPECT_NO_THROW(executor->backward());
}

TEST(BadInput, AStaleBackwardIsRefused) {
  auto first = simple_bind(net(), cpu(), shapes);
  auto second = first->reshape({{"data", {3, 12}}, {"softmax_label", {3}}});
  first->forward(true);
  second->forward(true);
  EXPECT_TRUE(fails_with([&] { first->backward(); }, "forward"));
}

TEST(BadInput, AMonitorThatThrowsLeavesTheExecutorUsable) {
  auto executor = testing::bind_with_values(testing::mlp());
  const NDArray expected = executor->forward()[0].copy();
  executor->set_monitor_callback([](const std::string&, const NDArray&) { throw Error("enough"); });
  EXPECT_TRUE(fails_with([&] { executor->forward(true); }, "enough"));
  executor->set_monitor_callback(nullptr);
  EXPECT_THROW(executor->backward(), Error) << "that forward did not finish";
  EXPECT_TRUE(testing::same_bits(executor->forward()[0], expected));
}

// ---- operators -----------------------------------------------------------------------------------------------------

TEST(BadInput, AMisspeltParameterListsTheRightOnes) {
  EXPECT_TRUE(fails_with(
      [] {
        apply("FullyConnected", var("x"), {{"num_hiden", "3"}}, "fc7");
      },
      "FullyConnected", "fc7", "num_hiden", "num_hidden", "no_bias", "flatten"));
}

TEST(BadInput, AMissingParameterIsNamed) {
  EXPECT_TRUE(fails_with([] { apply("FullyConnected", var("x"), {}, "fc7"); }, "FullyConnected", "fc7", "num_hidden"));
  EXPECT_TRUE(fails_with([] { apply("Convolution", var("x"), {{"num_filter", "3"}}, "conv7"); }, "conv7", "kernel"));
}

TEST(BadInput, AParameterOutOfRangeSaysTheRange) {
  EXPECT_TRUE(fails_with(
      [] {
        apply("FullyConnected", var("x"), {{"num_hidden", "0"}}, "fc7");
      },
      "fc7", "num_hidden", "at least 1", "0"));
  EXPECT_TRUE(fails_with(
      [] {
        apply("Activation", var("x"), {{"act_type", "fast"}}, "act7");
      },
      "act7", "act_type", "fast", "relu", "sigmoid"));
  EXPECT_TRUE(fails_with([] { apply("Dropout", var("x"), {{"p", "1.5"}}, "drop7"); }, "drop7", "p"));
}

TEST(BadInput, AParameterThatIsNoNumberSaysSo) {
  for (const std::string text : {"three", "", "3.5", "3 3", "0x10", "1e999", "(3)"})
    EXPECT_TRUE(fails_with(
        [&] {
          apply("FullyConnected", var("x"), {{"num_hidden", text}}, "fc7");
        },
        "fc7", "num_hidden"))
        << text;
  for (const std::string text : {"(3,", "3, 3)", "(3, x)", "((3, 3))", "[3, 3"})
    EXPECT_TRUE(fails_with(
        [&] {
          apply("Convolution", var("x"), {{"kernel", text}, {"num_filter", "2"}}, "conv7");
        },
        "conv7", "kernel"))
        << text;
  EXPECT_TRUE(fails_with(
      [] {
        apply("FullyConnected", var("x"), {{"num_hidden", "2"}, {"no_bias", "perhaps"}}, "fc7");
      },
      "fc7", "no_bias", "perhaps"));
}

TEST(BadInput, AKernelLargerThanTheImageIsRefused) {
  const Symbol conv = apply("Convolution", var("x"), {{"kernel", "(5, 5)"}, {"num_filter", "2"}}, "conv7");
  EXPECT_TRUE(fails_with([&] { infer_shape(conv, {{"x", {1, 1, 3, 3}}}); }, "conv7"));
}

// ---- devices -------------------------------------------------------------------------------------------------------

TEST(BadInput, AGpuThatIsNotThereIsSaid) {
  const Context missing = gpu(num_gpus());
  EXPECT_TRUE(fails_with([&] { zeros({2}, missing); }, missing.str()));
  EXPECT_TRUE(fails_with([&] { simple_bind(net(), missing, shapes); }, missing.str()));
  EXPECT_TRUE(fails_with([&] { zeros({2}).as_in_context(missing); }, missing.str()));
  EXPECT_TRUE(fails_with([&] { invoke("_zeros", {}, {{"shape", "(2,)"}}, {.context = missing}); }, missing.str()));
  EXPECT_TRUE(fails_with([] { zeros({1}, gpu(-1)); }, "-1"));
}

// ---- files ---------------------------------------------------------------------------------------------------------

TEST(BadInput, MalformedJsonSaysWhere) {
  for (const std::string text :
       {"", "not json", "[]", "{}", "null", "{\"nodes\": 3}", "{\"nodes\": []}",
        "{\"nodes\": [], \"heads\": [[0, 0, 0]]}",
        "{\"nodes\": [{\"op\": \"null\"}], \"arg_nodes\": [0], \"heads\": [[0, 0, 0]]}",
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [0], \"heads\": [[1, 0, "
        "0]]}",
        "{\"nodes\": [{\"op\": \"relu\", \"name\": \"y\", \"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [], \"heads\": "
        "[[0, 0, 0]]}",
        "{\"nodes\": [{\"op\": \"relu\", \"name\": \"y\", \"inputs\": [[-1, 0, 0]]}], \"arg_nodes\": [], \"heads\": "
        "[[0, 0, 0]]}",
        "{\"nodes\": [{\"op\": 3, \"name\": \"y\", \"inputs\": []}], \"arg_nodes\": [], \"heads\": [[0, 0, 0]]}"})
    EXPECT_FALSE(testing::error_of([&] { Symbol::load_json(text); }).empty()) << text;
}

TEST(BadInput, JsonCutAnywhereIsAnError) {
  const std::string text = net().tojson();
  for (size_t length = 0; length + 1 < text.size(); length += 7)
    EXPECT_THROW(Symbol::load_json(text.substr(0, length)), Error) << "cut at " << length;
}

TEST(BadInput, JsonWithAnyByteChangedIsReadOrRefused) {
  const std::string text = net().tojson();
  int read = 0, refused = 0;
  for (size_t at = 0; at < text.size(); at += 11) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    std::optional<Symbol> again;
    const std::string error = testing::error_of([&] { again = Symbol::load_json(changed); });
    ++(again ? read : refused);
    EXPECT_EQ(again.has_value(), error.empty()) << changed;
    if (!again) continue;
    EXPECT_EQ(Symbol::load_json(again->tojson()).list_arguments(), again->list_arguments()) << changed;
  }
  EXPECT_GT(read, 0) << "names may be anything";
  EXPECT_GT(refused, 0);
}

TEST(BadInput, JsonAMillionDeepIsAnError) {
  for (const char bracket : {'[', '{'}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += bracket == '[' ? "[" : "{\"a\":";
    EXPECT_THROW(Symbol::load_json(text), Error);
  }
}

TEST(BadInput, JsonNamesTheUnknownOperator) {
  std::string text = net().tojson();
  const size_t at = text.find("FullyConnected");
  text.replace(at, 14, "FullyConfused!");
  EXPECT_TRUE(fails_with([&] { Symbol::load_json(text); }, "FullyConfused!"));
}

TEST(BadInput, ArrayFilesCutAnywhereNameTheFileAndTheOffset) {
  const TempDir folder;
  const std::string whole = folder.file("whole.params"), cut = folder.file("cut.params");
  save(whole, {{"weight", testing::counted({2, 3})}, {"bias", testing::counted({3}, DType::float64)}});
  const std::string bytes = read_file(whole);
  for (size_t length = 0; length < bytes.size(); ++length) {
    write_file(cut, std::string_view(bytes).substr(0, length));
    EXPECT_TRUE(fails_with([&] { load(cut); }, "cut.params", "offset")) << "cut at " << length;
  }
}

TEST(BadInput, ArrayFilesWithAnyByteChangedAreReadOrRefused) {
  const TempDir folder;
  const std::string path = folder.file("changed.params");
  save(path, {{"weight", testing::counted({2, 3})}});
  const std::string bytes = read_file(path);
  const size_t values = bytes.find(std::string("\0\0\x80\x3f\0\0\0\x40", 8));  // 1.0f, 2.0f
  ASSERT_NE(values, std::string::npos);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const std::string error = testing::error_of([&] {
        const LoadedArrays loaded = load_from_bytes(changed);
        EXPECT_EQ(loaded.arrays.size(), 1u) << "byte " << at;
      });
      const bool is_value = at >= values && at < values + 24;
      const bool is_header = at < 8 || (at >= 16 && at < 32);  // in between is a reserved number
      if (!is_value && !is_header) continue;
      EXPECT_EQ(error.empty(), is_value) << "byte " << at << ": " << error;
    }
  }
}

TEST(BadInput, AMissingFileIsNamed) {
  EXPECT_TRUE(fails_with([] { load("/no/such/folder/x.params"); }, "/no/such/folder/x.params"));
  EXPECT_TRUE(fails_with([] { Symbol::load("/no/such/folder/x.json"); }, "/no/such/folder/x.json"));
  EXPECT_TRUE(fails_with([] { save("/no/such/folder/x.params", {{"x", zeros({1})}}); }, "/no/such/folder"));
  EXPECT_TRUE(fails_with([] { net().save("/no/such/folder/x.json"); }, "/no/such/folder"));
}

// ---- messages ------------------------------------------------------------------------------------------------------

TEST(BadInput, AShapeErrorNamesTheVariables) {
  EXPECT_TRUE(fails_with(
      [] {
        simple_bind(var("left") + var("right"), cpu(), {{"left", {2, 3}}, {"right", {3, 2}}});
      },
      "lhs = left (2,3)", "rhs = right (3,2)"));
}

TEST(BadInput, AMissingAxisIsNamedWithTheShape) {
  const Symbol total = apply("sum", var("x"), {{"axis", "5"}}, "total");
  EXPECT_TRUE(fails_with([&] { simple_bind(total, cpu(), {{"x", {2, 3}}}); }, "total", "axis 5", "(2,3)"));
  EXPECT_TRUE(fails_with([&] { invoke("sum", {zeros({2, 3})}, {{"axis", "5"}}); }, "axis 5", "(2,3)"));
}

TEST(BadInput, AWrongNumberOfAxesIsNamed) {
  EXPECT_TRUE(fails_with(
      [&] {
        invoke("batch_take", {zeros({2}), zeros({2})});
      },
      "a has shape (2,)", "2 axes are needed"));
  EXPECT_TRUE(fails_with([&] { invoke("_linalg_det", {zeros({2, 3, 4})}); }, "(2,3,4)", "(?,?,3) is needed"));
}

TEST(BadInput, TwoOutputsOfOneNameHaveNoDictionary) {
  const Symbol x = var("x");
  const auto executor =
      simple_bind(Symbol::group({apply("exp", x, {}, "y"), apply("log", x, {}, "y")}), cpu(), {{"x", {2}}});
  EXPECT_TRUE(fails_with([&] { executor->output_dict(); }, "y_output", "outputs"));
  EXPECT_EQ(executor->outputs().size(), 2u);
}

TEST(BadInput, AMistypedArrayIsAnErrorWithNearNames) {
  const auto executor = simple_bind(net(), cpu(), shapes);
  EXPECT_TRUE(fails_with([&] { executor->arg_dict().at("fc1_wieght"); }, "fc1_wieght", "did you mean", "fc1_weight"));
}

}  // namespace
}  // namespace symbind
