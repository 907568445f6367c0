#include "symbind/files/checkpoint.h"

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/atomic_file.h"
#include "symbind/files/params.h"
#include "symbind/files/states.h"
#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/comma_locale.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::read_file;
using testing::same_bits;
using testing::TempDir;
using testing::write_file;

Symbol network() {
  auto net = fully_connected(Symbol::variable("data"), {.num_hidden = 3}, "fc");
  return batch_norm(net, {}, "bn");
}

const NamedArrays arguments{{"fc_weight", array({1, 2, 3})}, {"fc_bias", array({4})}};
const NamedArrays states{{"bn_moving_mean", array({5})}, {"bn_moving_var", array({6})}};

TEST(CheckpointFiles, AreNamedAndKeyedAsMXNetDoes) {
  const TempDir dir;
  save_checkpoint(dir.file("net"), 7, network(), arguments, states);
  EXPECT_EQ(read_file(dir.file("net-symbol.json")), network().tojson());
  const LoadedArrays loaded = load(dir.file("net-0007.params"));
  EXPECT_EQ(loaded.names,
            (std::vector<std::string>{"arg:fc_bias", "arg:fc_weight", "aux:bn_moving_mean", "aux:bn_moving_var"}));
  EXPECT_EQ(params_path("p", 12345), "p-12345.params");
  EXPECT_EQ(states_path("p", 1), "p-0001.states");
  EXPECT_TRUE(fails_with([] { params_path("p", -1); }, "at least 0: -1"));
}

TEST(CheckpointFiles, ComeBack) {
  const TempDir dir;
  const std::string prefix = dir.file("net");
  save_checkpoint(prefix, 0, network(), arguments, states);
  const Checkpoint loaded = load_checkpoint(prefix, 0);
  EXPECT_EQ(loaded.symbol.tojson(), network().tojson());
  ASSERT_EQ(loaded.arg_params.size(), 2u);
  ASSERT_EQ(loaded.aux_params.size(), 2u);
  EXPECT_TRUE(same_bits(loaded.arg_params.at("fc_weight"), array({1, 2, 3})));
  EXPECT_TRUE(same_bits(loaded.aux_params.at("bn_moving_var"), array({6})));
  EXPECT_TRUE(same_bits(load_params(prefix, 0).arg_params.at("fc_bias"), array({4})));
}

TEST(CheckpointFiles, ParametersAloneLeaveTheNetwork) {
  const TempDir dir;
  save_checkpoint(dir.file("net"), 1, std::nullopt, arguments, states);
  EXPECT_FALSE(std::filesystem::exists(dir.file("net-symbol.json")));
  EXPECT_TRUE(fails_with([&] { load_checkpoint(dir.file("net"), 1); }, "net-symbol.json"));
  EXPECT_EQ(load_params(dir.file("net"), 1).aux_params.size(), 2u);
}

TEST(CheckpointFiles, NamesWithoutAKindAreSortedByTheNetwork) {
  const TempDir dir;
  const std::string prefix = dir.file("net");
  network().save(symbol_path(prefix));
  save(params_path(prefix, 0), {{"fc_weight", array({1})}, {"bn_moving_mean", array({2})}, {"other:name", array({3})}});
  const Checkpoint loaded = load_checkpoint(prefix, 0);
  EXPECT_EQ(loaded.arg_params.count("fc_weight"), 1u);
  EXPECT_EQ(loaded.arg_params.count("other:name"), 1u);
  EXPECT_EQ(loaded.aux_params.count("bn_moving_mean"), 1u);
  EXPECT_EQ(loaded.aux_params.size(), 1u);
}

TEST(CheckpointFiles, WithoutNamesOrWithoutAFolderAreErrors) {
  const TempDir dir;
  save(params_path(dir.file("net"), 0), std::vector<NDArray>{ones({1})});
  EXPECT_TRUE(fails_with([&] { load_params(dir.file("net"), 0); }, "net-0000.params", "have no names"));
  EXPECT_TRUE(fails_with([&] { load_params(dir.file("net"), 3); }, "net-0003.params", "No such file"));
  EXPECT_TRUE(fails_with([&] { save_checkpoint(dir.file("no/net"), 0, network(), arguments, states); }, "no/net"));
}

TEST(CheckpointFiles, AreNamedAlikeInEveryLocale) {
  const testing::CommaLocale comma;
  EXPECT_EQ(params_path("p", 1500), "p-1500.params");
  EXPECT_EQ(states_path("p", 1234567), "p-1234567.states");
}

// ---- Parameters and states that belong together

std::string some_states(double momentum) {
  SavedStates saved;
  saved.states.emplace_back("fc_weight", array({momentum}));
  saved.resume = ResumeState{.num_update = 5};
  return write_states(saved);
}

TEST(CheckpointStates, HoldAMarkOfTheirParameters) {
  const TempDir dir;
  const std::string prefix = dir.file("net");
  save_checkpoint(prefix, 1, network(), arguments, states, some_states(0.5));
  const auto mark = params_mark_of(states_path(prefix, 1));
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(mark->bytes, std::filesystem::file_size(params_path(prefix, 1)));
  match_states(prefix, 1);
  const SavedStates loaded = load_states(states_path(prefix, 1));
  EXPECT_EQ(loaded.states[0].second.array.item(), 0.5);
  EXPECT_EQ(loaded.resume->num_update, 5);
}

TEST(CheckpointStates, BesideParametersOfAnotherSaveAreRefused) {
  const TempDir dir;
  const std::string prefix = dir.file("net");
  save_checkpoint(prefix, 1, network(), arguments, states, some_states(0.5));
  save_checkpoint(prefix, 1, network(), {{"fc_weight", array({1, 2, 4})}}, states);  // the old states remain
  EXPECT_TRUE(fails_with([&] { match_states(prefix, 1); }, "net-0001.states", "saved with other parameters",
                         "net-0001.params", "without optimizer states"));
  save_checkpoint(prefix, 1, network(), arguments, states);
  match_states(prefix, 1);  // the same parameters again
}

TEST(CheckpointStates, WithoutAMarkPass) {
  const TempDir dir;
  const std::string prefix = dir.file("net");
  save_checkpoint(prefix, 1, network(), arguments, states);
  match_states(prefix, 1);  // there are none
  write_file(states_path(prefix, 1), some_states(0.5));
  EXPECT_FALSE(params_mark_of(states_path(prefix, 1)).has_value());
  match_states(prefix, 1);
}

// The moment between the two renames: new parameters, old states, and the new states under their temporary name.
TEST(CheckpointStates, OfASaveThatWasKilledBetweenItsFilesAreFound) {
  const TempDir dir;
  const std::string prefix = dir.file("net"), other = dir.file("other");
  save_checkpoint(prefix, 1, network(), arguments, states, some_states(0.5));
  save_checkpoint(other, 1, network(), {{"fc_weight", array({1, 2, 4})}}, states, some_states(0.75));
  std::filesystem::rename(params_path(other, 1), params_path(prefix, 1));
  std::filesystem::rename(states_path(other, 1), dir.file(".symbind-0123456789abcdef.tmp"));
  match_states(prefix, 1);
  EXPECT_EQ(load_states(states_path(prefix, 1)).states[0].second.array.item(), 0.75);
  EXPECT_TRUE(abandoned_files_beside(prefix).empty());
}

TEST(CheckpointStates, WithADamagedMarkAreRefused) {
  std::string bytes = with_params_mark(some_states(0.5), {.bytes = 7, .checksum = 8});
  EXPECT_EQ(read_states(bytes, "marked").states.size(), 1u);
  bytes[bytes.size() - 10] ^= 1;
  EXPECT_TRUE(fails_with([&] { read_states(bytes, "marked"); }, "marked", "checksum"));
}

// A child saves over and over and is killed in the middle of it, again and again: what is found is always whole.
TEST(CheckpointFiles, AreWholeThoughTheirWriterWasKilled) {
  const TempDir dir;
  const std::string prefix = dir.file("net");
  constexpr int64_t length = 1 << 18;
  const auto save_all = [&](double value) {
    save_checkpoint(prefix, 0, network(), {{"w", full({length}, value)}}, {{"m", full({length}, value)}});
    SavedStates saved;
    saved.states.emplace_back("w", full({length}, value));
    saved.resume = ResumeState{.num_update = static_cast<int64_t>(value)};
    save_states(states_path(prefix, 0), saved);
  };
  save_all(1);
  int torn = 0;
  for (int round = 0; round < 12 || (torn == 0 && round < 120); ++round) {  // more on a machine that is busy
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int value = 2;; ++value) save_all(value);
    }
    ::usleep(static_cast<useconds_t>(3000 + 2137 * (round % 12)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    torn += static_cast<int>(abandoned_files_beside(prefix).size());
    const Checkpoint loaded = load_checkpoint(prefix, 0);
    const std::vector<float> w = loaded.arg_params.at("w").to_vector<float>();
    EXPECT_EQ(w, std::vector<float>(length, w[0]));
    EXPECT_EQ(loaded.aux_params.at("m").to_vector<float>(), w);
    const SavedStates saved = load_states(states_path(prefix, 0));
    EXPECT_EQ(saved.states[0].second.array.slice(0, 1).item(), static_cast<double>(saved.resume->num_update));
  }
  EXPECT_GT(torn, 0) << "no child was ever killed while it wrote";
  save_all(1);
  EXPECT_TRUE(abandoned_files_beside(prefix).empty());
}

}  // namespace
}  // namespace symbind
