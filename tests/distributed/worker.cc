// What each worker of the tests in run.py does: `mpirun -n 4 distributed_worker bits`. It ends with 0 where all is
// well.
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include <unistd.h>

#include "symbind/symbind.h"

using namespace symbind;

namespace {

const std::vector<std::pair<std::string, Shape>> parameters = {
    {"fc_bias", {7}}, {"fc_weight", {300, 111}}, {"conv_weight", {32, 31, 5, 7}}, {"bn_gamma", {64}}};

KVStore::Keys keys() {
  KVStore::Keys all;
  for (const auto& [name, shape] : parameters) all.emplace_back(name);
  return all;
}

// Numbers that depend on everything, of such sizes that the order of their sum shows.
NDArray numbers(const Shape& shape, size_t key, int worker, int step) {
  std::vector<float> values(static_cast<size_t>(shape.size()));
  uint64_t state = 1 + 7919 * key + 104729 * static_cast<uint64_t>(worker) + 1299709 * static_cast<uint64_t>(step);
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value =
        static_cast<float>(static_cast<int64_t>(state >> 40) - (1 << 23)) / static_cast<float>(1 << (20 + worker % 4));
  }
  return array(values, shape);
}

std::vector<std::vector<float>> train(KVStore& store, const std::string& optimizer, bool compressed, int contexts,
                                      int first_worker) {
  if (compressed) store.set_gradient_compression({{"type", "2bit"}, {"threshold", "0.5"}});
  if (!optimizer.empty()) store.set_optimizer(Optimizer::create(optimizer, {{"learning_rate", 0.01}}));
  std::vector<NDArray> values;
  for (size_t i = 0; i < parameters.size(); ++i) values.push_back(numbers(parameters[i].second, i, 0, 1000));
  store.init(keys(), values);
  for (int step = 0; step < 3; ++step) {
    KVStore::Values pushed(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i)
      for (int k = 0; k < contexts; ++k)
        pushed[i].push_back(numbers(parameters[i].second, i, first_worker + k, step).as_copy_in(cpu(k)));
    store.push(keys(), pushed, -step);
  }
  KVStore::Values outs;
  for (const auto& [name, shape] : parameters) outs.push_back({zeros(shape)});
  store.pull(keys(), outs);
  std::vector<std::vector<float>> result;
  for (const auto& out : outs) result.push_back(out[0].to_vector<float>());
  return result;
}

void test_bits() {
  for (const std::string optimizer : {"sgd", "adam", "lamb", "lars", "nadam", ""})
    for (const bool compressed : {false, true}) {
      const KVStorePtr store = KVStore::create("dist_sync");
      const KVStorePtr alone = KVStore::create("device");
      const auto got = train(*store, optimizer, compressed, 1, store->rank());
      const auto expected = train(*alone, optimizer, compressed, store->num_workers(), 0);
      require(got == expected, "the bits differ with optimizer '", optimizer, "', compressed ", compressed);
    }
}

// ---- a network ------------------------------------------------------------------------------------------------------

Symbol network() {
  Symbol net = Symbol::variable("data");
  net = activation(fully_connected(net, {.num_hidden = 6000}, "fc1"), {.act_type = act_type::relu});
  net = fully_connected(net, {.num_hidden = 10}, "fc2");
  return softmax_output(net, {}, "softmax");
}

constexpr int64_t batch = 8, batches = 12, width = 50;

// The batches of one worker: its rows of the batches of all.
NDArrayIter data_of(int worker, int workers, int64_t rows) {
  const NDArray data({batches * rows, width}), labels({batches * rows});
  for (int64_t i = 0; i < batches; ++i)
    for (int64_t k = 0; k < rows; ++k) {
      const int64_t sample = i * batch * workers + worker * batch + k;
      numbers({1, width}, 99, 3, static_cast<int>(sample)).copyto(data.slice(i * rows + k, i * rows + k + 1));
      labels.slice(i * rows + k, i * rows + k + 1).fill(static_cast<double>(sample % 10));
    }
  return NDArrayIter(data, labels, {.batch_size = rows});
}

NamedArrays fitted(const std::string& kvstore, NDArrayIter& data, int contexts, uint64_t number) {
  seed(number);
  std::vector<Context> on;
  for (int i = 0; i < contexts; ++i) on.push_back(cpu(i));
  Module module(network(), {.context = on});
  module.fit(data, {.kvstore = kvstore,
                    .optimizer = "sgd",
                    .optimizer_params = {{"learning_rate", 0.05}, {"momentum", 0.9}},
                    .initializer = std::make_shared<init::Xavier>(),
                    .num_epoch = 1});
  // Not get_params(), which has the mean over the contexts: the mean of three equal numbers may be another one.
  NamedArrays values = module.get_params().arg_params;
  for (const auto& [name, value] : values) module.kvstore()->pull({name}, {{value}});
  return values;
}

void test_fit() {
  const KVStorePtr store = KVStore::create("dist_sync");
  const int me = store->rank(), workers = store->num_workers();
  NDArrayIter own = data_of(me, workers, batch), all = data_of(0, workers, batch * workers);
  // Workers draw different parameters: those of worker 0 are everyone's.
  const NamedArrays got = fitted("dist_sync", own, 1, 5 + static_cast<uint64_t>(me));
  const NamedArrays expected = fitted("device", all, workers, 5);
  for (const auto& [name, value] : expected)
    require(got.at(name).to_vector<float>() == value.to_vector<float>(), "the bits of ", name, " differ");
}

// ---- statistics of the whole batch ----------------------------------------------------------------------------------

// Two synchronized layers after a few steps: parameters and moving statistics.
NamedArrays normalized(const KVStorePtr& store, NDArrayIter& data, int contexts) {
  Symbol net = Symbol::variable("data");
  for (const char* const number : {"1", "2"}) {
    net = fully_connected(net, {.num_hidden = 30}, join("fc", number));
    net = sync_batch_norm(net, {.fix_gamma = false, .key = number}, join("bn", number));
    net = activation(net, {.act_type = act_type::tanh}, join("tanh", number));
  }
  net = softmax_output(fully_connected(net, {.num_hidden = 10}, "fc3"), {}, "softmax");
  std::vector<Context> on;
  for (int i = 0; i < contexts; ++i) on.push_back(cpu(i));
  Module module(net, {.context = on});
  module.bind(data.provide_data(), data.provide_label());
  seed(5);
  module.init_params({.initializer = std::make_shared<init::Xavier>()});
  module.init_optimizer({.kvstore = store, .optimizer_params = {{"learning_rate", 0.05}}});
  while (const auto batch_of_all = data.next()) {
    module.forward_backward(*batch_of_all);
    module.update();
  }
  const Executor& first = *module.exec_group()->execs()[0];
  NamedArrays values = first.aux_dict();
  for (const std::string& name : module.exec_group()->param_names()) values[name] = first.arg_dict().at(name);
  return values;
}

void test_batch_norm() {
  const KVStorePtr store = KVStore::create("dist_sync");
  const int workers = store->num_workers();
  NDArrayIter own = data_of(store->rank(), workers, batch), all = data_of(0, workers, batch * workers);
  const NamedArrays got = normalized(store, own, 1);
  KVStore::leave_job();  // from here on each is alone
  const NamedArrays expected = normalized(KVStore::create("device"), all, workers);
  for (const auto& [name, value] : expected)
    require(got.at(name).to_vector<float>() == value.to_vector<float>(), "the bits of ", name, " differ");
}

// ---- float16 --------------------------------------------------------------------------------------------------------

// At first the scale is too large for all. Later a batch of the last worker overflows: all leave out that step, and
// have one scale and one set of weights.
void test_float16() {
  for (const std::string kind : {"dist_sync", "horovod"}) {
    const KVStorePtr store = KVStore::create(kind);
    const int me = store->rank(), last = store->num_workers() - 1;
    Module module(network(), {.compute_dtype = DType::float16});
    module.bind({{"data", {batch, width}}}, {{"softmax_label", {batch}}});
    module.init_params({.initializer = std::make_shared<init::Uniform>(0.01)});
    module.init_optimizer({.kvstore = store, .optimizer_params = {{"learning_rate", 0.05}}});
    const KVStorePtr check = KVStore::create("horovod");
    for (int step = 0; step < 12; ++step) {
      const NDArray before = module.get_params().arg_params.at("fc2_weight").copy();
      const double scale = module.loss_scale();
      const bool overflows = step == 10 && me == last;
      const NDArray data = overflows ? full({batch, width}, 1e6) : numbers({batch, width}, 1, me, step);
      module.forward_backward({.data = {data}, .label = {zeros({batch})}});
      module.update();
      const NDArray after = module.get_params().arg_params.at("fc2_weight");
      const bool taken = after.to_vector<float>() != before.to_vector<float>();
      require(taken == (module.loss_scale() == scale), "the scale is ", module.loss_scale(), " after ", scale,
              ", and the step was ", taken ? "taken" : "left out");
      require(step < 9 || taken == (step != 10), "worker ", me, taken ? " took" : " left out", " step ", step);
      // Those of worker 0 are everyone's.
      const NDArray weights = after.copy(), scales = full({1}, module.loss_scale());
      check->broadcast({join("w", step), join("s", step)}, {after, full({1}, module.loss_scale())},
                       {{weights}, {scales}});
      require(weights.to_vector<float>() == after.to_vector<float>(), "the weights differ after step ", step);
      require(scales(0) == module.loss_scale(), "the scales differ after step ", step);
    }
  }
}

// ---- other stores ---------------------------------------------------------------------------------------------------

void test_others() {
  const KVStorePtr async = KVStore::create("dist_async");
  const auto workers = static_cast<float>(async->num_workers());
  async->set_optimizer(Optimizer::create("test", {}));
  async->init({0, 1}, {zeros({3}), zeros({300, 200})});
  for (int step = 0; step < 5; ++step) async->push({0, 1}, {{ones({3})}, {full({300, 200}, 2)}});
  const NDArray small = zeros({3}), large = zeros({300, 200});
  async->pull({0, 1}, {{small}, {large}});
  require(small(0) >= 5, "own pushes are missing");
  async->barrier();
  async->pull({0, 1}, {{small}, {large}});
  require(small.to_vector<float>() == std::vector<float>(3, 5 * workers), "pushes are missing: ", small);
  require(large.to_vector<float>() == std::vector<float>(60000, 10 * workers), "pushes are missing");

  // So many bytes that there are several exchanges at a time.
  const KVStorePtr large_ones = KVStore::create("dist_sync");
  KVStore::Keys many;
  std::vector<NDArray> first;
  KVStore::Values pushed, outs;
  for (int i = 0; i < 60; ++i) {
    const Shape shape{i % 3 ? 100 + i : 500000};
    many.emplace_back(i);
    first.push_back(full(shape, i));
    pushed.push_back({full(shape, i + large_ones->rank())});
    outs.push_back({zeros(shape)});
  }
  large_ones->init(many, first);
  for (int step = 0; step < 3; ++step) large_ones->pushpull(many, pushed, outs, step);
  for (size_t i = 0; i < many.size(); ++i)
    require(outs[i][0].to_vector<float>() ==
                std::vector<float>(static_cast<size_t>(outs[i][0].size()),
                                   workers * static_cast<float>(i) + workers * (workers - 1) / 2),
            "a wrong sum of key ", i);

  const KVStorePtr horovod = KVStore::create("horovod");
  const NDArray sum = full({100000}, horovod->rank());
  horovod->pushpull({"sum"}, {{sum}}, {{sum}});
  require(sum.to_vector<float>() == std::vector<float>(100000, workers * (workers - 1) / 2), "a wrong sum: ", sum(0));

  const KVStorePtr saved = KVStore::create("dist_device_sync");
  saved->set_optimizer(Optimizer::create("adam", {}));
  saved->init({"w"}, {zeros({300, 200})});
  saved->pushpull({"w"}, {{ones({300, 200})}}, {{large}});
  if (saved->rank() == 0) require(saved->get_optimizer_states().size() > 2 * 4 * 60000, "states are missing");
  saved->barrier();
}

// ---- faults ---------------------------------------------------------------------------------------------------------

// Until a child ends the process, since mpirun waits for it.
void stop() {
  if (const pid_t stopped = ::getpid(); ::fork() == 0) {
    ::sleep(10);
    ::kill(stopped, SIGKILL);
    ::_exit(0);
  }
  ::kill(::getpid(), SIGSTOP);
}

void step_until(const std::string& fault, int victim, int steps) {
  const KVStorePtr store = KVStore::create("dist_sync");
  store->set_optimizer(Optimizer::create("sgd", {}));
  store->init(keys(), [] {
    std::vector<NDArray> values;
    for (const auto& [name, shape] : parameters) values.push_back(zeros(shape));
    return values;
  }());
  NDArray last;
  for (int step = 1; step <= steps; ++step) {
    if (step == 4 && store->rank() == victim) {
      std::cout << "now" << std::endl;
      if (fault == "kill") ::kill(::getpid(), SIGKILL);
      if (fault == "stop") stop();
      if (fault == "throw") fail("as asked for");
      if (fault == "early") return;
      if (fault == "slow") std::this_thread::sleep_for(std::chrono::seconds(12));
    }
    KVStore::Values pushed, outs;
    for (size_t i = 0; i < parameters.size(); ++i) {
      pushed.push_back({numbers(parameters[i].second, i, store->rank(), step)});
      outs.push_back({zeros(parameters[i].second)});
    }
    store->pushpull(keys(), pushed, outs);
    last = outs[1][0];
  }
  // Those that are left have the same values.
  const KVStorePtr sums = KVStore::create("horovod");
  const NDArray total = zeros(last.shape());
  sums->pushpull({"values"}, {{last}}, {{total}});
  last *= static_cast<double>(sums->num_workers());
  require(total.to_vector<float>() == last.to_vector<float>(), "the values differ");
  std::cout << symbind::join("worker ", store->rank(), " of ", store->num_workers(), " is left\n") << std::flush;
}

// ---- workers in place of lost ones ----------------------------------------------------------------------------------

// One worker is killed in the second epoch. All that remain in the end have the same weights.
void fit_and_replace(int victim) {
  const KVStorePtr store = KVStore::create("dist_sync");
  const bool is_new = std::getenv("SYMBIND_JOIN_RANK") != nullptr;
  if (is_new)
    std::cout << symbind::join("worker ", store->rank(), " of ", store->num_workers(), " is new\n") << std::flush;
  NDArrayIter data = data_of(store->rank(), store->num_workers(), batch);
  seed(5 + static_cast<uint64_t>(store->rank()));
  Module module(network());
  module.fit(data, {.batch_end_callback = {[&](const BatchEndParam& param) {
                      if (!is_new && store->rank() == victim && param.epoch == 1 && param.nbatch == 3)
                        ::kill(::getpid(), SIGKILL);
                    }},
                    .kvstore = store,
                    .optimizer = "adam",
                    .optimizer_params = {{"learning_rate", 0.001}},
                    .initializer = std::make_shared<init::Xavier>(),
                    .num_epoch = 4});
  uint64_t hash = 0;
  for (const auto& [name, value] : module.get_params().arg_params)
    for (const float each : value.to_vector<float>()) hash = 31 * hash + std::bit_cast<uint32_t>(each);
  std::cout << symbind::join("worker ", store->rank(), " of ", store->num_workers(), " has ", hash, "\n") << std::flush;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "bits")
    test_bits();
  else if (mode == "fit")
    test_fit();
  else if (mode == "batch_norm")
    test_batch_norm();
  else if (mode == "float16")
    test_float16();
  else if (mode == "others")
    test_others();
  else if (mode == "replace" && argc > 2)
    fit_and_replace(std::stoi(argv[2]));
  else if (argc > 2)
    step_until(mode, std::stoi(argv[2]), 8);
  else
    fail("usage: distributed_worker bits|fit|batch_norm|float16|others|(kill|stop|throw|early|slow|replace VICTIM)");
  std::cout << "well" << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << std::string("error: ") + error.what() + "\n" << std::flush;  // one write, as lines of workers mix
  return 1;
}
