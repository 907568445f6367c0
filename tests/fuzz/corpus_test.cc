// Every input of every corpus: found by the fuzzers, or written to lead them. It loads or fails with an Error.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "tests/fuzz/targets.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

TEST(Corpus, EveryInputIsReadOrRefused) {
  const std::map<std::string, void (*)(std::string_view)> readers{
      {"params", fuzz::read_params},   {"states", fuzz::read_states},   {"json", fuzz::read_json},
      {"idx", fuzz::read_idx},         {"records", fuzz::read_records}, {"record_index", fuzz::read_index},
      {"image", fuzz::decode},         {"csv", fuzz::read_csv},         {"libsvm", fuzz::read_libsvm},
      {"network", fuzz::bind_network}, {"image_list", fuzz::read_list}};
  for (const auto& [name, reader] : readers) {
    int read = 0, refused = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(testing::source_dir() + "/tests/fuzz/corpus/" + name)) {
      SCOPED_TRACE(entry.path().string());
      const std::string bytes = testing::read_file(entry.path().string());
      EXPECT_NO_THROW(++(fuzz::accepts(reader, bytes) ? read : refused));
      // Its first halves, and a changed byte in the middle.
      for (size_t part = 2; part < 6; ++part)
        EXPECT_NO_THROW(fuzz::accepts(reader, bytes.substr(0, bytes.size() / part)));
      std::string changed = bytes;
      if (!changed.empty()) changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 0x80);
      EXPECT_NO_THROW(fuzz::accepts(reader, changed));
    }
    EXPECT_GT(read, 0) << name;
    EXPECT_GT(refused, 0) << name;
  }
}

}  // namespace
}  // namespace symbind
