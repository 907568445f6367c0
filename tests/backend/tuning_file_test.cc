#include "symbind/backend/tuning_file.h"

#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include "symbind/core/log.h"

#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::TempDir;

constexpr const char* conditions = "A device, 2 units; driver 1.5";

// The messages written while it exists.
class Messages {
 public:
  Messages() {
    before_ = set_log_sink([this](LogLevel, std::string_view message) { text_ += std::string(message) + "\n"; });
  }
  ~Messages() { set_log_sink(before_); }
  const std::string& text() const { return text_; }

 private:
  LogSink before_;
  std::string text_;
};

TEST(TuningFile, AnotherProcessFindsWhatWasAdded) {
  const TempDir folder;
  const std::string inside = folder.file("made/when needed");
  TuningFile written(inside, "products", conditions);
  EXPECT_EQ(written.find({1, 2}), nullptr);
  written.add({1, 2}, {{47, 3, -9}, 0.125});
  written.add({1, -2}, {{}, 1e-3});
  TuningFile read(inside, "products", conditions);
  ASSERT_NE(read.find({1, 2}), nullptr);
  EXPECT_EQ(read.find({1, 2})->numbers, (TuningFile::Numbers{47, 3, -9}));
  EXPECT_EQ(read.find({1, 2})->milliseconds, 0.125);
  ASSERT_NE(read.find({1, -2}), nullptr);
  EXPECT_TRUE(read.find({1, -2})->numbers.empty());
  EXPECT_EQ(read.find({1}), nullptr);
}

TEST(TuningFile, OtherConditionsHaveAnotherFile) {
  const TempDir folder;
  TuningFile first(folder.file(""), "products", conditions), other(folder.file(""), "products", "driver 2");
  first.add({1}, {{5}, 1});
  EXPECT_NE(first.path(), other.path());
  EXPECT_EQ(other.find({1}), nullptr);
}

TEST(TuningFile, IsNamedAfterItsSubjectAndConditions) {
  EXPECT_EQ(TuningFile("folder", "products", conditions).path(), "folder/products-A_device_2_units_driver_1_5.txt");
  EXPECT_EQ(TuningFile("folder", "products", " (az) AZ-09").path(), "folder/products-az_AZ_09.txt");
}

TEST(TuningFile, ProcessesThatWriteByTurnsLoseNothing) {
  const TempDir folder;
  TuningFile first(folder.file(""), "products", conditions), second(folder.file(""), "products", conditions);
  first.add({1}, {{10}, 1});
  second.add({2}, {{20}, 1});
  std::filesystem::last_write_time(second.path(), std::filesystem::last_write_time(second.path()) +
                                                      std::chrono::seconds(1));  // file times may be coarse
  ASSERT_NE(first.find({2}), nullptr) << "added by the other one in the meantime";
  first.add({3}, {{30}, 1});
  TuningFile third(folder.file(""), "products", conditions);
  for (const int64_t key : {1, 2, 3}) {
    ASSERT_NE(third.find({key}), nullptr) << key;
    EXPECT_EQ(third.find({key})->numbers, TuningFile::Numbers{10 * key});
  }
}

TEST(TuningFile, ADamagedFileIsIgnoredWithAWarningAndReplaced) {
  const TempDir folder;
  TuningFile file(folder.file(""), "products", conditions);
  file.add({1, 2}, {{3}, 0.5});
  const std::string good = testing::read_file(file.path());
  const std::string head = good.substr(0, good.find('\n') + 1);
  for (const std::string& bad :
       {std::string(), std::string("x"), head.substr(1), head + "1 2:3:0.5", head + "1 2:3\n", head + "1 2:3:0.5x\n",
        head + "1 a:3:0.5\n", head + "1  2:3:0.5\n", head + "1 2:99999999999999999999:0.5\n", head + "\n",
        good + std::string("\0\0\0", 3), good.substr(0, good.size() - 2)}) {
    testing::write_file(file.path(), bad);
    const Messages messages;
    TuningFile reader(folder.file(""), "products", conditions);
    EXPECT_EQ(reader.find({1, 2}), nullptr) << bad;
    EXPECT_NE(messages.text().find(file.path() + " is ignored"), std::string::npos) << bad << "\n" << messages.text();
    reader.add({1, 2}, {{3}, 0.5});
    EXPECT_EQ(testing::read_file(file.path()), good) << bad;
  }
}

TEST(TuningFile, WithoutAFolderNothingIsStored) {
  TuningFile file("", "products", conditions);
  file.add({1}, {{2}, 3});
  ASSERT_NE(file.find({1}), nullptr);
  EXPECT_EQ(TuningFile("", "products", conditions).find({1}), nullptr);
}

TEST(TuningFile, AFolderThatCannotBeMadeIsReportedOnce) {
  const TempDir folder;
  testing::write_file(folder.file("file"), "");
  const Messages messages;
  TuningFile file(folder.file("file/below"), "products", conditions);
  file.add({1}, {{2}, 3});
  const std::string first = messages.text();
  EXPECT_NE(first.find("SYMBIND_CACHE_DIR"), std::string::npos) << first;
  file.add({2}, {{2}, 3});
  EXPECT_EQ(messages.text(), first);
  EXPECT_NE(file.find({2}), nullptr);
}

}  // namespace
}  // namespace symbind
