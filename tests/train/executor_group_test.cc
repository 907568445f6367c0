#include "symbind/train/executor_group.h"

#include <memory>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/arrays.h"

namespace symbind {
using namespace symbind::testing;

namespace {

Symbol small_network() {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 5}, "fc1");
  net = activation(net, {.act_type = "tanh"}, "tanh1");
  net = fully_connected(net, {.num_hidden = 3}, "fc2");
  return softmax_output(net, {}, "softmax");
}

const std::vector<std::string> parameters{"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"};

ExecutorGroupOptions options_for(std::vector<Context> contexts, int64_t batch) {
  return {.contexts = std::move(contexts),
          .data_shapes = {{"data", {batch, 4}}},
          .label_shapes = {{"softmax_label", {batch}}},
          .param_names = parameters};
}

std::vector<int64_t> sizes(const DataParallelExecutorGroup& group) {
  std::vector<int64_t> found;
  for (const BatchSlice& slice : group.slices()) found.push_back(slice.end - slice.begin);
  return found;
}

// With their plans, and on a GPU their captured graphs.
TEST(ExecutorGroup, KeepsTheExecutorsOfTheLastSixteenShapes) {
  for (const Context context : all_devices()) {
    DataParallelExecutorGroup group(small_network(), options_for({context}, 1));
    const auto reshape = [&](int64_t batch) {
      group.reshape({{"data", {batch, 4}}}, {{"softmax_label", {batch}}});
      return std::weak_ptr<Executor>(group.execs()[0]);
    };
    std::vector<std::weak_ptr<Executor>> made;
    for (int64_t batch = 1; batch <= 20; ++batch) made.push_back(reshape(batch));
    for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].expired(), i < 4) << "batch " << i + 1;
    EXPECT_EQ(reshape(6).lock(), made[5].lock());
    reshape(21);
    EXPECT_TRUE(made[4].expired());
    EXPECT_FALSE(made[5].expired()) << "it was used since";
  }
}

TEST(ExecutorGroup, SplitsABatchInProportionToTheWorkLoad) {
  const Symbol net = small_network();
  ExecutorGroupOptions options = options_for({cpu(0), cpu(1), cpu(2)}, 10);
  EXPECT_EQ(sizes(DataParallelExecutorGroup(net, options)), (std::vector<int64_t>{3, 3, 4}));
  options.workload = {1, 2, 2};
  EXPECT_EQ(sizes(DataParallelExecutorGroup(net, options)), (std::vector<int64_t>{2, 4, 4}));
}

TEST(ExecutorGroup, SplitsABatchForTrainingLoopsOfOnesOwn) {
  EXPECT_EQ(split_input_slice(7, {1, 2}), (std::vector<BatchSlice>{{0, 2}, {2, 7}}));
  EXPECT_EQ(split_input_slice(10, {2, 1}), (std::vector<BatchSlice>{{0, 7}, {7, 10}})) << "6.67 is rounded up";
  EXPECT_EQ(split_input_slice(5, {1, 1}), (std::vector<BatchSlice>{{0, 2}, {2, 5}})) << "2.5 is rounded to even";
  EXPECT_EQ(split_input_slice(7, {1, 1}), (std::vector<BatchSlice>{{0, 4}, {4, 7}})) << "3.5 is rounded to even";
  EXPECT_THROW(split_input_slice(4, {}), Error);
  EXPECT_THROW(split_input_slice(4, {1, 0}), Error);
  EXPECT_THROW(split_input_slice(4, {100, 1, 1}), Error);  // the first would get them all
}

TEST(ExecutorGroup, RefusesBatchesThatDoNotFit) {
  const Symbol net = small_network();
  EXPECT_THROW(DataParallelExecutorGroup(net, options_for({cpu(0), cpu(1), cpu(2)}, 2)), Error);
  ExecutorGroupOptions options = options_for({cpu(0)}, 4);
  options.label_shapes = {{"softmax_label", {5}}};
  try {
    DataParallelExecutorGroup group(net, options);
    FAIL() << "data and labels of different sizes were accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("softmax_label"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("'data' has a batch of 4"), std::string::npos) << error.what();
  }
}

TEST(ExecutorGroup, SeesTheExecutorsArraysWithoutCopies) {
  DataParallelExecutorGroup group(small_network(), options_for({cpu(0), cpu(1)}, 6));
  ASSERT_EQ(group.param_arrays().size(), parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    for (size_t device = 0; device < 2; ++device) {
      const Executor& executor = *group.execs()[device];
      EXPECT_TRUE(group.param_arrays()[i][device].same_memory(executor.arg_dict().at(parameters[i])));
      EXPECT_TRUE(group.grad_arrays()[i][device].same_memory(executor.grad_dict().at(parameters[i])));
    }
  EXPECT_TRUE(group.data_arrays()[0][1].array.same_memory(group.execs()[1]->arg_dict().at("data")));
  EXPECT_EQ(group.data_arrays()[0][1].slice, (BatchSlice{3, 6}));
}

TEST(ExecutorGroup, GivesTheSameOutputsOnOneDeviceAndOnThree) {
  const Symbol net = small_network();
  NamedArrays params;
  for (const auto& [name, shape] : std::map<std::string, Shape>{
           {"fc1_weight", {5, 4}}, {"fc1_bias", {5}}, {"fc2_weight", {3, 5}}, {"fc2_bias", {3}}})
    params[name] = random_array(shape, 1);
  const DataBatch batch{.data = {random_array({10, 4}, 2)}, .label = {zeros({10})}};

  DataParallelExecutorGroup one(net, options_for({cpu()}, 10)), three(net, options_for({cpu(0), cpu(1), cpu(2)}, 10));
  for (DataParallelExecutorGroup* group : {&one, &three}) {
    group->set_params(params, {});
    group->forward(batch, true);
    group->backward();
  }
  EXPECT_TRUE(all_close(three.get_merged_outputs()[0], one.get_merged_outputs()[0], {1e-5, 1e-6}));
  for (size_t i = 0; i < parameters.size(); ++i) {
    NDArray sum = three.grad_arrays()[i][0].copy();
    for (size_t device = 1; device < 3; ++device) sum += three.grad_arrays()[i][device].as_in_context(cpu(0));
    EXPECT_TRUE(all_close(sum, one.grad_arrays()[i][0], {1e-4, 1e-5})) << parameters[i];
  }
}

TEST(ExecutorGroup, KeepsItsParametersAndMemoryOverManyShapes) {
  DataParallelExecutorGroup group(small_network(), options_for({cpu(0), cpu(1)}, 32));
  NamedArrays params, aux;
  for (const auto& row : group.param_arrays())
    for (const NDArray& array : row) array.fill(0.25);
  const auto step = [&](int64_t batch) {
    group.reshape({{"data", {batch, 4}}}, {{"softmax_label", {batch}}});
    group.forward(DataBatch{.data = {ones({batch, 4})}, .label = {zeros({batch})}}, true);
    group.backward();
  };
  for (int64_t batch = 2; batch < 64; ++batch) step(batch);
  const int64_t live = Device::get(cpu(0)).memory().live + Device::get(cpu(1)).memory().live;
  for (int64_t i = 0; i < 250; ++i) step(2 + i * 37 % 62);
  EXPECT_LE(Device::get(cpu(0)).memory().live + Device::get(cpu(1)).memory().live, live + (16 << 10));
  group.get_params(params, aux);
  EXPECT_EQ(params.at("fc1_weight").to_vector<float>(), std::vector<float>(20, 0.25f));
}

TEST(ExecutorGroup, AsksForTheGradientsOneWants) {
  // fc1_weight, fc1_bias, fc2_weight, fc2_bias, data
  const auto has_gradient = [](ExecutorGroupOptions options) {
    options.fixed_param_names = {"fc1_bias"};
    const DataParallelExecutorGroup group(small_network(), options);
    const NamedArrays& grads = group.execs()[0]->grad_dict();
    std::vector<bool> found;
    for (const std::string name : {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias", "data"})
      found.push_back(grads.count(name) > 0 && grads.at(name));
    return found;
  };
  ExecutorGroupOptions options = options_for({cpu()}, 4);
  EXPECT_EQ(has_gradient(options), (std::vector<bool>{true, false, true, true, false}));
  options.inputs_need_grad = true;
  options.grad_req = "add";
  EXPECT_EQ(has_gradient(options), (std::vector<bool>{true, false, true, true, true}));
  options.grad_req = std::map<std::string, std::string>{{"fc1_bias", "write"}, {"fc2_bias", "null"}};
  EXPECT_EQ(has_gradient(options), (std::vector<bool>{true, true, true, false, true}));
  options.grad_req = std::vector<std::string>{"null", "null", "write", "null", "null", "null"};
  EXPECT_EQ(has_gradient(options),
            (std::vector<bool>{false, true, false, false, false}));  // as the arguments are listed
  options.grad_req = std::vector<std::string>{"write"};
  EXPECT_THROW(DataParallelExecutorGroup(small_network(), options), Error);
  options.grad_req = "write";
  options.for_training = false;
  options.inputs_need_grad = false;
  EXPECT_EQ(has_gradient(options), (std::vector<bool>(5, false)));
}

TEST(ExecutorGroup, SplitsByLayoutAndLeavesWholeWhatHasNoBatchAxis) {
  const Symbol net = apply("broadcast_mul", {Symbol::variable("data"), Symbol::variable("scale")});
  const ExecutorGroupOptions options{
      .contexts = {cpu(0), cpu(1)},
      .data_shapes = {{"data", {5, 4}, DType::float32, "TN"}, {"scale", {5, 1}, DType::float32, "TC"}},
  };
  const DataParallelExecutorGroup group(net, options);
  EXPECT_EQ(group.execs()[1]->arg_dict().at("data").shape(), (Shape{5, 2}));
  EXPECT_EQ(group.execs()[1]->arg_dict().at("scale").shape(), (Shape{5, 1}));
  EXPECT_EQ(group.data_layouts(), (std::vector<int>{1, -1}));
}

TEST(ExecutorGroup, CountsNoPaddingInAMetric) {
  DataParallelExecutorGroup group(small_network(), options_for({cpu(0), cpu(1)}, 6));
  for (const auto& row : group.param_arrays())
    for (const NDArray& array : row) array.fill(0);
  group.param_arrays()[3][0].copy_from(std::vector<float>{1, 0, 0});  // class 0 everywhere
  group.param_arrays()[3][1].copy_from(std::vector<float>{1, 0, 0});
  group.forward(DataBatch{.data = {ones({6, 4})}, .label = {zeros({6})}}, false);
  const EvalMetricPtr accuracy = EvalMetric::create("acc");
  // The last three are wrong, but only fill the batch up: the second device has nothing to count.
  group.update_metric(*accuracy, {array({0, 0, 0, 1, 1, 1})}, false, 3);
  EXPECT_EQ(accuracy->get()[0].second, 1.0);
  accuracy->reset();
  group.update_metric(*accuracy, {array({0, 0, 0, 1, 1, 1})}, false, 0);
  EXPECT_EQ(accuracy->get()[0].second, 0.5);
}

TEST(ExecutorGroup, KnowsWhichLabelsItsContextHas) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    DataParallelExecutorGroup group(small_network(), options_for({context}, 6));
    const DataBatch batch{.data = {ones({6, 4})}, .label = {array({0, 1, 2, 0, 1, 2})}};
    const auto arrays = [&](const NDArray& label, int64_t padding = 0) {
      return group.metric_arrays_on_device({label}, padding);
    };
    EXPECT_FALSE(arrays(batch.label[0])) << "nothing was loaded";
    group.forward(batch, false);
    const Executor& executor = *group.execs()[0];
    const NDArray &own = executor.arg_dict().at("softmax_label"), &output = executor.outputs()[0];
    const auto all = arrays(batch.label[0]);
    ASSERT_TRUE(all);
    ASSERT_EQ(all->labels.size(), 1u);
    EXPECT_EQ(all->labels[0].first, "softmax_label");
    EXPECT_TRUE(all->labels[0].second.same_memory(own));
    ASSERT_EQ(all->outputs.size(), 1u);
    EXPECT_EQ(all->outputs[0].first, "softmax_output");
    EXPECT_TRUE(all->outputs[0].second.same_memory(output));
    const auto padded = arrays(batch.label[0], 2);
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->labels[0].second.shape(), (Shape{4}));
    EXPECT_TRUE(padded->labels[0].second.same_memory(own));
    EXPECT_EQ(padded->outputs[0].second.shape(), (Shape{4, 3}));
    EXPECT_FALSE(arrays(batch.label[0], 6)) << "no sample counts";
    EXPECT_FALSE(arrays(batch.label[0].copy())) << "another array";

    batch.label[0].fill(1);
    EXPECT_FALSE(arrays(batch.label[0])) << "it was written since";
    group.forward(batch, false);
    EXPECT_TRUE(arrays(batch.label[0]));
    EXPECT_THROW(group.forward(DataBatch{.data = batch.data, .label = {zeros({5})}}, false), Error);
    EXPECT_FALSE(arrays(batch.label[0])) << "what a load that failed left is not known";
    group.forward(std::vector<DataBatch>{batch}, false);
    EXPECT_FALSE(arrays(batch.label[0])) << "it is a part of a batch";
  }
}

TEST(ExecutorGroup, HasNoLabelsOfSeveralContexts) {
  DataParallelExecutorGroup group(small_network(), options_for({cpu(0), cpu(1)}, 6));
  const DataBatch batch{.data = {ones({6, 4})}, .label = {zeros({6})}};
  group.forward(batch, false);
  EXPECT_FALSE(group.metric_arrays_on_device(batch.label, 0));
}

}  // namespace
}  // namespace symbind
