// The exchange of gradients with other workers while backward still computes others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/kvstore/early_push.h"
#include "symbind/train/executor_group.h"

namespace symbind {

// Passes gradients to a store as backward finishes them, several at a time.
class EarlyExchange {
 public:
  EarlyExchange(EarlyPush& store, const std::vector<std::string>& names, const DataParallelExecutorGroup& group)
      : store_(store), names_(names), gradients_(group.grad_arrays()) {
    for (size_t i = 0; i < gradients_.size(); ++i)
      if (gradients_[i][0]) index_of_[gradients_[i][0].data()] = i;
  }

  void add(const NDArray& gradient) {
    const auto found = index_of_.find(gradient.data());
    if (found == index_of_.end()) return;  // of an input
    keys_.emplace_back(names_[found->second]);
    values_.push_back(gradients_[found->second]);
    priority_ = -static_cast<int>(found->second);  // the first layers are needed first
    bytes_ += gradient.bytes();
    if (bytes_ >= bytes_worth_pushing) push();
  }

  void push() {
    if (keys_.empty()) return;
    store_.push_early(keys_, values_, priority_);
    keys_.clear();
    values_.clear();
    bytes_ = 0;
  }

 private:
  static constexpr size_t bytes_worth_pushing = size_t{1} << 20;

  EarlyPush& store_;
  const std::vector<std::string>& names_;
  const DataParallelExecutorGroup::PerDevice& gradients_;
  std::map<const void*, size_t> index_of_;
  KVStore::Keys keys_;
  KVStore::Values values_;
  int priority_ = 0;
  size_t bytes_ = 0;
};

}  // namespace symbind
