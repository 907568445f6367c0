#include "symbind/kvstore/worker_sum.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "symbind/core/error.h"
#include "symbind/kvstore/dist.h"

namespace symbind {
namespace {

class StoreOfSums {
 public:
  explicit StoreOfSums(std::shared_ptr<Peers> peers) : peers_(std::move(peers)) {
    if (peers_->elastic()) store();  // a new worker needs it before its first sum, to get its state
  }

  void sum(const std::string& key, std::span<double> values) {
    if (peers_->workers() == 1) return;  // others were lost, or there never were any
    const auto size = static_cast<int64_t>(values.size());
    const NDArray array(Shape{size}, cpu(), DType::float64);
    std::copy(values.begin(), values.end(), static_cast<double*>(array.mutable_data()));
    // Networks of one process may have the same names for layers of different sizes.
    const KVStore::Keys keys = {join(key, " of ", size, " values")};
    store().pushpull(keys, {{array}}, {{array}}, std::numeric_limits<int>::max());
    std::copy_n(static_cast<const double*>(array.data()), values.size(), values.begin());
  }

 private:
  DistStore& store() {
    const std::lock_guard lock(mutex_);
    if (!store_)
      store_ =
          std::make_unique<DistStore>("sums over workers", DistStore::Kind::allreduce, DistStore::SumOn::cpu, peers_);
    return *store_;
  }

  const std::shared_ptr<Peers> peers_;
  std::mutex mutex_;
  std::unique_ptr<DistStore> store_;
};

}  // namespace

WorkerSum make_worker_sum(std::shared_ptr<Peers> peers) {
  const auto store = std::make_shared<StoreOfSums>(std::move(peers));
  return [store](const std::string& key, std::span<double> values) { store->sum(key, values); };
}

void sum_over_workers_of_process() {
  const std::shared_ptr<Peers> peers = Peers::of_process();
  if (peers->workers() == 1) return;
  static std::once_flag installed;
  std::call_once(installed, [&] { set_worker_sum(std::make_shared<const WorkerSum>(make_worker_sum(peers))); });
}

}  // namespace symbind
