// Files that MXNet 1.9.1 wrote, kept in tests/oracle/recorded/params with what they hold.
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "symbind/files/params.h"

#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using nlohmann::json;
using testing::read_file;
using testing::TempDir;

const std::string folder = testing::source_dir() + "/tests/oracle/recorded/params/";

TEST(RecordedParams, HoldWhatMXNetPutIntoThem) {
  const json expected = json::parse(read_file(folder + "expected.json"));
  ASSERT_FALSE(expected["files"].empty());
  for (const json& file : expected["files"]) {
    SCOPED_TRACE(file["id"].get<std::string>());
    const LoadedArrays loaded = load(folder + file["id"].get<std::string>());
    const auto names =
        file["names"].is_null() ? std::vector<std::string>() : file["names"].get<std::vector<std::string>>();
    EXPECT_EQ(loaded.names, names);
    ASSERT_EQ(loaded.arrays.size(), file["arrays"].size());
    for (size_t i = 0; i < loaded.arrays.size(); ++i) {
      const json& array = file["arrays"][i];
      EXPECT_EQ(name_of(loaded.arrays[i].dtype()), array["dtype"].get<std::string>());
      EXPECT_EQ(loaded.arrays[i].shape(), Shape(array["shape"].get<std::vector<int64_t>>()));
      EXPECT_EQ(loaded.arrays[i].to_vector<double>(), array["data"].get<std::vector<double>>());
    }
  }
}

TEST(RecordedParams, AreWrittenAgainByteForByte) {
  const TempDir dir;
  const std::string again = dir.file("again.params");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".params") continue;
    const LoadedArrays loaded = load(entry.path().string());
    save(again, loaded.names, loaded.arrays);
    EXPECT_TRUE(read_file(again) == read_file(entry.path().string())) << entry.path().filename();
  }
}

}  // namespace
}  // namespace symbind
