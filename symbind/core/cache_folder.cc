#include "symbind/core/cache_folder.h"

#include "symbind/core/environment.h"
#include "symbind/core/text.h"

namespace symbind {
namespace {

bool is_off(const std::string& text) {
  const std::string word = lower_case(text);
  return word == "off" || word == "0" || word == "no" || word == "false";
}

}  // namespace

std::string cache_folder() {
  const std::string chosen = environment::text("SYMBIND_CACHE_DIR").value();
  if (!chosen.empty()) return is_off(chosen) ? "" : chosen;
  // A relative path in XDG_CACHE_HOME is to be ignored, by its specification.
  const std::string caches = environment::text("XDG_CACHE_HOME").value();
  if (caches.starts_with('/')) return caches + "/symbind";
  const std::string home = environment::text("HOME").value();
  return home.starts_with('/') ? home + "/.cache/symbind" : "";
}

}  // namespace symbind
