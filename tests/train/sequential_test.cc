// Modules one after the other, and losses that are functions.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/training.h"

namespace symbind::testing {
namespace {

Symbol first_half() {
  return activation(fully_connected(Symbol::variable("data"), {.num_hidden = 8}, "fc1"), {.act_type = "tanh"}, "tanh1");
}
Symbol second_half(bool with_loss = true) {
  const Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 3}, "fc2");
  return with_loss ? softmax_output(net, {}, "softmax") : net;
}
std::shared_ptr<Module> features() { return std::make_shared<Module>(first_half(), ModuleOptions{.label_names = {}}); }

// The gradient of softmax cross-entropy.
NDArray softmax_gradient(const NDArray& scores, const NDArray& labels) {
  NDArray gradient = invoke("softmax", {scores})[0].as_in_context(cpu());
  const auto classes = labels.to_vector<int64_t>();
  for (size_t i = 0; i < classes.size(); ++i) gradient(static_cast<int64_t>(i), classes[i]) += -1;
  return gradient;
}

NamedArrays trained(BaseModule& module) {
  const Quiet quiet;
  NDArrayIter data = batches();
  module.fit(
      data,
      {.optimizer = optim::Sgd{.learning_rate = 0.1, .momentum = 0.9}, .arg_params = first_values(), .num_epoch = 3});
  return module.get_params().arg_params;
}

TEST(SequentialModule, TrainsAsTheWholeNetworkDoes) {
  SequentialModule halves;
  halves.add(features()).add(std::make_shared<Module>(second_half()), {.take_labels = true, .auto_wiring = true});
  Module whole(small_network());
  expect_equal(trained(halves), trained(whole));
  NDArrayIter data = batches();
  EXPECT_EQ(halves.score(data, "acc"), whole.score(data, "acc"));
  EXPECT_TRUE(all_close(halves.predict(data)[0], whole.predict(data)[0], {1e-5, 1e-5}));
}

TEST(SequentialModule, EndsInALossThatIsAFunction) {
  SequentialModule scores_and_loss;
  scores_and_loss.add(features())
      .add(std::make_shared<Module>(second_half(false), ModuleOptions{.label_names = {}}), {.auto_wiring = true})
      .add(std::make_shared<LossModule>(LossModuleOptions{.grad_func = softmax_gradient}),
           {.take_labels = true, .auto_wiring = true});
  Module whole(small_network());
  expect_equal(trained(scores_and_loss), trained(whole));
  EXPECT_EQ(scores_and_loss.output_names(), std::vector<std::string>{"loss_output"});
}

TEST(SequentialModule, OneOptimizerObjectServesAllModules) {
  const auto with = [](BaseModule& module) {
    const Quiet quiet;
    NDArrayIter data = batches();
    const OptimizerPtr adam = Optimizer::create(optim::Adam{.learning_rate = 0.1});
    adam->rescale_grad = 0.1;
    adam->set_lr_mult({{"fc2_weight", 0.5}});
    module.fit(data, {.optimizer = adam, .arg_params = first_values(), .num_epoch = 2});
    return module.get_params().arg_params;
  };
  SequentialModule halves;
  halves.add(features()).add(std::make_shared<Module>(second_half()), {.take_labels = true, .auto_wiring = true});
  Module whole(small_network());
  expect_equal(with(halves), with(whole));
}

TEST(SequentialModule, GradientsOfItsInputsAreThoseOfTheFirst) {
  SequentialModule module;
  module.add(features()).add(std::make_shared<Module>(second_half()), {.take_labels = true, .auto_wiring = true});
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}}, {.inputs_need_grad = true});
  module.init_params({.arg_params = first_values()});
  const DataBatch batch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}};
  module.forward_backward(batch);
  Module whole(small_network());
  whole.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}}, {.inputs_need_grad = true});
  whole.init_params({.arg_params = first_values()});
  whole.forward_backward(batch);
  EXPECT_TRUE(all_close(module.get_input_grads()[0], whole.get_input_grads()[0], {1e-5, 1e-6}));
}

TEST(SequentialModule, ABatchOfAnotherSizeReshapesAllModules) {
  SequentialModule module;
  module.add(features()).add(std::make_shared<Module>(second_half()), {.take_labels = true, .auto_wiring = true});
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = first_values()});
  module.forward(DataBatch{.data = {ones({3, 4})}, .label = {labels_of(3)}}, true);
  module.backward();
  EXPECT_EQ(module.output_shapes()[0].second, (Shape{3, 3}));
  EXPECT_EQ(module.data_shapes()[0].shape, (Shape{3, 4}));
}

// fully connected, plus a state.
std::shared_ptr<Module> with_state(const std::string& name, bool loss) {
  const Symbol sum = fully_connected(Symbol::variable("data"), {.num_hidden = 2}, name) +
                     Symbol::variable(name + "_state", {.shape = Shape{4, 2}});
  return std::make_shared<Module>(
      loss ? softmax_output(sum, {}, "softmax") : sum,
      ModuleOptions{.label_names = loss ? std::vector<std::string>{"softmax_label"} : std::vector<std::string>{},
                    .state_names = {name + "_state"}});
}

TEST(SequentialModule, HasTheStatesOfAllItsModules) {
  const auto first = with_state("first", false), last = with_state("last", true);
  SequentialModule module;
  module.add(first).add(last, {.take_labels = true, .auto_wiring = true});
  EXPECT_TRUE(fails_with([&] { module.get_states(); }, "bind"));
  module.bind({{"data", {4, 3}}}, {{"softmax_label", {4}}});
  module.init_params();
  ASSERT_EQ(module.get_states().size(), 2u);
  module.set_states(3);
  EXPECT_EQ(last->get_states()[0].to_vector<float>(), std::vector<float>(8, 3));
  const NDArray one(Shape{4, 2}, cpu()), two(Shape{4, 2}, cpu());
  one.fill(1);
  two.fill(2);
  module.set_states({one, two});
  EXPECT_EQ(first->get_states()[0].to_vector<float>(), std::vector<float>(8, 1));
  EXPECT_EQ(last->get_states()[0].to_vector<float>(), std::vector<float>(8, 2));
  EXPECT_TRUE(fails_with([&] { module.set_states({one}); }, "1 states", "have 2"));
}

TEST(SequentialModule, RefusesStatesWhereNoModuleHasAny) {
  SequentialModule module;
  module.add(std::make_shared<Module>(small_network()), {.take_labels = true});
  NDArrayIter data = batches();
  module.bind(data.provide_data(), data.provide_label());
  module.init_params();
  EXPECT_TRUE(module.get_states().empty());
  EXPECT_TRUE(fails_with([&] { module.set_states(1); }, "states"));
}

TEST(SequentialModule, SaysWhatIsWrong) {
  SequentialModule none;
  EXPECT_TRUE(none.data_names().empty());
  EXPECT_TRUE(fails_with([&] { none.bind({{"data", {2, 4}}}); }, "no modules yet"));
  EXPECT_TRUE(fails_with([&] { none.add(nullptr); }, "null pointer"));

  SequentialModule twice;
  twice.add(features()).add(features(), {.auto_wiring = true});
  twice.bind({{"data", {2, 4}}});
  EXPECT_TRUE(fails_with([&] { twice.init_params(); }, "modules 0 and 1", "fc1_bias"));

  SequentialModule unwired;
  unwired.add(features()).add(std::make_shared<Module>(second_half()), {.take_labels = true});
  EXPECT_TRUE(fails_with([&] { unwired.bind({{"data", {2, 4}}}, {{"softmax_label", {2}}}); }, "tanh1_output", "data"));
}

TEST(LossModule, SaysWhatIsWrong) {
  EXPECT_TRUE(fails_with([] { LossModule({.data_names = {"a", "b"}}); }, "one input"));
  LossModule loss({.name = "hinge", .grad_func = [](const NDArray&, const NDArray&) { return zeros({1}); }});
  EXPECT_EQ(loss.output_names(), std::vector<std::string>{"hinge_output"});
  EXPECT_TRUE(fails_with([&] { loss.bind({{"scores", {2, 3}}}); }, "scores", "data"));
  loss.bind({{"data", {2, 3}}}, {{"softmax_label", {2}}});
  EXPECT_EQ(loss.output_shapes()[0].second, (Shape{2, 3}));
  EXPECT_TRUE(fails_with([&] { loss.backward(); }, "forward in training mode"));
  EXPECT_TRUE(fails_with([&] { loss.forward(DataBatch{.data = {ones({2, 3})}}, true); }, "labels"));
  loss.forward(DataBatch{.data = {ones({2, 3})}, .label = {zeros({2})}}, true);
  EXPECT_TRUE(fails_with([&] { loss.backward({ones({2, 3})}); }, "no out_grads"));
  EXPECT_TRUE(fails_with([&] { loss.backward(); }, "shape (1,)", "(2,3)"));
}

}  // namespace
}  // namespace symbind::testing
