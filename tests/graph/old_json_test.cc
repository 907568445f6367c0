// Networks of older generations, and how MXNet 1.9.1 reads them (tests/oracle/old_networks.py).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "symbind/graph/json.h"
#include "symbind/graph/symbol.h"

#include "tests/support/arrays.h"
#include "tests/support/oracle.h"

namespace symbind {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::fails_with;

// Where we say more, or less, than MXNet does on purpose.
bool differs(const std::string& id) {
  for (const char* known : {
           "no_arg_nodes", "numbers_not_text",  // we need no list of variables, and take numbers as they are
           "batch_norm_without_aux_1_0", "batch_norm_only_data_0_9", "Convolution_missing_bias_1_0",  // it fails later
           "forward_reference", "output_beyond", "too_many_inputs",                                   // it fails later
       })
    if (id == known) return true;
  return false;
}

TEST(OldJson, IsReadAsMXNetReadsIt) {
  int read = 0;
  const json all = testing::read_recorded("old_networks.json");
  for (const json& recorded : all["networks"]) {
    const auto id = recorded["id"].get<std::string>();
    SCOPED_TRACE(id);
    const auto text = recorded["text"].get<std::string>();
    const std::string error = error_of([&] { Symbol::load_json(text); });
    if (differs(id)) {
      EXPECT_EQ(error.empty(), recorded["error"].get<bool>()) << error;
      continue;
    }
    if (recorded["error"].get<bool>()) {
      EXPECT_NE(error, "");
      continue;
    }
    ASSERT_EQ(error, "");
    const Symbol net = Symbol::load_json(text);
    EXPECT_EQ(net.list_arguments(), recorded["arguments"].get<std::vector<std::string>>());
    EXPECT_EQ(net.list_auxiliary_states(), recorded["auxiliary"].get<std::vector<std::string>>());
    EXPECT_EQ(net.list_outputs(), recorded["outputs"].get<std::vector<std::string>>());
    EXPECT_EQ(net.attr_dict(), (recorded["attributes"].get<std::map<std::string, Attributes>>()));
    // Written again it is a network of today's.
    const Symbol again = Symbol::load_json(net.tojson());
    EXPECT_EQ(again.tojson(), net.tojson());
    ++read;
  }
  EXPECT_GT(read, 60);
}

std::string network_text(const std::string& node, const std::string& rest = "") {
  return R"({"nodes": [{"op": "null", "name": "x", "inputs": []}, )" + node + R"(], "heads": [[1, 0]])" + rest + "}";
}

// Before 0.9.4 variables did not say how they start; files of those versions learn it from the operators they feed.
TEST(OldJson, StatesOfFilesBefore094KnowHowTheyStart) {
  const auto attributes = [](int version, const std::string& of_variance) {
    std::string nodes;
    for (const char* name : {"data", "bn_gamma", "bn_beta", "bn_moving_mean"})
      nodes += std::string(R"({"op": "null", "name": ")") + name + R"(", "inputs": []}, )";
    nodes += R"({"op": "null", "name": "bn_moving_var", "inputs": [], "attr": {)" + of_variance + "}}, ";
    nodes += R"({"op": "BatchNorm", "name": "bn", "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]]})";
    return Symbol::load_json(R"({"nodes": [)" + nodes +
                             R"(], "heads": [[5, 0, 0]], "attrs": {"mxnet_version": ["int", )" +
                             std::to_string(version) + "]}}")
        .attr_dict();
  };
  const std::map<std::string, Attributes> known{{"bn_moving_mean", {{"__init__", R"(["zero", {}])"}}},
                                                {"bn_moving_var", {{"__init__", R"(["one", {}])"}}}};
  EXPECT_EQ(attributes(903, ""), known);
  EXPECT_EQ(attributes(901, ""), known);
  EXPECT_TRUE(attributes(904, "").empty());
  EXPECT_EQ(attributes(903, R"("__init__": "mine")").at("bn_moving_var").at("__init__"), "mine") << "its own wins";
}

// Before 0.9.0 files left out the variables that belong to a node; since then all of them are in the file.
TEST(OldJson, OnlyFilesBefore090LeaveInputsOut) {
  const auto read = [](int version) {
    return Symbol::load_json(
        network_text(R"({"op": "FullyConnected", "name": "fc", "inputs": [[0, 0]], "attr": {"num_hidden": "3"}})",
                     R"(, "attrs": {"mxnet_version": ["int", )" + std::to_string(version) + "]}"));
  };
  EXPECT_EQ(read(899).list_arguments(), (std::vector<std::string>{"x", "fc_weight", "fc_bias"}));
  EXPECT_TRUE(fails_with([&] { read(900); }, "fc", "has 1 inputs", "takes 3"));
}

// In the first versions the attributes of a node may have any name: parameters are stored separately.
TEST(OldJson, AttributesSeparateFromParametersMayHaveAnyName) {
  const Symbol net = Symbol::load_json(network_text(
      R"({"op": "Activation", "param": {"act_type": "tanh"}, "name": "a", "inputs": [[0, 0]],
          "backward_source_id": -1, "attr": {"mood": "angry", "lr_mult": "2"}})"));
  EXPECT_EQ(net.attr("__mood__"), "angry");
  EXPECT_EQ(net.attr("lr_mult"), "2");
  EXPECT_TRUE(fails_with(
      [] {
        Symbol::load_json(network_text(
            R"({"op": "Activation", "attr": {"act_type": "tanh", "mood": "angry"}, "name": "a", "inputs": [[0, 0]]})"));
      },
      "JSON text", "Activation a", "mood"));
}

TEST(OldJson, ErrorsNameTheTextAndTheNode) {
  const std::string text = network_text(R"({"op": "FullyConnected", "name": "fc", "inputs": [[0, 0]],
      "attr": {"num_hidden": "3", "gamma_lr_mult": "2"}})");
  EXPECT_TRUE(fails_with([&] { from_json(text, "old.json"); }, "old.json", "FullyConnected fc", "gamma_lr_mult"));
  const std::string count = network_text(R"({"op": "Concat", "name": "c", "inputs": [[0, 0]],
      "attr": {"num_args": "1000"}})");
  EXPECT_TRUE(fails_with([&] { from_json(count, "old.json"); }, "old.json", "num_args is 1000"));
}

}  // namespace
}  // namespace symbind
