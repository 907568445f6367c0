// A training step over several workers: its time through Module::fit with a distributed store, without the store, and
// the time of the exchange alone. The difference of the first two is what the exchange adds to a step: what backward
// does not hide of it, and the time for which the workers wait for the slowest. The same with steps of a program's own,
// in which the exchange begins after backward. Worker 0 prints one JSON row.
//   OMP_NUM_THREADS=2 build/release/bench/distributed_train --network lenet --batch 64       one process
//   OMP_NUM_THREADS=1 mpirun -n 2 build/release/bench/distributed_train --network lenet --batch 32
//   mpirun -n 1 -x NCCL_HOSTID=a … --device gpu --store horovod : -n 1 -x NCCL_HOSTID=b …    two workers on one GPU
//   build/release/bench/distributed_train --device gpu --threads 1                            one worker, without MPI
#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "symbind/core/error.h"
#include "symbind/kvstore/dist.h"
#include "symbind/kvstore/worker_gpus.h"
#include "symbind/symbind.h"

#include "examples/support/network_by_name.h"
#include "examples/support/options.h"
#include "tests/kvstore/thread_transport.h"

using namespace symbind;

namespace {

using Clock = std::chrono::steady_clock;
const optim::Sgd sgd{.learning_rate = 0.01, .momentum = 0.9, .wd = 1e-4};
constexpr size_t warm_up = 3;  // steps that compile plans and allocate memory

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Setting {
  Symbol network;
  Tuple data;
  int64_t steps;
  Context context;
};
using StoreMaker = std::function<KVStorePtr()>;

// The median time of a step of fit(), or without `overlap` of the same calls by a program.
double step_milliseconds(const Setting& setting, const KVStorePtr& store, bool overlap, std::vector<NDArray>* weights) {
  NDArrayIter one_batch(random::normal({.shape = setting.data}), zeros({setting.data[0]}),
                        {.batch_size = setting.data[0]});
  ResizeIter data(one_batch, setting.steps + static_cast<int64_t>(warm_up));
  std::vector<double> times;
  Clock::time_point last = Clock::now();
  const auto count_step = [&] {
    if (setting.context.is_gpu()) waitall();
    times.push_back(milliseconds_since(last));
    last = Clock::now();
  };
  Module module(setting.network, {.context = {setting.context}});
  const KVStoreArg kvstore = store ? KVStoreArg(store) : KVStoreArg(nullptr);
  const auto initializer = std::make_shared<init::Xavier>(init::XavierOptions{.magnitude = 2});
  if (store) store->barrier();
  if (overlap) {
    module.fit(data, {.batch_end_callback = {[&](const BatchEndParam&) { count_step(); }},
                      .kvstore = kvstore,
                      .optimizer = sgd,
                      .initializer = initializer,
                      .num_epoch = 1});
  } else {
    module.bind(data.provide_data(), data.provide_label());
    module.init_params({.initializer = initializer});
    module.init_optimizer({.kvstore = kvstore, .optimizer = sgd});
    const EvalMetricPtr metric = EvalMetric::create("acc");
    for (std::optional<DataBatch> batch = data.next(); batch;) {
      module.forward_backward(*batch);
      module.update();
      module.update_metric(*metric, batch->label);
      batch = data.next();
      if (batch) module.prepare(*batch);
      count_step();
    }
  }
  if (weights)
    for (const auto& [name, array] : module.get_params().arg_params) weights->push_back(array);
  return median({times.begin() + warm_up, times.end()});
}

// The median time of exchanging as many gradients, updating by them and copying the weights back, and nothing else.
double exchange_milliseconds(const Setting& setting, const KVStorePtr& store, const std::vector<NDArray>& weights) {
  KVStore::Keys keys;
  KVStore::Values gradients, outs;
  for (const NDArray& weight : weights) {
    keys.emplace_back(keys.size());
    gradients.push_back({zeros(weight.shape(), setting.context)});
    outs.push_back({zeros(weight.shape(), setting.context)});
  }
  if (store->has_optimizer()) store->set_optimizer(Optimizer::create(sgd));
  store->init(keys, weights);
  std::vector<double> times;
  for (int64_t round = 0; round < setting.steps; ++round) {
    store->barrier();
    const auto begin = Clock::now();
    store->pushpull(keys, gradients, outs);
    waitall();
    times.push_back(milliseconds_since(begin));
  }
  return median(std::move(times));
}

void measure(const std::string& name, const Setting& setting, const StoreMaker& make_store) {
  const KVStorePtr store = make_store();
  std::vector<NDArray> weights;
  store->barrier();
  const double alone = step_milliseconds(setting, nullptr, true, &weights);
  const double together = step_milliseconds(setting, store, true, nullptr);
  const double in_turn = step_milliseconds(setting, make_store(), false, nullptr);
  const double exchange = exchange_milliseconds(setting, make_store(), weights);
  const int workers = store->num_workers();
  if (store->rank() != 0) return;
  std::cout << std::setprecision(4) << R"({"case": "distributed )" << name << R"(", "store": ")" << store->type()
            << R"(", "workers": )" << workers << R"(, "batch": )" << setting.data[0] << R"(, "step_ms": )" << together
            << R"(, "step_without_exchange_ms": )" << alone << R"(, "added_ms": )" << together - alone
            << R"(, "step_without_overlap_ms": )" << in_turn << R"(, "exchange_alone_ms": )" << exchange
            << R"(, "images_per_second": )" << static_cast<double>(workers * setting.data[0]) / together * 1e3 << "}\n";
}

// Workers that are threads: without MPI, and on one GPU.
void measure_threads(int threads, const std::string& type, const std::function<void(const StoreMaker&)>& measure_one) {
  const bool horovod = type == "horovod", on_device = horovod || type.find("device") != std::string::npos;
  const auto work = [&](testing::Worker& worker) {
    measure_one([&] {
      return std::make_shared<DistStore>(type, horovod ? DistStore::Kind::allreduce : DistStore::Kind::sync,
                                         on_device ? DistStore::SumOn::device : DistStore::SumOn::cpu, worker.peers);
    });
  };
  for (const std::string& thrown : testing::run_job(threads, work, {.peers = {.gpus = nccl_connector()}}))
    require(thrown.empty(), thrown);
}

int run(int argc, char** argv) {
  std::string name = "lenet", device = "cpu", type = "dist_sync";
  int64_t batch = 32, steps = 20, image_size = 0, threads = 0;
  examples::Options options("distributed_train", "Times a training step over the workers that mpirun starts.");
  options.add("--network", name, "the network, by its name in examples/train_imagenet");
  options.add("--batch", batch, "images of each worker in a step");
  options.add("--steps", steps, "steps that are timed");
  options.add("--image-size", image_size, "height and width of the images; 0: those of the network");
  options.add("--device", device, "cpu, or gpu for the first GPU");
  options.add("--store", type, "the type of the store");
  options.add("--threads", threads, "so many workers as threads of this process, without MPI");
  options.parse(argc, argv);
  const networks::NetworkFamily& family = networks::network_family(name);
  const int64_t size = image_size > 0 ? image_size : family.image_size;
  const Setting setting{.network = family.build({}),
                        .data = {batch, family.channels, size, size},
                        .steps = steps,
                        .context = device == "gpu" ? gpu(0) : cpu()};
  const auto measure_one = [&](const StoreMaker& make_store) { measure(name, setting, make_store); };
  if (threads > 0)
    measure_threads(static_cast<int>(threads), type, measure_one);
  else
    measure_one([&] { return KVStore::create(type); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "distributed_train: " << error.what() << "\n";
    return 1;
  }
}
