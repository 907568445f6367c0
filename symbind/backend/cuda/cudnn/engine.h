// cuDNN's engines for a graph, each with its configuration.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/cudnn/descriptor.h"

namespace symbind::cuda_backend::cudnn {

// An engine with values for its knobs.
struct Configuration {
  Descriptor descriptor;
  std::vector<Descriptor> parts = {};  // what it was made of

  // The engine's index, and type and value of each knob. With these another process can recreate it.
  std::vector<int64_t> numbers() const;
  static Configuration from_numbers(Descriptor graph, std::span<const int64_t> numbers);
};

// Those that cuDNN suggests, best first by its own estimate.
std::vector<Configuration> suggested_configurations(const Descriptor& graph, cudnnBackendHeurMode_t mode);

// Is the engine suitable: deterministic, of the required precision, and usable without run-time compilation?
bool suits(const Configuration& configuration, const ConvolutionProblem& problem);

}  // namespace symbind::cuda_backend::cudnn
