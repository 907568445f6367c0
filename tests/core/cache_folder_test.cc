#include "symbind/core/cache_folder.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace symbind {
namespace {

// Sets variables, null: not set, and restores them at the end.
class Variables {
 public:
  explicit Variables(const std::map<std::string, const char*>& values) {
    for (const auto& [name, value] : values) {
      const char* const before = std::getenv(name.c_str());
      before_[name] = before ? std::optional<std::string>(before) : std::nullopt;
      set(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) set(name, value ? value->c_str() : nullptr);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static void set(const std::string& name, const char* value) {
    if (value)
      ::setenv(name.c_str(), value, 1);
    else
      ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> before_;
};

std::string folder_with(const char* own, const char* caches, const char* home) {
  const Variables set({{"SYMBIND_CACHE_DIR", own}, {"XDG_CACHE_HOME", caches}, {"HOME", home}});
  return cache_folder();
}

TEST(CacheFolder, IsWhereTheUserWantsIt) {
  EXPECT_EQ(folder_with("/fast/cache", "/caches", "/home/me"), "/fast/cache");
  EXPECT_EQ(folder_with("here", "/caches", "/home/me"), "here");
}

TEST(CacheFolder, IsAmongTheCachesOfOtherPrograms) {
  EXPECT_EQ(folder_with(nullptr, "/caches", "/home/me"), "/caches/symbind");
  EXPECT_EQ(folder_with("", nullptr, "/home/me"), "/home/me/.cache/symbind");
  EXPECT_EQ(folder_with(nullptr, "relative", "/home/me"), "/home/me/.cache/symbind");
}

TEST(CacheFolder, IsNoneWhereNothingShallBeStored) {
  for (const char* off : {"off", "OFF", "0", "no", "false"}) EXPECT_EQ(folder_with(off, "/caches", "/home/me"), "");
  EXPECT_EQ(folder_with(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace symbind
