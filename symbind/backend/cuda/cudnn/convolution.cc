// cuDNN lists engines for a graph, best first by its own estimate; of those that are suitable, the first few are timed
// once, beside a kernel of ours if there is one (conv_product.h, conv_image.h, conv_few_rows.h, conv_plane_gradient.h),
// and the fastest is used. The choice is stored in a file, for later processes.
#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>

#include "symbind/backend/cuda/architectures.h"
#include "symbind/backend/cuda/conv_few_rows.h"
#include "symbind/backend/cuda/conv_finish.h"
#include "symbind/backend/cuda/conv_image.h"
#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/conv_plane_gradient.h"
#include "symbind/backend/cuda/conv_product.h"
#include "symbind/backend/cuda/conv_space_to_depth.h"
#include "symbind/backend/cuda/conv_sums.h"
#include "symbind/backend/cuda/cudnn/conv_graph.h"
#include "symbind/backend/cuda/cudnn/engine.h"
#include "symbind/backend/cuda/cudnn/trial.h"
#include "symbind/backend/cuda/cudnn_part.h"
#include "symbind/backend/gpu_architectures.h"
#include "symbind/backend/tuning_file.h"
#include "symbind/core/cache_folder.h"
#include "symbind/passes/passes.h"

namespace symbind::cuda_backend {
namespace cudnn {
namespace {

constexpr size_t most_timed = 10;        // engines after these are not worth trying
constexpr size_t enough_candidates = 4;  // with fewer, cuDNN is asked for others

class Library;

// A form in which a problem is given to cuDNN: as it is, or over cells.
struct Form {
  int64_t number = 0;  // in the list of all forms of the problem
  ConvolutionProblem problem;
  std::optional<CellConvolution> cells = {};
};

std::vector<Form> forms_of(const ConvolutionProblem& problem) {
  std::vector<Form> forms{{0, problem}};
  for (const CellConvolution& cells : CellConvolution::forms_of(problem))
    forms.push_back({static_cast<int64_t>(forms.size()), cells.problem(), cells});
  return forms;
}

// A kernel of ours, in several forms.
struct OwnKernel {
  int64_t number;
  std::vector<int> (*forms)(const CudaDevice& device, const ConvolutionProblem& problem);
  std::unique_ptr<ConvolutionPlan> (*make_plan)(const CudaDevice& device, const ConvolutionProblem& problem, int form);
  const char* name;
};
constexpr OwnKernel kernels_of_ours[] = {{-2, product_forms, make_product_plan, "our product"},
                                         {-3, image_forms, make_image_plan, "our kernel for images"},
                                         {-4, few_rows_forms, make_few_rows_plan, "our kernel for few rows"},
                                         {-5, plane_gradient_forms, make_plane_gradient_plan, "our weight gradient"}};

// A choice in the file begins with the number of a form, an engine's, or of a kernel of ours, or with this: the
// epilogue is a pass after the plan of the problem without it.
constexpr int64_t as_pass = -1;

// A candidate for a problem.
class Plan : public ConvolutionPlan {
 public:
  // Without the library's lock. The stream is the handle's. False: it has failed.
  virtual bool execute(cudnnHandle_t handle, cudaStream_t stream, const ConvolutionArrays& arrays,
                       void* workspace) const = 0;
  // With these another process can recreate it. Fails for an engine that cuDNN does not describe.
  virtual TuningFile::Numbers numbers() const = 0;
  virtual std::string description() const = 0;
};

class OwnPlan final : public Plan {
 public:
  OwnPlan(const OwnKernel& kernel, const CudaDevice& device, const ConvolutionProblem& problem, int form)
      : kernel_(kernel), form_(form), plan_(kernel.make_plan(device, problem, form)) {}
  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override {
    plan_->run(stream, arrays, workspace);
  }
  size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  bool applies_epilogue() const override { return plan_->applies_epilogue(); }
  bool execute(cudnnHandle_t, cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) const override {
    plan_->run(stream, arrays, workspace);
    return true;
  }
  TuningFile::Numbers numbers() const override { return {kernel_.number, form_}; }
  std::string description() const override { return join(", form ", form_, " of ", kernel_.name); }

 private:
  const OwnKernel& kernel_;
  const int form_;
  std::unique_ptr<ConvolutionPlan> plan_;
};

class EnginePlan final : public Plan {
 public:
  EnginePlan(Library& library, const Form& form, Configuration configuration, Descriptor plan, size_t workspace)
      : library_(library),
        form_(form),
        configuration_(std::move(configuration)),
        plan_(std::move(plan)),
        workspace_(workspace) {}
  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override;
  size_t workspace_bytes() const override { return workspace_ + (form_.cells ? form_.cells->bytes() : 0); }
  bool applies_epilogue() const override { return form_.problem.epilogue.any(); }
  bool execute(cudnnHandle_t handle, cudaStream_t stream, const ConvolutionArrays& arrays,
               void* workspace) const override {
    return status_of(handle, stream, arrays, workspace) == CUDNN_STATUS_SUCCESS;
  }
  cudnnStatus_t status_of(cudnnHandle_t handle, cudaStream_t stream, const ConvolutionArrays& arrays,
                          void* workspace) const {
    if (!form_.cells) return execute_engine(handle, arrays, workspace);
    const ConvolutionArrays rearranged = form_.cells->gather(stream, arrays, workspace);
    const cudnnStatus_t status =
        execute_engine(handle, rearranged, static_cast<std::byte*>(workspace) + form_.cells->bytes());
    form_.cells->scatter(stream, arrays, workspace);
    return status;
  }
  // The number of the form, then the engine and its knobs.
  TuningFile::Numbers numbers() const override {
    TuningFile::Numbers numbers = configuration_.numbers();
    numbers.insert(numbers.begin(), form_.number);
    return numbers;
  }
  std::string description() const override { return form_.cells ? ", over cells" : ""; }

 private:
  cudnnStatus_t execute_engine(cudnnHandle_t handle, const ConvolutionArrays& arrays, void* workspace) const {
    std::array<int64_t, 7> ids{data_id, weight_id, output_id};
    std::array<void*, 7> addresses{arrays.data, arrays.weight, arrays.output};
    size_t count = 3;
    const auto add = [&](int64_t id, const void* address) {
      ids[count] = id;
      addresses[count++] = const_cast<void*>(address);
    };
    if (form_.problem.epilogue.residual) add(residual_id, arrays.residual);
    if (form_.problem.epilogue.bias) add(bias_id, arrays.bias);
    if (form_.problem.epilogue.statistics) {
      add(channel_sum_id, arrays.channel_sum);
      add(channel_square_sum_id, arrays.channel_square_sum);
    }
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const int64_t>(ids).first(count))
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(addresses).first(count))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finalize();
    return cudnnBackendExecute(handle, plan_.raw(), pack.raw());
  }

  Library& library_;
  const Form form_;
  Configuration configuration_;
  Descriptor plan_;
  size_t workspace_;
};

using Plans = std::vector<std::shared_ptr<Plan>>;

// Increased when kernels of ours that are timed beside cuDNN's, or the passes that they replace, change their speed:
// choices that were made before are then not found.
constexpr int own_kernels = 6;

// What the times of engines depend on, besides the problem.
std::string conditions_of(const CudaDevice& device) {
  cudaDeviceProp properties{};
  int driver = 0;
  cudaGetDeviceProperties(&properties, device.id());
  cudaDriverGetVersion(&driver);
  return join(properties.name, ", ", properties.multiProcessorCount, " multiprocessors, driver ", driver, ", cuDNN ",
              cudnnGetVersion(), ", kernels ", own_kernels, " for ", capability_text(built_architectures()));
}

class Library {
 public:
  explicit Library(CudaDevice& device)
      : device_(device), tuned_(cache_folder(), "convolutions", conditions_of(device)) {
    const CurrentDevice current(device.id());
    check(cudnnCreate(&handle_), "starting cuDNN");
  }
  ~Library() { cudnnDestroy(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::shared_ptr<ConvolutionPlan> find(const ConvolutionProblem& problem, std::string* reason);
  void run(const EnginePlan& plan, cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace);

 private:
  struct Found {
    std::shared_ptr<Plan> plan;
    std::string reason = {};
    std::optional<float> milliseconds = {};  // none: there was nothing to compare it with, or no memory for it
  };
  const Found& found(const ConvolutionProblem& problem);
  Found search(const ConvolutionProblem& problem);
  std::shared_ptr<Plan> stored(const ConvolutionProblem& problem);
  void store(const ConvolutionProblem& problem, const Found& found);
  Found measure(const ConvolutionProblem& problem);
  Plans own_plans(const ConvolutionProblem& problem) const;
  Plans candidates(const Form& form);
  std::shared_ptr<Plan> make_plan(const Form& form, Configuration configuration);
  Found best(const Plans& plans, const ConvolutionProblem& problem);
  bool try_plan(const Plan& plan, const ConvolutionProblem& problem, cudaStream_t stream,
                const ConvolutionArrays& arrays, void* scratch) const;

  CudaDevice& device_;
  cudnnHandle_t handle_ = nullptr;
  std::mutex mutex_;  // a handle serves one thread at a time
  std::map<std::vector<int64_t>, Found> found_;
  TuningFile tuned_;
};

void EnginePlan::run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) {
  library_.run(*this, stream, arrays, workspace);
}

void Library::run(const EnginePlan& plan, cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) {
  const std::lock_guard lock(mutex_);
  check(cudnnSetStream(handle_, stream), "choosing a stream");
  check(plan.status_of(handle_, stream, arrays, workspace), "running a convolution");
}

// Everything a plan depends on.
std::vector<int64_t> key_of(const ConvolutionProblem& problem) {
  const ConvolutionSize& size = problem.size;
  std::vector<int64_t> key{static_cast<int64_t>(problem.pass),
                           problem.channels_last,
                           static_cast<int64_t>(problem.dtype),
                           problem.tune,
                           static_cast<int64_t>(problem.most_workspace),
                           tf32_wanted(),
                           problem.epilogue.residual,
                           problem.epilogue.bias,
                           problem.epilogue.relu,
                           size.batch,
                           size.channels,
                           size.filters,
                           size.groups};
  for (const auto* axes : {&size.in, &size.out, &size.kernel, &size.stride, &size.dilate, &size.pad})
    key.insert(key.end(), axes->begin(), axes->end());
  // Last: keys that files have already stay as they are, except of statistics that no kernel of ours was tried for.
  if (problem.epilogue.statistics) key.push_back(problem.repeatable ? 2 : 3);
  if (problem.epilogue.relu_gradient) key.push_back(problem.epilogue.signs ? 5 : 4);
  return key;
}

std::shared_ptr<ConvolutionPlan> Library::find(const ConvolutionProblem& problem, std::string* reason) {
  const Queueing queueing(device_);  // timing sets another stream on the handle and then the device's again
  const std::lock_guard lock(mutex_);
  const Found& found = this->found(problem);
  *reason = found.reason;
  return found.plan;
}

// With the lock.
const Library::Found& Library::found(const ConvolutionProblem& problem) {
  const auto [entry, is_new] = found_.try_emplace(key_of(problem));
  Found& found = entry->second;
  if (!is_new) return found;
  try {
    found = search(problem);
  } catch (const Error& error) {
    found.reason = error.what();
  }
  cudaGetLastError();  // clears the error of an engine that was tried
  return found;
}

// Otherwise cuDNN's first choice is used. An engine with ReLU may lose NaN, which only its results tell; statistics are
// checked as well.
bool is_measured(const ConvolutionProblem& problem) {
  return problem.tune || requires_exact_results(problem) || problem.epilogue.relu || problem.epilogue.statistics;
}

Library::Found Library::search(const ConvolutionProblem& problem) {
  if (!is_measured(problem)) return measure(problem);
  if (std::shared_ptr<Plan> plan = stored(problem)) return {std::move(plan)};
  Found found = measure(problem);
  store(problem, found);
  return found;
}

// With SYMBIND_EXPLAIN=2.
void explain(const ConvolutionProblem& problem, const Plan& plan, const std::string& what) {
  if (explain_level() < 2) return;
  static constexpr const char* passes[] = {"forward", "data gradient", "weight gradient"};
  const ConvolutionSize& size = problem.size;
  std::string epilogue;
  if (problem.epilogue.any())
    epilogue = join(problem.epilogue.statistics      ? ", the statistics"
                    : problem.epilogue.relu_gradient ? ", the gradient of ReLU with sums"
                                                     : ", the epilogue",
                    plan.applies_epilogue() ? " in the engine" : " as a pass");
  std::clog << join("[cuDNN] ", passes[static_cast<int>(problem.pass)], " in ", problem.dtype, ", batch ", size.batch,
                    ", channels ", size.channels, " to ", size.filters, ", size ", size.in[1], " x ", size.in[2],
                    ", kernel ", size.kernel[1], " x ", size.kernel[2], epilogue, plan.description(), ": ", what, "\n");
}

ConvolutionProblem without_epilogue(ConvolutionProblem problem) {
  problem.epilogue = {};
  return problem;
}

// The plan that an earlier process has found; null if there is none that works.
std::shared_ptr<Plan> Library::stored(const ConvolutionProblem& problem) {
  const TuningFile::Choice* const choice = tuned_.find(key_of(problem));
  if (!choice || choice->numbers.empty()) return nullptr;
  const TuningFile::Numbers numbers = choice->numbers;
  try {
    if (problem.epilogue.any() && numbers[0] == as_pass) return found(without_epilogue(problem)).plan;
    if (std::ranges::any_of(kernels_of_ours, [&](const OwnKernel& ours) { return ours.number == numbers[0]; })) {
      for (auto& plan : own_plans(problem))
        if (plan->numbers() == numbers) {
          explain(problem, *plan, join("found in ", tuned_.path()));
          return plan;
        }
      return nullptr;
    }
    for (const Form& form : forms_of(problem)) {
      if (form.number != numbers[0]) continue;
      Descriptor graph = describe_graph(handle_, form.problem);
      auto plan =
          make_plan(form, Configuration::from_numbers(std::move(graph), std::span<const int64_t>(numbers).subspan(1)));
      if (plan) explain(problem, *plan, join("found in ", tuned_.path()));
      return plan;
    }
  } catch (const Error&) {
    return nullptr;
  }
  return nullptr;
}

void Library::store(const ConvolutionProblem& problem, const Found& found) {
  if (!found.plan || !found.milliseconds) return;
  const bool is_pass = problem.epilogue.any() && !found.plan->applies_epilogue();
  try {
    tuned_.add(key_of(problem), {is_pass ? TuningFile::Numbers{as_pass} : found.plan->numbers(), *found.milliseconds});
  } catch (const Error&) {
    return;  // an engine that cuDNN does not describe is measured again by the next process
  }
}

Library::Found Library::measure(const ConvolutionProblem& problem) {
  Plans plans = own_plans(problem);
  // cuDNN's engines add statistics in the order in which blocks end, although it does not list that among their
  // properties. It has none for the gradient of ReLU.
  if ((!problem.epilogue.statistics || !problem.repeatable) && !problem.epilogue.relu_gradient)
    for (const Form& form : forms_of(problem)) {
      Plans more = candidates(form);
      plans.insert(plans.end(), more.begin(), more.end());
    }
  // For an epilogue there is also the plan without it, and a pass over its result.
  if (problem.epilogue.any()) {
    const Found& plain = found(without_epilogue(problem));
    if (plans.empty()) return {plain.plan, plain.reason, plain.milliseconds.value_or(0)};
    if (plain.plan) plans.push_back(plain.plan);
  }
  if (plans.empty()) return {nullptr, "cuDNN has no engine that suits"};
  return is_measured(problem) ? best(plans, problem) : Found{plans.front()};
}

Plans Library::own_plans(const ConvolutionProblem& problem) const {
  Plans plans;
  for (const OwnKernel& kernel : kernels_of_ours)
    for (const int form : kernel.forms(device_, problem)) {
      auto plan = std::make_shared<OwnPlan>(kernel, device_, problem, form);
      if (plan->workspace_bytes() <= problem.most_workspace) plans.push_back(std::move(plan));
    }
  return plans;
}

Plans Library::candidates(const Form& form) {
  const ConvolutionProblem& problem = form.problem;
  // One candidate is enough if nothing is timed; but an exact one may come after others.
  const size_t most = problem.tune || requires_exact_results(problem) ? most_timed : 1;
  Descriptor graph;
  try {
    graph = describe_graph(handle_, problem);
  } catch (const Error&) {
    if (problem.epilogue.any()) return {};  // an epilogue that cuDNN does not know
    throw;
  }
  Plans plans;
  for (const auto mode : {CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (plans.size() >= std::min(most, enough_candidates)) break;
    for (Configuration& configuration : suggested_configurations(graph, mode)) {
      if (plans.size() == most) break;
      try {
        if (auto plan = make_plan(form, std::move(configuration))) plans.push_back(std::move(plan));
      } catch (const Error&) {
        continue;  // an engine that cuDNN itself cannot set up
      }
    }
  }
  return plans;
}

// Null if the engine does not suit.
std::shared_ptr<Plan> Library::make_plan(const Form& form, Configuration configuration) {
  if (!suits(configuration, form.problem)) return nullptr;
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_)
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration.descriptor);
  if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  const auto workspace = plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1).at(0);
  if (workspace < 0) return nullptr;
  auto made = std::make_shared<EnginePlan>(*this, form, std::move(configuration), std::move(plan),
                                           static_cast<size_t>(workspace));
  return made->workspace_bytes() <= form.problem.most_workspace ? made : nullptr;
}

// Of the candidates that give exact results, if required, the fastest; without tuning, the first.
Library::Found Library::best(const Plans& plans, const ConvolutionProblem& problem) {
  size_t workspace = 0;
  for (const auto& plan : plans) workspace = std::max(workspace, plan->workspace_bytes());
  if (problem.epilogue.statistics) workspace = std::max(workspace, output_sums_bytes(problem));
  if (problem.epilogue.relu_gradient) workspace = std::max(workspace, relu_gradient_bytes(problem));
  Trial trial(device_, problem, workspace);
  const bool exact = requires_exact_results(problem);
  if (!trial.has_memory()) {
    if (exact) return {nullptr, "not enough memory to check cuDNN's results"};
    return {problem.epilogue.any() ? plans.back() : plans.front()};  // the last one has no epilogue
  }
  check(cudnnSetStream(handle_, trial.stream()), "choosing a stream");
  std::shared_ptr<Plan> best;
  float best_time = 0;
  for (const auto& plan : plans) {
    const RunEngine run = [&](const ConvolutionArrays& arrays, void* scratch) {
      return try_plan(*plan, problem, trial.stream(), arrays, scratch);
    };
    if (exact && !trial.is_exact(run)) continue;
    if (plan->applies_epilogue() && problem.epilogue.relu && !trial.keeps_nan(run)) continue;
    if (plan->applies_epilogue() && problem.epilogue.statistics && !trial.has_right_statistics(run)) continue;
    if (!problem.tune) {
      best = plan;
      break;
    }
    const std::optional<float> time = trial.time(run);
    if (!time) continue;
    explain(problem, *plan, join(*time * 1000, " us"));
    if (best && *time >= best_time) continue;
    best = plan;
    best_time = *time;
  }
  check(cudnnSetStream(handle_, device_.stream()), "choosing a stream");
  if (!best) return {nullptr, join("none of ", plans.size(), " engines gives the results wanted")};
  return {best, "", best_time};
}

// Queues a plan, and the pass for an epilogue that it does not apply. The handle has the stream already. A pass for
// sums ends in a small kernel, in which BatchNorm otherwise computes its statistics. A BatchNorm that is given sums has
// a small kernel of its own: here a copy of the sums, which takes as long.
bool Library::try_plan(const Plan& plan, const ConvolutionProblem& problem, cudaStream_t stream,
                       const ConvolutionArrays& arrays, void* scratch) const {
  try {
    if (!plan.execute(handle_, stream, arrays, scratch)) return false;
  } catch (const Error&) {
    return false;
  }
  if (problem.epilogue.relu_gradient && !plan.applies_epilogue()) {
    queue_relu_gradient(stream, problem, arrays, scratch);
  } else if (!plan.applies_epilogue()) {
    queue_finish(stream, problem, problem.epilogue.relu ? "relu" : "", arrays.output, arrays.residual, arrays.bias);
    if (problem.epilogue.statistics)
      queue_output_sums(stream, problem, arrays.output, arrays.channel_sum, arrays.channel_square_sum, scratch);
  } else if (problem.epilogue.statistics || problem.epilogue.relu_gradient) {
    const int64_t channels = problem.epilogue.statistics ? problem.size.filters : problem.size.channels;
    const size_t bytes = static_cast<size_t>(channels) * sizeof(float);
    cudaMemcpyAsync(scratch, arrays.channel_sum, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  return true;
}

}  // namespace
}  // namespace cudnn

std::shared_ptr<ConvolutionPlan> find_convolution(CudaDevice& device, const ConvolutionProblem& problem,
                                                  std::string* reason) {
  if (*reason = cudnn::cudnn_library.problem(); !reason->empty()) {
    warn_without_cudnn();
    return nullptr;
  }
  const auto library = std::static_pointer_cast<cudnn::Library>(
      device.library("cuDNN", [&] { return std::make_shared<cudnn::Library>(device); }));
  return library->find(problem, reason);
}

}  // namespace symbind::cuda_backend
