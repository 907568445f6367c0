#include "symbind/files/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <vector>

#include "symbind/core/atomic_file.h"
#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/files/byte_reader.h"
#include "symbind/files/checksum.h"
#include "symbind/files/params.h"
#include "symbind/files/states.h"

namespace symbind {
namespace {

std::string numbered(const std::string& prefix, int epoch, const char* extension) {
  require(epoch >= 0, "[", prefix, "] the number of an epoch is at least 0: ", epoch);
  TextStream path;
  path << prefix << "-" << std::setw(4) << std::setfill('0') << epoch << extension;
  return path.str();
}

}  // namespace

std::string symbol_path(const std::string& prefix) { return prefix + "-symbol.json"; }
std::string params_path(const std::string& prefix, int epoch) { return numbered(prefix, epoch, ".params"); }
std::string states_path(const std::string& prefix, int epoch) { return numbered(prefix, epoch, ".states"); }

namespace {

// Returns the mark of what was written.
ParamsMark write_model_params(AtomicFile& file, const std::string& path, const NamedArrays& arg_params,
                              const NamedArrays& aux_params) {
  std::vector<std::string> names;
  std::vector<NDArray> arrays;
  const auto add = [&](const char* kind, const NamedArrays& params) {
    for (const auto& [name, array] : params) {
      names.push_back(kind + name);
      arrays.push_back(array);
    }
  };
  add("arg:", arg_params);
  add("aux:", aux_params);
  uint64_t written = 0;
  Checksum sum;
  const auto sink = [&](const void* data, size_t bytes) {
    file.write(data, bytes);
    sum.add(data, bytes);
    written += bytes;
  };
  write_arrays(sink, path, names, arrays);
  return {written, sum.value()};
}

ParamsMark mark_of_file(const std::string& path) {
  ByteReader in(path);
  const uint64_t size = in.remaining();
  Checksum sum;
  std::vector<char> piece(size_t{1} << 20);
  while (in.remaining() > 0) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(in.remaining(), piece.size()));
    in.read(piece.data(), bytes, "parameters");
    sum.add(piece.data(), bytes);
  }
  return {size, sum.value()};
}

}  // namespace

void save_model_params(const std::string& path, const NamedArrays& arg_params, const NamedArrays& aux_params) {
  AtomicFile file(path);
  write_model_params(file, path, arg_params, aux_params);
  file.commit();
}

void save_checkpoint(const std::string& prefix, int epoch, const std::optional<Symbol>& symbol,
                     const NamedArrays& arg_params, const NamedArrays& aux_params,
                     const std::optional<std::string>& states) {
  const std::string path = params_path(prefix, epoch);
  std::optional<AtomicFile> symbol_file, states_file;
  if (symbol) {
    symbol_file.emplace(symbol_path(prefix)).write(symbol->tojson());
    symbol_file->finish();
  }
  AtomicFile params_file(path);
  const ParamsMark mark = write_model_params(params_file, path, arg_params, aux_params);
  params_file.finish();
  if (states) {
    states_file.emplace(states_path(prefix, epoch)).write(with_params_mark(*states, mark));
    states_file->finish();
  }
  std::vector<AtomicFile*> files;
  if (symbol_file) files.push_back(&*symbol_file);
  files.push_back(&params_file);
  if (states_file) files.push_back(&*states_file);
  AtomicFile::commit(files);
  log_info("Saved checkpoint to \"", path, "\"");
  if (states) log_info("Saved optimizer state to \"", states_path(prefix, epoch), "\"");
}

void match_states(const std::string& prefix, int epoch) {
  const std::string states = states_path(prefix, epoch), params = params_path(prefix, epoch);
  if (!std::filesystem::exists(states)) return;
  const std::optional<ParamsMark> mark = params_mark_of(states);
  if (!mark) return;
  const ParamsMark wanted = mark_of_file(params);
  if (*mark == wanted) return;
  for (const std::string& abandoned : abandoned_files_beside(states))
    if (params_mark_of(abandoned) == wanted) {
      (void)load_states(abandoned);  // fails unless the file is whole
      std::filesystem::rename(abandoned, states);
      return;
    }
  fail("[", states, "] these optimizer states were saved with other parameters than those in ", params,
       ": one of the two files is from another run. Load the checkpoint without optimizer states, or load another one; "
       "to use these states nevertheless, pass their file to load_optimizer_states() after init_optimizer()");
}

ModelParams load_model_params(const std::string& path) {
  const LoadedArrays loaded = load(path);
  require(loaded.arrays.empty() || !loaded.names.empty(), "[", path, "] a file of parameters by name is expected: its ",
          loaded.arrays.size(), " arrays have no names");
  ModelParams params;
  for (size_t i = 0; i < loaded.arrays.size(); ++i) {
    const std::string& name = loaded.names[i];
    if (name.starts_with("aux:"))
      params.aux_params[name.substr(4)] = loaded.arrays[i];
    else
      params.arg_params[name.starts_with("arg:") ? name.substr(4) : name] = loaded.arrays[i];
  }
  return params;
}

ModelParams load_params(const std::string& prefix, int epoch) { return load_model_params(params_path(prefix, epoch)); }

Checkpoint load_checkpoint(const std::string& prefix, int epoch) {
  Symbol symbol = Symbol::load(symbol_path(prefix));
  ModelParams params = load_params(prefix, epoch);
  for (const std::string& name : symbol.list_auxiliary_states()) {
    auto found = params.arg_params.extract(name);
    if (!found.empty()) params.aux_params.insert(std::move(found));
  }
  return {std::move(symbol), std::move(params.arg_params), std::move(params.aux_params)};
}

}  // namespace symbind
