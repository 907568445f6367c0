#include "symbind/files/checkpoint.h"

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(CheckpointFiles, WithoutNamesOrWithoutAPlaceAreErrors) {
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
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int value = 2;; ++value) save_all(value);
    }
    ::usleep(static_cast<useconds_t>(3000 + 2137 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(prefix).parent_path()))
      if (entry.path().string().find(".tmp.") != std::string::npos) {
        ++torn;
        std::filesystem::remove(entry.path());
      }
    const Checkpoint loaded = load_checkpoint(prefix, 0);
    const std::vector<float> w = loaded.arg_params.at("w").to_vector<float>();
    EXPECT_EQ(w, std::vector<float>(length, w[0]));
    EXPECT_EQ(loaded.aux_params.at("m").to_vector<float>(), w);
    const SavedStates saved = load_states(states_path(prefix, 0));
    EXPECT_EQ(saved.states[0].second.array.slice(0, 1).item(), static_cast<double>(saved.resume->num_update));
  }
  EXPECT_GT(torn, 0) << "no child was ever killed while it wrote";
}

}  // namespace
}  // namespace symbind
