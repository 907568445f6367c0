// Forward adds up count, sum and sum of squares of each channel over the contexts. These are float64, and made of the
// mean and variance of each context's part relative to the part's first element. So the mean is not rounded where it is
// large, and the variance has a relative error of about (mean / deviation)² · 2⁻⁵³: 10⁻⁶ where the mean is 10⁵
// deviations.
//
// With x̂ = (x - mean) / deviation, backward adds up count, Σ dy and Σ dy·x̂:
//   dx = gamma / deviation · (dy - (Σ dy + x̂ · Σ dy·x̂) / count)
// The gradients of gamma and beta are those of the context's part, which are added up as all gradients are.
#include "symbind/backend/sync_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "symbind/backend/composed.h"
#include "symbind/backend/sub_plan.h"
#include "symbind/core/sum_group.h"
#include "symbind/graph/attributes.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/moments.h"
#include "symbind/ops/reshape.h"
#include "symbind/ops/slice.h"
#include "symbind/ops/sync_batch_norm.h"

namespace symbind {
namespace {

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Arrays of one element for each channel, between a device and the host.
class PerChannel {
 public:
  PerChannel(const NodeView& node, const Tensor& gamma)
      : device_(Device::get(node.context)), dtype_(gamma.dtype), buffer_(gamma.bytes()) {}

  size_t bytes() const { return buffer_.size(); }
  void read(const void* from, std::span<double> values) {
    device_.copy_to_host(buffer_.data(), from, buffer_.size());
    visit([&]<class C>(C* data) { std::copy_n(data, values.size(), values.begin()); });
  }
  void write(void* to, std::span<const double> values) {
    if (!to) return;
    visit([&]<class C>(C* data) {
      std::transform(values.begin(), values.end(), data, [](double value) { return static_cast<C>(value); });
    });
    device_.copy_from_host(to, buffer_.data(), buffer_.size());
  }

 private:
  template <class Function>
  void visit(Function function) {
    if (dtype_ == DType::float64) return function(reinterpret_cast<double*>(buffer_.data()));
    function(reinterpret_cast<float*>(buffer_.data()));
  }
  Device& device_;
  DType dtype_;
  std::vector<std::byte> buffer_;
};

// Of each channel: the first element, and mean and variance of what the elements differ from it. In the type of gamma.
Symbol part_statistics(const ComposedInputs& in) {
  const Symbol data = in.types[0] == in.types[1] ? in[0] : cast(in[0], {.dtype = in.types[1]});
  Slice first_element;
  Tuple axes;
  for (int axis = 0; axis < in.shapes[0].rank(); ++axis) {
    first_element.begin.push_back(0);
    first_element.end.push_back(axis == 1 ? in.shapes[0][1] : 1);
    if (axis != 1) axes.push_back(axis);
  }
  const Symbol first = slice(data, first_element);
  const Symbol differences = moments(broadcast_sub(data, first), {.axes = axes});
  return Symbol::group({reshape(first, {.shape = {-1}}), differences[0], differences[1]});
}

// ---- What both directions share -------------------------------------------------------------------------------------

// A node on one of several contexts. Scratch memory holds some arrays and then that of whatever network runs.
class Synchronized : public Kernel {
 public:
  void run(const Args& args) final { sums_over_contexts() ? run_part(args) : alone_->run(args); }

 protected:
  Synchronized(const NodeView& node, const SyncBatchNorm& params, const Tensor& data, const Tensor& gamma,
               std::unique_ptr<Kernel> alone)
      : channels_(static_cast<size_t>(gamma.shape.size())),
        count_(static_cast<double>(data.shape.size() / std::max<int64_t>(gamma.shape.size(), 1))),
        per_channel_(node, gamma),
        sums_(1 + 2 * channels_),
        alone_(std::move(alone)),
        key_(join(node.where(), " (key ", params.key.get(), ")")) {
    scratch_bytes = alone_->scratch_bytes;
    capturable = false;  // whether it waits for others is known when it runs
  }
  virtual void run_part(const Args& args) = 0;

  // Memory of a run, at the beginning of scratch.
  size_t reserve(size_t bytes) {
    const size_t offset = reserved_;
    reserved_ += aligned(bytes);
    return offset;
  }
  static void* at(const Args& args, size_t offset) { return static_cast<std::byte*>(args.scratch) + offset; }
  std::unique_ptr<SubPlan> compile(const NodeView& node, const Symbol& network, std::span<const Symbol> variables,
                                   std::span<const Tensor> tensors) {
    return std::make_unique<SubPlan>(
        network, variables, tensors,
        SubPlanOptions{.context = node.context, .is_train = node.is_train, .may_lack_outputs = false});
  }
  // Once all memory is reserved and the networks are compiled.
  void need(const SubPlan& first, const SubPlan& second) {
    scratch_bytes = std::max(scratch_bytes, reserved_ + std::max(first.scratch_bytes(), second.scratch_bytes()));
  }
  void forward(SubPlan& plan, const Args& args, const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
    Args own = args;
    own.scratch = at(args, reserved_);
    plan.forward(own, {.inputs = inputs, .outputs = outputs});
  }

  std::span<double> first_sums() { return std::span(sums_).subspan(1, channels_); }
  std::span<double> second_sums() { return std::span(sums_).subspan(1 + channels_); }
  // Adds this part's up to those of the whole batch and divides them by its count.
  void make_means() {
    sums_[0] = count_;
    sum_over_contexts(key_, sums_);
    for (size_t i = 1; i < sums_.size(); ++i) sums_[i] /= sums_[0];
  }

  const size_t channels_;
  const double count_;  // elements of a channel
  PerChannel per_channel_;
  std::vector<double> sums_;  // count, and two numbers for each channel

 private:
  std::unique_ptr<Kernel> alone_;
  const std::string key_;
  size_t reserved_ = 0;
};

// ---- Forward --------------------------------------------------------------------------------------------------------

class SyncForward final : public Synchronized {
 public:
  SyncForward(const NodeView& node, const SyncBatchNorm& params, const ComposedInputs& in,
              std::unique_ptr<Kernel> alone)
      : Synchronized(node, params, node.inputs[0], node.inputs[1], std::move(alone)),
        params_(params),
        mean_(channels_),
        deviation_(channels_),
        moving_(channels_),
        first_(reserve(per_channel_.bytes())),
        second_(reserve(per_channel_.bytes())),
        third_(reserve(per_channel_.bytes())) {
    statistics_ = compile(node, part_statistics(in), std::span(&in[0], 1), node.inputs.first(1));

    const std::vector<Symbol> variables = {in[0], in[1], in[2], Symbol::variable("mean"),
                                           Symbol::variable("deviation")};
    std::vector<Tensor> tensors(node.inputs.begin(), node.inputs.begin() + 3);
    tensors.resize(5, node.inputs[1]);
    normalization_ =
        compile(node, batch_norm_recompute(variables, {.fix_gamma = params.fix_gamma}), variables, tensors);
    need(*statistics_, *normalization_);
  }

 private:
  void run_part(const Args& args) override {
    void *const first = at(args, first_), *const second = at(args, second_), *const third = at(args, third_);
    forward(*statistics_, args, {args.inputs[0]}, {first, second, third});
    find_statistics(first, second, third);
    per_channel_.write(args.outputs[1], mean_);
    per_channel_.write(args.outputs[2], second_sums());
    update(args.inputs[3], mean_);
    update(args.inputs[4], second_sums());
    per_channel_.write(first, mean_);
    per_channel_.write(second, deviation_);
    if (!args.outputs[0]) return;
    forward(*normalization_, args, {args.inputs[0], args.inputs[1], args.inputs[2], first, second}, {args.outputs[0]});
  }

  // From those of the part to those of the batch: the variance is in second_sums().
  void find_statistics(const void* first_element, const void* part_mean, const void* part_variance) {
    const std::span<double> sum = first_sums(), squares = second_sums();
    per_channel_.read(first_element, mean_);
    per_channel_.read(part_mean, sum);
    per_channel_.read(part_variance, squares);
    for (size_t c = 0; c < channels_; ++c) {
      const double mean = mean_[c] + sum[c];
      sum[c] = count_ * mean;
      squares[c] = count_ * (squares[c] + mean * mean);
    }
    make_means();
    for (size_t c = 0; c < channels_; ++c) {
      mean_[c] = sum[c];
      squares[c] = std::max(squares[c] - sum[c] * sum[c], 0.0);
      deviation_[c] = 1 / std::sqrt(squares[c] + params_.eps);
    }
  }

  void update(void* state, std::span<const double> statistic) {
    const float momentum = static_cast<float>(params_.momentum), rest = 1 - momentum;  // as in BatchNorm
    per_channel_.read(state, moving_);
    for (size_t c = 0; c < channels_; ++c) moving_[c] = moving_[c] * momentum + statistic[c] * rest;
    per_channel_.write(state, moving_);
  }

  const SyncBatchNorm params_;
  std::vector<double> mean_, deviation_, moving_;  // the deviation's reciprocal
  const size_t first_, second_, third_;            // results of the first network, then mean and reciprocal deviation
  std::unique_ptr<SubPlan> statistics_, normalization_;
};

// ---- Backward -------------------------------------------------------------------------------------------------------

class SyncBackward final : public Synchronized {
 public:
  SyncBackward(const NodeView& node, const SyncBatchNormGrad& params, const ComposedInputs& in,
               std::unique_ptr<Kernel> alone)
      : Synchronized(node, params, node.inputs[1], node.inputs[2], std::move(alone)),
        fix_gamma_(params.fix_gamma),
        zeros_(channels_, 0.0),
        first_(reserve(per_channel_.bytes())),
        second_(reserve(per_channel_.bytes())),
        direct_(reserve(node.inputs[1].bytes())) {
    const Symbol deviation = pow(in[4] + params.eps, -0.5);  // its reciprocal
    const Symbol gamma = params.fix_gamma ? ones_like(in[2]) : in[2];
    BatchNormGrad given{as_batch_norm(params)};
    given.fix_gamma = false;  // the sum is needed, whatever the gradient of gamma is
    given.use_global_stats = true;
    sums_network_ =
        compile(node, batch_norm_grad({in[0], in[1], gamma, in[3], deviation}, given), in.symbols, node.inputs);

    const Symbol direct = Symbol::variable("direct"), mean_grad = Symbol::variable("mean_grad"),
                 mean_product = Symbol::variable("mean_product");
    const std::vector<Symbol> variables = {direct, in[1], in[2], in[3], in[4], mean_grad, mean_product};
    std::vector<Tensor> tensors(node.inputs.begin(), node.inputs.end());
    tensors.resize(7, node.inputs[2]);
    const Symbol scale = gamma * deviation;
    const Symbol through_statistics =
        batch_norm_recompute({in[1], scale * mean_product, scale * mean_grad, in[3], deviation}, {.fix_gamma = false});
    data_network_ = compile(node, elemwise_sub(direct, through_statistics), variables, tensors);
    need(*sums_network_, *data_network_);
  }

 private:
  void run_part(const Args& args) override {
    void *const first = at(args, first_), *const second = at(args, second_), *const direct = at(args, direct_);
    forward(*sums_network_, args, {args.inputs, args.inputs + 5}, {direct, second, first});
    per_channel_.read(first, first_sums());
    per_channel_.read(second, second_sums());
    per_channel_.write(args.outputs[2], first_sums());
    per_channel_.write(args.outputs[1], fix_gamma_ ? std::span<const double>(zeros_) : second_sums());
    make_means();
    per_channel_.write(first, first_sums());
    per_channel_.write(second, second_sums());
    if (!args.outputs[0]) return;
    forward(*data_network_, args,
            {direct, args.inputs[1], args.inputs[2], args.inputs[3], args.inputs[4], first, second}, {args.outputs[0]});
  }

  const bool fix_gamma_;
  const std::vector<double> zeros_;
  const size_t first_, second_, direct_;  // Σ dy, Σ dy·x̂ or their means, and what does not flow through the statistics
  std::unique_ptr<SubPlan> sums_network_, data_network_;
};

template <class P, class Part>
void add(ImplementationTable& table) {
  Implementation implementation;
  implementation.name = "composed";
  implementation.refuse = [](const NodeView&) { return std::string(); };
  implementation.build = [](const NodeView& node) -> std::unique_ptr<Kernel> {
    const NameManager names;  // those of the user's network are not counted on
    const P& params = node.as<P>();
    const ComposedInputs in = composed_inputs(node);
    auto alone = build_composed(node, network_of(params, in), in);
    // An operator that is invoked on arrays belongs to no network that other contexts run.
    const bool sums = uses_batch_statistics(as_batch_norm(params), node.is_train) && node.source;
    if (!sums || node.outputs[0].shape.size() == 0) return alone;
    return std::make_unique<Part>(node, params, in, std::move(alone));
  };
  implementation.cache_when_invoked = true;
  table.add<P>(std::move(implementation));
}

}  // namespace

void add_sync_batch_norm(ImplementationTable& table) {
  add<SyncBatchNorm, SyncForward>(table);
  add<SyncBatchNormGrad, SyncBackward>(table);
}

}  // namespace symbind
