// Every operator that public programs use is there, by every name MXNet has for it, and documented; what is knowingly
// absent is listed with a reason. That each has a case is checked where the cases are (op_cases_test.cc).
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "symbind/graph/op.h"

#include "tests/support/source_dir.h"

namespace symbind::testing {
namespace {

struct Listed {
  std::string tier, name;
  Names aliases;
};
struct Operators {
  std::vector<Listed> listed;
  std::map<std::string, std::string> absent;  // by name: why
};

Operators read_list() {
  Operators all;
  std::ifstream file(source_dir() + "/tests/ops/operators.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    std::istringstream words(line);
    Listed each;
    words >> each.tier >> each.name;
    if (each.tier == "absent") {
      const size_t colon = line.find(": ");
      EXPECT_NE(colon, std::string::npos) << line << ": why is it absent?";
      each.name.pop_back();
      all.absent[each.name] = line.substr(colon + 2);
      continue;
    }
    for (std::string alias; words >> alias;) each.aliases.push_back(alias);
    all.listed.push_back(each);
  }
  return all;
}

TEST(ListOfOperators, IsThere) {
  const Operators all = read_list();
  EXPECT_GT(all.listed.size(), 290);
  for (const auto& [absent, why] : all.absent) {
    const std::string& name = absent;
    EXPECT_FALSE(why.empty()) << name;
    EXPECT_EQ(OpRegistry::get().find_or_null(name), nullptr) << name << " is there: drop the line";
    EXPECT_TRUE(std::ranges::any_of(all.listed, [&](const Listed& each) { return each.name == name; })) << name;
  }
}

TEST(ListOfOperators, HasNoneThatIsMissing) {
  const Operators all = read_list();
  const OpRegistry& registry = OpRegistry::get();
  for (const Listed& each : all.listed) {
    const OpDef* const op = registry.find_or_null(each.name);
    if (!op && all.absent.contains(each.name)) continue;
    ASSERT_NE(op, nullptr) << each.name << " of tier " << each.tier << " is missing";
    EXPECT_FALSE(op->internal) << each.name << " cannot be used";
    for (const std::string& alias : each.aliases)
      EXPECT_EQ(registry.find_or_null(alias), op) << alias << " is " << each.name;
  }
}

TEST(ListOfOperators, AreAllDocumented) {
  for (const OpDef* op : OpRegistry::get().all_public()) {
    EXPECT_FALSE(op->doc.empty()) << op->name;
    for (const ParamField& field : op->fields) EXPECT_FALSE(field.doc.empty()) << op->name << " " << field.name;
  }
}

}  // namespace
}  // namespace symbind::testing
