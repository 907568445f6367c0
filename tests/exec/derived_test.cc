// Predictions follow the parameters, whichever way they were changed: nothing that a plan has derived from them
// (weights in another order, folded statistics) is used when it is out of date.
#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/files/params.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/custom.h"

#include "tests/support/arrays.h"
#include "tests/support/compile_options.h"
#include "tests/support/networks.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::random_array;

// One way to change what an executor computes with.
struct Change {
  std::string name;
  std::function<void(Executor&)> make;
};

bool is_parameter(const std::string& name) { return name != "data" && name.find("label") == std::string::npos; }

// A function of (name, array, number) called with every parameter.
template <class Function>
std::function<void(Executor&)> to_each(Function&& change) {
  return [change](Executor& executor) {
    uint64_t number = 0;
    for (const auto& [name, array] : executor.arg_dict())
      if (is_parameter(name)) change(name, array, ++number);
  };
}

void write_raw(Context context, void* address, const NDArray& values) {
  Device::get(context).copy_from_host(address, values.data(), values.bytes());
}

void train_a_step(Executor& executor) {
  executor.forward(true);
  executor.backward(testing::out_grads_for(executor));
  for (const auto& [name, gradient] : executor.grad_dict())
    if (const NDArray& weight = executor.arg_dict().at(name); is_parameter(name))
      invoke("sgd_update", {weight, gradient}, {{"lr", "0.005"}}, {.out = {weight}});
}

void write_through_exported_pointers(Executor& executor) {
  std::map<std::string, void*> addresses;
  for (const auto& [name, array] : executor.arg_dict()) {
    array.storage().mark_exported();
    addresses[name] = array.mutable_data();
  }
  executor.forward(false);
  for (const auto& [name, array] : executor.arg_dict())
    if (is_parameter(name))
      write_raw(array.context(), addresses[name], testing::parameter_values(name, array.shape(), 400));
}

void load_others(Executor& executor) {
  const testing::TempDir folder;
  NamedArrays others;
  for (const auto& [name, array] : executor.arg_dict())
    if (is_parameter(name)) others[name] = testing::parameter_values(name, array.shape(), 500);
  save(folder.file("other.params"), others);
  executor.copy_params_from(load(folder.file("other.params")).dict());
}

void write_statistics(Executor& executor) {
  for (const NDArray& state : executor.aux_arrays()) random_array(state.shape(), 7, 0.5, 2).copyto(state);
}

void train_through_another_executor(Executor& executor) {
  NamedShapes shapes;
  for (const auto& [name, array] : executor.arg_dict())
    if (!is_parameter(name)) shapes[name] = array.shape();
  train_a_step(*executor.reshape(shapes));
}

std::vector<Change> changes() {
  using Name = const std::string&;
  return {
      {"copyto", to_each([](Name name, const NDArray& array, uint64_t number) {
         testing::parameter_values(name, array.shape(), 200 + number).copyto(array);
       })},
      {"a training step", train_a_step},
      {"another training step", train_a_step},
      {"statistics moved by a forward in training", [](Executor& executor) { executor.forward(true); }},
      {"an update by an operator", to_each([](Name, const NDArray& array, uint64_t) {
         invoke("sgd_update", {array, full(array.shape(), 0.1, array.context())}, {{"lr", "0.1"}}, {.out = {array}});
       })},
      {"a raw pointer", to_each([](Name name, const NDArray& array, uint64_t number) {
         write_raw(array.context(), array.mutable_data(), testing::parameter_values(name, array.shape(), 300 + number));
       })},
      {"a write to a view", to_each([](Name, const NDArray& array, uint64_t) { array.slice(0, 1).fill(0.125); })},
      {"statistics written", write_statistics},
      {"copyto on the first parameter alone",
       [](Executor& executor) {
         for (const auto& [name, array] : executor.arg_dict())
           if (is_parameter(name)) return testing::parameter_values(name, array.shape(), 77).copyto(array);
       }},
      {"a file", load_others},
      {"training through an executor that shares the parameters", train_through_another_executor},
      {"a write through exported pointers", write_through_exported_pointers},
      {"a training step after exporting", train_a_step},
  };
}

// With what the loss head reads as a last output: probabilities hide changes when they are near 0 and 1.
Symbol with_scores(const Symbol& net) {
  return Symbol::group({net, apply("BlockGrad", net[0].get_children().value()[0])});
}

class DerivedFromParameters : public ::testing::TestWithParam<size_t> {};

std::vector<testing::Network> networks() {
  return {testing::mlp(),
          testing::lenet(),
          testing::batch_norm_net(),
          testing::inception_net(),
          testing::norm_before_convolution(0),
          testing::norm_before_convolution(1),
          testing::norms_of_all_kinds(),
          testing::reused_operand_net(),
          testing::resnet(18, 1, 16, 32),
          testing::resnet(18, 2, 12, 32)};
}

TEST_P(DerivedFromParameters, PredictionsFollowEveryChange) {
  testing::Network network = networks()[GetParam()];
  network.symbol = with_scores(network.symbol);
  for (const Context context : testing::all_devices()) {
    auto usual = testing::bind_with_values(network, context, {.options = {.poison = true}});
    auto plain = testing::bind_with_values(network, context, {.options = testing::plainest()});
    NDArray before = usual->forward(false).back().copy();
    for (const Change& change : changes()) {
      change.make(*usual);
      plain->copy_params_from(usual->arg_dict(), usual->aux_dict());
      const NDArray actual = usual->forward(false).back().copy(), expected = plain->forward(false).back().copy();
      EXPECT_TRUE(testing::all_close(actual, expected, {1e-3, 1e-5, 1e-4}))
          << "after " << change.name << " on " << context;
      const bool changes_nothing = change.name.starts_with("statistics") && usual->aux_arrays().empty();
      EXPECT_EQ(static_cast<bool>(testing::same_bits(expected, before)), changes_nothing) << change.name;
      before = expected;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, DerivedFromParameters, ::testing::Range(size_t{0}, networks().size()),
                         [](const ::testing::TestParamInfo<size_t>& network) {
                           return networks()[network.param].name + join("_", network.param);
                         });

// Throws in training.
class Failing : public CustomOp {
  void forward(bool is_train, const std::vector<OpReq>& req, const std::vector<NDArray>& in,
               const std::vector<NDArray>& out, const std::vector<NDArray>&) override {
    if (is_train) fail("not in training");
    assign(out[0], req[0], in[0]);
  }
};
class FailingProp : public CustomOpProp {
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<Failing>();
  }
};

// Adds one to its state in every forward.
class Counting : public CustomOp {
  void forward(bool, const std::vector<OpReq>& req, const std::vector<NDArray>& in, const std::vector<NDArray>& out,
               const std::vector<NDArray>& aux) override {
    assign(out[0], req[0], in[0]);
    assign(aux[0], OpReq::add, 1);
  }
};
class CountingProp : public CustomOpProp {
  Names list_auxiliary_states() const override { return {"state"}; }
  CustomShapes infer_shape(const std::vector<Shape>& in) const override { return {in, {in[0]}, {{8, 8, 1, 1}}}; }
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<Counting>();
  }
};

TEST(DerivedFromParameters, FollowAStateThatThePlanItselfChanges) {
  register_custom_op("counting", [](const Attributes&) { return std::make_shared<CountingProp>(); });
  const Symbol state = Symbol::variable("state");
  const Symbol counted =
      custom({{"data", Symbol::variable("data")}, {"state", state}}, {.op_type = "counting"}, "count");
  const Symbol net =
      convolution({{"data", counted}, {"weight", state}}, {.kernel = {1, 1}, .num_filter = 8, .no_bias = true}, "conv");
  const testing::Network network{"counting", net, {{"data", {2, 8, 4, 4}}}, 0};
  auto usual = testing::bind_with_values(network, cpu(), {.grad_req = "null"});
  auto plain = testing::bind_with_values(network, cpu(), {.grad_req = "null", .options = testing::plainest()});
  for (int run = 0; run < 3; ++run)
    EXPECT_TRUE(testing::all_close(usual->forward(false)[0], plain->forward(false)[0], {1e-3, 1e-5, 1e-4})) << run;
}

TEST(DerivedFromParameters, FollowStatisticsThatAFailedForwardHasMoved) {
  register_custom_op("failing", [](const Attributes&) { return std::make_shared<FailingProp>(); });
  Symbol net = convolution(Symbol::variable("data"), {.kernel = {1, 1}, .num_filter = 8}, "conv");
  net = batch_norm(net, {.momentum = 0.5}, "bn");
  net = custom(net, {.op_type = "failing"}, "failing");
  const testing::Network network{"failing", net, {{"data", {2, 8, 4, 4}}}, 0};
  for (const Context context : testing::all_devices()) {
    auto usual = testing::bind_with_values(network, context);
    auto plain = testing::bind_with_values(network, context, {.options = testing::plainest()});
    const NDArray before = usual->forward(false)[0].copy();
    EXPECT_TRUE(testing::fails_with([&] { usual->forward(true); }, "not in training"));
    plain->copy_params_from({}, usual->aux_dict());
    EXPECT_TRUE(testing::all_close(usual->forward(false)[0], plain->forward(false)[0], {1e-3, 1e-5, 1e-4})) << context;
    EXPECT_FALSE(testing::same_bits(usual->outputs()[0], before)) << context;
  }
}

}  // namespace
}  // namespace symbind
