#include "symbind/train/rnn_checkpoint.h"

#include <algorithm>
#include <utility>

namespace symbind {

void save_rnn_checkpoint(const std::vector<RNNCellPtr>& cells, const std::string& prefix, int epoch,
                         const std::optional<Symbol>& symbol, const NamedArrays& arg_params,
                         const NamedArrays& aux_params) {
  NamedArrays unpacked = arg_params;
  for (const RNNCellPtr& cell : cells) unpacked = cell->unpack_weights(std::move(unpacked));
  save_checkpoint(prefix, epoch, symbol, unpacked, aux_params);
}

Checkpoint load_rnn_checkpoint(const std::vector<RNNCellPtr>& cells, const std::string& prefix, int epoch) {
  Checkpoint loaded = load_checkpoint(prefix, epoch);
  for (const RNNCellPtr& cell : cells) loaded.arg_params = cell->pack_weights(std::move(loaded.arg_params));
  return loaded;
}

EpochEndCallback do_rnn_checkpoint(std::vector<RNNCellPtr> cells, std::string prefix, int period) {
  return [cells = std::move(cells), prefix = std::move(prefix), period = std::max(period, 1)](
             int epoch, const Symbol& symbol, const NamedArrays& arg_params, const NamedArrays& aux_params) {
    if ((epoch + 1) % period == 0) save_rnn_checkpoint(cells, prefix, epoch + 1, symbol, arg_params, aux_params);
  };
}

}  // namespace symbind
