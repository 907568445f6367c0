// Files that MXNet 1.9.1 wrote, and bytes of older generations with what it made of them
// (tests/oracle/record_files.py).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "symbind/files/params.h"
#include "symbind/files/states.h"

#include "tests/support/arrays.h"
#include "tests/support/oracle.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using nlohmann::json;
using testing::decode_array;
using testing::read_file;
using testing::same_bits;

const std::string folder = testing::source_dir() + "/tests/oracle/recorded/files/";

const json& expected() {
  static const json all = json::parse(read_file(folder + "expected.json"));
  return all;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

void expect_arrays(const LoadedArrays& loaded, const json& file) {
  const auto names =
      file["names"].is_null() ? std::vector<std::string>() : file["names"].get<std::vector<std::string>>();
  EXPECT_EQ(loaded.names, names);
  ASSERT_EQ(loaded.arrays.size(), file["arrays"].size());
  for (size_t i = 0; i < loaded.arrays.size(); ++i) {
    EXPECT_TRUE(same_bits(loaded.arrays[i], decode_array(file["arrays"][i]))) << "array " << i;
    EXPECT_EQ(loaded.arrays[i].context(), cpu());
  }
}

TEST(RecordedFiles, OlderGenerationsOfArraysAreReadAsMXNetReadsThem) {
  ASSERT_FALSE(expected()["old_arrays"].empty());
  for (const json& file : expected()["old_arrays"]) {
    SCOPED_TRACE(file["id"].get<std::string>());
    expect_arrays(load_from_bytes(from_hex(file["bytes"])), file);
  }
}

TEST(RecordedFiles, SparseArraysAreReadAsDense) {
  ASSERT_FALSE(expected()["params"].empty());
  for (const json& file : expected()["params"]) {
    SCOPED_TRACE(file["id"].get<std::string>());
    expect_arrays(load(folder + file["id"].get<std::string>()), file);
  }
}

using Plain = decltype(PickledObject::fields)::mapped_type;
Plain plain(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return std::monostate{};
}

void expect_state(const StateTree& state, const json& tree) {
  if (tree.is_null()) {
    EXPECT_TRUE(state.empty());
  } else if (tree.is_array()) {
    ASSERT_TRUE(state.is_tuple);
    ASSERT_EQ(state.tuple.size(), tree.size());
    for (size_t i = 0; i < tree.size(); ++i) expect_state(state.tuple[i], tree[i]);
  } else {
    ASSERT_TRUE(state.array);
    EXPECT_TRUE(same_bits(state.array, decode_array(tree)));
  }
}

void expect_states(const SavedStates& saved, const json& file) {
  ASSERT_EQ(saved.states.size(), file["states"].size());
  for (size_t i = 0; i < saved.states.size(); ++i) {
    const json& key = file["states"][i][0];
    EXPECT_EQ(saved.states[i].first, key.is_string() ? ParamKey(key.get<std::string>()) : ParamKey(key.get<int64_t>()));
    expect_state(saved.states[i].second, file["states"][i][1]);
  }
}

TEST(RecordedFiles, StatesHoldWhatMXNetPutIntoThem) {
  ASSERT_FALSE(expected()["states"].empty());
  for (const json& file : expected()["states"]) {
    SCOPED_TRACE(file["id"].get<std::string>());
    const SavedStates saved = load_states(folder + file["id"].get<std::string>());
    EXPECT_FALSE(saved.resume);
    expect_states(saved, file);
    ASSERT_EQ(saved.optimizer.has_value(), file.contains("optimizer"));
    if (!saved.optimizer) continue;
    EXPECT_EQ(saved.optimizer->module, file["optimizer"][0].get<std::string>());
    EXPECT_EQ(saved.optimizer->name, file["optimizer"][1].get<std::string>());
    for (const auto& [name, value] : file["optimizer"][2].items()) {
      SCOPED_TRACE(name);
      const auto found = saved.optimizer->fields.find(name);
      ASSERT_NE(found, saved.optimizer->fields.end());
      EXPECT_EQ(found->second, plain(value));
    }
  }
}

TEST(RecordedFiles, StatesWrittenAgainHoldTheSame) {
  for (const json& file : expected()["states"]) {
    SCOPED_TRACE(file["id"].get<std::string>());
    const SavedStates saved = load_states(folder + file["id"].get<std::string>());
    const SavedStates again = read_states(write_states(saved), "again");
    expect_states(again, file);
    ASSERT_EQ(again.optimizer.has_value(), saved.optimizer.has_value());
    if (saved.optimizer) {
      for (const auto& [name, value] : saved.optimizer->fields)
        EXPECT_EQ(again.optimizer->fields.at(name), value) << name;
    }
  }
}

TEST(RecordedFiles, ValuesInsideAnOptimizerHaveDottedNames) {
  const auto scheduled = load_states(folder + "sgd_scheduled_dumped.states").optimizer->fields;
  EXPECT_EQ(std::get<std::string>(scheduled.at("lr_scheduler")), "mxnet.lr_scheduler.FactorScheduler");
  EXPECT_EQ(std::get<double>(scheduled.at("lr_scheduler.factor")), 0.5);
  EXPECT_EQ(std::get<int64_t>(scheduled.at("_index_update_count.1")), 3);
  const auto steps = load_states(folder + "sgd_steps_dumped.states").optimizer->fields;
  EXPECT_EQ(std::get<int64_t>(steps.at("lr_scheduler.step.1")), 3);
  const auto named = load_states(folder + "sgd_named_dumped.states").optimizer->fields;
  EXPECT_EQ(std::get<double>(named.at("lr_mult.fc_weight")), 0.5);
  EXPECT_EQ(std::get<std::string>(named.at("idx2name.1")), "fc_bias");
  const auto numpy = load_states(folder + "numpy_number_dumped.states").optimizer->fields;
  EXPECT_EQ(std::get<double>(numpy.at("wd")), 0.25);
}

}  // namespace
}  // namespace symbind
