#include "symbind/core/log.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace symbind {
namespace {

TEST(Log, ASinkTakesMessagesOverAndMayWriteItself) {
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel level, std::string_view message) {
    lines.push_back(join(level == LogLevel::warning ? "! " : "", message));
    if (message == "first") log_info("second");
  });
  log_info("first");
  log_warning("number ", 3);
  EXPECT_FALSE(write_status("progress"));
  set_log_sink(before);
  EXPECT_EQ(lines, (std::vector<std::string>{"first", "second", "! number 3"}));
}

}  // namespace
}  // namespace symbind
