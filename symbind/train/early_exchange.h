// The exchange of gradients with other workers while backward still computes others.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "symbind/kvstore/early_push.h"
#include "symbind/train/executor_group.h"

namespace symbind {

// The store, if it may exchange the gradients of a module on so many contexts during backward; else null.
inline EarlyPush* store_for_early_exchange(KVStore* store, size_t contexts) {
  auto* const early = contexts == 1 ? dynamic_cast<EarlyPush*>(store) : nullptr;
  return early && early->may_push_early() ? early : nullptr;
}

// Passes gradients to a store as backward finishes them.
class EarlyExchange {
 public:
  EarlyExchange(EarlyPush& store, const std::vector<std::string>& names, const DataParallelExecutorGroup& group)
      : store_(store), names_(names), gradients_(group.grad_arrays()) {
    for (size_t i = 0; i < gradients_.size(); ++i)
      if (gradients_[i][0]) index_of_[gradients_[i][0].data()] = i;
  }

  void push(std::span<const NDArray> finished, const DeviceEventPtr& complete) {
    KVStore::Keys keys;
    KVStore::Values values;
    size_t first = gradients_.size();
    for (const NDArray& gradient : finished) {
      const auto found = index_of_.find(gradient.data());
      if (found == index_of_.end()) continue;  // of an input
      keys.emplace_back(names_[found->second]);
      values.push_back(gradients_[found->second]);
      first = std::min(first, found->second);
    }
    // The first layers are needed first.
    if (!keys.empty()) store_.push_early(keys, values, -static_cast<int>(first), complete);
  }

 private:
  EarlyPush& store_;
  const std::vector<std::string>& names_;
  const DataParallelExecutorGroup::PerDevice& gradients_;
  std::map<const void*, size_t> index_of_;
};

}  // namespace symbind
