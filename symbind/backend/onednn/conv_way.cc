// The time of each way is a sum: the data it moves and the products it computes, each at its own rate. The rates are
// nanoseconds on one core with AVX-512, fitted to the times of 380 random float32 layers (seed 2 of bench/layers.py,
// Convolution alone), every way for every pass. Half of the estimates are within a fifth of the time, and the way with
// the least estimate takes 5 % longer than the fastest one on average. Those of oneDNN's direct kernels for the data's
// gradient are of 320 other layers that have one, most of them with strides: the way with the least estimate takes 11 %
// longer. Those of half precision are of 126 layers in bfloat16 (seed 3), by oneDNN's kernels for it. Only the
// relations between the ways matter.
#include "symbind/backend/onednn/conv_way.h"

#include <algorithm>

#include "symbind/backend/cpu/conv_view.h"
#include "symbind/backend/cpu/tile_kernels.h"

namespace symbind::onednn {
namespace {

using namespace cpu_backend;

double round_up(int64_t count, int64_t step) { return static_cast<double>((count + step - 1) / step * step); }
double real(int64_t number) { return static_cast<double>(number); }

// The rates of one pass.
struct PlainRates {
  double start, call;             // there is a product of matrices for each image, group and position along the depth
  double unfolded, output, data;  // elements
  double product, weight_of_a_call;  // multiply-adds; the weights are read by every call
};
struct ReorderedRates {
  double start, data, output, weight;  // elements
  double product;
  double row;              // of outputs, for each kernel position and pair of blocks of channels
  bool pads_read = true;   // are the channels that are read padded to whole blocks?
  double wide_stride = 1;  // how much longer products take with a stride of three or more along the last axis
};
struct PatchRates {
  double start;
  double copied, gathered, copied_row;  // elements, those that are not neighbours besides, and rows of them
  double product;
  double stored, single, segment;  // results, by rows or singly, and the rows
  double weight, load;             // vectors of the copy are read for each strip of results
};
struct LibraryRates {
  PlainRates plain;
  ReorderedRates directly, by_small_products;
};

// By the number of the pass: forward, the data's gradient, the weight's.
size_t pass_of(const ConvolutionWork& work) { return work.of_data ? 1 : work.of_weight ? 2 : 0; }

constexpr ReorderedRates weight_rates = {2929, 0.051, 0.51, 0.432, 0.0175, 0.0121};
constexpr LibraryRates float_rates[] = {{{2059, 259, 0.622, 0.128, 0.032, 0.017, 0.195},
                                         {1983, 0.217, 0.235, 0.002, 0.0161, 0.72},
                                         {1937, 0.322, 0.319, 0, 0.0169, 3.41}},
                                        {{2263, 334, 0.809, 0.106, 0.135, 0.018, 0.138},
                                         {500, 0.54, 0.105, 0, 0.0174, 0, false, 1.75},
                                         {3441, 0.676, 0.413, 0, 0.0181, 2.64}},
                                        {{2622, 127, 0.821, 0.609, 0.007, 0.0224, 0.0845}, weight_rates, weight_rates}};
constexpr ReorderedRates half_weight_rates = {2954, 0.198, 0.365, 0.195, 0.0078, 0.0399};
constexpr LibraryRates half_rates[] = {
    {{1552, 348, 0.753, 0.114, 0.027, 0.0073, 0.481},
     {2090, 0.183, 0.183, 0, 0.007, 0.883},
     {1490, 0.227, 0.288, 0, 0.0076, 2.97}},
    {{1812, 404, 0.724, 0.085, 0.268, 0.0089, 0.308},
     {2, 0.159, 0.692, 0.823, 0.0036, 1.74},
     {1985, 0.448, 0.196, 0.276, 0.0098, 8.95}},
    {{1926, 4, 0.774, 6.02, 0.002, 0.0091, 0.202}, half_weight_rates, half_weight_rates}};
constexpr PatchRates patch_rates[] = {{1820, 0.165, 0.198, 1.28, 0.0166, 0.12, 1.06, 2.78, 0.487, 0.0177},
                                      {2358, 0.314, 0.01, 1.34, 0.0182, 0.167, 0.52, 4.53, 1.53, 0.0045},
                                      {2635, 0.241, 0.252, 1.97, 0.0308, 0.034, 0.064, 1.88, 19.35, 0.526}};
constexpr double conversion_rate = 0.12;  // of an element between half precision and float32

double data_elements(const ConvolutionSize& size) { return real(size.data_size()); }
double output_elements(const ConvolutionSize& size) { return real(size.output_size()); }
double weight_elements(const ConvolutionSize& size) { return real(size.weight_size()); }

double time_plain(const ConvolutionWork& work, const PlainRates& rates) {
  const ConvolutionSize& size = work.size;
  const int64_t inner = size.group_channels() * size.kernel_size(), positions = size.out[1] * size.out[2];
  const bool is_unfolded =
      size.kernel_size() > 1 || work.strided_outputs() > size.out_size() || size.pad != std::array<int64_t, 3>{};
  const double unfolded = is_unfolded ? real(size.batch * size.groups * inner * size.out_size()) : 0;
  const double product = work.of_data     ? round_up(positions, 16) * round_up(inner, 6) * real(size.group_filters())
                         : work.of_weight ? round_up(inner, 16) * round_up(size.group_filters(), 6) * real(positions)
                                          : round_up(positions, 16) * round_up(size.group_filters(), 6) * real(inner);
  const double calls = real(size.batch * size.groups * size.out[0]);
  // With one channel and kernel position the weight's gradient is a product with a vector, which only reads.
  if (work.of_weight && inner == 1) return rates.start + calls * rates.call + output_elements(size) * 0.1;
  return rates.start + calls * (rates.call + product * rates.product) + unfolded * rates.unfolded +
         output_elements(size) * rates.output + data_elements(size) * rates.data +
         real(size.batch * size.out[0]) * weight_elements(size) * rates.weight_of_a_call;
}

// Inside a network the neighbours of an expensive layer have the same layouts: it needs no reorders.
bool shares_layouts(const ConvolutionWork& work) {
  const ConvolutionSize& size = work.size;
  if (work.products >= 8 * work.elements && work.has_whole_blocks()) return true;
  if (work.of_data) return false;
  const bool is_first_layer = size.groups == 1 && size.channels <= 4 && size.filters >= 16 && size.out_size() >= 256 &&
                              work.products >= 16 * work.elements;
  return is_first_layer || (work.products >= 100 * work.elements && work.results >= 16 && work.read >= 16);
}

// Of the pairs of a position and a kernel position along an axis, those that are inside the data.
double share_inside(const ConvolutionSize& size, size_t axis) {
  int64_t inside = 0;
  for (int64_t position = 0; position < size.out[axis]; ++position)
    for (int64_t tap = 0; tap < size.kernel[axis]; ++tap) {
      const int64_t at = position * size.stride[axis] + tap * size.dilate[axis] - size.pad[axis];
      if (at >= 0 && at < size.in[axis]) ++inside;
    }
  return real(inside) / real(size.out[axis] * size.kernel[axis]);
}

double time_reordered(const ConvolutionWork& work, const ReorderedRates& rates, bool by_small_products) {
  const ConvolutionSize& size = work.size;
  // Rows and planes of the kernel that are outside the data are skipped.
  const double taps =
      real(size.batch * size.groups * size.kernel_size()) * share_inside(size, 0) * share_inside(size, 1);
  const bool reads_few = !work.of_data && size.group_channels() <= 4;  // which are not padded
  const double results = round_up(work.results, 16);
  const bool pads_read = rates.pads_read && !by_small_products && !reads_few;
  const double read = pads_read ? round_up(work.read, 16) : real(work.read);
  const double rows = taps * real(size.out[0] * size.out[1]);
  // A small product is of a row of outputs: with one or two it is limited by reading the weights.
  const double columns = real(by_small_products ? std::max<int64_t>(size.out[2], 3) : size.out[2]);
  const double row = work.of_weight      ? results * read
                     : by_small_products ? results / 16
                                         : results / 16 * round_up(work.read, 16) / 16;
  // Small products of the data's gradient are split by phases if there are strides.
  const bool in_phases = by_small_products && work.of_data && work.strided_outputs() > size.out_size();
  const double effort = (in_phases ? 1.15 : 1) * (size.stride[2] > 2 ? rates.wide_stride : 1);
  const double reorders =
      shares_layouts(work) ? 0 : data_elements(size) * rates.data + output_elements(size) * rates.output;
  return rates.start + reorders + weight_elements(size) * rates.weight +
         effort * rows * columns * results * read * rates.product + rows * row * rates.row;
}

// One pass over a view of the activations that are read.
double time_of_pass(const ConvolutionWork& work, const conv_view::Pass& pass) {
  const ConvolutionSize& size = work.size;
  const PatchRates& rates = patch_rates[pass_of(work)];
  const TileKernels<float>& kernels = tile_kernels<float>();
  const int64_t read = work.of_data ? size.group_filters() : size.group_channels();
  const conv_view::View view(pass, size.batch, read, size.groups, kernels.lanes, 1);
  const conv_view::View::Effort effort = view.effort();
  const auto taps = static_cast<int64_t>(pass.taps.size());
  const double columns = effort.columns * real(size.groups);
  const double copied = effort.copied * real(size.groups * read);
  const double inner = work.of_weight ? round_up(read * taps, TileKernels<float>::dot_columns) : real(read * taps);
  const double strips = round_up(work.results, kernels.most_rows) / real(kernels.most_rows);
  const double loads = columns * (work.of_weight ? real(work.results) : strips * inner);
  const int64_t positions = pass.grid[0] * pass.grid[1] * pass.grid[2];
  const double results = real(size.batch * size.groups * work.results * positions);
  const bool is_gathered = !effort.is_along_last_axis || pass.stride[2] > 1;
  const bool is_single = !effort.is_along_last_axis || pass.step[2] > 1;
  const double copy_rate =
      rates.copied + (is_gathered ? rates.gathered : 0) + rates.copied_row / real(std::min<int64_t>(effort.row, 16));
  const double store_rate = (is_single ? rates.single : rates.stored) + rates.segment / real(effort.row);
  return copied * copy_rate + columns * inner * real(work.results) * rates.product + loads * rates.load +
         results * store_rate;
}

double time_over_patches(const ConvolutionWork& work) {
  const PatchRates& rates = patch_rates[pass_of(work)];
  double time = rates.start + weight_elements(work.size) * rates.weight;
  if (!work.of_data) return time + time_of_pass(work, conv_view::forward_pass(work.size));
  for (const conv_view::Pass& pass : conv_view::grad_data_passes(work.size)) time += time_of_pass(work, pass);
  return time;
}

struct Choice {
  Way way;
  double time;
};

Choice faster(const Choice& a, const Choice& b) { return b.time < a.time ? b : a; }

Choice fastest_of_library(const ConvolutionWork& work, Reordered reordered, const LibraryRates& rates) {
  const Choice plain{Way::plain, time_plain(work, rates.plain)};
  if (reordered == Reordered::unavailable) return plain;
  const bool by_small_products = reordered == Reordered::by_small_products;
  const ReorderedRates& reordered_rates = by_small_products ? rates.by_small_products : rates.directly;
  return faster(plain, {Way::reordered, time_reordered(work, reordered_rates, by_small_products)});
}

Choice fastest_in_float(const ConvolutionWork& work, Reordered reordered) {
  const Choice library = fastest_of_library(work, reordered, float_rates[pass_of(work)]);
  return work.has_most_products_outside() ? library : faster(library, {Way::patches, time_over_patches(work)});
}

}  // namespace

Way fastest_way(const ConvolutionWork& work, Reordered reordered) { return fastest_in_float(work, reordered).way; }

Way fastest_way_in_half(const ConvolutionWork& work, Reordered reordered) {
  const Choice in_half = fastest_of_library(work, reordered, half_rates[pass_of(work)]);
  const double conversions = conversion_rate * (real(work.elements) + weight_elements(work.size));
  const double in_float = fastest_in_float(work, reordered).time + conversions;
  return faster(in_half, {Way::patches, in_float}).way;
}

}  // namespace symbind::onednn
