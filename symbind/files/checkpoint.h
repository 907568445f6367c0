// A network and its parameters on disk: `prefix-symbol.json` and `prefix-0007.params`, as MXNet names and writes them.
#pragma once

#include <optional>
#include <string>

#include "symbind/core/ndarray.h"
#include "symbind/graph/symbol.h"

namespace SYMBIND_API symbind {

struct ModelParams {
  NamedArrays arg_params, aux_params;
};

struct Checkpoint {
  Symbol symbol;
  NamedArrays arg_params, aux_params;
};

std::string symbol_path(const std::string& prefix);             // prefix-symbol.json
std::string params_path(const std::string& prefix, int epoch);  // prefix-0007.params
std::string states_path(const std::string& prefix, int epoch);  // prefix-0007.states

// Without a symbol the network is not written; `states` are the bytes of the .states file, if one is to be written. All
// files are written to the disk before the first of them is renamed: a full disk leaves the whole old checkpoint as it
// was. Each is replaced as a whole. A crash between two replacements leaves an older file beside a newer
// one; the states hold a mark of their parameters, so that match_states() notices.
void save_checkpoint(const std::string& prefix, int epoch, const std::optional<Symbol>& symbol,
                     const NamedArrays& arg_params, const NamedArrays& aux_params,
                     const std::optional<std::string>& states = std::nullopt);
// Makes sure that the states of a checkpoint were saved with the parameters beside them: a save that was killed between
// the two files is completed, and anything else fails. States without a mark (MXNet's, or saved alone) and missing ones
// pass.
void match_states(const std::string& prefix, int epoch);
Checkpoint load_checkpoint(const std::string& prefix, int epoch);
// A name without `arg:` or `aux:` is an argument's, unless the network (in load_checkpoint) has an auxiliary state of
// that name.
ModelParams load_params(const std::string& prefix, int epoch);
// Load from, and save to, a file of any name.
ModelParams load_model_params(const std::string& path);
void save_model_params(const std::string& path, const NamedArrays& arg_params, const NamedArrays& aux_params);

}  // namespace symbind
