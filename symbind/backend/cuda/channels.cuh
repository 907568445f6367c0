// Passes over arrays with different numbers per channel: sums per channel, and maps with numbers per channel. The
// channels are last ((rows, channels): a thread processes a few neighbouring channels and iterates over the rows) or in
// the middle ((outer, channels, inner): a block processes one channel). Sums are computed in pieces whose number
// depends only on the shape, and the pieces are added in a fixed order: the same arrays give bitwise the same results.
#pragma once

#include <algorithm>
#include <cstdint>

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/launch.cuh"

namespace symbind::cuda_backend {

// (outer, channels, inner), with inner 1 where the channels are last.
struct ChannelShape {
  int64_t outer = 0, channels = 0, inner = 1;
  constexpr bool last() const { return inner == 1; }
  constexpr int64_t per_channel() const { return outer * inner; }
  constexpr int64_t size() const { return outer * channels * inner; }
};

// How many neighbouring channels a thread processes: 16 bytes.
template <class T>
inline constexpr int channel_width = widest<T>;
inline constexpr int widest_channels = 8;  // of half precision

// Are 16 bytes of neighbouring channels processed together? `wide`: may the arrays be read 16 bytes at a time?
template <class T>
bool is_packed(const ChannelShape& shape, bool wide) {
  return wide && shape.last() && shape.channels % channel_width<T> == 0;
}

template <class C>
struct PairOf {
  C first, second;
};

// How a pass is divided: blocks of x × y threads, `tiles` of channels by `pieces` of rows (or of a channel's elements).
struct ChannelCut {
  int x = 1, y = 1;
  int64_t tiles = 1, pieces = 1, piece_length = 1;

  dim3 grid() const { return {static_cast<unsigned>(tiles), static_cast<unsigned>(pieces)}; }
  dim3 block() const { return {static_cast<unsigned>(x), static_cast<unsigned>(y)}; }
};

inline constexpr int64_t channel_blocks = 132 * 4;  // all resident on the largest GPU

inline ChannelCut cut_channels(const ChannelShape& shape, int width) {
  ChannelCut cut;
  if (shape.last()) {
    const int64_t packs = (shape.channels + width - 1) / width;
    while (cut.x < 32 && cut.x < packs) cut.x *= 2;
    cut.y = block_size / cut.x;
    cut.tiles = (packs + cut.x - 1) / cut.x;
  } else {
    cut.x = block_size;
    cut.tiles = shape.channels;
  }
  const int64_t length = shape.per_channel(), lanes = shape.last() ? cut.y : cut.x;
  const int64_t wanted = std::max<int64_t>(channel_blocks / cut.tiles, 1);
  const int64_t shortest = lanes * 4;  // a thread has a few elements at least
  cut.piece_length = std::max((length + wanted - 1) / wanted, std::min(shortest, length));
  cut.piece_length = std::max<int64_t>(cut.piece_length, 1);
  cut.pieces = std::max<int64_t>((length + cut.piece_length - 1) / cut.piece_length, 1);
  return cut;
}

// Scratch for the pieces of every channel, for any pack width.
inline size_t piece_bytes(const ChannelShape& shape, size_t size_of_compute_type) {
  int64_t pieces = 1;
  for (int width = 1; width <= widest_channels; width *= 2)
    pieces = std::max(pieces, cut_channels(shape, width).pieces);
  return static_cast<size_t>(pieces * shape.channels) * 2 * size_of_compute_type;
}

// ---- Sums -----------------------------------------------------------------------------------------------------------

// sums[piece][channel] = Σ over the piece. terms.at(channel) returns the per-channel data of the terms,
// terms.load<width>(index) reads their arrays, terms(of_channel, values, k) is the pair that element k adds. Terms with
// a method write(index, values) store an array that they compute on the way. A thread reads several rows before it uses
// the first: the compiler cannot know that what is written does not overlap what is read.
template <class Terms>
inline constexpr int rows_at_once_of = 4;

// What terms of the elements of one array, without data per channel, have in common.
template <class T>
struct ElementTerms {
  using Compute = compute_type<T>;
  struct OfChannel {};
  const T* x;

  __device__ OfChannel at(int64_t) const { return {}; }
  template <int width>
  __device__ Pack<T, width> load(int64_t index) const {
    return *reinterpret_cast<const Pack<T, width>*>(x + index);
  }
};

// The elements themselves.
template <class T>
struct ElementSums : ElementTerms<T> {
  template <int width>
  __device__ PairOf<compute_type<T>> operator()(typename ElementTerms<T>::OfChannel, const Pack<T, width>& values,
                                                int k) const {
    return {cuda_backend::load(values.element[k]), compute_type<T>(0)};
  }
};

template <class Terms>
requires(Terms::rows_at_once > 0) inline constexpr int rows_at_once_of<Terms> = Terms::rows_at_once;

template <class Terms, class Values>
__device__ void write_values(const Terms& terms, int64_t index, Values& values) {
  if constexpr (requires { terms.write(index, values); }) terms.write(index, values);
}

template <int width, class Terms>
__global__ void sum_last_channels(ChannelShape shape, int64_t piece_length, Terms terms,
                                  PairOf<typename Terms::Compute>* sums) {
  using C = typename Terms::Compute;
  let_next_start();
  __shared__ PairOf<C> shared[block_size * width];
  const int64_t channel = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
  const int64_t begin = int64_t{blockIdx.y} * piece_length;
  const int64_t end = begin + piece_length < shape.outer ? begin + piece_length : shape.outer;
  PairOf<C> sum[width];
  for (int k = 0; k < width; ++k) sum[k] = {C(0), C(0)};
  if (channel < shape.channels) {
    typename Terms::OfChannel of_channel[width];
    for (int k = 0; k < width; ++k) of_channel[k] = terms.at(channel + k);
    const auto add = [&](int64_t index, auto& values) {
      write_values(terms, index, values);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const PairOf<C> term = terms(of_channel[k], values, k);
        sum[k].first += term.first;
        sum[k].second += term.second;
      }
    };
    constexpr int batch = rows_at_once_of<Terms>;
    const int64_t step = blockDim.y;
    int64_t row = begin + threadIdx.y;
    for (; row + (batch - 1) * step < end; row += batch * step) {
      decltype(terms.template load<width>(0)) values[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i)
        values[i] = terms.template load<width>((row + i * step) * shape.channels + channel);
#pragma unroll
      for (int i = 0; i < batch; ++i) add((row + i * step) * shape.channels + channel, values[i]);
    }
    for (; row < end; row += step) {
      const int64_t index = row * shape.channels + channel;
      auto values = terms.template load<width>(index);
      add(index, values);
    }
  }
  const int columns = static_cast<int>(blockDim.x) * width, column = static_cast<int>(threadIdx.x) * width;
  for (int k = 0; k < width; ++k) shared[static_cast<int>(threadIdx.y) * columns + column + k] = sum[k];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int c = thread; c < columns; c += block_size) {
    const int64_t target = int64_t{blockIdx.x} * columns + c;
    if (target >= shape.channels) continue;
    PairOf<C> total = shared[c];
    for (int row = 1; row < static_cast<int>(blockDim.y); ++row) {
      total.first += shared[row * columns + c].first;
      total.second += shared[row * columns + c].second;
    }
    sums[int64_t{blockIdx.y} * shape.channels + target] = total;
  }
}

// The index of element e of a channel.
__device__ inline int64_t in_channel(const ChannelShape& shape, int64_t channel, uint32_t e) {
  const auto inner = static_cast<uint32_t>(shape.inner);
  return (int64_t{e / inner} * shape.channels + channel) * shape.inner + e % inner;
}

template <class Terms>
__global__ void sum_middle_channels(ChannelShape shape, int64_t piece_length, Terms terms,
                                    PairOf<typename Terms::Compute>* sums) {
  using C = typename Terms::Compute;
  let_next_start();
  const int64_t channel = blockIdx.x, begin = int64_t{blockIdx.y} * piece_length, length = shape.per_channel();
  const int64_t end = begin + piece_length < length ? begin + piece_length : length;
  const auto of_channel = terms.at(channel);
  PairOf<C> sum = {C(0), C(0)};
#pragma unroll 4
  for (int64_t e = begin + threadIdx.x; e < end; e += blockDim.x) {
    const int64_t index = in_channel(shape, channel, static_cast<uint32_t>(e));
    auto values = terms.template load<1>(index);
    write_values(terms, index, values);
    const PairOf<C> term = terms(of_channel, values, 0);
    sum.first += term.first;
    sum.second += term.second;
  }
  sum.first = combine_block<Add>(sum.first);
  sum.second = combine_block<Add>(sum.second);
  if (threadIdx.x == 0) sums[int64_t{blockIdx.y} * shape.channels + channel] = sum;
}

// Adds up the pieces in double and calls finish(channel, Σ first, Σ second).
inline constexpr int finish_lanes = 32;
template <class C, class Finish>
__global__ void finish_sums(const PairOf<C>* sums, int64_t pieces, int64_t channels, Finish finish) {
  let_next_start();
  wait_for_previous();
  __shared__ PairOf<double> shared[finish_lanes][32];
  const int64_t channel = int64_t{blockIdx.x} * 32 + threadIdx.x;
  PairOf<double> total = {0, 0};
  if (channel < channels) {
#pragma unroll 8
    for (int64_t piece = threadIdx.y; piece < pieces; piece += finish_lanes) {
      const PairOf<C> sum = sums[piece * channels + channel];
      total.first += sum.first;
      total.second += sum.second;
    }
  }
  shared[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  for (int lane = 1; lane < finish_lanes; ++lane) {
    total.first += shared[lane][threadIdx.x].first;
    total.second += shared[lane][threadIdx.x].second;
  }
  finish(channel, total.first, total.second);
}

// The kernel queued before has written the pieces and calls let_next_start().
template <class C, class Finish>
void queue_finish_sums(cudaStream_t stream, const PairOf<C>* sums, int64_t pieces, int64_t channels,
                       const Finish& finish) {
  const dim3 block(32, finish_lanes), grid(static_cast<unsigned>((channels + 31) / 32));
  launch_after_ours(finish_sums<C, Finish>, grid, block, stream, sums, pieces, channels, finish);
}

// Stores both sums of each channel.
template <class C>
struct StoreSums {
  C *first, *second;
  __device__ void operator()(int64_t channel, double first_sum, double second_sum) const {
    first[channel] = static_cast<C>(first_sum);
    second[channel] = static_cast<C>(second_sum);
  }
};

// Needs piece_bytes() of scratch.
template <class T, class Terms, class Finish>
void queue_channel_sums(cudaStream_t stream, const ChannelShape& shape, bool wide, const Terms& terms, void* scratch,
                        const Finish& finish) {
  using C = typename Terms::Compute;
  auto* const sums = static_cast<PairOf<C>*>(scratch);
  const bool packed = is_packed<T>(shape, wide);
  const ChannelCut cut = cut_channels(shape, packed ? channel_width<T> : 1);
  if (packed)
    sum_last_channels<channel_width<T>><<<cut.grid(), cut.block(), 0, stream>>>(shape, cut.piece_length, terms, sums);
  else if (shape.last())
    sum_last_channels<1><<<cut.grid(), cut.block(), 0, stream>>>(shape, cut.piece_length, terms, sums);
  else
    sum_middle_channels<<<cut.grid(), cut.block(), 0, stream>>>(shape, cut.piece_length, terms, sums);
  queue_finish_sums(stream, sums, cut.pieces, shape.channels, finish);
}

// ---- Maps -----------------------------------------------------------------------------------------------------------

// Maps with a method note(index, results) store more about the results of neighbouring channels, where those are last.
template <class Map, class Results>
__device__ void note_results(const Map& map, int64_t index, const Results& results) {
  if constexpr (requires { map.note(index, results); }) map.note(index, results);
}

// Maps with a second result, map.other(…), write it to map.other_out. Either of their outputs may be null.
template <class Map>
concept HasOtherOutput = requires(const Map& map) {
  map.other_out;
};

// The results of `width` neighbouring elements.
template <int width, class Map, class Values>
__device__ void write_results(const Map& map, int64_t index, const typename Map::OfChannel* of_channel,
                              const Values& values) {
  using T = typename Map::Element;
  Pack<T, width> results;
  if (!HasOtherOutput<Map> || map.out) {
#pragma unroll
    for (int k = 0; k < width; ++k) results.element[k] = store<T>(map(of_channel[k], values, k));
    *reinterpret_cast<Pack<T, width>*>(map.out + index) = results;
    note_results(map, index, results);
  }
  if constexpr (HasOtherOutput<Map>) {
    if (!map.other_out) return;
#pragma unroll
    for (int k = 0; k < width; ++k) results.element[k] = store<T>(map.other(of_channel[k], values, k));
    *reinterpret_cast<Pack<T, width>*>(map.other_out + index) = results;
  }
}

// map.at(channel) returns the per-channel data of the map, map.load<width>(index) reads its arrays, map(…) is the
// result of one element. Pieces run from the end to the beginning: the data that a preceding sum read last may still be
// in the cache. An output may be one of the arrays read. A thread reads map.rows_at_once rows before it writes one:
// enough to saturate memory bandwidth, few enough for its registers, of which the data of eight channels need many.
template <int width, class Map>
__global__ void __launch_bounds__(block_size, width > 4 || HasOtherOutput<Map> ? 2 : 4)
    map_last_channels(ChannelShape shape, int64_t piece_length, Map map) {
  wait_for_previous();
  const int64_t channel = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
  if (channel >= shape.channels) return;
  const int64_t begin = int64_t{gridDim.y - 1 - blockIdx.y} * piece_length;
  const int64_t end = begin + piece_length < shape.outer ? begin + piece_length : shape.outer;
  typename Map::OfChannel of_channel[width];
  for (int k = 0; k < width; ++k) of_channel[k] = map.at(channel + k);
  // Several rows are read before the first is written: the compiler cannot know that they do not overlap.
  constexpr int batch = Map::rows_at_once;
  const int64_t step = blockDim.y;
  int64_t row = begin + threadIdx.y;
  for (; row + (batch - 1) * step < end; row += batch * step) {
    decltype(map.template load<width>(0)) values[batch];
#pragma unroll
    for (int i = 0; i < batch; ++i) values[i] = map.template load<width>((row + i * step) * shape.channels + channel);
#pragma unroll
    for (int i = 0; i < batch; ++i)
      write_results<width>(map, (row + i * step) * shape.channels + channel, of_channel, values[i]);
  }
  for (; row < end; row += step) {
    const int64_t index = row * shape.channels + channel;
    write_results<width>(map, index, of_channel, map.template load<width>(index));
  }
}

template <class Map>
__global__ void map_middle_channels(ChannelShape shape, int64_t piece_length, Map map) {
  wait_for_previous();
  const int64_t channel = blockIdx.x, begin = int64_t{gridDim.y - 1 - blockIdx.y} * piece_length;
  const int64_t length = shape.per_channel(), end = begin + piece_length < length ? begin + piece_length : length;
  const auto of_channel = map.at(channel);
#pragma unroll 4
  for (int64_t e = begin + threadIdx.x; e < end; e += blockDim.x) {
    const int64_t index = in_channel(shape, channel, static_cast<uint32_t>(e));
    write_results<1>(map, index, &of_channel, map.template load<1>(index));
  }
}

// `after_sums`: the kernel queued before is that of queue_channel_sums(), or another one that calls let_next_start().
// This one may start while it runs.
template <class Map>
void queue_channel_map(cudaStream_t stream, const ChannelShape& shape, bool wide, const Map& map,
                       bool after_sums = false) {
  using T = typename Map::Element;
  const bool packed = is_packed<T>(shape, wide);
  const ChannelCut cut = cut_channels(shape, packed ? channel_width<T> : 1);
  const auto kernel = packed         ? map_last_channels<channel_width<T>, Map>
                      : shape.last() ? map_last_channels<1, Map>
                                     : map_middle_channels<Map>;
  if (after_sums)
    launch_after_ours(kernel, cut.grid(), cut.block(), stream, shape, cut.piece_length, map);
  else
    kernel<<<cut.grid(), cut.block(), 0, stream>>>(shape, cut.piece_length, map);
}

}  // namespace symbind::cuda_backend
