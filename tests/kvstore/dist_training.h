// A few steps of training by a store, with gradients that a worker, a key and a step decide.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "symbind/exec/arithmetic.h"
#include "symbind/kvstore/kvstore.h"
#include "symbind/optim/options.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

using Floats = std::vector<float>;

// A small one, one that is cut into pieces for up to seven workers, and one of odd size that is, too.
inline const std::vector<std::pair<std::string, Shape>> parameters = {
    {"fc_bias", {7}}, {"fc_weight", {300, 111}}, {"conv_weight", {32, 31, 5, 7}}, {"bn_gamma", {64}}};

inline KVStore::Keys keys() {
  KVStore::Keys all;
  for (const auto& [name, shape] : parameters) all.emplace_back(name);
  return all;
}

inline NDArray initial(size_t key, DType dtype) {
  return random_array(parameters[key].second, 100 + key, -1, 1, DType::float32).astype(dtype);
}

// Of such sizes that the order of the sum shows.
inline NDArray gradient(size_t key, int worker, int step, DType dtype) {
  NDArray array = random_array(parameters[key].second,
                               1000 * static_cast<uint64_t>(step) + 10 * key + static_cast<uint64_t>(worker), -1, 1,
                               DType::float32);
  array *= worker % 2 ? 1.0 / 3 : 37.0 / 3;
  return array.astype(dtype);
}

// The library's own, listed before a test registers more, but for one that draws random numbers and one that takes
// matrices alone.
inline const std::vector<std::string> optimizers = [] {
  std::vector<std::string> all = list_optimizers();
  std::erase_if(all, [](const std::string& name) { return name == "sgld" || name == "groupadagrad"; });
  return all;
}();

struct Training {
  std::string optimizer = "sgd";  // empty: none
  OptimizerParams params = {{"learning_rate", 0.1}, {"wd", 0.001}};
  DType dtype = DType::float32;
  bool compressed = false;
  int steps = 3;
  bool scheduled = false;
};

inline void prepare(KVStore& store, const Training& training) {
  if (training.compressed) store.set_gradient_compression({{"type", "2bit"}, {"threshold", "0.5"}});
  if (!training.optimizer.empty()) {
    OptimizerParams params = training.params;
    if (training.scheduled)
      params.emplace("lr_scheduler", std::make_shared<FactorScheduler>(FactorSchedule{.step = 2, .factor = 0.5}));
    store.set_optimizer(Optimizer::create(training.optimizer, params));
  }
  std::vector<NDArray> values;
  for (size_t i = 0; i < parameters.size(); ++i) values.push_back(initial(i, training.dtype));
  store.init(keys(), values);
}

inline std::vector<Floats> pulled(KVStore& store, DType dtype = DType::float32) {
  KVStore::Values outs;
  for (const auto& [name, shape] : parameters) outs.push_back({zeros(shape, cpu(), dtype)});
  store.pull(keys(), outs);
  std::vector<Floats> values;
  for (const auto& out : outs) values.push_back(out[0].to_vector<float>());
  return values;
}

inline std::vector<Floats> one_process(int contexts, const Training& training) {
  const KVStorePtr store = KVStore::create(training.compressed ? "device" : "local");
  prepare(*store, training);
  for (int step = 0; step < training.steps; ++step) {
    KVStore::Values values(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i)
      for (int context = 0; context < contexts; ++context)
        values[i].push_back(gradient(i, context, step, training.dtype).as_copy_in(cpu(context)));
    store->push(keys(), values);
  }
  return pulled(*store, training.dtype);
}

inline bool same_bits(const std::vector<Floats>& some, const std::vector<Floats>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(), [](const Floats& a, const Floats& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  });
}

inline void push_step(KVStore& store, int worker, int step, DType dtype) {
  KVStore::Values values(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) values[i].push_back(gradient(i, worker, step, dtype));
  store.push(keys(), values);
}

}  // namespace symbind::testing
