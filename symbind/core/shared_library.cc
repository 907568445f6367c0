#include "symbind/core/shared_library.h"

#include <sstream>
#include <vector>

#include <dlfcn.h>
#include <link.h>

#include "symbind/core/error.h"

namespace symbind {
namespace {

std::string last_loader_error() {
  const char* text = dlerror();
  return text ? text : "unknown error of the loader";
}

std::vector<std::string> folders_of(const std::string& path) {
  std::vector<std::string> folders;
  std::istringstream text(path);
  for (std::string folder; std::getline(text, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  return folders;
}

}  // namespace

// The loader counts references and returns the same handle to threads that open the library concurrently.
std::string SharedLibrary::problem() {
  if (handle_.load(std::memory_order_acquire)) return "";
  const std::string file = name_.version == no_version ? name_.file : join(name_.file, ".", name_.version);
  // A plain name is searched for in LD_LIBRARY_PATH, in the run path of this library and in the system's folders.
  const int mode = RTLD_NOW | (name_.global ? RTLD_GLOBAL : RTLD_LOCAL);
  void* handle = dlopen(file.c_str(), mode);
  std::string error = handle ? "" : last_loader_error();
  std::vector<std::string> folders = folders_of(environment::text("SYMBIND_LIBRARY_PATH").value());
  if (*name_.usual_folder) folders.emplace_back(name_.usual_folder);
  if (const std::string home = name_.home ? name_.home->value() : ""; !home.empty()) folders.push_back(home + "/lib64");
  for (const std::string& folder : folders) {
    if (handle) break;
    handle = dlopen(join(folder, "/", file).c_str(), mode);
    if (!handle) dlerror();
  }
  if (!handle)
    return join(name_.title, " is not available: ", file, " cannot be loaded (", error, "); ", name_.remedy,
                ", or add the folder that holds it to LD_LIBRARY_PATH");
  handle_.store(handle, std::memory_order_release);
  return "";
}

Part SharedLibrary::part() {
  Part part{name_.title, false, problem()};
  if (!part.details.empty()) return part;
  part.usable = true;
  const link_map* map = nullptr;
  if (dlinfo(handle_.load(std::memory_order_acquire), RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map)
    part.details = map->l_name;
  return part;
}

void* SharedLibrary::address(const char* function) {
  if (const std::string reason = problem(); !reason.empty()) fail(reason);
  void* const found = dlsym(handle_.load(std::memory_order_acquire), function);
  require(found != nullptr, name_.title, " has no function ", function, ": ", last_loader_error(), "; ", name_.remedy);
  return found;
}

}  // namespace symbind
