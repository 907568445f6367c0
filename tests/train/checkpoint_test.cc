// Checkpoints of a Module: crashes and full disks while they are written, and training that goes on from them.
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/atomic_file.h"
#include "symbind/core/random_cursors.h"
#include "symbind/files/states.h"

#include "tests/support/full_disk.h"
#include "tests/support/memory.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

const ModuleOptions two_devices{.context = {cpu(0), cpu(1)}};

// ---- Crashes and full disks ---------------------------------------------------------------------------------------

constexpr int64_t wide = 1 << 15;

// Parameters large enough for a save to take a while.
std::unique_ptr<Module> wide_module() {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = wide}, "fc");
  auto module = std::make_unique<Module>(softmax_output(net, {}, "softmax"), two_devices);
  module->bind({{"data", {2, 4}}}, {{"softmax_label", {2}}});
  module->init_params({.arg_params = NamedArrays{{"fc_weight", zeros({wide, 4})}, {"fc_bias", zeros({wide})}}});
  module->init_optimizer({.optimizer_params = {{"learning_rate", 1}, {"momentum", 0.5}}});
  return module;
}

// An update by which all elements of an array stay equal, and change.
void even_update(Module& module) {
  for (const auto& row : module.exec_group()->grad_arrays())
    for (const NDArray& gradient : row) gradient.fill(1);
  module.update();
}

bool all_equal(const NDArray& array) {
  const auto values = array.to_vector<float>();
  return std::all_of(values.begin(), values.end(), [&](float value) { return value == values[0]; });
}

// Everything at the prefix loads, no file is a mixture of two, and training can go on.
void expect_whole(const std::string& prefix) {
  const Checkpoint loaded = load_checkpoint(prefix, 1);
  ASSERT_EQ(loaded.arg_params.size(), 2u);
  for (const auto& [name, array] : loaded.arg_params) EXPECT_TRUE(all_equal(array)) << name;
  // A save that was killed between its files is completed by loading it.
  const auto module = Module::load(prefix, 1, true, two_devices);
  const SavedStates states = load_states(states_path(prefix, 1));
  ASSERT_EQ(states.states.size(), 2u);
  for (const auto& [key, state] : states.states) EXPECT_TRUE(all_equal(state.array)) << key;
  module->bind({{"data", {2, 4}}}, {{"softmax_label", {2}}});
  module->init_optimizer({.optimizer_params = {{"learning_rate", 1}, {"momentum", 0.5}}});
  EXPECT_EQ(module->optimizer()->num_update(), states.resume->num_update);
  even_update(*module);
}

TEST(ModuleCheckpoint, IsWholeThoughItsWriterWasKilled) {
  if (!testing::forked_child_may_use_threads) GTEST_SKIP() << "the thread sanitizer cannot follow";
  const Quiet quiet;
  const TempDir folder;
  const std::string prefix = folder.file("net");
  const auto module = wide_module();
  even_update(*module);
  module->save_checkpoint(prefix, 1, true);
  size_t torn = 0;
  for (int round = 0; round < 30 || (torn == 0 && round < 300); ++round) {  // more on a machine that is busy
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {  // an update computes on the calling thread: the module's own threads are the parent's
        even_update(*module);
        module->save_checkpoint(prefix, 1, true);
      }
    }
    ::usleep(static_cast<useconds_t>(3000 + 1137 * (round % 30)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    torn += abandoned_files_beside(prefix).size();
    expect_whole(prefix);
  }
  EXPECT_GT(torn, 0u) << "no child was ever killed while it wrote";
  module->save_checkpoint(prefix, 1, true);
  EXPECT_TRUE(abandoned_files_beside(prefix).empty());
}

TEST(ModuleCheckpoint, OnAFullDiskIsAnErrorAndTheOldOneStays) {
  const Quiet quiet;
  const TempDir folder;
  const std::string prefix = folder.file("net");
  const auto module = wide_module();
  even_update(*module);
  module->save_checkpoint(prefix, 1, true);
  const auto files = [&] {
    return std::vector{read_file(symbol_path(prefix)), read_file(params_path(prefix, 1)),
                       read_file(states_path(prefix, 1))};
  };
  const auto before = files();
  ASSERT_GT(before[2].size(), before[1].size()) << "the parameters fit where the states do not";

  even_update(*module);
  const std::pair<rlim_t, std::string> limits[] = {
      {100, symbol_path(prefix)}, {1 << 14, params_path(prefix, 1)}, {before[1].size() + 10, states_path(prefix, 1)}};
  for (const auto& [bytes, named] : limits) {
    std::string message;
    {
      const NoRoomBeyond limit(bytes);  // for what is printed, too
      message = error_of([&] { module->save_checkpoint(prefix, 1, true); });
    }
    EXPECT_TRUE(message.find(named) != std::string::npos && message.find("cannot write") != std::string::npos)
        << message;
    EXPECT_TRUE(files() == before) << "with room for " << bytes << " bytes";
    EXPECT_TRUE(abandoned_files_beside(prefix).empty());
  }
  // The module has lost nothing.
  module->forward_backward(DataBatch{.data = {ones({2, 4})}, .label = {zeros({2})}});
  module->update();
  module->save_checkpoint(prefix, 1, true);
  EXPECT_FALSE(files() == before);
  EXPECT_EQ(Module::load(prefix, 1, true)->get_params().arg_params.size(), 2u);
}

// ---- Going on -----------------------------------------------------------------------------------------------------

FitArgs adam_with_schedule(int begin, int end) {
  return {.optimizer = "adam",
          .optimizer_params = {{"learning_rate", 0.01},
                               {"lr_scheduler", factor_scheduler({.step = 5, .factor = 0.7, .base_lr = 0.01})}},
          .initializer = std::make_shared<init::Xavier>(),
          .begin_epoch = begin,
          .num_epoch = end};
}

// A program that trains with a shuffled iterator and dropout: the iterator is made first, then the module.
struct Program {
  NDArrayIter data = batches(40, 8, /*shuffle=*/true);
  std::unique_ptr<Module> module;
  void fit(int begin, int end, EpochEndCallbacks callbacks = {}) {
    const Quiet quiet;
    FitArgs args = adam_with_schedule(begin, end);
    args.epoch_end_callback = std::move(callbacks);
    module->fit(data, args);
  }
};

TEST(ModuleResume, FromACheckpointOfTheEpochsCallbackIsBitForBit) {
  const TempDir folder;
  const std::string prefix = folder.file("net");
  seed(7);
  Program whole{.module = std::make_unique<Module>(small_network(0.5), two_devices)};
  whole.fit(0, 5, {module_checkpoint(*whole.module, prefix, 1, true)});
  for (const int epoch : {1, 2, 4}) {
    seed(99 + static_cast<uint64_t>(epoch));  // the checkpoint brings its own random state
    Program resumed{.module = Module::load(prefix, epoch, true, two_devices)};
    resumed.fit(epoch, 5);
    expect_same_bits(resumed.module->get_params().arg_params, whole.module->get_params().arg_params);
  }
}

TEST(ModuleResume, FromACheckpointBetweenTwoFitsIsBitForBit) {
  const TempDir folder;
  const std::string prefix = folder.file("net");
  seed(7);
  Program whole{.module = std::make_unique<Module>(small_network(0.5), two_devices)};
  whole.fit(0, 2);
  whole.module->save_checkpoint(prefix, 2, true);
  whole.fit(2, 4);
  seed(99);
  Program resumed{.module = Module::load(prefix, 2, true, two_devices)};
  resumed.fit(2, 4);
  expect_same_bits(resumed.module->get_params().arg_params, whole.module->get_params().arg_params);
}

TEST(ModuleResume, WithAPrefetchingIteratorIsBitForBit) {
  const TempDir folder;
  const std::string prefix = folder.file("net");
  const Quiet quiet;
  seed(7);
  NDArrayIter data = batches(40, 8, /*shuffle=*/true);
  PrefetchingIter ahead(data);
  Module whole(small_network(0.5), two_devices);
  FitArgs args = adam_with_schedule(0, 4);
  args.epoch_end_callback = {module_checkpoint(whole, prefix, 2, true)};
  whole.fit(ahead, args);
  seed(99);
  NDArrayIter data_again = batches(40, 8, /*shuffle=*/true);
  PrefetchingIter ahead_again(data_again);
  const auto resumed = Module::load(prefix, 2, true, two_devices);
  resumed->fit(ahead_again, adam_with_schedule(2, 4));
  expect_same_bits(resumed->get_params().arg_params, whole.get_params().arg_params);
}

// Every device draws from a random stream of its own, whose position is in the checkpoint.
TEST(ModuleResume, FromACheckpointOfAMachineWithOtherGpusIsBitForBit) {
  const TempDir folder;
  const std::string prefix = folder.file("net"), missing = gpu(num_gpus()).str();
  seed(7);
  Program whole{.module = std::make_unique<Module>(small_network(0.5), two_devices)};
  whole.fit(0, 2);
  whole.module->save_checkpoint(prefix, 2, true);
  whole.fit(2, 4);
  const std::string path = states_path(prefix, 2);
  SavedStates states = load_states(path);
  states.resume->random[missing] = {123, 456};
  write_file(path, with_params_mark(write_states(states), *params_mark_of(path)));

  Program resumed{.module = Module::load(prefix, 2, true, two_devices)};
  resumed.fit(2, 4);
  expect_same_bits(resumed.module->get_params().arg_params, whole.module->get_params().arg_params);
  EXPECT_FALSE(random_cursors().contains(missing));
}

}  // namespace
}  // namespace symbind::testing
