// Which operators have kernels on a GPU. The lists are those of a build with CUDA; no GPU is needed to look at them.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/exec/executor.h"
#include "symbind/ops/indices.h"
#include "symbind/passes/target.h"

#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

// Operators that run on the host, each with the reason. An operator that gets a kernel leaves the list.
const std::map<std::string, std::string> on_the_host = {
    {"Custom", "runs code of the user"},
    {"_backward_Custom", "runs code of the user"},
    {"_FullyConnected_Transposed", "made by a pass for CPUs alone"},
};

TEST(CudaCoverage, EveryOperatorHasAKernelOnTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  for (const OpDef* op : OpRegistry::get().all()) {
    if (op->own) continue;  // of another test
    const bool has_kernel = runs_on_device(*op, gpu(0)), is_listed = on_the_host.contains(op->name);
    EXPECT_TRUE(has_kernel || is_listed) << op->name << " runs on the host";
    EXPECT_FALSE(has_kernel && is_listed) << op->name << " has a kernel: take it from the list";
  }
}

class Warnings {
 public:
  Warnings() : before_(set_log_sink([this](LogLevel, std::string_view text) { all.emplace_back(text); })) {}
  ~Warnings() { set_log_sink(before_); }
  std::vector<std::string> all;

 private:
  LogSink before_;
};

using CudaHostSteps = GpuTest;

TEST_F(CudaHostSteps, AreNamedOnceWhenANetworkIsBound) {
  const Warnings warnings;
  const Tuple deep(12, 2);  // more axes than the kernel takes
  const Symbol net = unravel_index(Symbol::variable("data"), {.shape = deep}, "unraveled");
  for (int again = 0; again < 2; ++again) {
    auto executor = simple_bind(net, gpu(0), {{"data", {5}}});
    executor->forward(false, {{"data", counted({5})}});
    executor->outputs()[0].wait_to_read();
  }
  ASSERT_EQ(warnings.all.size(), 1u);
  for (const char* part : {"unraveled", "host", "too many axes"})
    EXPECT_NE(warnings.all[0].find(part), std::string::npos) << warnings.all[0];
}

}  // namespace
}  // namespace symbind::testing
