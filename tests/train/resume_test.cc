// Training that is resumed from a checkpoint of an epoch's callback ends in the same bits as training that was never
// interrupted, whatever draws random numbers or keeps a state: all pairs of dropout, shuffling, validation, BatchNorm,
// schedules and devices.
#include <gtest/gtest.h>

#include "symbind/core/random_cursors.h"

#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

constexpr int epochs = 3, saved_epoch = 2;

struct Case {
  std::string noise;  // none, dropout, always (dropout in inference too), rrelu
  bool batch_norm;
  bool shuffle;
  std::string eval;      // none, plain, shuffled
  std::string schedule;  // none, factor, cosine
  int devices;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "noise " << c.noise << ", BatchNorm " << c.batch_norm << ", shuffle " << c.shuffle << ", eval_data "
             << c.eval << ", schedule " << c.schedule << ", " << c.devices << " devices";
}

Symbol network(const Case& c) {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 8}, "fc1");
  if (c.batch_norm) net = batch_norm(net, {.fix_gamma = false}, "bn");
  if (c.noise == "rrelu") net = leaky_relu(net, {.act_type = "rrelu"}, "rrelu");
  if (c.noise == "dropout" || c.noise == "always")
    net = dropout(net, {.p = 0.5, .mode = c.noise == "always" ? "always" : "training"}, "drop");
  return softmax_output(fully_connected(net, {.num_hidden = 3}, "fc2"), {}, "softmax");
}

LRSchedulerPtr schedule(const Case& c) {
  if (c.schedule == "factor") return factor_scheduler({.step = 5, .factor = 0.7, .base_lr = 0.05});
  if (c.schedule == "cosine") return cosine_scheduler({.max_update = 20, .base_lr = 0.05, .warm_up = {.steps = 3}});
  return nullptr;
}

// A program that trains from `begin` on: its iterators are made first, then its module.
struct Program {
  explicit Program(const Case& c)
      : options(c), data(batches(24, 6, c.shuffle)), validation(batches(18, 6, c.eval == "shuffled")) {}
  void fit(int begin, EpochEndCallbacks callbacks = {}) {
    module->fit(data, {.eval_data = options.eval == "none" ? nullptr : &validation,
                       .epoch_end_callback = std::move(callbacks),
                       .optimizer = optim::Adam{.learning_rate = 0.05, .lr_scheduler = schedule(options)},
                       .initializer = std::make_shared<init::Xavier>(),
                       .begin_epoch = begin,
                       .num_epoch = epochs});
  }
  Case options;
  NDArrayIter data, validation;
  std::unique_ptr<Module> module;
};

ModuleOptions devices(const Case& c) {
  return c.devices == 1 ? ModuleOptions{} : ModuleOptions{.context = {cpu(0), cpu(1)}};
}

void expect_resumes_exactly(const Case& c, const std::string& prefix) {
  SCOPED_TRACE(::testing::Message() << c);
  seed(7);
  Program whole(c);
  whole.module = std::make_unique<Module>(network(c), devices(c));
  whole.fit(0, {module_checkpoint(*whole.module, prefix, saved_epoch, true)});
  const BaseModule::Params expected = whole.module->get_params();
  seed(99);  // the checkpoint has its own random state
  Program resumed(c);
  resumed.module = Module::load(prefix, saved_epoch, true, devices(c));
  resumed.fit(saved_epoch);
  expect_same_bits(resumed.module->get_params().arg_params, expected.arg_params);
  expect_same_bits(resumed.module->get_params().aux_params, expected.aux_params);
}

// Every fourth of all combinations, by the sum of the choices: whatever two of them are, the others can make up the
// rest, so that each pair is there.
TEST(Resume, IsExactInAllPairs) {
  const Quiet quiet;
  const TempDir folder;
  const std::vector<std::string> noises{"none", "dropout", "always", "rrelu"}, evals{"none", "plain", "shuffled"},
      schedules{"none", "factor", "cosine"};
  int cases = 0;
  for (size_t noise = 0; noise < noises.size(); ++noise)
    for (size_t batch_norm = 0; batch_norm < 2; ++batch_norm)
      for (size_t shuffle = 0; shuffle < 2; ++shuffle)
        for (size_t eval = 0; eval < evals.size(); ++eval)
          for (size_t schedule = 0; schedule < schedules.size(); ++schedule)
            for (size_t device = 0; device < 2; ++device) {
              if ((noise + batch_norm + shuffle + eval + schedule + device) % 4 != 0) continue;
              ++cases;
              expect_resumes_exactly({noises[noise], batch_norm == 1, shuffle == 1, evals[eval], schedules[schedule],
                                      static_cast<int>(device) + 1},
                                     folder.file("net"));
            }
  EXPECT_EQ(cases, 72);
}

TEST(Resume, IsExactFromACheckpointWrittenAfterValidation) {
  const Quiet quiet;
  const TempDir folder;
  const std::string prefix = folder.file("net");
  const Case c{"always", true, true, "shuffled", "factor", 1};
  seed(7);
  Program whole(c);
  whole.module = std::make_unique<Module>(network(c));
  const auto arguments = [&](int begin, int end) {
    return FitArgs{.eval_data = &whole.validation,
                   .optimizer = optim::Adam{.learning_rate = 0.05, .lr_scheduler = schedule(c)},
                   .begin_epoch = begin,
                   .num_epoch = end};
  };
  FitArgs args = arguments(0, epochs);
  args.eval_end_callback = {
      [&](const BatchEndParam& param) { whole.module->save_checkpoint(prefix, param.epoch + 1, true); }};
  whole.module->fit(whole.data, args);
  seed(99);
  Program resumed(c);
  resumed.module = Module::load(prefix, 1, true);
  resumed.fit(1);
  expect_same_bits(resumed.module->get_params().arg_params, whole.module->get_params().arg_params);
}

TEST(Predict, MovesTheRandomStreamsOnlyWhereTheNetworkSamples) {
  const Quiet quiet;
  NDArrayIter shuffled = batches(24, 6, /*shuffle=*/true);
  for (const char* noise : {"dropout", "always"}) {
    Module module(network({noise, true, false, "none", "none", 1}));
    module.bind(shuffled.provide_data(), shuffled.provide_label());
    module.init_params();
    seed(5);
    const auto before = random_cursors();
    module.predict(shuffled);
    const auto after = random_cursors();
    EXPECT_EQ(after.at("host").draw, before.at("host").draw) << noise;
    EXPECT_EQ(after.at("cpu(0)").draw == before.at("cpu(0)").draw, noise == std::string("dropout")) << noise;
  }
}

TEST(PredictLoop, DrawsFromAPositionOfItsOwnInTheHostStream) {
  const Quiet quiet;
  NDArrayIter shuffled = batches(24, 6, /*shuffle=*/true);
  Module module(network({"none", false, false, "none", "none", 1}));
  module.bind(shuffled.provide_data(), shuffled.provide_label());
  module.init_params();
  seed(5);
  const uint64_t begin = random_cursors().at("host").draw;
  PredictLoop first(module, shuffled);
  const NDArray order = first.next()->batch.data[0].copy();
  EXPECT_EQ(random_cursors().at("host").draw, begin);
  while (first.next()) {
  }
  EXPECT_EQ(random_cursors().at("host").draw, begin);

  host_random().take(1);  // between two batches the stream is the caller's
  EXPECT_EQ(random_cursors().at("host").draw, begin + 1);
  PredictLoop second(module, shuffled);
  EXPECT_FALSE(same_bits(second.next()->batch.data[0], order));
  EXPECT_EQ(random_cursors().at("host").draw, begin + 1);

  seed(5);
  PredictLoop again(module, shuffled);
  EXPECT_TRUE(same_bits(again.next()->batch.data[0], order));
}

TEST(PredictLoop, GoesOnInItsStreamFromBatchToBatch) {
  const Quiet quiet;
  // An iterator that draws for every batch, as one with random crops does.
  struct Draws final : DataIter {
    NDArrayIter inner = batches(24, 6);
    std::vector<uint64_t> draws = {};
    std::vector<DataDesc> provide_data() const override { return inner.provide_data(); }
    std::vector<DataDesc> provide_label() const override { return inner.provide_label(); }
    void reset() override { inner.reset(); }
    std::optional<DataBatch> next() override {
      draws.push_back(host_random().take(1).draw);
      return inner.next();
    }
  } data;
  Module module(network({"none", false, false, "none", "none", 1}));
  module.bind(data.provide_data(), data.provide_label());
  module.init_params();
  seed(5);
  const uint64_t begin = random_cursors().at("host").draw;
  module.iter_predict(data, [](const auto&, int64_t, const DataBatch&) {});
  EXPECT_EQ(data.draws, (std::vector<uint64_t>{begin, begin + 1, begin + 2, begin + 3, begin + 4}));
  EXPECT_EQ(random_cursors().at("host").draw, begin);
}

TEST(Score, LeavesTheRandomStreamsAsItFoundThem) {
  const Quiet quiet;
  const Case c{"always", false, false, "shuffled", "none", 1};
  Module module(network(c));
  NDArrayIter data = batches(24, 6), shuffled = batches(24, 6, /*shuffle=*/true);
  module.bind(data.provide_data(), data.provide_label());
  module.init_params();
  const auto masked = [&] {
    data.reset();
    module.forward(*data.next(), true);
    return module.get_outputs()[0].copy();
  };
  seed(5);
  const NDArray expected = masked();
  seed(5);
  module.score(shuffled, "acc");
  EXPECT_TRUE(same_bits(masked(), expected));
}

}  // namespace
}  // namespace symbind::testing
