// Depthwise convolutions, and their gradients: any kernel, stride and dilation over one to three axes. A plane (a
// channel of an image) is copied with padding (depthwise_plane.h), unless it can be read directly, and convolved row by
// row in vectors of neighbouring outputs (depthwise_kernels.h). Planes are divided among threads. Half precision is
// converted to float32 and back in blocks of planes that stay in the cache.
//
// oneDNN's vectors run over channels. If arrays are already in blocked layouts its kernels are used (delegate()); for
// plain arrays, reordering them costs more than the convolution.
#include "symbind/backend/cpu/conv_depthwise.h"

#include <algorithm>

#include "symbind/backend/cpu/activation.h"
#include "symbind/backend/cpu/conv_nodes.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/depthwise_plane.h"
#include "symbind/backend/cpu/fold_norm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/core/error.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace depthwise;

constexpr int64_t block_elements = 1 << 14;  // of the planes that are converted together
constexpr int64_t thread_effort = 1 << 15;   // worth a thread, in elements read or written
constexpr int64_t small_planes = 96;         // elements read and written; with fewer, vectors run over planes
constexpr int64_t small_products = 1 << 12;  // at most, of such a plane
constexpr int64_t most_multiplier = 4;       // filters of a channel; with more, matrix products reuse their loads
constexpr int64_t few_taps = 4;              // with fewer there is little to reuse
constexpr int64_t most_sums = 1 << 24;       // of the weight's gradient, over all planes

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }
int64_t volume(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }

int64_t threads_for(const ConvolutionSize& size) {
  const int64_t outputs = size.output_size();
  const int64_t effort = outputs * (1 + size.kernel_size() / 8) + size.data_size();
  return std::clamp<int64_t>(effort / thread_effort, 1, available_threads());
}

// Calls body(piece, first, last) for pieces of [0, count) of nearly equal size.
template <class Body>
void each_share(int64_t count, int64_t pieces, const Body& body) {
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) body(piece, count * piece / pieces, count * (piece + 1) / pieces);
  });
}

// The planes of an array in float32.
class Planes {
 public:
  Planes(DType dtype, int64_t plane, int64_t count) : dtype_(dtype), plane_(plane), count_(count) {}

  bool is_float() const { return dtype_ == DType::float32; }
  int64_t plane() const { return plane_; }
  int64_t count() const { return count_; }
  int64_t block_buffer(int64_t planes) const { return is_float() ? 0 : round_up(planes * plane_ + slack, 16); }

  // Planes [begin, end), converted into `buffer` if they are of another type.
  const float* read(const void* array, int64_t begin, int64_t end, float* buffer) const {
    if (is_float()) return static_cast<const float*>(array) + begin * plane_;
    convert_array(buffer, DType::float32, at(array, begin), dtype_, (end - begin) * plane_);
    return buffer;
  }
  float* writable(void* array, int64_t begin, float* buffer) const {
    return is_float() ? static_cast<float*>(array) + begin * plane_ : buffer;
  }
  void written(void* array, int64_t begin, int64_t end, const float* buffer) const {
    if (is_float()) return;
    convert_array(const_cast<std::byte*>(at(array, begin)), dtype_, buffer, DType::float32, (end - begin) * plane_);
  }

 private:
  const std::byte* at(const void* array, int64_t begin) const {
    return static_cast<const std::byte*>(array) + begin * plane_ * static_cast<int64_t>(symbind::size_of(dtype_));
  }

  DType dtype_;
  int64_t plane_, count_;
};

// ---- Results from data: forward, and the data's gradient ------------------------------------------------------------

class DepthwiseConvolution final : public Kernel {
 public:
  // Forward, with the fused operations. Filter f reads channel f / multiplier.
  DepthwiseConvolution(const ConvolutionSize& size, const ConvolutionFused& around, const NodeView& node)
      : DepthwiseConvolution(size, around, in_bands(forward_work(size)), size.group_filters(), 1, node) {}
  // The data's gradient: channel c sums over its filters.
  DepthwiseConvolution(const ConvolutionSize& size, const NodeView& node)
      : DepthwiseConvolution(size, without_bias(), in_bands(grad_data_work(size)), 1, size.group_filters(), node) {}

  void prepare(const Args& args) override {
    auto* const weights = static_cast<float*>(args.cached);
    if (around_.has_norms()) return fold_norms(around_, weight_, args, weights, weights + weight_.shape.size());
    convert_array(weights, DType::float32, args.inputs[1], weight_.dtype, weight_.shape.size());
    if (at_.bias >= 0)
      convert_array(weights + weight_.shape.size(), DType::float32, args.inputs[at_.bias], weight_.dtype, filters());
  }

  void run(const Args& args) override {
    each_share(results_.count(), pieces_, [&](int64_t piece, int64_t first, int64_t last) {
      run_share(args, first, last, static_cast<float*>(args.scratch) + piece * piece_elements_);
    });
  }

 private:
  // One pass over a plane.
  struct PassSums {
    Grid grid;
    std::vector<int64_t> offsets, numbers;  // of the taps of all planes read, and of their weights
    bool in_order;                          // are their weights adjacent?
    Extents first, step;
    int64_t dense_at;  // offset of the results if they are adjacent; else -1
  };

  static ConvolutionFused without_bias() {
    ConvolutionFused around;
    around.no_bias = true;
    return around;
  }

  DepthwiseConvolution(const ConvolutionSize& size, const ConvolutionFused& around, const PlaneWork& work,
                       int64_t sharers, int64_t sources, const NodeView& node)
      : around_(around),
        at_(inputs_of(around)),
        weight_(node.inputs[1]),
        data_(node.inputs[0].dtype, volume(work.in), node.inputs[0].shape.size() / volume(work.in)),
        results_(node.outputs[0].dtype, volume(work.out), node.outputs[0].shape.size() / volume(work.out)),
        padded_(work),
        out_(work.out),
        sharers_(sharers),
        sources_(sources),
        taps_(size.kernel_size()) {
    for (const Pass& pass : work.passes) add_pass(pass);
    int64_t reached = 0;
    for (const Pass& pass : work.passes) reached += volume(pass.grid);
    leaves_zeros_ = reached < results_.plane();
    const bool is_small = data_.plane() + results_.plane() <= small_planes && count_products(work) <= small_products;
    if (is_small && sharers == 1 && sources == 1) together_ = products_of(work);
    set_memory(threads_for(size));
  }

  void add_pass(const Pass& pass) {
    const bool whole = pass.grid[2] == out_[2] && (pass.grid[1] == out_[1] || pass.grid[0] == 1);
    const int64_t start = (pass.first[0] * out_[1] + pass.first[1]) * out_[2];
    const bool is_dense = whole && pass.step == Extents{1, 1, 1};
    PassSums sums{padded_.grid(pass), {}, {}, true, pass.first, pass.step, is_dense ? start : -1};
    const std::vector<int64_t> offsets = padded_.offsets(pass);
    for (int64_t source = 0; source < sources_; ++source)
      for (size_t k = 0; k < offsets.size(); ++k) {
        sums.offsets.push_back(source * source_step() + offsets[k]);
        sums.numbers.push_back(source * taps_ + pass.taps[k].number);
      }
    for (size_t k = 1; k < sums.numbers.size(); ++k)
      sums.in_order = sums.in_order && sums.numbers[k] == sums.numbers[k - 1] + 1;
    most_taps_ = std::max(most_taps_, static_cast<int64_t>(sums.offsets.size()));
    passes_.push_back(std::move(sums));
  }

  int64_t source_step() const { return padded_.is_copied() ? padded_.elements() : data_.plane(); }
  bool is_together() const { return !together_.ends.empty(); }
  bool has_finish() const { return around_.sum || !around_.act_type.empty(); }

  void set_memory(int64_t threads) {
    const int64_t planes = sources_ * data_.plane() + results_.plane();
    const bool in_blocks = !results_.is_float() || has_finish();
    block_ = in_blocks ? round_up(std::max<int64_t>(1, block_elements / planes), sharers_) : results_.count();
    pieces_ = std::clamp<int64_t>(results_.count(), 1, threads);
    copy_elements_ = round_up(sources_ * source_step() + slack, 16);
    sums_elements_ = round_up(results_.plane() + slack, 16);
    if (is_together()) {
      copy_elements_ = data_.plane() * plane_lanes;
      sums_elements_ = results_.plane() * plane_lanes;
      most_taps_ = (taps_ + 1) * plane_lanes;
    }
    piece_elements_ = copy_elements_ + sums_elements_ + round_up(most_taps_, 16) +
                      data_.block_buffer((block_ / sharers_ + 2) * sources_) + 2 * results_.block_buffer(block_);
    scratch_bytes = static_cast<size_t>(pieces_ * piece_elements_) * sizeof(float);
    if (around_.has_norms() || !results_.is_float()) {
      cached_bytes = static_cast<size_t>(weight_.shape.size() + filters()) * sizeof(float);
      cached_from = around_.has_norms() ? folded_inputs(around_) : std::vector{1};
      if (!around_.has_norms() && at_.bias >= 0) cached_from.push_back(at_.bias);
    }
  }

  // Scratch of one thread.
  struct Scratch {
    float *copy, *sums, *weights, *data, *results, *added;
  };
  Scratch divided(float* scratch) const {
    Scratch s{};
    s.copy = scratch;
    s.sums = s.copy + copy_elements_;
    s.weights = s.sums + sums_elements_;
    s.data = s.weights + round_up(most_taps_, 16);
    s.results = s.data + data_.block_buffer((block_ / sharers_ + 2) * sources_);
    s.added = s.results + results_.block_buffer(block_);
    return s;
  }

  // In float32.
  struct Weights {
    const float *weight, *bias;  // no bias: null
  };
  Weights weights_of(const Args& args) const {
    const bool has_bias = at_.bias >= 0 || around_.has_norms();
    if (cached_bytes == 0)
      return {args.in<float>(1), has_bias ? args.in<float>(static_cast<size_t>(at_.bias)) : nullptr};
    const auto* const weights = static_cast<const float*>(args.cached);
    return {weights, has_bias ? weights + weight_.shape.size() : nullptr};
  }

  void run_share(const Args& args, int64_t first, int64_t last, float* memory) const {
    const Scratch scratch = divided(memory);
    std::fill(scratch.copy, scratch.copy + copy_elements_, 0.0f);
    for (int64_t begin = first; begin < last; begin += block_) {
      const int64_t end = std::min(last, begin + block_);
      const int64_t source = begin / sharers_ * sources_, source_end = ((end - 1) / sharers_ + 1) * sources_;
      const float* const data = data_.read(args.inputs[0], source, source_end, scratch.data);
      float* const results = results_.writable(args.outputs[0], begin, scratch.results);
      const Weights weights = weights_of(args);
      if (is_together())
        for (int64_t plane = begin; plane < end; plane += plane_lanes)
          convolve_together(weights, plane, std::min(plane_lanes, end - plane), data + (plane - source) * data_.plane(),
                            scratch, results + (plane - begin) * results_.plane());
      else
        convolve_planes(weights, begin, end, last, data, scratch, results);
      finish(args, begin, end, scratch, results);
      results_.written(args.outputs[0], begin, end, results);
    }
  }

  // Planes [begin, end) of a piece that ends with plane `last`.
  void convolve_planes(const Weights& weights, int64_t begin, int64_t end, int64_t last, const float* data,
                       const Scratch& scratch, float* results) const {
    int64_t copied = -1;
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t from = plane / sharers_ * sources_;
      const bool may_read_on = !data_.is_float() || (data_.count() - from - sources_) * data_.plane() >= slack;
      const bool may_write_on = !results_.is_float() || (last - plane - 1) * results_.plane() >= slack;
      const float* const planes = data + (from - begin / sharers_ * sources_) * data_.plane();
      const bool in_copy = padded_.is_copied() || !may_read_on;
      if (in_copy && copied != from) copy(planes, scratch.copy);
      copied = from;
      convolve(weights, plane, in_copy ? scratch.copy : planes, scratch, may_write_on,
               results + (plane - begin) * results_.plane());
    }
  }

  // `count` small planes from `first` on. Their elements are interleaved first, and separated afterwards.
  void convolve_together(const Weights& weights, int64_t first, int64_t count, const float* data,
                         const Scratch& scratch, float* results) const {
    const auto used = static_cast<int64_t>(together_.weights.size());
    float* const start = scratch.weights + used * plane_lanes;
    int64_t channel = first % filters();
    for (int64_t lane = 0; lane < count; ++lane) {
      const float* const plane = data + lane * data_.plane();
      for (int64_t i = 0; i < data_.plane(); ++i) scratch.copy[i * plane_lanes + lane] = plane[i];
      const float* const own = weights.weight + channel * taps_;
      for (int64_t k = 0; k < used; ++k)
        scratch.weights[k * plane_lanes + lane] = own[together_.weights[static_cast<size_t>(k)]];
      start[lane] = weights.bias ? weights.bias[channel] : 0.0f;
      if (++channel == filters()) channel = 0;
    }
    kernels().convolve_together(together_, scratch.copy, scratch.weights, start, scratch.sums);
    for (int64_t lane = 0; lane < count; ++lane)
      for (int64_t i = 0; i < results_.plane(); ++i)
        results[lane * results_.plane() + i] = scratch.sums[i * plane_lanes + lane];
  }

  void copy(const float* planes, float* to) const {
    for (int64_t source = 0; source < sources_; ++source) {
      const float* const plane = planes + source * data_.plane();
      if (padded_.is_copied())
        padded_.copy(plane, to + source * source_step());
      else
        std::copy(plane, plane + data_.plane(), to + source * source_step());
    }
  }

  // All passes over one plane.
  void convolve(const Weights& weights, int64_t plane, const float* from, const Scratch& scratch, bool may_write_on,
                float* to) const {
    const int64_t channel = plane % (filters() / sources_);
    const float start = weights.bias ? weights.bias[channel] : 0.0f;
    if (leaves_zeros_) std::fill(to, to + results_.plane(), 0.0f);
    const Kernels& kernels = depthwise::kernels();
    for (const PassSums& pass : passes_) {
      const auto taps = static_cast<int64_t>(pass.offsets.size());
      const float* own = weights.weight + channel * sources_ * taps_;
      if (pass.in_order && taps > 0) {
        own += pass.numbers[0];
      } else {
        for (int64_t k = 0; k < taps; ++k) scratch.weights[k] = own[pass.numbers[static_cast<size_t>(k)]];
        own = scratch.weights;
      }
      const bool is_dense = pass.dense_at >= 0;
      float* const sums = is_dense && may_write_on ? to + pass.dense_at : scratch.sums;
      kernels.convolve(pass.grid, from, {pass.offsets.data(), taps}, own, start, sums);
      if (!is_dense || !may_write_on) spread(pass, sums, to);
    }
  }

  int64_t filters() const { return weight_.shape[0]; }

  // The results of a pass to every step-th element.
  void spread(const PassSums& pass, const float* sums, float* to) const {
    for (int64_t d = 0; d < pass.grid.depth; ++d)
      for (int64_t r = 0; r < pass.grid.rows; ++r, sums += pass.grid.columns) {
        const int64_t row = (pass.first[0] + d * pass.step[0]) * out_[1] + pass.first[1] + r * pass.step[1];
        float* const target = to + row * out_[2] + pass.first[2];
        if (pass.step[2] == 1)
          std::copy(sums, sums + pass.grid.columns, target);
        else
          for (int64_t i = 0; i < pass.grid.columns; ++i) target[i * pass.step[2]] = sums[i];
      }
  }

  void finish(const Args& args, int64_t begin, int64_t end, const Scratch& scratch, float* results) const {
    if (!has_finish()) return;
    const int64_t count = (end - begin) * results_.plane();
    const float* const added = around_.sum ? results_.read(args.inputs[at_.sum], begin, end, scratch.added) : nullptr;
    kernels().finish(results, added, around_.act_type == "relu", count);
    if (around_.act_type != "relu") apply_activation(around_.act_type, results, count);
  }

  ConvolutionFused around_;
  ConvolutionFusedInputs at_;
  Tensor weight_;
  Planes data_, results_;
  PaddedPlane padded_;
  Extents out_;
  int64_t sharers_, sources_;  // results that read the same plane; planes that a result reads
  int64_t taps_, most_taps_ = 0;
  std::vector<PassSums> passes_;
  Products together_;  // none: vectors run along rows
  bool leaves_zeros_;
  int64_t block_, pieces_, copy_elements_, sums_elements_, piece_elements_;
};

// ---- The gradients of weight and bias -------------------------------------------------------------------------------

// Every plane has its own sums, which are added in the order of the images: the result does not depend on the number of
// threads.
class DepthwiseGradWeight final : public Kernel {
 public:
  DepthwiseGradWeight(const ConvolutionSize& size, bool with_bias, const NodeView& node)
      : DepthwiseGradWeight(size, forward_work(size), with_bias, node) {}

  void run(const Args& args) override {
    auto* const sums = static_cast<float*>(args.scratch);
    each_share(grads_.count(), pieces_, [&](int64_t piece, int64_t first, int64_t last) {
      run_share(args, first, last, sums + sums_elements_ + piece * piece_elements_, sums);
    });
    store(args, sums, sums + sums_elements_);
  }

 private:
  DepthwiseGradWeight(const ConvolutionSize& size, const PlaneWork& work, bool with_bias, const NodeView& node)
      : size_(size),
        with_bias_(with_bias),
        dtype_(node.outputs[0].dtype),
        data_(dtype_, volume(work.in), size.batch * size.channels),
        grads_(dtype_, volume(work.out), size.batch * size.filters),
        lanes_(kernels().dot_lanes(work.out[2])),
        // Vectors that extend past the end of a row must not read another channel: NaN times zero is not zero.
        padded_(work, work.out[2] % lanes_ != 0),
        grid_(padded_.grid(work.passes[0])),
        offsets_(padded_.offsets(work.passes[0])) {
    for (const Tap& tap : work.passes[0].taps) numbers_.push_back(tap.number);
    own_ = static_cast<int64_t>(offsets_.size()) + 1;
    grad_step_ = round_up(grid_.columns, lanes_);
    if (grad_step_ != grid_.columns)
      for (int64_t row = 0; row < grid_.depth * grid_.rows; ++row)
        grad_rows_.push_back({row * grid_.columns, row * grad_step_, grid_.columns});
    set_memory();
  }

  void set_memory() {
    const int64_t sharers = size_.group_filters();
    block_ = round_up(std::max<int64_t>(1, block_elements / (data_.plane() + grads_.plane())), sharers);
    if (grads_.is_float()) block_ = grads_.count();
    pieces_ = std::clamp<int64_t>(grads_.count(), 1, threads_for(size_));
    sums_elements_ = round_up(grads_.count() * own_, 16);
    copy_elements_ = padded_.is_copied() ? round_up(padded_.elements() + slack, 16) : 0;
    grad_elements_ = grad_rows_.empty() ? 0 : round_up(grid_.depth * grid_.rows * grad_step_, 16);
    piece_elements_ = copy_elements_ + grad_elements_ + 2 * round_up(own_, 16) +
                      data_.block_buffer(block_ / sharers + 2) + grads_.block_buffer(block_);
    const int64_t results = size_.filters * (size_.kernel_size() + 1);
    scratch_bytes = static_cast<size_t>(sums_elements_ + std::max(pieces_ * piece_elements_, results)) * sizeof(float);
  }

  void run_share(const Args& args, int64_t first, int64_t last, float* memory, float* all_sums) const {
    float* const copy = memory;
    float* const grad_copy = copy + copy_elements_;
    auto* const sums = reinterpret_cast<double*>(grad_copy + grad_elements_);
    float* const data_buffer = grad_copy + grad_elements_ + 2 * round_up(own_, 16);
    float* const grad_buffer = data_buffer + data_.block_buffer(block_ / size_.group_filters() + 2);
    std::fill(copy, grad_copy + grad_elements_, 0.0f);
    const Taps taps{offsets_.data(), own_ - 1};
    for (int64_t begin = first; begin < last; begin += block_) {
      const int64_t end = std::min(last, begin + block_), sharers = size_.group_filters();
      const int64_t source = begin / sharers, source_end = (end - 1) / sharers + 1;
      const float* const data = data_.read(args.inputs[1], source, source_end, data_buffer);
      const float* const grads = grads_.read(args.inputs[0], begin, end, grad_buffer);
      int64_t copied = -1;
      for (int64_t plane = begin; plane < end; ++plane) {
        const float* from = data + (plane / sharers - source) * data_.plane();
        if (padded_.is_copied()) {
          if (copied != plane / sharers) padded_.copy(from, copy);
          copied = plane / sharers;
          from = copy;
        }
        const float* grad = grads + (plane - begin) * grads_.plane();
        std::fill(sums, sums + own_, 0.0);
        if (with_bias_) sums[own_ - 1] = kernels().sum(grad, grads_.plane());
        if (!grad_rows_.empty()) {
          kernels().copy_rows(grad_rows_, 1, grad, grad_copy);
          grad = grad_copy;
        }
        kernels().dots(grid_, grad, grad_step_, from, taps, sums);
        std::copy(sums, sums + own_, all_sums + plane * own_);
      }
    }
  }

  // The gradient of kernel positions that never overlap the data is zero.
  void store(const Args& args, const float* sums, float* results) const {
    const int64_t taps = size_.kernel_size();
    float* const bias_grad = results + size_.filters * taps;
    std::fill(results, bias_grad, 0.0f);
    for_elements(
        size_.filters,
        [&](int64_t begin, int64_t end) {
          for (int64_t filter = begin; filter < end; ++filter)
            for (int64_t k = 0; k < own_; ++k) {
              double sum = 0;
              for (int64_t image = 0; image < size_.batch; ++image)
                sum += static_cast<double>(sums[(image * size_.filters + filter) * own_ + k]);
              float& to = k == own_ - 1 ? bias_grad[filter] : results[filter * taps + numbers_[static_cast<size_t>(k)]];
              to = static_cast<float>(sum);
            }
        },
        element_grain / (size_.batch * own_) + 1);
    convert_array(args.outputs[0], dtype_, results, DType::float32, size_.filters * taps);
    if (with_bias_) convert_array(args.outputs[1], dtype_, bias_grad, DType::float32, size_.filters);
  }

  ConvolutionSize size_;
  bool with_bias_;
  DType dtype_;
  Planes data_, grads_;
  int64_t lanes_;
  PaddedPlane padded_;
  Grid grid_;
  std::vector<int64_t> offsets_, numbers_;
  std::vector<RowCopy> grad_rows_;
  int64_t own_, grad_step_;  // sums of a plane; from one row of the gradient to the next
  int64_t block_, pieces_, sums_elements_, copy_elements_, grad_elements_, piece_elements_;
};

// ---- The kinds of node ----------------------------------------------------------------------------------------------

template <class P>
std::string refuse(const NodeView& node) {
  const DType type = node.outputs[0].dtype;
  if (type != DType::float32 && type != DType::float16 && type != DType::bfloat16)
    return join("only for float32 and half precision, not ", type);
  for (const auto& arrays : {node.inputs, node.outputs})
    for (const Tensor& tensor : arrays)
      if (tensor.shape.size() == 0) return "an array is empty";
  const ConvolutionSize size = size_of_node<P>(node);
  if (size.group_channels() != 1 || size.groups == 1) return "a filter reads several channels";
  if (size.group_filters() > most_multiplier && size.kernel_size() > few_taps)
    return join(size.group_filters(), " filters read each channel");
  if (size.channels_last) return "the layout has the channels last";
  if (is_grad_weight<P> && size.batch * size.filters * (size.kernel_size() + 1) > most_sums)
    return "the sums of all planes would need too much memory";
  const PaddedPlane padded(is_grad_data<P> ? grad_data_work(size) : forward_work(size), is_grad_weight<P>);
  if (padded.elements() == PaddedPlane::most_elements) return "a plane with its padding has too many elements";
  return "";
}

// oneDNN's implementation, if it is used for the node: its arrays are in blocks or have their channels last.
const Implementation* delegate(const NodeView& node) {
  const bool is_plain =
      std::all_of(node.inputs.begin(), node.inputs.end(), [](const Tensor& t) { return t.layout == Layout::plain; }) &&
      node.outputs[0].layout == Layout::plain;
  if (is_plain) return nullptr;
  for (const Implementation& other : Target::get(cpu()).implementations(node.op))
    if (other.tier == Tier::library && other.refuse(node).empty()) return &other;
  return nullptr;
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  if (const Implementation* other = delegate(node)) return other->build(node);
  const ConvolutionSize size = size_of_node<P>(node);
  const P& p = node.as<P>();
  if constexpr (is_grad_data<P>) {
    return std::make_unique<DepthwiseConvolution>(size, node);
  } else if constexpr (is_grad_weight<P>) {
    return std::make_unique<DepthwiseGradWeight>(size, !p.no_bias, node);
  } else {
    return std::make_unique<DepthwiseConvolution>(size, as_fused(p), node);
  }
}

template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  const Implementation* const other = delegate(node);
  return other ? other->preferred_layouts(node) : std::nullopt;
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"depthwise", refuse<P>, build<P>, preferred_layouts<P>, true, Tier::specialised});
}

}  // namespace

void add_conv_depthwise(ImplementationTable& table) {
  add<Convolution>(table);
  add<ConvolutionFused>(table);
  add<ConvolutionGradData>(table);
  add<ConvolutionGradWeight>(table);
}

}  // namespace symbind::cpu_backend
