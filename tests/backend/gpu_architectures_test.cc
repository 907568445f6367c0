#include "symbind/backend/gpu_architectures.h"

#include <vector>

#include <gtest/gtest.h>

namespace symbind {
namespace {

using Architectures = std::vector<int>;

TEST(GpuArchitectures, AreListedAsComputeCapabilities) {
  EXPECT_EQ(capability_text(Architectures{80}), "8.0");
  EXPECT_EQ(capability_text(Architectures{80, 90, 121}), "8.0, 9.0, 12.1");
}

TEST(GpuArchitectures, OfAnOlderGpuAreAProblemWithTheRemedy) {
  EXPECT_EQ(architecture_problem(Architectures{80}, 80), "");
  EXPECT_EQ(architecture_problem(Architectures{80, 90}, 120), "");
  EXPECT_EQ(architecture_problem(Architectures{90, 120}, 86),
            "its compute capability is 8.6, and Symbind was built for 9.0, 12.0: build it with "
            "-DCMAKE_CUDA_ARCHITECTURES=86, or install it with pip install -C "
            "cmake.define.CMAKE_CUDA_ARCHITECTURES=86 .");
  EXPECT_EQ(architecture_problem(Architectures{80}, 75), "its compute capability is 7.5, and Symbind needs 8.0");
}

TEST(GpuArchitectures, ThatLackKernelsForANewGpuAreWarnedOf) {
  EXPECT_EQ(architecture_warning(Architectures{80}, 80), "");
  EXPECT_EQ(architecture_warning(Architectures{80}, 89), "");
  EXPECT_EQ(architecture_warning(Architectures{80, 90}, 90), "");
  EXPECT_EQ(architecture_warning(Architectures{90}, 120), "");
  EXPECT_EQ(architecture_warning(Architectures{120}, 120), "");
  for (const int capability : {90, 100}) {
    const std::string warning = architecture_warning(Architectures{80, 86}, capability);
    EXPECT_NE(warning.find("compute capability 8.0, 8.6, and this one has "), std::string::npos) << warning;
    EXPECT_NE(warning.find("-DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(capability) + ","), std::string::npos)
        << warning;
  }
}

}  // namespace
}  // namespace symbind
