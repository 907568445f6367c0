// Optimizer states from files of another kind of module: keyed by name where a store updated, by number × devices
// where the devices did.
#include <gtest/gtest.h>

#include "symbind/optim/state_keys.h"

#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

const std::string recorded = source_dir() + "/tests/oracle/recorded/files/";

std::vector<Context> contexts(int count) {
  std::vector<Context> all;
  for (int i = 0; i < count; ++i) all.push_back(cpu(i));
  return all;
}

enum class UpdateIn { store, devices };

std::unique_ptr<Module> module_on(int devices, UpdateIn update_in, const Symbol& net, const Shape& data,
                                  const NamedArrays& params, const std::vector<std::string>& fixed = {}) {
  auto module = std::make_unique<Module>(net, ModuleOptions{.context = contexts(devices), .fixed_param_names = fixed});
  module->bind({{"data", data}}, {{"softmax_label", {data[0]}}});
  module->init_params({.arg_params = params});
  const KVStoreArg store = update_in == UpdateIn::store ? KVStoreArg(KVStore::create("local")) : KVStoreArg(nullptr);
  module->init_optimizer({.kvstore = store, .optimizer = "adam"});
  return module;
}

// ---- A file of MXNet's: a layer "fc" on two devices that updated themselves ---------------------------------------

std::unique_ptr<Module> recorded_module(int devices, UpdateIn update_in) {
  const Symbol net = softmax_output(fully_connected(Symbol::variable("data"), {.num_hidden = 2}, "fc"), {}, "softmax");
  return module_on(devices, update_in, net, {4, 3}, {{"fc_weight", ones({2, 3})}, {"fc_bias", ones({2})}});
}

std::map<ParamKey, NDArray> first_moments(const SavedStates& saved) {
  std::map<ParamKey, NDArray> moments;
  for (const auto& [key, state] : saved.states) moments[key] = state.tuple.at(0).array;
  return moments;
}

SavedStates states_of(const Module& module) {
  const TempDir folder;
  module.save_optimizer_states(folder.file("a.states"));
  return load_states(folder.file("a.states"));
}

TEST(OptimizerStates, OfMXNetsTwoDevicesReachAnyModule) {
  const std::string file = recorded + "module_two_devices.states";
  const auto theirs = first_moments(load_states(file));
  ASSERT_EQ(theirs.size(), 4u);

  const auto same = recorded_module(2, UpdateIn::devices);
  same->load_optimizer_states(file);
  for (const auto& [key, moment] : first_moments(states_of(*same))) EXPECT_TRUE(same_bits(moment, theirs.at(key)));

  const auto one = recorded_module(1, UpdateIn::devices);
  one->load_optimizer_states(file);
  auto found = first_moments(states_of(*one));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(same_bits(found.at(0), theirs.at(0)));
  EXPECT_TRUE(same_bits(found.at(1), theirs.at(2)));

  const auto three = recorded_module(3, UpdateIn::devices);
  three->load_optimizer_states(file);
  found = first_moments(states_of(*three));
  ASSERT_EQ(found.size(), 6u);
  for (int device = 0; device < 3; ++device) {
    EXPECT_TRUE(same_bits(found.at(device), theirs.at(0)));
    EXPECT_TRUE(same_bits(found.at(3 + device), theirs.at(2)));
  }

  const auto in_store = recorded_module(2, UpdateIn::store);
  in_store->load_optimizer_states(file);
  found = first_moments(states_of(*in_store));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(same_bits(found.at("fc_weight"), theirs.at(0)));
  EXPECT_TRUE(same_bits(found.at("fc_bias"), theirs.at(2)));

  for (Module* module : {same.get(), one.get(), three.get(), in_store.get()}) {
    module->forward_backward(DataBatch{.data = {ones({4, 3})}, .label = {zeros({4})}});
    module->update();
  }
}

TEST(OptimizerStates, OfMXNetsStoreReachAModuleWithoutOne) {
  const auto module = recorded_module(2, UpdateIn::devices);
  module->load_optimizer_states(recorded + "module_local.states");
  EXPECT_EQ(first_moments(states_of(*module)).size(), 4u);
}

// ---- Our own files: training goes on alike -------------------------------------------------------------------------

void train(Module& module, int steps, uint64_t seed) {
  for (int step = 0; step < steps; ++step) {
    const auto number = seed + static_cast<uint64_t>(step);
    module.forward_backward(DataBatch{.data = {random_array({12, 4}, number)}, .label = {labels_of(12)}});
    module.update();
  }
}

TEST(OptimizerStates, OfAnyModuleLetAnyOtherGoOnAlike) {
  const TempDir folder;
  const std::string file = folder.file("a.states");
  struct Kind {
    int devices;
    UpdateIn update_in;
  };
  // (Where devices update themselves and no store sums their gradients, they drift apart: one device it is here.)
  const Kind kinds[] = {{1, UpdateIn::devices}, {1, UpdateIn::store}, {2, UpdateIn::store}, {3, UpdateIn::store}};
  for (const Kind& from : kinds)
    for (const Kind& to : kinds) {
      SCOPED_TRACE(join("from ", from.devices, " to ", to.devices));
      const auto first = module_on(from.devices, from.update_in, small_network(), {12, 4}, first_values());
      train(*first, 5, 1);
      first->save_optimizer_states(file);
      const auto second = module_on(to.devices, to.update_in, small_network(), {12, 4}, first->get_params().arg_params);
      second->load_optimizer_states(file);
      EXPECT_EQ(second->optimizer()->num_update(), 5);
      train(*first, 5, 6);
      train(*second, 5, 6);
      expect_equal(second->get_params().arg_params, first->get_params().arg_params);
    }
}

TEST(OptimizerStates, OfDevicesThatShareAStatePartWhenTheyAreUpdated) {
  const TempDir folder;
  const auto one = module_on(1, UpdateIn::devices, small_network(), {12, 4}, first_values());
  train(*one, 2, 1);
  one->save_optimizer_states(folder.file("a.states"));
  const auto two = module_on(2, UpdateIn::devices, small_network(), {12, 4}, first_values());
  two->load_optimizer_states(folder.file("a.states"));
  const auto before = first_moments(states_of(*two));
  EXPECT_TRUE(same_bits(before.at(0), before.at(1)));
  train(*two, 1, 1);
  const auto after = first_moments(states_of(*two));
  EXPECT_FALSE(same_bits(after.at(0), before.at(0)));
  EXPECT_FALSE(same_bits(after.at(1), before.at(1)));
  EXPECT_FALSE(same_bits(after.at(0), after.at(1))) << "each device updates its own";
}

TEST(OptimizerStates, OfOneContextListedTwiceAreNotOneArray) {
  SavedStates saved;
  saved.states.emplace_back("a", StateTree::of({counted({2}), counted({2})}));
  const SavedStates two = with_keys(saved, {.parameters = {{"a", {2}}}, .devices = 2});
  ASSERT_EQ(two.states.size(), 2u);
  for (size_t part = 0; part < 2; ++part) {
    const NDArray &first = two.states[0].second.tuple[part].array, &second = two.states[1].second.tuple[part].array;
    EXPECT_TRUE(same_bits(first, second));
    EXPECT_NE(first.data(), second.data());
  }

  const TempDir folder;
  const auto one = module_on(1, UpdateIn::devices, small_network(), {12, 4}, first_values());
  train(*one, 2, 1);
  one->save_optimizer_states(folder.file("a.states"));
  Module twice(small_network(), {.context = {cpu(0), cpu(0)}});
  twice.bind({{"data", {12, 4}}}, {{"softmax_label", {12}}});
  twice.init_params({.arg_params = first_values()});
  twice.init_optimizer({.kvstore = nullptr, .optimizer = "adam"});
  twice.load_optimizer_states(folder.file("a.states"));
  // The gradients of the second half of the batch move the second state alone.
  const auto before = first_moments(states_of(twice));
  twice.forward_backward(DataBatch{.data = {random_array({12, 4}, 3)}, .label = {labels_of(12)}});
  for (const auto& row : twice.exec_group()->grad_arrays()) row[0].fill(0);
  twice.update();
  const auto after = first_moments(states_of(twice));
  EXPECT_TRUE(all_close(after.at(0), before.at(0) * 0.9, {1e-5, 1e-7}));
  EXPECT_FALSE(all_close(after.at(1), before.at(1) * 0.9, {1e-5, 1e-7}));
}

TEST(OptimizerStates, FindTheNumberOfDevicesThoughParametersAreFixed) {
  const TempDir folder;
  const std::vector<std::string> fixed{"fc1_weight", "fc1_bias"};
  const auto two = module_on(2, UpdateIn::devices, small_network(), {12, 4}, first_values(), fixed);
  train(*two, 2, 1);
  two->save_optimizer_states(folder.file("a.states"));
  const auto saved = first_moments(load_states(folder.file("a.states")));
  ASSERT_EQ(saved.size(), 4u);  // 4 to 7
  for (const auto& also_fixed : {fixed, std::vector<std::string>{}}) {
    const auto one = module_on(1, UpdateIn::devices, small_network(), {12, 4}, first_values(), also_fixed);
    one->load_optimizer_states(folder.file("a.states"));
    const auto found = first_moments(states_of(*one));
    ASSERT_EQ(found.size(), 2u);
    EXPECT_TRUE(same_bits(found.at(2), saved.at(4)));
    EXPECT_TRUE(same_bits(found.at(3), saved.at(6)));
  }
}

TEST(OptimizerStates, OfAnotherNetworkAreRefusedAndChangeNothing) {
  const TempDir folder;
  const auto module = module_on(2, UpdateIn::store, small_network(), {12, 4}, first_values());
  train(*module, 2, 1);
  const auto before = first_moments(states_of(*module));
  EXPECT_TRUE(fails_with([&] { module->load_optimizer_states(recorded + "module_two_devices.states"); },
                         "module_two_devices.states", "0 to 3", "4 parameters"));
  SavedStates other;
  other.states.emplace_back("fc1_weight", StateTree::of({zeros({9, 4}), zeros({9, 4})}));
  save_states(folder.file("other.states"), other);
  EXPECT_TRUE(fails_with([&] { module->load_optimizer_states(folder.file("other.states")); }, "other.states",
                         "fc1_weight", "(8,4)"));
  for (const auto& [key, moment] : first_moments(states_of(*module))) EXPECT_TRUE(same_bits(moment, before.at(key)));
}

TEST(OptimizerStates, NumbersThatBelongToAParameterFollowIt) {
  const StateKeys by_name{.parameters = {{"a", {2}}, {"b", {3}}}, .devices = 0};
  SavedStates saved;
  for (int i = 0; i < 4; ++i) saved.states.emplace_back(i, StateTree(zeros({i < 2 ? 2 : 3})));
  saved.resume = ResumeState{.num_update = 9,
                             .index_update_count = {{0, 9}, {1, 9}, {2, 8}, {3, 8}},
                             .numbers = {{"gathered:number:0", 1}, {"gathered:number:2", 2}, {"m_schedule", 0.5}}};
  const SavedStates named = with_keys(saved, by_name);
  EXPECT_EQ(named.resume->index_update_count, (std::map<ParamKey, int64_t>{{"a", 9}, {"b", 8}}));
  EXPECT_EQ(named.resume->numbers,
            (std::map<std::string, double>{{"gathered:name:a", 1}, {"gathered:name:b", 2}, {"m_schedule", 0.5}}));
  const SavedStates three = with_keys(named, {.parameters = by_name.parameters, .devices = 3});
  EXPECT_EQ(three.states.size(), 6u);
  EXPECT_EQ(three.resume->index_update_count.at(5), 8);
  EXPECT_EQ(three.resume->numbers.at("gathered:number:4"), 2);
}

}  // namespace
}  // namespace symbind::testing
