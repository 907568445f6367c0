#include "symbind/files/checkpoint.h"

#include <iomanip>
#include <vector>

#include "symbind/core/atomic_file.h"
#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/files/params.h"

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

void write_model_params(AtomicFile& file, const std::string& path, const NamedArrays& arg_params,
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
  write_arrays(file, path, names, arrays);
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
  write_model_params(params_file, path, arg_params, aux_params);
  params_file.finish();
  if (states) {
    states_file.emplace(states_path(prefix, epoch)).write(*states);
    states_file->finish();
  }
  if (symbol_file) symbol_file->commit();
  params_file.commit();
  if (states_file) states_file->commit();
  log_info("Saved checkpoint to \"", path, "\"");
  if (states) log_info("Saved optimizer state to \"", states_path(prefix, epoch), "\"");
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
