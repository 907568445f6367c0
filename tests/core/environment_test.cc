#include "symbind/core/environment.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "symbind/core/error.h"

#include "tests/support/source_dir.h"

namespace symbind::environment {
namespace {

constexpr Variable usually_off{"SYMBIND_TEST_OFF", 0, 1, ""}, usually_on{"SYMBIND_TEST_ON", 1, 1, ""},
    level{"SYMBIND_TEST_LEVEL", 0, 2, ""};

TEST(Environment, AnEmptyTextLeavesTheDefault) {
  EXPECT_EQ(usually_off.meaning(""), 0);
  EXPECT_EQ(usually_on.meaning(""), 1);
}

TEST(Environment, ASwitchIsOffByZeroAndTheWordsForIt) {
  for (const char* text : {"0", "00", "false", "False", "OFF", "no"}) EXPECT_EQ(usually_on.meaning(text), 0) << text;
  for (const char* text : {"1", "true", "ON", "yes", "2", "-1", "0x", "anything"})
    EXPECT_EQ(usually_off.meaning(text), 1) << text;
}

TEST(Environment, ANumberOutsideItsRangeIsOne) {
  EXPECT_EQ(level.meaning("2"), 2);
  for (const char* text : {"1", "3", "-2", "99999999999999999999", "2x"}) EXPECT_EQ(level.meaning(text), 1) << text;
  EXPECT_EQ(level.meaning("0"), 0);
}

TEST(Environment, AVariableIsReadEachTime) {
  ::setenv(level.name, "2", 1);
  EXPECT_EQ(level.value(), 2);
  ::setenv(level.name, "off", 1);
  EXPECT_FALSE(level.on());
  ::unsetenv(level.name);
  EXPECT_EQ(level.value(), 0);
}

TEST(Environment, ATextIsAsItWasSet) {
  constexpr TextVariable role{"SYMBIND_TEST_TEXT", ""};
  EXPECT_EQ(role.value(), "");
  ::setenv(role.name, "server", 1);
  EXPECT_EQ(role.value(), "server");
  ::unsetenv(role.name);
  EXPECT_STREQ(text("DMLC_ROLE").name, "DMLC_ROLE");
}

TEST(Environment, VariablesAreFoundByTheirNames) {
  EXPECT_STREQ(variable("SYMBIND_EXPLAIN").name, "SYMBIND_EXPLAIN");
  EXPECT_EQ(variable("SYMBIND_TF32").usual, 1);
}

// The rows of the first table of a page, without its head.
std::string table_of(const std::string& page) {
  std::istringstream lines(page);
  std::string line, table;
  while (std::getline(lines, line) && line.rfind("|---", 0) != 0) {
  }
  while (std::getline(lines, line) && line.starts_with('|')) table += line + "\n";
  return table;
}

TEST(Environment, ThePageOfTheDocumentationHasTheSameList) {
  std::ifstream file(testing::source_dir() + "/docs/environment.md");
  std::ostringstream page;
  page << file.rdbuf();
  std::string expected;
  for (const Variable& each : variables)
    expected += join("| `", each.name, "` | ", each.usual, " | ", each.doc, " |\n");
  for (const TextVariable& each : texts) expected += join("| `", each.name, "` | | ", each.doc, " |\n");
  EXPECT_EQ(table_of(page.str()), expected);
}

}  // namespace
}  // namespace symbind::environment
