// Files for MXNet to load. With SYMBIND_FILES_FOR_MXNET naming a folder they stay there, and
// tests/oracle/check_files.py loads them with MXNet 1.9.1 and compares; without it they are only read back here.
#include <cstdlib>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::random_array;
using testing::same_bits;

class FilesForMXNet : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const {
    const char* folder = std::getenv("SYMBIND_FILES_FOR_MXNET");
    return folder ? std::string(folder) + "/" + name : dir.file(name);
  }
  // The states, and beside them every array in order, for MXNet to compare with.
  void write(const std::string& name, const SavedStates& saved) const {
    save_states(file(name + ".states"), saved);
    std::vector<NDArray> arrays;
    for (const auto& [key, state] : saved.states) collect(state, arrays);
    save(file(name + ".arrays"), arrays);
    std::vector<NDArray> again;
    for (const auto& [key, state] : load_states(file(name + ".states")).states) collect(state, again);
    ASSERT_EQ(again.size(), arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) EXPECT_TRUE(same_bits(again[i], arrays[i]));
  }
  static void collect(const StateTree& state, std::vector<NDArray>& arrays) {
    if (state.array) arrays.push_back(state.array);
    for (const StateTree& item : state.tuple) collect(item, arrays);
  }

  testing::TempDir dir;
};

TEST_F(FilesForMXNet, ANetworkItsParametersAndItsAnswer) {
  auto net = Symbol::variable("data");
  net = convolution(net, {.kernel = {3, 3}, .num_filter = 4}, "conv");
  net = batch_norm(net, {.fix_gamma = false}, "bn");
  net = activation(net, {.act_type = "relu"}, "relu");
  net = fully_connected(net, {.num_hidden = 3}, "fc");
  net = softmax_output(net, {}, "softmax");
  const auto executor = simple_bind(net, cpu(), {{"data", {2, 1, 6, 6}}, {"softmax_label", {2}}});
  NamedArrays arguments, inputs;
  uint64_t seed = 1;
  for (const auto& [name, array] : executor->arg_dict()) {
    random_array(array.shape(), seed++).copyto(array);
    (name == "data" || name == "softmax_label" ? inputs : arguments)[name] = array;
  }
  for (const auto& [name, array] : executor->aux_dict()) random_array(array.shape(), seed++, 0.5, 1.5).copyto(array);
  save_checkpoint(file("net"), 1, net, arguments, executor->aux_dict());
  inputs["output"] = executor->forward()[0];
  save(file("answer.params"), inputs);
  const Checkpoint again = load_checkpoint(file("net"), 1);
  EXPECT_EQ(again.symbol.tojson(), net.tojson());
  for (const auto& [name, array] : arguments) EXPECT_TRUE(same_bits(again.arg_params.at(name), array)) << name;
}

TEST_F(FilesForMXNet, ArraysOfEveryType) {
  NamedArrays arrays;
  for (const DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::uint8, DType::int8, DType::int32, DType::int64})
    arrays[std::string(name_of(dtype))] = random_array({2, 3}, 9, 0, 99, dtype);
  save(file("types.params"), arrays);
  const NamedArrays again = load(file("types.params")).dict();
  ASSERT_EQ(again.size(), arrays.size());
  for (const auto& [name, array] : arrays) EXPECT_TRUE(same_bits(again.at(name), array)) << name;
}

TEST_F(FilesForMXNet, StatesOfOptimizers) {
  SavedStates sgd;
  sgd.states.emplace_back("fc_weight", random_array({2, 3}, 1));
  sgd.states.emplace_back("fc_bias", random_array({2}, 2));
  sgd.resume = ResumeState{.num_update = 5, .index_update_count = {{"fc_weight", 5}, {"fc_bias", 5}}};
  write("sgd_by_name", sgd);

  SavedStates adam;
  for (int i = 0; i < 4; ++i) {
    const Shape shape = i < 2 ? Shape{2, 3} : Shape{2};
    adam.states.emplace_back(i, StateTree::of({random_array(shape, 10 + i), random_array(shape, 20 + i, 0, 1)}));
  }
  write("adam_two_devices", adam);

  SavedStates precise;
  precise.states.emplace_back(0, StateTree::of({random_array({2, 3}, 1), random_array({2, 3}, 2)}));
  precise.states.emplace_back(1, StateTree());
  precise.states.emplace_back(
      300, StateTree::of({random_array({2}, 1), StateTree::of({random_array({2}, 2), random_array({2}, 3)})}));
  write("multi_precision", precise);

  SavedStates dumped = sgd;
  dumped.states.clear();
  dumped.states.emplace_back(0, random_array({2, 3}, 1));
  dumped.resume = ResumeState{.num_update = 7, .begin_num_update = 2, .index_update_count = {{0, 7}}};
  dumped.optimizer = PickledObject{"mxnet.optimizer.optimizer",
                                   "SGD",
                                   {{"lr", 0.1},
                                    {"wd", 0.0},
                                    {"rescale_grad", 1.0},
                                    {"momentum", 0.9},
                                    {"lazy_update", true},
                                    {"aggregate_num", int64_t{4}},
                                    {"lr_scheduler", "mxnet.lr_scheduler.MultiFactorScheduler"},
                                    {"lr_scheduler.base_lr", 0.1},
                                    {"lr_scheduler.warmup_steps", int64_t{0}},
                                    {"lr_scheduler.warmup_final_lr", 0.1},
                                    {"lr_scheduler.warmup_begin_lr", 0.0},
                                    {"lr_scheduler.warmup_mode", "linear"},
                                    {"lr_scheduler.step", "list"},
                                    {"lr_scheduler.step.0", int64_t{7}},
                                    {"lr_scheduler.step.1", int64_t{20}},
                                    {"lr_scheduler.cur_step_ind", int64_t{0}},
                                    {"lr_scheduler.factor", 0.5},
                                    {"lr_scheduler.count", int64_t{0}},
                                    {"lr_mult.fc_weight", 0.5},
                                    {"idx2name.0", "fc_weight"}}};
  write("sgd_dumped", dumped);
}

}  // namespace
}  // namespace symbind
