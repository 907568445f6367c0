// Base of GPU tests: they are skipped if there is none, products are in full float32, since devices are compared at
// float tolerance, and measured choices of engines are not stored in the user's folder. On a machine with
// one GPU gpu(0) and gpu(1) both use it.
#pragma once

#include <cstdlib>

#include <gtest/gtest.h>

#include "symbind/core/context.h"

namespace symbind::testing {

inline const bool tf32_is_off = setenv("SYMBIND_TF32", "0", 1) == 0;
inline const bool contexts_may_share_a_gpu = setenv("SYMBIND_GPUS", "2", 0) == 0;
inline const bool cache_is_off = setenv("SYMBIND_CACHE_DIR", "off", 0) == 0;

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "there is no GPU here";
  }
};

// Products of float32 numbers in TF32, as users have them.
class Tf32Test : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    setenv("SYMBIND_TF32", "1", 1);
    unsetenv("MXNET_CUDNN_AUTOTUNE_DEFAULT");
  }
  void TearDown() override { setenv("SYMBIND_TF32", "0", 1); }
};

}  // namespace symbind::testing
