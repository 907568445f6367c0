// Winograd convolution with 3 × 3 kernels. A tile of 4 × 4 outputs reads 6 × 6 inputs; both it and the kernel are
// transformed to 36 numbers per channel whose products, summed over channels, are transformed back to the tile: 36
// multiplications instead of 144. So a convolution becomes 36 matrix products, (tiles × channels) · (channels ×
// filters), between cheap transforms. The kernel's gradient is the transpose: (channels × tiles) · (tiles × filters).
//
// The transforms evaluate polynomials at 0, ±3/4, ±3/2 and infinity: most coefficients are exact, and the rounding
// error is a third of that with the usual points 0, ±1, ±2. With sums in short pieces it is 1 to 2 · 10⁻⁶ of the
// largest output in the layers of ResNet-50, three to five times that of oneDNN's direct convolutions. A non-finite
// number spreads over its tile.
//
// This header is what the scheduling (winograd.cc) and the kernels (winograd_kernels.h, compiled once for each
// instruction set) share. Throughout, a vector is `width` channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend::winograd {

inline constexpr int64_t tile = 4;       // outputs along an edge of a tile
inline constexpr int64_t window = 6;     // inputs along an edge of a tile's window
inline constexpr int64_t products = 36;  // numbers of a transformed tile, called frequencies below
inline constexpr int64_t padding = 16;   // floats between frequencies, so that their cache lines do not collide

// The strides of an array (images, channels, height, width): channel c is at (c / block) · block_stride +
// (c % block) · lane.
struct Strides {
  int64_t height, width;
  int64_t image, row, pixel;
  int64_t block, block_stride, lane;

  int64_t channel(int64_t c) const { return c / block * block_stride + c % block * lane; }
  bool has_vectors(int64_t vector) const { return lane == 1 && block % vector == 0; }
};

// The tiles of a convolution in order (image, row of tiles, tile in the row), and the inputs of each.
struct Tiles {
  int64_t rows, columns;  // of tiles in an image
  int64_t pad_y, pad_x;   // how far the first window reaches over the edge; negative: how much it leaves out
};

// Transformed tiles [begin, begin + count): frequency after frequency, in each group after group of `rows` tiles, in
// each vector after vector of channels, tile after tile.
struct TransformedTiles {
  float* data;
  int64_t begin, count, rows, channels;

  int64_t frequency_stride() const { return count * channels + padding; }
  int64_t elements() const { return products * frequency_stride(); }
};

// The order of transformed kernels, and of their gradient: panels of two vectors of filters (the last may be one); in
// each frequency after frequency, channel after channel.
struct Panels {
  int64_t channels, filters, width;

  int64_t panel_filters() const { return 2 * width; }
  int64_t count() const { return (filters + panel_filters() - 1) / panel_filters(); }
  int64_t vectors(int64_t panel) const { return filters - panel * panel_filters() > width ? 2 : 1; }
  int64_t frequency_stride() const { return channels * panel_filters() + padding; }
  int64_t panel_elements() const { return products * frequency_stride(); }
};

// Where weight (filter, channel, y, x) is. `flipped`: y and x are read backwards, for the data's gradient.
struct WeightStrides {
  int64_t filter, channel, y, x;
  bool flipped;
};

// What happens to an output before it is stored.
struct Finish {
  const float* bias;   // may be null
  const float* added;  // an array with the layout of the output, which may be the output itself; may be null
  bool relu;
};

// One instruction set's kernels.
struct Kernels {
  int64_t width;
  int64_t most_rows;  // tiles in a group, which are multiplied together: as many as there are registers for

  // The windows of data that tiles [begin, end) see.
  void (*transform_data)(const float* data, const Strides& strides, const Tiles& tiles, int64_t begin, int64_t end,
                         const TransformedTiles& to);
  // The gradients of the outputs of tiles [begin, end).
  void (*transform_grad)(const float* grad, const Strides& strides, const Tiles& tiles, int64_t begin, int64_t end,
                         const TransformedTiles& to);
  // Kernels of the filters of one panel and of the channels [begin, end), which are whole vectors. `to` points to the
  // panel.
  void (*transform_weights)(const float* weights, const WeightStrides& strides, const Panels& panels, int64_t panel,
                            int64_t begin, int64_t end, float* to);
  // The outputs of tiles for the filters of one panel. `sums` is scratch of panel_sums_elements().
  void (*multiply)(const TransformedTiles& data, const Panels& panels, int64_t panel, const float* weights, float* sums,
                   const Tiles& tiles, const Finish& finish, float* output, const Strides& strides);
  // Adds to the panel at `sums`, or assigns if `first`, what the tiles contribute to it. It may hold fewer channels
  // than the tiles: their first ones.
  void (*accumulate)(const TransformedTiles& data, const TransformedTiles& grad, const Panels& panels, int64_t panel,
                     int64_t begin, int64_t end, bool first, float* sums);
  // From such sums the gradient of the kernels.
  void (*transform_weight_grad)(const float* sums, const Panels& panels, int64_t panel, float* weight_grad,
                                const WeightStrides& strides);
  // The sum of each of `width` channels, from channel `first` on.
  void (*sum_channels)(const float* data, const Strides& strides, int64_t images, int64_t first, float* sums);
};

inline int64_t panel_sums_elements(int64_t tiles, int64_t width) { return products * (tiles * 2 * width + padding); }

// Null if the compiler does not support the instruction set.
const Kernels* avx512_kernels();
const Kernels* avx2_kernels();

// Adds the implementations that use these kernels; with null they refuse all nodes.
void add_with(const Kernels* kernels, ImplementationTable& table);

}  // namespace symbind::cpu_backend::winograd

namespace symbind::cpu_backend {

// Convolutions with the kernels of this processor.
void add_winograd(ImplementationTable& table);

}  // namespace symbind::cpu_backend
