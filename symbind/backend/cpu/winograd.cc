// Decides when Winograd convolution pays off, and the order of tiles and channels.
//
// With many tiles each thread processes its share in blocks whose transformed data stay in its cache, and reads all
// transformed kernels for each block. With few, when the kernels are larger than the data, all tiles are transformed
// first and each thread computes its share of the filters, so that every kernel is read once. The gradient of the
// kernels is a sum over tiles, computed in chunks of tiles.
#include "symbind/backend/cpu/winograd.h"

#include <algorithm>

#include "symbind/backend/cpu/conv_nodes.h"
#include "symbind/backend/cpu/fold_norm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace winograd;

constexpr int64_t block_bytes = 640 << 10;    // transformed tiles and their sums, of a cache of 1 MiB
constexpr int64_t chunk_bytes = 4 << 20;      // transformed tiles of which the kernels' gradient is summed in one piece
constexpr int64_t own_sums_bytes = 24 << 20;  // up to this size each thread may have separate sums
constexpr int64_t few_tiles = 160;            // the kernels are larger than their data
constexpr int64_t fewest_tiles = 8;           // for which it is worth transforming the kernels
constexpr int64_t fewest_outputs = 8;         // of a tile that must be inside the image, on average
constexpr int64_t thread_products = 1 << 18;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Splits [0, count) into pieces of nearly the same size.
struct Share {
  int64_t begin, end;
  Share(int64_t count, int64_t piece, int64_t pieces)
      : begin(count * piece / pieces), end(count * (piece + 1) / pieces) {}
  int64_t size() const { return end - begin; }
};

// Calls body(piece) for each of `pieces`, each with its own memory, on the currently available threads.
template <class Body>
void each_piece(int64_t pieces, const Body& body) {
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) body(piece);
  });
}

// ---- A convolution in these terms -----------------------------------------------------------------------------------

Strides strides_of(const Tensor& tensor, bool channels_last) {
  const Shape& shape = tensor.shape;
  const int64_t channels = shape[channels_last ? 3 : 1];
  const int64_t height = shape[channels_last ? 1 : 2], width = shape[channels_last ? 2 : 3];
  const int64_t image = channels * height * width;
  if (channels_last || tensor.layout == Layout::channels_last)
    return {height, width, image, width * channels, channels, channels, 0, 1};
  const int64_t block = block_of(tensor.layout);
  if (block > 1) return {height, width, image, width * block, block, block, height * width * block, 1};
  return {height, width, image, width, 1, channels, 0, height * width};
}

WeightStrides weight_strides(const Shape& weight, bool channels_last) {
  if (channels_last) return {9 * weight[3], 1, 3 * weight[3], weight[3], false};
  return {9 * weight[1], 9, 3, 1, false};
}

struct Problem {
  const Kernels& kernels;
  Strides data, output;
  WeightStrides weight;
  Tiles tiles;
  int64_t images, tile_count, channels, filters;
  int64_t threads;

  Problem(const Kernels& with, const Convolution& p, const Tensor& data_tensor, const Tensor& weight_tensor,
          const Tensor& output_tensor)
      : kernels(with) {
    const bool channels_last = is_channels_last(p.layout);
    data = strides_of(data_tensor, channels_last);
    output = strides_of(output_tensor, channels_last);
    weight = weight_strides(weight_tensor.shape, channels_last);
    images = data_tensor.shape[0];
    channels = data_tensor.shape[channels_last ? 3 : 1];
    filters = p.num_filter;
    set_tiles(p.pad[0], p.pad[1]);
  }

  // The convolution of the output's gradient that gives the data's gradient: channels and filters are swapped.
  Problem transposed(const Convolution& p) const {
    Problem other = *this;
    std::swap(other.data, other.output);
    std::swap(other.channels, other.filters);
    std::swap(other.weight.channel, other.weight.filter);
    other.weight.flipped = true;
    other.set_tiles(2 - p.pad[0], 2 - p.pad[1]);
    return other;
  }

  Panels panels() const { return {channels, filters, kernels.width}; }
  // As even groups as possible.
  int64_t rows_of(int64_t count) const { return ceil_div(count, ceil_div(count, kernels.most_rows)); }

 private:
  void set_tiles(int64_t pad_y, int64_t pad_x) {
    tiles = {ceil_div(output.height, tile), ceil_div(output.width, tile), pad_y, pad_x};
    tile_count = images * tiles.rows * tiles.columns;
    threads = std::clamp<int64_t>(tile_count * products * channels * filters / thread_products, 1, available_threads());
  }
};

template <class P>
Problem problem_of(const Kernels& kernels, const NodeView& node) {
  const P& p = node.as<P>();
  if constexpr (is_grad_data<P>)
    return Problem(kernels, p, node.outputs[0], node.inputs[1], node.inputs[0]).transposed(p);
  else if constexpr (is_grad_weight<P>)
    return {kernels, p, node.inputs[1], node.inputs[2], node.inputs[0]};
  else
    return {kernels, p, node.inputs[0], node.inputs[1], node.outputs[0]};
}

// ---- Data to outputs ------------------------------------------------------------------------------------------------

class WinogradConvolution final : public Kernel {
 public:
  // `around`: the fused operations. Its norms are folded into the cached kernels, and into a bias stored after them.
  WinogradConvolution(const Problem& problem, const ConvolutionFused& around, const Shape& weight, bool is_train)
      : problem_(problem), panels_(problem.panels()), around_(around), at_(inputs_of(around)), weight_(weight) {
    const int64_t by_tiles = std::min(problem.threads, ceil_div(problem.tile_count, fewest_tiles));
    const int64_t by_filters = std::min(problem.threads, panels_.count());
    by_filters_ = by_filters > by_tiles || (by_filters == by_tiles && problem.tile_count <= few_tiles);
    pieces_ = by_filters_ ? by_filters : by_tiles;
    // A gradient step changes the kernels: kernels that are read once need not be cached.
    caches_ = !(by_filters_ && is_train) || around.has_norms();
    const int64_t tile_bytes = products * (problem.channels + panels_.panel_filters()) * int64_t{sizeof(float)};
    const int64_t most = std::max<int64_t>(block_bytes / tile_bytes, problem.kernels.most_rows);
    block_ = by_filters_ ? problem.tile_count : std::min(most, ceil_div(problem.tile_count, pieces_));
    cached_from = around.has_norms() ? folded_inputs(around) : std::vector{1};
    if (caches_) cached_bytes = bytes_of(kernels_elements() + (around.has_norms() ? problem.filters : 0));
    const int64_t folded = around.has_norms() ? weight.size() : 0;
    scratch_bytes = bytes_of(std::max(folded, (by_filters_ ? data_elements() : 0) + pieces_ * piece_elements()));
    if (around.sum && around.sum_is_spent) in_place = {{at_.sum, 0}};
  }

  void prepare(const Args& args) override {
    const auto* weights = args.in<float>(1);
    auto* cached = static_cast<float*>(args.cached);
    if (around_.has_norms()) {
      auto* folded = static_cast<float*>(args.scratch);
      fold_norms(around_, {weight_, DType::float32}, args, folded, cached + kernels_elements());
      weights = folded;
    }
    const int64_t step = 2 * problem_.kernels.width, steps = ceil_div(problem_.channels, step);
    parallel_for(panels_.count() * steps, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t panel = i / steps, channel = i % steps * step;
        problem_.kernels.transform_weights(weights, problem_.weight, panels_, panel, channel,
                                           std::min(channel + step, problem_.channels),
                                           cached + panel * panels_.panel_elements());
      }
    });
  }

  void run(const Args& args) override {
    if (by_filters_)
      run_by_filters(args);
    else
      run_by_tiles(args);
  }

 private:
  static size_t bytes_of(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }
  int64_t kernels_elements() const { return panels_.count() * panels_.panel_elements(); }
  int64_t data_elements() const { return products * (block_ * problem_.channels + padding); }
  int64_t sums_elements() const { return panel_sums_elements(block_, problem_.kernels.width); }
  int64_t piece_elements() const {
    return sums_elements() + (by_filters_ ? (caches_ ? 0 : panels_.panel_elements()) : data_elements());
  }
  Finish finish_of(const Args& args) const {
    const auto input = [&](int index) { return index < 0 ? nullptr : args.in<float>(static_cast<size_t>(index)); };
    const float* bias =
        around_.has_norms() ? static_cast<const float*>(args.cached) + kernels_elements() : input(at_.bias);
    return {bias, input(at_.sum), around_.act_type == "relu"};
  }

  void run_by_tiles(const Args& args) const {
    const auto* cached = static_cast<const float*>(args.cached);
    each_piece(pieces_, [&](int64_t piece) {
      float* sums = static_cast<float*>(args.scratch) + piece * piece_elements();
      const Share share(problem_.tile_count, piece, pieces_);
      const int64_t blocks = ceil_div(share.size(), block_);
      for (int64_t i = 0; i < blocks; ++i) {
        const Share block(share.size(), i, blocks);
        const TransformedTiles data{sums + sums_elements(), share.begin + block.begin, block.size(),
                                    problem_.rows_of(block.size()), problem_.channels};
        problem_.kernels.transform_data(args.in<float>(0), problem_.data, problem_.tiles, data.begin,
                                        data.begin + data.count, data);
        for (int64_t panel = 0; panel < panels_.count(); ++panel)
          multiply(args, data, panel, cached + panel * panels_.panel_elements(), sums);
      }
    });
  }

  void run_by_filters(const Args& args) const {
    auto* scratch = static_cast<float*>(args.scratch);
    const TransformedTiles data{scratch, 0, problem_.tile_count, problem_.rows_of(problem_.tile_count),
                                problem_.channels};
    each_piece(pieces_, [&](int64_t piece) {
      const Share share(problem_.tile_count, piece, pieces_);
      problem_.kernels.transform_data(args.in<float>(0), problem_.data, problem_.tiles, share.begin, share.end, data);
    });
    each_piece(pieces_, [&](int64_t piece) {
      float* sums = scratch + data_elements() + piece * piece_elements();
      const Share share(panels_.count(), piece, pieces_);
      for (int64_t panel = share.begin; panel < share.end; ++panel) {
        float* weights =
            caches_ ? static_cast<float*>(args.cached) + panel * panels_.panel_elements() : sums + sums_elements();
        if (!caches_)
          problem_.kernels.transform_weights(args.in<float>(1), problem_.weight, panels_, panel, 0, problem_.channels,
                                             weights);
        multiply(args, data, panel, weights, sums);
      }
    });
  }

  void multiply(const Args& args, const TransformedTiles& data, int64_t panel, const float* weights,
                float* sums) const {
    problem_.kernels.multiply(data, panels_, panel, weights, sums, problem_.tiles, finish_of(args), args.out<float>(),
                              problem_.output);
  }

  Problem problem_;
  Panels panels_;
  ConvolutionFused around_;
  ConvolutionFusedInputs at_;
  Shape weight_;
  bool by_filters_, caches_;
  int64_t pieces_;  // that threads take
  int64_t block_;   // most tiles that are transformed together
};

// ---- The gradient of the kernels ------------------------------------------------------------------------------------

// Each thread sums over its own tiles, and the sums of all are added, if there is memory for separate sums and the
// tiles are larger than these; else all transform the same chunk of tiles together and share the sums.
class WinogradGradWeight final : public Kernel {
 public:
  WinogradGradWeight(const Problem& problem, bool with_bias) : problem_(problem), with_bias_(with_bias) {
    part_channels_ = std::min(problem.channels, 4 * problem.kernels.width);
    parts_ = ceil_div(problem.channels, part_channels_);
    const int64_t sums_bytes = products * problem.channels * problem.filters * int64_t{sizeof(float)};
    const int64_t tile_bytes = products * (problem.channels + problem.filters) * int64_t{sizeof(float)};
    const bool fits = problem.threads * sums_bytes <= own_sums_bytes;
    const bool pays = problem.tile_count / problem.threads * tile_bytes >= sums_bytes;
    teams_ = fits && pays ? problem.threads : 1;
    frequency_pieces_ = teams_ > 1 ? 1 : std::min(ceil_div(problem.threads, parts()), products);
    // Every chunk reads and writes all sums, so it should be large.
    const int64_t tiles = ceil_div(problem.tile_count, teams_);
    chunks_ = ceil_div(tiles * tile_bytes, std::clamp(sums_bytes / 2, chunk_bytes, 8 * chunk_bytes));
    chunk_ = ceil_div(tiles, chunks_);
    keeps_sums_ = teams_ > 1 || chunks_ > 1 || frequency_pieces_ > 1;
    sums_elements_ = (keeps_sums_ ? parts() : problem.threads) * part_of(0).panel_elements();
    scratch_bytes = static_cast<size_t>(teams_ * team_elements()) * sizeof(float);
  }

  void run(const Args& args) override {
    if (teams_ > 1)
      run_apart(args);
    else
      run_together(args);
    if (with_bias_) sum_bias(args.in<float>(0), args.out<float>(1));
  }

 private:
  int64_t elements_of(int64_t channels) const { return products * (chunk_ * channels + padding); }
  int64_t tiles_elements() const { return elements_of(problem_.channels) + elements_of(problem_.filters); }
  int64_t team_elements() const { return tiles_elements() + sums_elements_; }

  // The sums are computed in parts of some channels and one panel.
  int64_t parts() const { return parts_ * problem_.panels().count(); }
  int64_t panel_of(int64_t part) const { return part / parts_; }
  int64_t channel_of(int64_t part) const { return part % parts_ * part_channels_; }
  int64_t offset_of(int64_t part) const { return part * part_of(0).panel_elements(); }
  Panels part_of(int64_t first_channel) const {
    return {std::min(part_channels_, problem_.channels - first_channel), problem_.filters, problem_.kernels.width};
  }

  // The transformed data and gradients of a chunk of tiles.
  struct Chunk {
    TransformedTiles data, grads;
  };
  Chunk chunk_at(const Share& tiles, int64_t begin, float* scratch) const {
    const TransformedTiles data{scratch, begin, tiles.size(), tiles.size(), problem_.channels};
    TransformedTiles grads = data;
    grads.data += elements_of(problem_.channels);
    grads.channels = problem_.filters;
    return {data, grads};
  }
  void transform(const Args& args, const Chunk& chunk, int64_t begin, int64_t end) const {
    problem_.kernels.transform_data(args.in<float>(1), problem_.data, problem_.tiles, begin, end, chunk.data);
    problem_.kernels.transform_grad(args.in<float>(0), problem_.output, problem_.tiles, begin, end, chunk.grads);
  }
  void accumulate_part(int64_t part, const Chunk& chunk, const Share& frequencies, bool first, float* sums) const {
    TransformedTiles data = chunk.data;
    data.data += channel_of(part) * data.count;
    problem_.kernels.accumulate(data, chunk.grads, part_of(channel_of(part)), panel_of(part), frequencies.begin,
                                frequencies.end, first, sums);
  }
  void finish_part(int64_t part, const float* sums, float* weight_grad) const {
    const int64_t channel = channel_of(part);
    problem_.kernels.transform_weight_grad(sums, part_of(channel), panel_of(part),
                                           weight_grad + channel * problem_.weight.channel, problem_.weight);
  }

  void run_apart(const Args& args) const {
    auto* scratch = static_cast<float*>(args.scratch);
    each_piece(teams_, [&](int64_t team) {
      float* own = scratch + team * team_elements();
      const Share share(problem_.tile_count, team, teams_);
      for (int64_t i = 0; i < chunks_; ++i) {
        const Share tiles(share.size(), i, chunks_);
        const Chunk chunk = chunk_at(tiles, share.begin + tiles.begin, own);
        transform(args, chunk, share.begin + tiles.begin, share.begin + tiles.end);
        for (int64_t part = 0; part < parts(); ++part)
          accumulate_part(part, chunk, {products, 0, 1}, i == 0, own + tiles_elements() + offset_of(part));
      }
    });
    each_piece(parts(), [&](int64_t part) {
      float* sums = scratch + tiles_elements() + offset_of(part);
      for (int64_t team = 1; team < teams_; ++team)
        for_range(0, offset_of(1), [sums, more = sums + team * team_elements()](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) sums[i] += more[i];
        });
      finish_part(part, sums, args.out<float>());
    });
  }

  void run_together(const Args& args) const {
    auto* scratch = static_cast<float*>(args.scratch);
    float* sums = scratch + tiles_elements();
    for (int64_t i = 0; i < chunks_; ++i) {
      const Share tiles(problem_.tile_count, i, chunks_);
      const Chunk chunk = chunk_at(tiles, tiles.begin, scratch);
      each_piece(problem_.threads, [&](int64_t piece) {
        const Share share(tiles.size(), piece, problem_.threads);
        transform(args, chunk, tiles.begin + share.begin, tiles.begin + share.end);
      });
      if (frequency_pieces_ > 1)
        accumulate_frequencies(chunk, i == 0, sums);
      else
        accumulate(chunk, i == 0, i == chunks_ - 1, sums, args.out<float>());
    }
    if (frequency_pieces_ > 1)
      each_piece(parts(), [&](int64_t part) { finish_part(part, sums + offset_of(part), args.out<float>()); });
  }

  void accumulate(const Chunk& chunk, bool first, bool last, float* all_sums, float* weight_grad) const {
    each_piece(problem_.threads, [&](int64_t piece) {
      const Share share(parts(), piece, problem_.threads);
      for (int64_t part = share.begin; part < share.end; ++part) {
        float* sums = all_sums + offset_of(keeps_sums_ ? part : piece);
        accumulate_part(part, chunk, {products, 0, 1}, first, sums);
        if (last) finish_part(part, sums, weight_grad);
      }
    });
  }

  // If there are more threads than parts, the frequencies are divided too.
  void accumulate_frequencies(const Chunk& chunk, bool first, float* all_sums) const {
    each_piece(parts() * frequency_pieces_, [&](int64_t piece) {
      const int64_t part = piece / frequency_pieces_;
      accumulate_part(part, chunk, {products, piece % frequency_pieces_, frequency_pieces_}, first,
                      all_sums + offset_of(part));
    });
  }

  void sum_bias(const float* grad, float* bias_grad) const {
    const int64_t width = problem_.kernels.width;
    parallel_for(problem_.filters / width, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        problem_.kernels.sum_channels(grad, problem_.output, problem_.images, i * width, bias_grad + i * width);
    });
  }

  Problem problem_;
  bool with_bias_;
  int64_t chunks_, chunk_;         // of tiles
  int64_t parts_, part_channels_;  // of channels
  int64_t teams_;                  // of threads, each with its own tiles and sums
  int64_t frequency_pieces_;
  bool keeps_sums_;  // of all parts, from chunk to chunk
  int64_t sums_elements_;
};

// ---- The three kinds of node ----------------------------------------------------------------------------------------

template <class P>
ConvolutionFused around_of(const P& p) {
  ConvolutionFused around = as_fused(p);
  around.no_bias = around.no_bias || is_grad_data<P>;
  return around;
}

bool is_wanted() {
  static const bool wanted = environment::variable("SYMBIND_WINOGRAD").on();
  return wanted;
}

template <class P>
std::string refuse(const Kernels* kernels, const NodeView& node) {
  const P& p = node.as<P>();
  if (!kernels) return "there are no kernels for this processor";
  if (!is_wanted()) return "SYMBIND_WINOGRAD=0";
  if (node.outputs[0].dtype != DType::float32) return "only for float32";
  if (p.kernel != Tuple{3, 3}) return "only for kernels of 3 × 3";
  if (p.stride != Tuple{1, 1} || p.dilate != Tuple{1, 1}) return "only without stride and dilation";
  if (p.num_group != 1) return "only for one group";
  if constexpr (std::is_same_v<P, ConvolutionFused>)
    if (!p.act_type.empty() && p.act_type != "relu") return join("it has no ", p.act_type);
  for (const auto& arrays : {node.inputs, node.outputs})
    for (const Tensor& tensor : arrays)
      if (tensor.shape.size() == 0) return "an array is empty";
  const Problem problem = problem_of<P>(*kernels, node);
  if (problem.channels % kernels->width != 0 || problem.filters % kernels->width != 0)
    return join("only for multiples of ", kernels->width, " channels");
  if (problem.tile_count < fewest_tiles) return join("only ", problem.tile_count, " tiles");
  if (problem.images * problem.output.height * problem.output.width < fewest_outputs * problem.tile_count)
    return "its tiles are mostly outside the image";
  return "";
}

template <class P>
std::unique_ptr<Kernel> build(const Kernels& kernels, const NodeView& node) {
  const P& p = node.as<P>();
  const Problem problem = problem_of<P>(kernels, node);
  if constexpr (is_grad_weight<P>) return std::make_unique<WinogradGradWeight>(problem, !p.no_bias);
  return std::make_unique<WinogradConvolution>(problem, around_of(p), node.inputs[1].shape, node.is_train);
}

// As the direct convolutions prefer, too: whole vectors of channels.
template <class P>
std::optional<PreferredLayouts> preferred_layouts(const Kernels& kernels, const NodeView& node) {
  if (is_channels_last(node.as<P>().layout)) return std::nullopt;
  const Layout layout = kernels.width == 16 ? Layout::blocked16 : Layout::blocked8;
  PreferredLayouts preferred{std::vector(node.inputs.size(), Layout::plain),
                             std::vector(node.outputs.size(), Layout::plain)};
  preferred.inputs[0] = layout;
  (is_grad_weight<P> ? preferred.inputs[1] : preferred.outputs[0]) = layout;
  if constexpr (std::is_same_v<P, ConvolutionFused>)
    if (node.as<P>().sum) preferred.inputs.back() = layout;
  return preferred;
}

template <class P>
void add(const Kernels* kernels, ImplementationTable& table) {
  table.add<P>({"winograd", [=](const NodeView& node) { return refuse<P>(kernels, node); },
                [=](const NodeView& node) { return build<P>(*kernels, node); },
                [=](const NodeView& node) { return preferred_layouts<P>(*kernels, node); }, false, Tier::specialised});
}

const Kernels* best_kernels() {
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return avx512_kernels();
    case InstructionSet::avx2:
      return avx2_kernels();
    case InstructionSet::baseline:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

void winograd::add_with(const Kernels* kernels, ImplementationTable& table) {
  add<Convolution>(kernels, table);
  add<ConvolutionFused>(kernels, table);
  add<ConvolutionGradData>(kernels, table);
  add<ConvolutionGradWeight>(kernels, table);
}

void add_winograd(ImplementationTable& table) { winograd::add_with(best_kernels(), table); }

}  // namespace symbind::cpu_backend
