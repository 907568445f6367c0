// Checkpoints of networks with recurrent cells: files hold the parameters of single gates, so that fused and unfused
// cells read each other's.
#pragma once

#include <string>
#include <vector>

#include "symbind/files/checkpoint.h"
#include "symbind/train/callback.h"
#include "symbind/train/rnn_cell.h"

namespace SYMBIND_API symbind {

void save_rnn_checkpoint(const std::vector<RNNCellPtr>& cells, const std::string& prefix, int epoch,
                         const std::optional<Symbol>& symbol, const NamedArrays& arg_params,
                         const NamedArrays& aux_params);
Checkpoint load_rnn_checkpoint(const std::vector<RNNCellPtr>& cells, const std::string& prefix, int epoch);
// Every `period` epochs.
EpochEndCallback do_rnn_checkpoint(std::vector<RNNCellPtr> cells, std::string prefix, int period = 1);

}  // namespace symbind
