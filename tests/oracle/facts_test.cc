// What MXNet 1.9.1 says about whole networks (their names, their text, their shapes), said by us about the same
// networks.
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "symbind/passes/infer.h"

#include "tests/oracle/fact_networks.h"
#include "tests/support/arrays.h"
#include "tests/support/oracle.h"

namespace symbind::testing {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

const json& facts() {
  static const json all = read_recorded("facts.json");
  return all;
}

class RecordedNetwork : public ::testing::TestWithParam<std::string> {
 protected:
  RecordedNetwork() : network_(make(GetParam())) {
    for (const json& each : facts().at("nets"))
      if (each.at("id") == GetParam()) fact_ = each;
  }

  static Symbol make(const std::string& id) {
    const NameManager fresh;  // automatic names count from 0
    return facts::networks().at(id)();
  }

  const Symbol& network() const { return network_; }
  const json& fact(const std::string& key) const { return fact_.at(key); }
  Names names(const std::string& key) const { return fact(key).get<Names>(); }

 private:
  Symbol network_;
  json fact_;
};

// Python writes the number 2 as "2" or as "2.0", as it was given; C++ has one number.
std::string plain_number(const std::string& text) { return join(std::stod(text)); }

std::string with_plain_scalars(const std::string& text) {
  static const std::regex scalar(R"re("scalar": "([^"]*)"|scalar=(\S+))re");
  std::string result;
  auto end = text.cbegin();
  for (auto match = std::sregex_iterator(text.begin(), text.end(), scalar); match != std::sregex_iterator(); ++match) {
    result.append(end, text.cbegin() + match->position());
    result += "scalar " + plain_number((*match)[1].matched ? (*match)[1].str() : (*match)[2].str());
    end = text.cbegin() + match->position() + match->length();
  }
  return result.append(end, text.cend());
}

Attributes with_plain_scalar(Attributes attributes) {
  if (auto scalar = attributes.find("scalar"); scalar != attributes.end())
    scalar->second = plain_number(scalar->second);
  return attributes;
}

TEST_P(RecordedNetwork, IsWrittenAsTheSameText) {
  EXPECT_EQ(with_plain_scalars(network().tojson()), with_plain_scalars(fact("tojson").get<std::string>()));
}

TEST_P(RecordedNetwork, IsReadFromMXNetsTextAndWrittenBack) {
  const auto theirs = fact("tojson").get<std::string>();
  EXPECT_EQ(Symbol::load_json(theirs).tojson(), theirs);
}

TEST_P(RecordedNetwork, ListsTheSameNames) {
  EXPECT_EQ(network().list_arguments(), names("list_arguments"));
  EXPECT_EQ(network().list_outputs(), names("list_outputs"));
  EXPECT_EQ(network().list_auxiliary_states(), names("list_auxiliary_states"));
  EXPECT_EQ(network().list_inputs(), names("list_inputs"));
  EXPECT_EQ(network().get_internals().list_outputs(), names("internals"));
  EXPECT_EQ(network().name(), fact("name").is_null() ? "" : fact("name").get<std::string>());
}

TEST_P(RecordedNetwork, HasTheSameChildren) {
  const auto children = network().get_children();
  ASSERT_EQ(children.has_value(), !fact("children").is_null());
  if (children) {
    EXPECT_EQ(children->list_outputs(), names("children"));
  }
}

TEST_P(RecordedNetwork, HasTheSameAttributes) {
  const auto expected = fact("attr_dict").get<std::map<std::string, Attributes>>();
  const auto actual = network().attr_dict();
  for (const auto& [node, attributes] : expected) {
    ASSERT_TRUE(actual.contains(node)) << node;
    EXPECT_EQ(with_plain_scalar(actual.at(node)), with_plain_scalar(attributes)) << node;
  }
  EXPECT_EQ(actual.size(), expected.size());
}

TEST_P(RecordedNetwork, ListsTheSameAttributesOfItsOutput) {
  if (network().size() != 1) GTEST_SKIP() << "a group has no attributes of its own";
  EXPECT_EQ(with_plain_scalar(network().list_attr()),
            with_plain_scalar(fact("list_attr").at("answer").get<Attributes>()));
}

TEST_P(RecordedNetwork, PrintsTheSameForDebugging) {
  EXPECT_EQ(with_plain_scalars(network().debug_str()), with_plain_scalars(fact("debug_str").get<std::string>()));
}

// ---- inference -----------------------------------------------------------------------------------------------------

NamedShapes shapes_in(const json& given) {
  NamedShapes shapes;
  for (const auto& [name, dims] : given.items()) shapes[name] = Shape(dims.get<std::vector<int64_t>>());
  return shapes;
}

using ShapeList = std::vector<std::vector<int64_t>>;

// Where we refuse what MXNet lets pass: FullyConnected computes with floats.
bool is_refused_by_us(const json& query) { return query.at("given") == json{{"data", "int32"}}; }

TEST_P(RecordedNetwork, InfersTheSameShapes) {
  for (const json& query : fact("infer_shape")) {
    SCOPED_TRACE(query.at("given").dump());
    const NamedShapes given = shapes_in(query.at("given"));
    if (query.contains("error") || query.at("answer").is_null()) {
      EXPECT_THROW(infer_shape(network(), given), Error);
      continue;
    }
    const InferredShapes inferred = infer_shape(network(), given);
    EXPECT_TRUE(inferred.complete);
    EXPECT_EQ(inferred.args, query.at("answer").at("args").get<ShapeList>());
    EXPECT_EQ(inferred.outputs, query.at("answer").at("outputs").get<ShapeList>());
    EXPECT_EQ(inferred.aux, query.at("answer").at("aux").get<ShapeList>());
  }
}

// Everything `expected` knows, `actual` knows too.
::testing::AssertionResult knows(const ShapeList& actual, const ShapeList& expected) {
  if (actual.size() != expected.size())
    return ::testing::AssertionFailure() << actual.size() << " shapes, expected " << expected.size();
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].empty()) continue;
    Shape known = Shape::from_public(actual[i]);
    if (!unify(known, Shape::from_public(expected[i])) || known != Shape::from_public(actual[i]))
      return ::testing::AssertionFailure() << "shape " << i << " is " << Shape::from_public(actual[i]) << ", expected "
                                           << Shape::from_public(expected[i]);
  }
  return ::testing::AssertionSuccess();
}

TEST_P(RecordedNetwork, InfersAtLeastAsMuchOfShapesKnownInPart) {
  // MXNet counts an unknown dimension as 0 when it adds up the parts of a Concat, and takes 0 columns for a
  // contradiction.
  const bool adds_unknowns = GetParam().starts_with("concat") || GetParam() == "backward_inference";
  for (const json& query : fact("infer_shape_partial")) {
    SCOPED_TRACE(query.at("given").dump());
    const NamedShapes given = shapes_in(query.at("given"));
    if (query.contains("error")) {
      if (query.at("given") == json{{"data", {32, 0}}}) continue;  // nothing contradicts
      EXPECT_THROW(infer_shape_partial(network(), given), Error);
      continue;
    }
    const InferredShapes inferred = infer_shape_partial(network(), given);
    EXPECT_TRUE(knows(inferred.args, query.at("answer").at("args").get<ShapeList>())) << "arguments";
    EXPECT_TRUE(knows(inferred.aux, query.at("answer").at("aux").get<ShapeList>())) << "auxiliary states";
    if (!adds_unknowns || inferred.complete) {
      EXPECT_TRUE(knows(inferred.outputs, query.at("answer").at("outputs").get<ShapeList>())) << "outputs";
    }
  }
}

std::vector<std::string> type_names(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (const DType dtype : types) names.emplace_back(name_of(dtype));
  return names;
}

TEST_P(RecordedNetwork, InfersTheSameTypes) {
  for (const json& query : fact("infer_type")) {
    SCOPED_TRACE(query.at("given").dump());
    NamedTypes given;
    for (const auto& [name, type] : query.at("given").items()) given[name] = dtype_from_name(type.get<std::string>());
    if (query.contains("error") || (GetParam() == "mlp" && is_refused_by_us(query))) {
      EXPECT_THROW(infer_type(network(), given), Error);
      continue;
    }
    const InferredTypes inferred = infer_type(network(), given);
    if (query.at("answer").is_null()) {
      EXPECT_FALSE(inferred.complete);
      continue;
    }
    EXPECT_EQ(type_names(inferred.args), query.at("answer").at("args").get<Names>());
    EXPECT_EQ(type_names(inferred.outputs), query.at("answer").at("outputs").get<Names>());
    EXPECT_EQ(type_names(inferred.aux), query.at("answer").at("aux").get<Names>());
  }
}

Names recorded_ids() {
  Names ids;
  for (const json& each : facts().at("nets")) ids.push_back(each.at("id"));
  return ids;
}

std::string id_of(const ::testing::TestParamInfo<std::string>& network) { return network.param; }

INSTANTIATE_TEST_SUITE_P(Facts, RecordedNetwork, ::testing::ValuesIn(recorded_ids()), id_of);

TEST(Facts, AreKnownForEveryNetworkWeBuild) {
  const Names ids = recorded_ids();
  std::set<std::string> recorded(ids.begin(), ids.end());
  for (const auto& [id, build] : facts::networks()) EXPECT_TRUE(recorded.contains(id)) << id;
  for (const std::string& id : ids) EXPECT_TRUE(facts::networks().contains(id)) << id;
}

}  // namespace
}  // namespace symbind::testing
