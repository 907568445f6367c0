// A convolution is a graph of one operation, or of a few with its epilogue. cuDNN lists engines for it, best first by
// its own estimate; of those that are suitable, the first few are timed once and the fastest is used.
#include <algorithm>
#include <array>
#include <deque>
#include <iostream>
#include <map>
#include <mutex>

#include "symbind/backend/cuda/conv_finish.h"
#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/conv_space_to_depth.h"
#include "symbind/backend/cuda/cudnn/descriptor.h"
#include "symbind/backend/cuda/cudnn/trial.h"
#include "symbind/core/log.h"
#include "symbind/passes/passes.h"

namespace symbind::cuda_backend {
namespace cudnn {
namespace {

constexpr int64_t data_id = 1, weight_id = 2, output_id = 3, residual_id = 4, bias_id = 5;
constexpr int64_t first_virtual_id = 6;
constexpr int64_t array_alignment = 16;
constexpr size_t most_timed = 10;        // engines after these are not worth trying
constexpr size_t enough_candidates = 4;  // with fewer, cuDNN is asked for others

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return CUDNN_DATA_FLOAT;
    case DType::float16:
      return CUDNN_DATA_HALF;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      fail_unknown_dtype(dtype);
  }
}

// ---- The graph ------------------------------------------------------------------------------------------------------

// The spatial axes that cuDNN sees: two at least.
std::vector<int64_t> spatial(const std::array<int64_t, 3>& axes, bool three) {
  return {axes.begin() + (three ? 0 : 1), axes.end()};
}

struct Arrays {
  bool three;  // spatial axes
  std::vector<int64_t> data, weight, output, bias;

  explicit Arrays(const ConvolutionSize& size)
      : three(size.in[0] > 1 || size.kernel[0] > 1 || size.out[0] > 1 || size.pad[0] > 0),
        data{size.batch, size.channels},
        weight{size.filters, size.group_channels()},
        output{size.batch, size.filters},
        bias{1, size.filters} {
    const auto add = [&](std::vector<int64_t>& dims, const std::array<int64_t, 3>& axes) {
      const auto extents = spatial(axes, three);
      dims.insert(dims.end(), extents.begin(), extents.end());
    };
    add(data, size.in);
    add(weight, size.kernel);
    add(output, size.out);
    add(bias, {1, 1, 1});
  }
};

std::vector<int64_t> strides(const std::vector<int64_t>& dims, bool channels_last) {
  std::vector<int64_t> result(dims.size());
  int64_t step = 1;
  const auto take = [&](size_t axis) {
    result[axis] = step;
    step *= dims[axis];
  };
  if (channels_last) take(1);
  for (size_t axis = dims.size(); axis-- > 2;) take(axis);
  if (!channels_last) take(1);
  take(0);
  return result;
}

Descriptor described_array(int64_t id, const std::vector<int64_t>& dims, bool channels_last, cudnnDataType_t type) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides(dims, channels_last))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, array_alignment);
  return tensor;
}

Descriptor describe_array(int64_t id, const std::vector<int64_t>& dims, const ConvolutionProblem& problem) {
  Descriptor tensor = described_array(id, dims, problem.channels_last, data_type(problem.dtype));
  tensor.finalize();
  return tensor;
}

// A value between two operations, which is not in memory.
Descriptor describe_virtual(int64_t id, const std::vector<int64_t>& dims, const ConvolutionProblem& problem) {
  Descriptor tensor = described_array(id, dims, problem.channels_last, CUDNN_DATA_FLOAT);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true).finalize();
  return tensor;
}

Descriptor describe_convolution(const ConvolutionSize& size, bool three) {
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{three ? 3 : 2})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(size.dilate, three))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(size.stride, three))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(size.pad, three))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(size.pad, three))
      .finalize();
  return convolution;
}

// The names of an operation's attributes, which differ from pass to pass.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, data, weight, output;
};

OperationNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::data_grad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvolutionPass::weight_grad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

// The graph of a problem: products, then residual, then bias, then ReLU. cuDNN has compiled engines for the whole
// sequence in this order and with a bias of the type of the other arrays; for other orders or types it compiles kernels
// at run time.
class GraphDescription {
 public:
  explicit GraphDescription(const ConvolutionProblem& problem) : problem_(problem), arrays_(problem.size) {
    const ConvolutionEpilogue& epilogue = problem.epilogue;
    left_ = 1 + epilogue.residual + epilogue.bias + epilogue.relu;
    add_products();
    if (epilogue.residual) add(CUDNN_POINTWISE_ADD, &keep(describe_array(residual_id, arrays_.output, problem)));
    if (epilogue.bias) add(CUDNN_POINTWISE_ADD, &keep(describe_array(bias_id, arrays_.bias, problem)));
    if (epilogue.relu) add(CUDNN_POINTWISE_RELU_FWD, nullptr);
  }

  Descriptor graph(cudnnHandle_t handle) const {
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             std::span<const cudnnBackendDescriptor_t>(operations_))
        .finalize();
    return graph;
  }

 private:
  // Until the graph is made, what it is made of must exist.
  Descriptor& keep(Descriptor descriptor) { return kept_.emplace_back(std::move(descriptor)); }

  // The result of the next operation: that of the last one is in memory.
  const Descriptor& next_result() {
    --left_;
    return keep(left_ == 0 ? describe_array(output_id, arrays_.output, problem_)
                           : describe_virtual(first_virtual_id + left_, arrays_.output, problem_));
  }

  void add_products() {
    const OperationNames names = names_of(problem_.pass);
    result_ = &next_result();
    Descriptor& operation = keep(Descriptor(names.type));
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f)
        .set(names.beta, CUDNN_TYPE_FLOAT, 0.0f)
        .set(names.convolution, keep(describe_convolution(problem_.size, arrays_.three)))
        .set(names.data, keep(describe_array(data_id, arrays_.data, problem_)))
        .set(names.weight, keep(describe_array(weight_id, arrays_.weight, problem_)))
        .set(names.output, *result_)
        .finalize();
    operations_.push_back(operation.raw());
  }

  // A function of the last result, and of an operand where it has two.
  void add(cudnnPointwiseMode_t mode, const Descriptor* operand) {
    Descriptor& function = keep(Descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
    function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .finalize();
    Descriptor& operation = keep(Descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *result_)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1.0f);
    if (operand)
      operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *operand)
          .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1.0f);
    result_ = &next_result();
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *result_).finalize();
    operations_.push_back(operation.raw());
  }

  const ConvolutionProblem& problem_;
  const Arrays arrays_;
  int64_t left_;  // operations to come
  std::deque<Descriptor> kept_;
  const Descriptor* result_ = nullptr;  // of the last operation
  std::vector<cudnnBackendDescriptor_t> operations_;
};

// ---- Engines --------------------------------------------------------------------------------------------------------

std::vector<Descriptor> named_engines(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                               &count, nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<Descriptor> engines;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    engines.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(engines.back().raw());
  }
  int64_t there = 0;
  if (count == 0 ||
      cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                               &there, raw.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  engines.resize(static_cast<size_t>(std::clamp<int64_t>(there, 0, count)));
  return engines;
}

// Is the engine suitable: deterministic, of the required precision, and usable without run-time compilation?
bool suits(const Descriptor& configuration, const ConvolutionProblem& problem) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  auto raw = engine.raw();
  int64_t count = 0;
  check(cudnnBackendGetAttribute(configuration.raw(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &count, &raw),
        "asking about an engine");
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
  return !wants_exact_results(problem) || (!noted(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) &&
                                           !noted(CUDNN_NUMERICAL_NOTE_WINOGRAD) && !noted(CUDNN_NUMERICAL_NOTE_FFT));
}

// ---- What a device keeps --------------------------------------------------------------------------------------------

class Library;

class Plan final : public ConvolutionPlan {
 public:
  // With `cells` the engine is one for the convolution over these.
  Plan(Library& library, Descriptor configuration, Descriptor plan, size_t workspace,
       const ConvolutionEpilogue& epilogue, const std::optional<CellConvolution>& cells)
      : library_(library),
        configuration_(std::move(configuration)),
        plan_(std::move(plan)),
        workspace_(workspace),
        epilogue_(epilogue),
        cells_(cells) {}
  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override;
  size_t workspace_bytes() const override { return workspace_ + (cells_ ? cells_->bytes() : 0); }
  bool applies_epilogue() const override { return epilogue_.any(); }
  bool is_over_cells() const { return cells_.has_value(); }

  // Without the library's lock. The stream is the handle's.
  cudnnStatus_t execute(cudnnHandle_t handle, cudaStream_t stream, const ConvolutionArrays& arrays,
                        void* workspace) const {
    if (!cells_) return execute_engine(handle, arrays, workspace);
    const ConvolutionArrays rearranged = cells_->gather(stream, arrays, workspace);
    const cudnnStatus_t status =
        execute_engine(handle, rearranged, static_cast<std::byte*>(workspace) + cells_->bytes());
    cells_->scatter(stream, arrays, workspace);
    return status;
  }

 private:
  cudnnStatus_t execute_engine(cudnnHandle_t handle, const ConvolutionArrays& arrays, void* workspace) const {
    std::array<int64_t, 5> ids{data_id, weight_id, output_id};
    std::array<void*, 5> addresses{arrays.data, arrays.weight, arrays.output};
    size_t count = 3;
    const auto add = [&](int64_t id, const void* address) {
      ids[count] = id;
      addresses[count++] = const_cast<void*>(address);
    };
    if (epilogue_.residual) add(residual_id, arrays.residual);
    if (epilogue_.bias) add(bias_id, arrays.bias);
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const int64_t>(ids).first(count))
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(addresses).first(count))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finalize();
    return cudnnBackendExecute(handle, plan_.raw(), pack.raw());
  }

  Library& library_;
  Descriptor configuration_, plan_;
  size_t workspace_;
  const ConvolutionEpilogue epilogue_;
  const std::optional<CellConvolution> cells_;
};

using Plans = std::vector<std::shared_ptr<Plan>>;

class Library {
 public:
  explicit Library(CudaDevice& device) : device_(device) {
    const CurrentDevice current(device.id());
    check(cudnnCreate(&handle_), "starting cuDNN");
  }
  ~Library() { cudnnDestroy(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::shared_ptr<ConvolutionPlan> find(const ConvolutionProblem& problem, std::string* reason);
  void run(const Plan& plan, cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace);

 private:
  struct Found {
    std::shared_ptr<Plan> plan;
    std::string reason;
  };
  const Found& found(const ConvolutionProblem& problem);
  Found search(const ConvolutionProblem& problem);
  Plans candidates(const ConvolutionProblem& problem, const std::optional<CellConvolution>& cells = {});
  Found best(const Plans& plans, const ConvolutionProblem& problem);
  bool try_plan(const Plan& plan, const ConvolutionProblem& problem, cudaStream_t stream,
                const ConvolutionArrays& arrays, void* scratch) const;

  CudaDevice& device_;
  cudnnHandle_t handle_ = nullptr;
  std::mutex mutex_;  // a handle serves one thread at a time
  std::map<std::vector<int64_t>, Found> found_;
};

void Plan::run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) {
  library_.run(*this, stream, arrays, workspace);
}

void Library::run(const Plan& plan, cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) {
  const std::lock_guard lock(mutex_);
  check(cudnnSetStream(handle_, stream), "choosing a stream");
  check(plan.execute(handle_, stream, arrays, workspace), "running a convolution");
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

Library::Found Library::search(const ConvolutionProblem& problem) {
  Plans plans = candidates(problem);
  for (const auto& cells : CellConvolution::forms_of(problem)) {
    Plans others = candidates(cells.problem(), cells);
    plans.insert(plans.end(), others.begin(), others.end());
  }
  // For an epilogue there is also the plan without it, and a pass over its result.
  if (problem.epilogue.any()) {
    ConvolutionProblem products = problem;
    products.epilogue = {};
    const Found& plain = found(products);
    if (plans.empty()) return plain;
    if (plain.plan) plans.push_back(plain.plan);
  }
  if (plans.empty()) return {nullptr, "cuDNN has no engine that suits"};
  const bool is_checked = wants_exact_results(problem) || problem.epilogue.relu;
  const bool is_timed = problem.tune && plans.size() > 1;
  return is_checked || is_timed ? best(plans, problem) : Found{plans.front(), ""};
}

Plans Library::candidates(const ConvolutionProblem& problem, const std::optional<CellConvolution>& cells) {
  // One candidate is enough if nothing is timed; but an exact one may come after others.
  const size_t most = problem.tune || wants_exact_results(problem) ? most_timed : 1;
  Descriptor graph;
  try {
    graph = GraphDescription(problem).graph(handle_);
  } catch (const Error&) {
    if (problem.epilogue.any()) return {};  // an epilogue that cuDNN does not know
    throw;
  }
  Plans plans;
  for (const auto mode : {CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (plans.size() >= std::min(most, enough_candidates)) break;
    for (Descriptor& configuration : named_engines(graph, mode)) {
      if (plans.size() == most) break;
      try {
        if (!suits(configuration, problem)) continue;
        Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_)
            .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
        if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) continue;
        const auto workspace = plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1).at(0);
        if (workspace < 0) continue;
        auto made = std::make_shared<Plan>(*this, std::move(configuration), std::move(plan),
                                           static_cast<size_t>(workspace), problem.epilogue, cells);
        if (made->workspace_bytes() <= problem.most_workspace) plans.push_back(std::move(made));
      } catch (const Error&) {
        continue;  // an engine that cuDNN itself cannot set up
      }
    }
  }
  return plans;
}

// With SYMBIND_EXPLAIN=2.
void explain_time(const ConvolutionProblem& problem, const Plan& plan, float milliseconds) {
  if (explain_level() < 2) return;
  static constexpr const char* passes[] = {"forward", "data gradient", "weight gradient"};
  const ConvolutionSize& size = problem.size;
  const char* const epilogue = !problem.epilogue.any()   ? ""
                               : plan.applies_epilogue() ? ", the epilogue in the engine"
                                                         : ", the epilogue as a pass";
  std::clog << join("[cuDNN] ", passes[static_cast<int>(problem.pass)], " in ", problem.dtype, ", batch ", size.batch,
                    ", channels ", size.channels, " to ", size.filters, ", size ", size.in[1], " x ", size.in[2],
                    ", kernel ", size.kernel[1], " x ", size.kernel[2], epilogue,
                    plan.is_over_cells() ? ", over cells" : "", ": ", milliseconds * 1000, " us\n");
}

// Of the candidates that give exact results, if required, the fastest; without tuning, the first.
Library::Found Library::best(const Plans& plans, const ConvolutionProblem& problem) {
  size_t workspace = 0;
  for (const auto& plan : plans) workspace = std::max(workspace, plan->workspace_bytes());
  Trial trial(device_, problem, workspace);
  const bool exact = wants_exact_results(problem);
  if (!trial.has_memory()) {
    if (exact) return {nullptr, "not enough memory to check cuDNN's results"};
    return {problem.epilogue.any() ? plans.back() : plans.front(), ""};  // the last one has no epilogue
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
    if (!problem.tune) {
      best = plan;
      break;
    }
    const std::optional<float> time = trial.time(run);
    if (!time) continue;
    explain_time(problem, *plan, *time);
    if (best && *time >= best_time) continue;
    best = plan;
    best_time = *time;
  }
  check(cudnnSetStream(handle_, device_.stream()), "choosing a stream");
  if (!best) return {nullptr, join("none of cuDNN's ", plans.size(), " engines gives the results wanted")};
  return {best, ""};
}

// Queues a plan, and the pass for an epilogue that it does not apply. The handle has the stream already.
bool Library::try_plan(const Plan& plan, const ConvolutionProblem& problem, cudaStream_t stream,
                       const ConvolutionArrays& arrays, void* scratch) const {
  try {
    if (plan.execute(handle_, stream, arrays, scratch) != CUDNN_STATUS_SUCCESS) return false;
  } catch (const Error&) {
    return false;
  }
  if (!plan.applies_epilogue())
    queue_finish(stream, problem, problem.epilogue.relu ? "relu" : "", arrays.output, arrays.residual, arrays.bias);
  return true;
}

}  // namespace
}  // namespace cudnn

std::shared_ptr<ConvolutionPlan> find_convolution(CudaDevice& device, const ConvolutionProblem& problem,
                                                  std::string* reason) {
  if (*reason = cudnn::cudnn_library.problem(); !reason->empty()) {
    static std::once_flag warned;
    std::call_once(warned, [&] { log_warning(*reason, ". Convolutions on GPUs run by slower kernels until then."); });
    return nullptr;
  }
  const auto library = std::static_pointer_cast<cudnn::Library>(
      device.library("cuDNN", [&] { return std::make_shared<cudnn::Library>(device); }));
  return library->find(problem, reason);
}

}  // namespace symbind::cuda_backend
