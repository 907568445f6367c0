#include "tests/fuzz/targets.h"

#include <cstdio>
#include <stdexcept>

#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/data/codec.h"
#include "symbind/data/csv_iter.h"
#include "symbind/data/idx.h"
#include "symbind/data/image_list.h"
#include "symbind/data/libsvm_iter.h"
#include "symbind/data/recordio.h"
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

template <class Call>
bool accepts(Call call) {
  try {
    call();
    return true;
  } catch (const Error&) {
    return false;
  }
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

namespace {

// Calls read(path of a file with these bytes).
template <class Read>
void with_file(std::string_view bytes, Read read) {
  struct File {
    std::string path = "/tmp/symbind_fuzz_" + std::to_string(::getpid());
    ~File() { std::remove(path.c_str()); }
  } const temporary;
  std::FILE* file = std::fopen(temporary.path.c_str(), "wb");
  expect(file != nullptr, "cannot open a temporary file");
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  read(temporary.path);
}

}  // namespace

void read_idx(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) { (void)symbind::read_idx(path); });
}

void read_records(std::string_view bytes) {
  with_file(bytes, [&](const std::string& path) {
    RecordReader reader(path);
    // Parts of the file end and begin at records, whatever is in it.
    for (uint64_t offset = 0; offset <= bytes.size(); offset += bytes.size() / 4 + 1) {
      reader.seek_record_after(offset);
      expect(reader.tell() >= offset && reader.tell() <= bytes.size(), "a record outside of its file");
    }
    reader.seek(0);
    for (std::string record; reader.read(record);) {
      expect(record.size() <= bytes.size(), "a record larger than its file");
      if (record.size() >= 24) (void)unpack_record(record);
    }
  });
}

void read_index(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) { (void)read_record_index(path); });
}

void decode(std::string_view bytes) {
  for (const int channels : {0, 1, 3, 4}) {
    Pixels pixels;
    // A few bytes may hold large images, which take their time.
    const auto allocate = [&](int64_t height, int64_t width, int64_t depth) {
      require(height * width <= 1 << 20, "too large for a fuzzer");
      pixels.resize(height, width, depth);
      return pixels.data();
    };
    accepts([&] { decode_image(bytes, channels, allocate); });
  }
  Pixels pixels;
  decode_image(bytes, 3, [&](int64_t height, int64_t width, int64_t depth) {
    require(height * width <= 1 << 20, "too large for a fuzzer");
    pixels.resize(height, width, depth);
    return pixels.data();
  });
}

void read_csv(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    CSVIter iter({.data_csv = path, .data_shape = {3}, .batch_size = 2});
    while (iter.next()) continue;
  });
}

void read_libsvm(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    LibSVMIter iter({.data_libsvm = path, .data_shape = {7}, .batch_size = 2});
    while (iter.next()) continue;
  });
}

void read_list(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    accepts([&] {
      for (const auto& [id, labels] : read_image_list(path, 2))
        expect(labels.size() == 2, "more or fewer labels than 2");
    });
    for (const auto& [id, labels] : read_image_list(path, -1)) expect(!labels.empty(), "an id without labels");
  });
}

bool accepts(void (*reader)(std::string_view), std::string_view bytes) {
  return accepts([&] { reader(bytes); });
}

}  // namespace symbind::fuzz
