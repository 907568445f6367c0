#include "tests/fuzz/targets.h"

#include <cstdio>
#include <stdexcept>

#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/data/idx.h"
#include "symbind/files/params.h"
#include "symbind/files/states.h"
#include "symbind/graph/symbol.h"

namespace symbind::fuzz {
namespace {

void expect(bool truth, const char* what) {
  if (!truth) throw std::logic_error(what);
}

}  // namespace

void read_params(std::string_view bytes) {
  for (const NDArray& array : load_from_bytes(bytes).arrays)
    if (array) expect(array.context() == cpu(), "an array that is not on the CPU");
}

void read_states(std::string_view bytes) {
  const SavedStates saved = symbind::read_states(bytes, "fuzz");
  const SavedStates again = symbind::read_states(write_states(saved), "again");
  expect(again.states.size() == saved.states.size(), "states that do not come back");
}

void read_json(std::string_view bytes) {
  const Symbol net = Symbol::load_json(bytes);
  (void)net.list_arguments();
  (void)net.list_outputs();
  (void)net.attr_dict();
  expect(Symbol::load_json(net.tojson()).tojson() == net.tojson(), "a network that does not come back");
}

void read_idx(std::string_view bytes) {
  static const std::string path = "/tmp/symbind_fuzz_" + std::to_string(::getpid()) + ".idx";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  expect(file != nullptr, "no place for a temporary file");
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  try {
    (void)symbind::read_idx(path);
  } catch (...) {
    std::remove(path.c_str());
    throw;
  }
  std::remove(path.c_str());
}

bool accepts(void (*reader)(std::string_view), std::string_view bytes) {
  try {
    reader(bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace symbind::fuzz
