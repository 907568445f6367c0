#include "symbind/passes/own_operator.h"

#include <gtest/gtest.h>

#include "symbind/symbind.h"

namespace symbind::testing {
namespace {

// y = factor · x + offset, where the offset is an input too. The kernel squares by way of scratch memory, so that a
// wrong address is noticed.
struct ScaleAndShift {
  double factor = 1;
};
constexpr Builder<ScaleAndShift> scale_and_shift;
struct ScaleAndShiftGrad : ScaleAndShift {};
constexpr Builder<ScaleAndShiftGrad> scale_and_shift_grad;

OpDef define_forward(Op<ScaleAndShift> op) {
  return op.doc("factor · data + offset")
      .param(&ScaleAndShift::factor, "factor", "of the data", at_least(0))
      .inputs({"data", "offset"})
      .gradient([](const ScaleAndShift& p, Grad& g) {
        g.set("data", scale_and_shift_grad(g.out_grad(), {p}));
        g.set("offset", g.out_grad());
      });
}
OpDef define_gradient(Op<ScaleAndShiftGrad> op) {
  return op.param(&ScaleAndShift::factor, "factor", "of scale_and_shift").inputs({"out_grad"});
}

void run_forward(const ScaleAndShift& p, const KernelCall& call) {
  const float *x = call.inputs[0].as<float>(), *offset = call.inputs[1].as<float>();
  float *y = call.outputs[0].as<float>(), *scaled = static_cast<float*>(call.scratch);
  const int64_t count = call.outputs[0].shape.size();
  for (int64_t i = 0; i < count; ++i) scaled[i] = static_cast<float>(p.factor) * x[i];
  for (int64_t i = 0; i < count; ++i) y[i] = scaled[i] + offset[i];
}
void run_gradient(const ScaleAndShiftGrad& p, const KernelCall& call) {
  const float* dy = call.inputs[0].as<float>();
  float* dx = call.outputs[0].as<float>();
  for (int64_t i = 0; i < call.outputs[0].shape.size(); ++i) dx[i] = static_cast<float>(p.factor) * dy[i];
}

struct WithoutKernel {};
OpDef define_without_kernel(Op<WithoutKernel> op) { return op.doc("nothing runs it"); }

class OwnOperator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_operator<ScaleAndShift>("scale_and_shift", define_forward);
    register_operator<ScaleAndShiftGrad>("scale_and_shift_grad", define_gradient);
    register_operator<WithoutKernel>("without_kernel", define_without_kernel);
    register_kernel<ScaleAndShift>(
        DeviceType::cpu, run_forward,
        {.in_place = {{0, 0}, {1, 0}}, .scratch_bytes = [](const ScaleAndShift&, const KernelCall& call) {
           return static_cast<size_t>(call.inputs[0].shape.size()) * sizeof(float);
         }});
    register_kernel<ScaleAndShiftGrad>(DeviceType::cpu, run_gradient);
  }
};

void expect_right_gradients(Context context) {
  const Symbol net = scale_and_shift(Symbol::variable("x"), Symbol::variable("y"), {.factor = 3}, "own") * 2;
  const ExecutorPtr executor = simple_bind(net, context, {{"x", {2, 3}}, {"y", {2, 3}}}, {.grad_req = "write"});
  executor->arg_dict().at("x").copy_from(std::vector<float>{1, 2, 3, 4, 5, 6});
  executor->arg_dict().at("y").copy_from(std::vector<float>(6, 0.5f));
  executor->forward(true);
  EXPECT_EQ(executor->outputs()[0].to_vector<float>(), (std::vector<float>{7, 13, 19, 25, 31, 37}));
  executor->backward({ones({2, 3}, context)});
  EXPECT_EQ(executor->grad_dict().at("x").to_vector<float>(), std::vector<float>(6, 6.0f));
  EXPECT_EQ(executor->grad_dict().at("y").to_vector<float>(), std::vector<float>(6, 2.0f));
}

TEST_F(OwnOperator, RunsOnArrays) {
  const NDArray x = array({1, 2, 3}), offset = array({0.5, 0.25, 0});
  EXPECT_EQ(scale_and_shift(x, offset, {.factor = 2}).to_vector<float>(), (std::vector<float>{2.5f, 4.25f, 6}));
  EXPECT_EQ(invoke("scale_and_shift", {x, offset}, {{"factor", "4"}})[0].to_vector<float>(),
            (std::vector<float>{4.5f, 8.25f, 12}));
}

TEST_F(OwnOperator, HasGradients) { expect_right_gradients(cpu()); }

TEST_F(OwnOperator, IsReadFromFiles) {
  const Symbol net = scale_and_shift(Symbol::variable("x"), Symbol::variable("y"), {.factor = 3}, "own");
  const Symbol read = Symbol::load_json(net.tojson());
  EXPECT_EQ(read.list_arguments(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(read.tojson(), net.tojson());
}

TEST_F(OwnOperator, ChecksItsParametersAndTypes) {
  EXPECT_THROW(scale_and_shift(Symbol::variable("x"), Symbol::variable("y"), {.factor = -1}), Error);
  const NDArray whole = cast(array({1, 2}), {.dtype = DType::int32});
  EXPECT_THROW(scale_and_shift(whole, whole, {.factor = 2}), Error);  // the kernel asks for float32
}

TEST_F(OwnOperator, IsRegisteredOnce) {
  EXPECT_THROW(register_operator<ScaleAndShift>("another_name", define_forward), Error);
  EXPECT_EQ(OpRegistry::get().find_or_null("another_name"), nullptr);
  struct Other {};
  const auto define_other = +[](Op<Other> op) -> OpDef { return op; };
  EXPECT_THROW(register_operator<Other>("FullyConnected", define_other), Error);
  EXPECT_THROW(register_kernel<ScaleAndShift>(DeviceType::cpu, run_forward), Error);
}

TEST_F(OwnOperator, SaysThatItHasNoKernel) {
  try {
    invoke("without_kernel", {array({1, 2})}, {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[without_kernel] has no kernel for CPUs"), std::string::npos)
        << error.what();
  }
}

TEST_F(OwnOperator, RunsOnTheHostWithoutAKernelForGpus) {
  if (num_gpus() == 0) GTEST_SKIP() << "there is no GPU";
  expect_right_gradients(gpu());
}

}  // namespace
}  // namespace symbind::testing
