// What all stores do with keys and arrays: the checks of a call, and copying values out.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "symbind/kvstore/kvstore.h"

namespace symbind {

void check_counts(const char* call, size_t keys, size_t values);
void check_array(const char* call, const ParamKey& key, const NDArray& array);
// An array that is pushed to or pulled from a stored value has its shape and, pushed, its type.
void check_pushed(const ParamKey& key, const NDArray& stored, const NDArray& array, bool compressed);
void check_pulled(const ParamKey& key, const NDArray& stored, const NDArray& out);

// The keys of a store are all numbers or all names.
class KindOfKeys {
 public:
  void check(const KVStore::Keys& keys, const char* call) const;
  void learn(const KVStore::Keys& keys) {
    if (!keys.empty()) numbered_ = keys[0].is_number();
  }

 private:
  std::optional<bool> numbered_;  // known from the first on
};

// Copies stored[i] into every array of outs[i].
void copy_out(std::span<const NDArray> stored, const KVStore::Values& outs);

}  // namespace symbind
