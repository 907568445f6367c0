// Convolution and its gradients as products of matrices over patches of the data, for every shape: any kernel, stride,
// dilation and number of groups, in float32 and float64. The patches are read from a padded copy of the data
// (conv_view.h), unit by unit, so that scratch is small and a thread works in its own cache.
#include "symbind/backend/cpu/conv_gemm.h"

#include <algorithm>

#include "symbind/backend/cpu/activation.h"
#include "symbind/backend/cpu/conv_nodes.h"
#include "symbind/backend/cpu/conv_view.h"
#include "symbind/backend/cpu/fold_norm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/short_rows.h"
#include "symbind/backend/cpu/tile_kernels.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace conv_view;

constexpr int64_t block_inner = 256;             // a strip of weights stays in the first-level cache
constexpr int64_t block_sums = 1 << 16;          // sums that are computed together
constexpr int64_t block_columns = 1 << 13;       // at most, of these
constexpr int64_t thread_products = 1 << 17;     // multiply-adds worth a thread
constexpr int64_t most_own_gradients = 4 << 20;  // sums of the weight's gradient that threads may have separately

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

struct Share {
  int64_t begin, end;
  Share(int64_t count, int64_t piece, int64_t pieces)
      : begin(count * piece / pieces), end(count * (piece + 1) / pieces) {}
};

template <class Body>
void each_piece(int64_t pieces, const Body& body) {
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) body(piece);
  });
}

int64_t threads_for(const ConvolutionSize& size) {
  const int64_t products = size.output_size() * size.group_channels() * size.kernel_size();
  return std::clamp<int64_t>(products / thread_products, 1, available_threads());
}

// The strides of the weights: from group to group, and within one by channel of the results, of the data, and by kernel
// position.
struct WeightStrides {
  int64_t group, result, data, tap;
};
WeightStrides weight_strides(const ConvolutionSize& size) {
  const int64_t filter = size.group_channels() * size.kernel_size();
  return {size.group_filters() * filter, filter, size.channels_last ? 1 : size.kernel_size(),
          size.channels_last ? size.group_channels() : 1};
}

template <class C>
size_t bytes_of(int64_t elements) {
  return static_cast<size_t>(elements) * sizeof(C);
}

// ---- Results from data ----------------------------------------------------------------------------------------------

// One pass with its weights in strips: group after group, strip after strip, (channel, tap) after (channel, tap), row.
template <class C>
class PassProduct {
 public:
  // `results` and `data`: channels of a group.
  PassProduct(const Pass& pass, const WeightStrides& weight, int64_t batch, int64_t groups, int64_t data,
              int64_t results, int64_t threads)
      : weight_(weight),
        view_(pass, batch, data, groups, tile_kernels<C>().lanes, 4 * threads),
        offsets_(view_.offsets()),
        groups_(groups),
        data_(data),
        results_(results) {
    for (const Tap& tap : pass.taps) taps_.push_back(tap.number);
    inner_ = static_cast<int64_t>(offsets_.size());
    const int64_t most_rows = tile_kernels<C>().most_rows;
    rows_ = ceil_div(results, ceil_div(results, most_rows));
    strips_ = ceil_div(results, rows_);
    // The strips are divided among threads too if there are few units.
    parts_ = std::clamp<int64_t>(2 * threads / view_.units(), 1, strips_);
    part_strips_ = ceil_div(strips_, parts_);
    parts_ = ceil_div(strips_, part_strips_);
    const int64_t columns = std::min(block_columns, block_sums / (part_strips_ * rows_));
    block_chunks_ = std::clamp<int64_t>(columns / view_.chunk(), 1, view_.most_chunks());
  }

  int64_t weight_elements() const { return groups_ * strips_ * rows_ * inner_; }
  int64_t tasks() const { return view_.units() * parts_; }
  int64_t copy_elements() const { return round_up(view_.elements(), 16); }
  int64_t scratch_elements() const { return copy_elements() + part_strips_ * rows_ * sums_step(); }

  void pack(const C* weights, C* to) const {
    parallel_for(groups_ * strips_, std::max<int64_t>(1, element_grain / (rows_ * inner_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t strip = begin; strip < end; ++strip) pack_strip(weights, strip, to);
                 });
  }

  // store(first channel, channels, sums of their outputs, step from channel to channel, where they go, step from one
  // output to the next) is called for all channels of results.
  template <class Store>
  void run(const Share& tasks, const C* weights, const ArrayStrides& data_strides, const C* data,
           const ArrayStrides& result_strides, C* scratch, Store store) const {
    C* const sums = scratch + copy_elements();
    const int64_t step = view_.segment_step(result_strides);
    std::vector<View::Chunk> chunks;
    std::vector<View::Segment> segments;
    int64_t copied = -1;
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const int64_t number = task / parts_, part = task % parts_;
      const Unit unit = view_.unit(number);
      if (number != copied) view_.copy(unit, data_strides, data + unit.group * data_ * data_strides.channel, scratch);
      copied = number;
      const int64_t first = part * part_strips_, last = std::min(strips_, first + part_strips_);
      const int64_t all_chunks = view_.chunks(unit);
      for (int64_t chunk = 0; chunk < all_chunks; chunk += block_chunks_) {
        chunks.clear();
        segments.clear();
        for (int64_t i = chunk; i < std::min(all_chunks, chunk + block_chunks_); ++i) {
          chunks.push_back(view_.chunk_at(unit, i));
          view_.add_segments(unit, chunks.back(), result_strides, (i - chunk) * view_.chunk(), segments);
        }
        multiply(unit, chunks, first, last, weights, scratch, sums);
        const int64_t result = first * rows_;
        store(unit.group * results_ + result, std::min(results_, last * rows_) - result, sums, sums_step(), segments,
              step);
      }
    }
  }

 private:
  int64_t sums_step() const { return block_chunks_ * view_.chunk(); }

  void pack_strip(const C* weights, int64_t strip, C* to) const {
    const int64_t group = strip / strips_, first = strip % strips_ * rows_;
    const auto taps = static_cast<int64_t>(taps_.size());
    C* const packed = to + strip * rows_ * inner_;
    for (int64_t row = 0; row < rows_; ++row) {
      const bool is_there = first + row < results_;
      const C* from = weights + group * weight_.group + (first + row) * weight_.result;
      for (int64_t channel = 0; channel < data_; ++channel)
        for (int64_t tap = 0; tap < taps; ++tap)
          packed[(channel * taps + tap) * rows_ + row] =
              is_there ? from[channel * weight_.data + taps_[static_cast<size_t>(tap)] * weight_.tap] : C(0);
    }
  }

  void multiply(const Unit& unit, const std::vector<View::Chunk>& chunks, int64_t first, int64_t last, const C* weights,
                const C* copy, C* sums) const {
    const auto kernel = tile_kernels<C>().multiply[rows_];
    for (int64_t k = 0; k < inner_; k += block_inner) {
      const int64_t depth = std::min(block_inner, inner_ - k);
      for (int64_t strip = first; strip < last; ++strip) {
        const C* const a = weights + ((unit.group * strips_ + strip) * inner_ + k) * rows_;
        C* to = sums + (strip - first) * rows_ * sums_step();
        for (const View::Chunk& chunk : chunks) {
          kernel(a, copy + chunk.offset, offsets_.data() + k, depth, chunk.end - chunk.begin, to, sums_step(), k > 0);
          to += view_.chunk();
        }
      }
    }
  }

  WeightStrides weight_;
  View view_;
  std::vector<int64_t> offsets_, taps_;
  int64_t groups_, data_, results_;
  int64_t inner_, rows_, strips_, parts_, part_strips_, block_chunks_;
};

// The operations on a result before it is stored.
template <class C>
struct Finish {
  const C* bias;
  const C* added;
  bool relu;
};

template <class C>
class GemmConvolution final : public Kernel {
 public:
  // Forward, with the fused operations in `around`.
  GemmConvolution(const ConvolutionSize& size, const ConvolutionFused& around, const Shape& weight)
      : around_(around),
        at_(inputs_of(around)),
        weight_shape_(weight),
        data_(input_strides(size)),
        result_(output_strides(size)) {
    const int64_t threads = threads_for(size);
    passes_.emplace_back(forward_pass(size), weight_strides(size), size.batch, size.groups, size.group_channels(),
                         size.group_filters(), threads);
    biases_ = around.has_norms() ? size.filters : 0;
    cached_from = around.has_norms() ? folded_inputs(around) : std::vector{1};
    results_ = size.output_size();
    set_memory(threads);
  }
  // The data's gradient.
  explicit GemmConvolution(const ConvolutionSize& size)
      : at_(inputs_of(around_)), data_(output_strides(size)), result_(input_strides(size)) {
    around_.no_bias = true;
    at_ = inputs_of(around_);
    const int64_t threads = threads_for(size);
    WeightStrides weight = weight_strides(size);
    std::swap(weight.result, weight.data);
    int64_t reached = 0;
    for (const Pass& pass : grad_data_passes(size)) {
      reached += pass.grid[0] * pass.grid[1] * pass.grid[2];
      passes_.emplace_back(pass, weight, size.batch, size.groups, size.group_filters(), size.group_channels(), threads);
    }
    leaves_zeros_ = reached < size.in_size();
    cached_from = {1};
    results_ = size.data_size();
    set_memory(threads);
  }

  void prepare(const Args& args) override {
    const C* weights = args.in<C>(1);
    C* packed = static_cast<C*>(args.cached);
    if constexpr (std::is_same_v<C, float>)
      if (around_.has_norms()) {
        auto* folded = static_cast<float*>(args.scratch);
        fold_norms(around_, {weight_shape_, DType::float32}, args, folded, packed + weight_elements_);
        weights = folded;
      }
    for (const auto& pass : passes_) {
      pass.pack(weights, packed);
      packed += pass.weight_elements();
    }
  }

  void run(const Args& args) override {
    if (leaves_zeros_) {
      C* const result = args.out<C>();
      for_elements(results_, [=](int64_t begin, int64_t end) { std::fill(result + begin, result + end, C(0)); });
    }
    const auto input = [&](int index) { return index < 0 ? nullptr : args.in<C>(static_cast<size_t>(index)); };
    const C* const folded_bias = static_cast<const C*>(args.cached) + weight_elements_;
    const Finish<C> finish{biases_ > 0 ? folded_bias : input(at_.bias), input(at_.sum), around_.act_type == "relu"};
    each_piece(pieces_, [&](int64_t piece) {
      const C* packed = static_cast<const C*>(args.cached);
      for (const auto& pass : passes_) {
        run_pass(pass, Share(pass.tasks(), piece, pieces_), packed, args, finish,
                 static_cast<C*>(args.scratch) + piece * piece_elements_);
        packed += pass.weight_elements();
      }
    });
    if (!finish.relu) apply_activation(around_.act_type, args.out<C>(), results_);
  }

 private:
  void run_pass(const PassProduct<C>& pass, const Share& share, const C* packed, const Args& args,
                const Finish<C>& finish, C* scratch) const {
    C* const out = args.out<C>();
    pass.run(share, packed, data_, args.in<C>(0), result_, scratch,
             [&](int64_t first, int64_t channels, const C* sums, int64_t sums_step,
                 const std::vector<View::Segment>& segments, int64_t step) {
               for_range(0, channels, [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t start = (first + i) * result_.channel;
                   const C bias = finish.bias ? finish.bias[first + i] : C(0);
                   for (const View::Segment& segment : segments) {
                     const int64_t at = start + segment.target;
                     store_row(sums + i * sums_step + segment.column, out + at,
                               finish.added ? finish.added + at : nullptr, bias, finish.relu, segment.count, step);
                   }
                 }
               });
             });
  }

  [[gnu::always_inline]] static void store_row(const C* from, C* to, const C* added, C bias, bool relu, int64_t count,
                                               int64_t step) {
    if (!added && step == 1)
      return cover_row<C>(
          count, [=]<int64_t lanes>(int64_t i) __attribute__((always_inline)) {
            using Vector = typename RowVector<C, lanes>::type;
            Vector result = *reinterpret_cast<const Vector*>(from + i) + bias;
            if (relu) result = result < C(0) ? Vector{} : result;
            *reinterpret_cast<Vector*>(to + i) = result;
          });
    store_singly(from, to, added, bias, relu, count, step);
  }
  // Outside of for_range(): scatter instructions are slower than single stores.
  [[gnu::noinline]] static void store_singly(const C* from, C* to, const C* added, C bias, bool relu, int64_t count,
                                             int64_t step) {
    for (int64_t i = 0; i < count; ++i) {
      C result = from[i] + bias;
      if (added) result += added[i * step];
      to[i * step] = relu && result < C(0) ? C(0) : result;
    }
  }

  void set_memory(int64_t threads) {
    int64_t most_tasks = 0;
    for (const auto& pass : passes_) {
      weight_elements_ += pass.weight_elements();
      piece_elements_ = std::max(piece_elements_, round_up(pass.scratch_elements(), 16));
      most_tasks = std::max(most_tasks, pass.tasks());
    }
    pieces_ = std::clamp<int64_t>(most_tasks, 1, threads);
    cached_bytes = bytes_of<C>(weight_elements_ + biases_);
    scratch_bytes = bytes_of<C>(std::max(pieces_ * piece_elements_, around_.has_norms() ? weight_shape_.size() : 0));
    if (around_.sum && around_.sum_is_spent) in_place = {{at_.sum, 0}};
  }

  ConvolutionFused around_;
  ConvolutionFusedInputs at_;
  Shape weight_shape_;
  ArrayStrides data_, result_;
  std::vector<PassProduct<C>> passes_;
  bool leaves_zeros_ = false;
  int64_t biases_ = 0, results_ = 0, weight_elements_ = 0, piece_elements_ = 0, pieces_ = 1;
};

// ---- The gradient of the weights ------------------------------------------------------------------------------------

// Threads divide the groups if that balances the work; else the units, each with separate sums that are added at the
// end, if there is memory for them; else the filters.
template <class C>
class GemmGradWeight final : public Kernel {
 public:
  GemmGradWeight(const ConvolutionSize& size, bool with_bias)
      : size_(size),
        with_bias_(with_bias),
        data_(input_strides(size)),
        grad_(output_strides(size)),
        weight_(weight_strides(size)),
        threads_(threads_for(size)),
        view_(forward_pass(size), size.batch, size.group_channels(), size.groups, tile_kernels<C>().lanes,
              4 * threads_),
        offsets_(view_.offsets()),
        inner_(static_cast<int64_t>(offsets_.size())) {
    padded_inner_ = round_up(inner_, TileKernels<C>::dot_columns);
    offsets_.resize(static_cast<size_t>(padded_inner_), offsets_.back());
    const int64_t group_units = view_.units() / size.groups, gradients = size.filters * padded_inner_;
    group_elements_ = size.group_filters() * padded_inner_;
    const bool balanced = ceil_div(size.groups, threads_) * threads_ * 4 <= size.groups * 5;
    by_groups_ = balanced || threads_ == 1;
    by_units_ = !by_groups_ && gradients * threads_ <= most_own_gradients && group_units * size.groups >= threads_;
    own_sums_ = by_units_ ? threads_ : 1;
    block_chunks_ = std::clamp<int64_t>(1024 / view_.chunk(), 1, view_.most_chunks());
    filters_ = by_groups_ || by_units_ ? size.group_filters() : ceil_div(size.group_filters(), threads_);
    copy_elements_ = round_up(view_.elements(), 16);
    piece_elements_ = copy_elements_ + round_up(filters_ * grad_step(), 16);
    sums_elements_ = round_up(gradients, 16);
    run_offsets_ = round_up(static_cast<int64_t>(bytes_of<int64_t>(block_chunks_) / sizeof(C)), 16);
    scratch_bytes = bytes_of<C>(own_sums_ * sums_elements_ + threads_ * (piece_elements_ + run_offsets_));
  }

  void run(const Args& args) override {
    C* const sums = static_cast<C*>(args.scratch);
    C* const rest = sums + own_sums_ * sums_elements_;
    each_piece(threads_, [&](int64_t piece) {
      C* const scratch = rest + piece * (piece_elements_ + run_offsets_);
      std::fill(scratch, scratch + piece_elements_, C(0));  // elements read past the data must be finite
      const int64_t per_group = view_.units() / size_.groups;
      if (by_groups_) {
        const Share groups(size_.groups, piece, threads_);
        std::fill(sums + groups.begin * group_elements_, sums + groups.end * group_elements_, C(0));
        add_units(args, groups.begin * per_group, groups.end * per_group, 0, filters_, scratch, sums);
      } else if (by_units_) {
        const Share units(view_.units(), piece, threads_);
        C* const own = sums + piece * sums_elements_;
        std::fill(own, own + sums_elements_, C(0));
        add_units(args, units.begin, units.end, 0, filters_, scratch, own);
      } else {
        const int64_t first = std::min(piece * filters_, size_.group_filters());
        const int64_t last = std::min(first + filters_, size_.group_filters());
        if (first == last) return;
        for (int64_t group = 0; group < size_.groups; ++group)
          std::fill(sums + group * group_elements_ + first * padded_inner_,
                    sums + group * group_elements_ + last * padded_inner_, C(0));
        add_units(args, 0, view_.units(), first, last, scratch, sums);
      }
    });
    store(sums, args.out<C>());
    if (with_bias_) sum_bias(args.in<C>(0), args.out<C>(1));
  }

 private:
  int64_t grad_step() const { return view_.most_chunks() * view_.chunk(); }

  void add_units(const Args& args, int64_t begin, int64_t end, int64_t first, int64_t last, C* scratch, C* sums) const {
    C* const grads = scratch + copy_elements_;
    auto* const runs = reinterpret_cast<int64_t*>(scratch + piece_elements_);
    std::vector<View::Segment> segments;
    for (int64_t number = begin; number < end; ++number) {
      const Unit unit = view_.unit(number);
      view_.copy(unit, data_, args.in<C>(1) + unit.group * size_.group_channels() * data_.channel, scratch);
      copy_grads(unit, first, last, args.in<C>(0) + unit.group * size_.group_filters() * grad_.channel, segments,
                 grads);
      C* const group_sums = sums + unit.group * group_elements_;
      const int64_t chunks = view_.chunks(unit);
      for (int64_t chunk = 0; chunk < chunks; chunk += block_chunks_) {
        const int64_t count = std::min(chunks - chunk, block_chunks_);
        for (int64_t i = 0; i < count; ++i) runs[i] = view_.chunk_at(unit, chunk + i).offset;
        add_dots(grads + chunk * view_.chunk(), first, last, scratch, runs, count, group_sums);
      }
    }
  }

  // Rows of the outputs' gradient in the order of the view's columns, with zeros where there is no output.
  void copy_grads(const Unit& unit, int64_t first, int64_t last, const C* from, std::vector<View::Segment>& segments,
                  C* to) const {
    const int64_t chunks = view_.chunks(unit), step = view_.segment_step(grad_);
    segments.clear();
    for (int64_t i = 0; i < chunks; ++i)
      view_.add_segments(unit, view_.chunk_at(unit, i), grad_, i * view_.chunk(), segments);
    for (int64_t filter = first; filter < last; ++filter) {
      C* const row = to + (filter - first) * grad_step();
      std::fill(row, row + chunks * view_.chunk(), C(0));
      const C* const plane = from + filter * grad_.channel;
      for (const View::Segment& segment : segments)
        gather_row(plane + segment.target, step, segment.count, row + segment.column);
    }
  }

  void add_dots(const C* grads, int64_t first, int64_t last, const C* copy, const int64_t* runs, int64_t count,
                C* sums) const {
    const TileKernels<C>& kernels = tile_kernels<C>();
    const int64_t vectors = view_.chunk() / kernels.lanes;
    for (int64_t k = 0; k < padded_inner_; k += TileKernels<C>::dot_columns)
      for (int64_t filter = first; filter < last; filter += kernels.dot_rows) {
        const int64_t rows = std::min(kernels.dot_rows, last - filter);
        kernels.dots[rows](grads + (filter - first) * grad_step(), grad_step(), copy, offsets_.data() + k, runs, count,
                           vectors, sums + filter * padded_inner_ + k, padded_inner_);
      }
  }

  void store(const C* sums, C* weight_grad) const {
    const int64_t taps = size_.kernel_size();
    parallel_for(size_.filters, element_grain / (inner_ * own_sums_) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t filter = begin; filter < end; ++filter) {
        const int64_t group = filter / size_.group_filters(), own = filter % size_.group_filters();
        const C* const from = sums + filter * padded_inner_;
        C* const to = weight_grad + group * weight_.group + own * weight_.result;
        for (int64_t channel = 0; channel < size_.group_channels(); ++channel)
          for (int64_t tap = 0; tap < taps; ++tap) {
            C sum = 0;
            for (int64_t i = 0; i < own_sums_; ++i) sum += from[i * sums_elements_ + channel * taps + tap];
            to[channel * weight_.data + tap * weight_.tap] = sum;
          }
      }
    });
  }

  void sum_bias(const C* grad, C* bias_grad) const {
    const int64_t space = size_.out_size();
    for_elements(
        size_.filters,
        [&](int64_t begin, int64_t end) {
          for (int64_t filter = begin; filter < end; ++filter) {
            double sum = 0;
            for (int64_t image = 0; image < size_.batch; ++image) {
              const C* const plane = grad + image * grad_.image + filter * grad_.channel;
              double lanes[8] = {};
              int64_t i = 0;
              if (grad_.space[2] == 1)
                for (; i + 8 <= space; i += 8)
                  for (int64_t lane = 0; lane < 8; ++lane) lanes[lane] += static_cast<double>(plane[i + lane]);
              for (; i < space; ++i) sum += static_cast<double>(plane[i * grad_.space[2]]);
              for (const double lane : lanes) sum += lane;
            }
            bias_grad[filter] = static_cast<C>(sum);
          }
        },
        element_grain / (size_.batch * space + 1) + 1);
  }

  ConvolutionSize size_;
  bool with_bias_;
  ArrayStrides data_, grad_;
  WeightStrides weight_;
  int64_t threads_;
  View view_;
  std::vector<int64_t> offsets_;
  int64_t inner_, padded_inner_, group_elements_, own_sums_, block_chunks_, filters_;
  int64_t copy_elements_, piece_elements_, sums_elements_, run_offsets_;
  bool by_groups_, by_units_;
};

// ---- The kinds of node ----------------------------------------------------------------------------------------------

template <class P>
std::string refuse(const NodeView& node) {
  const DType type = node.outputs[0].dtype;
  if (type != DType::float32 && type != DType::float64) return join("only for float32 and float64, not ", type);
  if constexpr (std::is_same_v<P, ConvolutionFused>)
    if (node.as<P>().has_norms() && type != DType::float32) return "norms are folded into float32 only";
  for (const auto& arrays : {node.inputs, node.outputs})
    for (const Tensor& tensor : arrays)
      if (tensor.shape.size() == 0) return "an array is empty";
  if (is_grad_data<P> && has_most_products_outside(size_of_node<P>(node))) return "most products would be with padding";
  return "";
}

template <class P, class C>
std::unique_ptr<Kernel> build_as(const NodeView& node) {
  const P& p = node.as<P>();
  const ConvolutionSize size = size_of_node<P>(node);
  if constexpr (is_grad_data<P>)
    return std::make_unique<GemmConvolution<C>>(size);
  else if constexpr (is_grad_weight<P>)
    return std::make_unique<GemmGradWeight<C>>(size, !p.no_bias);
  else
    return std::make_unique<GemmConvolution<C>>(size, as_fused(p), node.inputs[1].shape);
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  return node.outputs[0].dtype == DType::float64 ? build_as<P, double>(node) : build_as<P, float>(node);
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"gemm", refuse<P>, build<P>, nullptr, false, Tier::optimised});
}

}  // namespace

void add_conv_gemm(ImplementationTable& table) {
  add<Convolution>(table);
  add<ConvolutionFused>(table);
  add<ConvolutionGradData>(table);
  add<ConvolutionGradWeight>(table);
}

}  // namespace symbind::cpu_backend
