#include "symbind/kvstore/values.h"

#include <algorithm>
#include <set>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"

namespace symbind {

void check_counts(const char* call, size_t keys, size_t values) {
  require(keys == values, "[kvstore] ", call, " takes one value per key: ", keys, " keys, ", values, " values");
}

void check_array(const char* call, const ParamKey& key, const NDArray& array) {
  require(bool(array), "[kvstore] ", call, " of key ", key, " was given an empty array");
}

void check_pushed(const ParamKey& key, const NDArray& stored, const NDArray& array, bool compressed) {
  check_array("push", key, array);
  require(array.shape() == stored.shape(), "[kvstore] push of key ", key, " of shape ", stored.shape(),
          ": an array on ", array.context(), " has shape ", array.shape());
  require(array.dtype() == stored.dtype(), "[kvstore] push of key ", key, " of type ", stored.dtype(), ": an array on ",
          array.context(), " has type ", array.dtype());
  require(!compressed || array.dtype() == DType::float32, "[kvstore] push of key ", key,
          ": gradient compression takes float32, not ", array.dtype());
}

void check_pulled(const ParamKey& key, const NDArray& stored, const NDArray& out) {
  check_array("pull", key, out);
  require(out.shape() == stored.shape(), "[kvstore] pull of key ", key, " of shape ", stored.shape(), ": an array on ",
          out.context(), " has shape ", out.shape());
}

void KindOfKeys::check(const KVStore::Keys& keys, const char* call) const {
  if (keys.empty()) return;
  const bool first = numbered_.value_or(keys[0].is_number());
  for (const ParamKey& key : keys)
    require(key.is_number() == first, "[kvstore] the keys of a store are all numbers or all names: ", call, " of key ",
            key, ", ", first ? "a name" : "a number", ", where the others are ", first ? "numbers" : "names");
}

void copy_out(std::span<const NDArray> stored, const KVStore::Values& outs) {
  constexpr size_t bytes_worth_threads = size_t{1} << 18;
  // Device by device: on several CPU contexts whose threads divide the copying, each thread copies what it will read.
  std::vector<std::pair<NDArray, NDArray>> copies;
  size_t devices = 0;
  for (const auto& of_key : outs) devices = std::max(devices, of_key.size());
  size_t bytes = 0;
  bool concurrent = true;  // all copies are on the host, and no two into one storage, where the last must win
  std::set<const Storage*> written;
  for (size_t device = 0; device < devices; ++device)
    for (size_t i = 0; i < outs.size(); ++i) {
      if (device >= outs[i].size() || outs[i][device].data() == stored[i].data()) continue;  // there already
      copies.emplace_back(stored[i], outs[i][device]);
      bytes += outs[i][device].bytes();
      concurrent = concurrent && !copies.back().first.context().is_gpu() && !copies.back().second.context().is_gpu() &&
                   written.insert(&outs[i][device].storage()).second;
    }
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      copies[static_cast<size_t>(i)].first.copyto(copies[static_cast<size_t>(i)].second);
  };
  const auto count = static_cast<int64_t>(copies.size());
  if (concurrent && bytes >= bytes_worth_threads)
    parallel_for(count, 1, copy);
  else
    copy(0, count);
}

}  // namespace symbind
