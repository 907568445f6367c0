// Which operators have kernels on a GPU. The lists are those of a build with CUDA; no GPU is needed to look at them.
#include <algorithm>
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

// Operators whose kernels are being written; "…*" are all that begin so. To be emptied.
const std::vector<std::string> under_way = {
    // reductions
    "argmax", "argmax_channel", "argmin", "max", "min", "prod", "nansum", "nanprod", "norm", "moments", "all_finite",
    "multi_all_finite", "_contrib_allclose", "multi_sum_sq",
    // normalizations
    "GroupNorm", "InstanceNorm", "LayerNorm", "LRN", "L2Normalization", "_backward_GroupNorm", "_backward_InstanceNorm",
    "_backward_LayerNorm", "_backward_LRN", "_backward_L2Normalization",
    // losses and products
    "LogisticRegressionOutput", "_backward_MAERegressionOutput", "_backward_SVMOutput", "softmax_cross_entropy",
    "_backward_softmax_cross_entropy", "IdentityAttachKLSparseReg", "_backward_IdentityAttachKLSparseReg", "batch_dot",
    // updates
    "_contrib_group_adagrad_update", "lamb_update_phase2", "mp_lamb_update_phase1", "mp_lamb_update_phase2",
    "multi_lars", "_sgld_update",
    // random numbers and densities
    "_random_*", "_sample_*", "_backward_sample_multinomial", "_shuffle", "_backward_random_pdf_*"};

bool is_under_way(const std::string& name) {
  return std::any_of(under_way.begin(), under_way.end(), [&](const std::string& listed) {
    return listed.back() == '*' ? name.starts_with(listed.substr(0, listed.size() - 1)) : name == listed;
  });
}

TEST(CudaCoverage, EveryOperatorHasAKernelOnTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  for (const OpDef* op : OpRegistry::get().all()) {
    if (op->own) continue;  // of another test
    const bool has_kernel = runs_on_device(*op, gpu(0)), is_listed = on_the_host.contains(op->name);
    EXPECT_TRUE(has_kernel || is_listed || is_under_way(op->name)) << op->name << " runs on the host";
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
