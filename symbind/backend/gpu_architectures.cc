#include "symbind/backend/gpu_architectures.h"

#include <algorithm>

#include "symbind/core/error.h"

namespace symbind {
namespace {

constexpr int first_with_overlap = 90;  // of launches, and with clusters of blocks

std::string number_text(int capability) { return join(capability / 10, ".", capability % 10); }

// The end of a sentence about a build.
std::string remedy(int capability) {
  return join("build it with -DCMAKE_CUDA_ARCHITECTURES=", capability,
              ", or install it with pip install -C cmake.define.CMAKE_CUDA_ARCHITECTURES=", capability, " .");
}

}  // namespace

std::string capability_text(std::span<const int> architectures) {
  std::string text;
  for (const int architecture : architectures) text += (text.empty() ? "" : ", ") + number_text(architecture);
  return text;
}

std::string architecture_problem(std::span<const int> built_for, int capability) {
  constexpr int oldest = 80;  // that kernels can be compiled for
  if (capability >= std::ranges::min(built_for)) return {};
  if (capability < oldest)
    return join("its compute capability is ", number_text(capability), ", and Symbind needs ", number_text(oldest));
  return join("its compute capability is ", number_text(capability), ", and Symbind was built for ",
              capability_text(built_for), ": ", remedy(capability));
}

std::string architecture_warning(std::span<const int> built_for, int capability) {
  if (capability < first_with_overlap || std::ranges::max(built_for) >= first_with_overlap) return {};
  return join("Symbind was built for GPUs of compute capability ", capability_text(built_for), ", and this one has ",
              number_text(capability),
              ": kernels are compiled when they first run, their launches do not overlap, and predictions of single "
              "images and BatchNorm are slower; ",
              remedy(capability));
}

}  // namespace symbind
