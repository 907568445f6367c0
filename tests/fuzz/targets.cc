#include "tests/fuzz/targets.h"

#include <cstdio>
#include <stdexcept>

#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/data/idx.h"
#include "symbind/exec/executor.h"
#include "symbind/files/params.h"
#include "symbind/files/states.h"
#include "symbind/graph/symbol.h"
#include "symbind/passes/infer.h"

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

void bind_network(std::string_view bytes) {
  constexpr int64_t most_elements = 1 << 16;
  constexpr size_t most_nodes = 1000;
  const Symbol net = Symbol::load_json(bytes);
  if (net.get_internals().size() > most_nodes) return;
  const InferredShapes shapes = infer_shape_partial(net.get_internals(), {});
  if (!shapes.complete) return;
  int64_t elements = 0;
  for (const auto* arrays : {&shapes.args, &shapes.aux, &shapes.outputs})
    for (const std::vector<int64_t>& dims : *arrays) {
      const int64_t size = Shape(dims).size();
      if (size > most_elements || (elements += size) > most_elements) return;
    }
  const ExecutorPtr executor = simple_bind(net, cpu(), {});
  executor->forward(false);
  executor->forward(true);
  executor->backward(executor->outputs());
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
