#include "symbind/backend/cuda/cudnn/engine.h"

#include <algorithm>

namespace symbind::cuda_backend::cudnn {
namespace {

// An attribute that consists of descriptors, `most` at most.
std::vector<Descriptor> descriptors(const Descriptor& of, cudnnBackendAttributeName_t name,
                                    cudnnBackendDescriptorType_t type, int64_t most) {
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most; ++i) {
    found.emplace_back(type);
    raw.push_back(found.back().raw());
  }
  int64_t count = 0;
  check(cudnnBackendGetAttribute(of.raw(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, raw.data()),
        "asking about an engine");
  found.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, most)));
  return found;
}

Descriptor engine_of(const Descriptor& configuration) {
  auto engines = descriptors(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  return std::move(engines.at(0));
}

}  // namespace

std::vector<Configuration> suggested_configurations(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                               &count, nullptr) != CUDNN_STATUS_SUCCESS ||
      count == 0)
    return {};
  std::vector<Configuration> configurations;
  for (Descriptor& each :
       descriptors(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count))
    configurations.push_back({std::move(each)});
  return configurations;
}

bool suits(const Configuration& configuration, const ConvolutionProblem& problem) {
  const Descriptor engine = engine_of(configuration.descriptor);
  const auto behaviour = engine.get<cudnnBackendBehaviorNote_t>(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  if (std::find(behaviour.begin(), behaviour.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behaviour.end())
    return false;
  const auto notes = engine.get<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto noted = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (noted(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (problem.dtype != DType::float32) return !noted(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  if (noted(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  return !requires_exact_results(problem) ||
         (!noted(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) && !noted(CUDNN_NUMERICAL_NOTE_WINOGRAD) &&
          !noted(CUDNN_NUMERICAL_NOTE_FFT));
}

std::vector<int64_t> Configuration::numbers() const {
  const Descriptor engine = engine_of(descriptor);
  std::vector<int64_t> numbers = engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1);
  require(numbers.size() == 1, "[cuDNN] an engine without an index");
  for (const Descriptor& knob : descriptors(descriptor, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                            CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    const auto type = knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1);
    const auto value = knob.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1);
    numbers.insert(numbers.end(), {static_cast<int64_t>(type.at(0)), value.at(0)});
  }
  return numbers;
}

Configuration Configuration::from_numbers(Descriptor graph, std::span<const int64_t> numbers) {
  require(numbers.size() % 2 == 1, "[cuDNN] an engine's index, and two numbers for each knob, are expected");
  Configuration made{Descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)};
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, numbers[0])
      .finalize();
  std::vector<cudnnBackendDescriptor_t> knobs;
  for (size_t i = 1; i < numbers.size(); i += 2) {
    Descriptor& knob = made.parts.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(numbers[i]))
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, numbers[i + 1])
        .finalize();
    knobs.push_back(knob.raw());
  }
  made.descriptor.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty())
    made.descriptor.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        std::span<const cudnnBackendDescriptor_t>(knobs));
  made.descriptor.finalize();
  made.parts.push_back(std::move(engine));
  made.parts.push_back(std::move(graph));
  return made;
}

}  // namespace symbind::cuda_backend::cudnn
