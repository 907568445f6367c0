// Passes over arrays with different numbers per channel: sums per channel, and maps with numbers per channel. The
// channels are last ((rows, channels): a thread processes a few neighbouring channels and iterates over the rows) or in
// the middle ((outer, channels, inner): a block processes one channel). Sums are computed in pieces whose number
// depends only on the shape, the terms and the GPU's multiprocessors, and the pieces are added in a fixed order: the
// same arrays give bitwise the same results on the same GPU.
//
// Where the channels are last, a block reads a batch of rows at a time, and the blocks take the batches in turn: at any
// time they read neighbouring memory. All blocks are resident together, and the multiprocessors get equal numbers of
// batches. Sums run from the first batch to the last and maps from the last to the first: what a sum has read last may
// still be in the cache when a map follows, and what the map has written last when the next kernel reads from the
// beginning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/launch.cuh"
#include "symbind/backend/cuda/packed.cuh"

namespace symbind::cuda_backend {

// (outer, channels, inner), with inner 1 where the channels are last.
struct ChannelShape {
  int64_t outer = 0, channels = 0, inner = 1;
  constexpr bool last() const { return inner == 1; }
  constexpr int64_t per_channel() const { return outer * inner; }
  constexpr int64_t size() const { return outer * channels * inner; }
};

// How many neighbouring channels fill 16 bytes.
template <class T>
inline constexpr int channel_width = widest<T>;
inline constexpr int widest_channels = 8;  // of half precision

// Are neighbouring channels read together, up to 16 bytes of them? `wide`: may the arrays be read 16 bytes at a time?
template <class T>
bool is_packed(const ChannelShape& shape, bool wide) {
  return wide && shape.last() && shape.channels % channel_width<T> == 0;
}

template <class C>
struct alignas(2 * sizeof(C)) PairOf {
  C first, second;
};

// How many neighbouring channels a thread processes, how many rows it reads before it uses the first, and how many
// blocks of the kernel fit on a multiprocessor: enough loads in flight to saturate memory bandwidth, few enough for the
// registers. A pass has other numbers as its members pack_width, rows_at_once and blocks_at_once: with many numbers per
// channel fewer channels and more rows.
inline constexpr int most_blocks_at_once = 4;
template <class Pass, class T>
inline constexpr int pack_width_of = channel_width<T>;
template <class Pass, class T>
requires(Pass::pack_width > 0) inline constexpr int pack_width_of<Pass, T> = Pass::pack_width < channel_width<T>
                                                                                 ? Pass::pack_width
                                                                                 : channel_width<T>;
template <class Pass>
inline constexpr int rows_at_once_of = 4;
template <class Pass>
requires(Pass::rows_at_once > 0) inline constexpr int rows_at_once_of<Pass> = Pass::rows_at_once;
template <class Pass>
inline constexpr int blocks_at_once_of = most_blocks_at_once;
template <class Pass>
requires(Pass::blocks_at_once > 0) inline constexpr int blocks_at_once_of<Pass> = Pass::blocks_at_once;

// How a pass is divided: blocks of x × y threads, `tiles` of channels by `pieces`. Where the channels are last, a piece
// is every pieces-th batch of rows, and the last batch begins at row `last_batch`. Otherwise it is `piece_length`
// neighbouring elements of a channel.
struct ChannelCut {
  int x = 1, y = 1;
  int64_t tiles = 1, pieces = 1, last_batch = 0, piece_length = 1;

  dim3 grid() const { return {static_cast<unsigned>(tiles), static_cast<unsigned>(pieces)}; }
  dim3 block() const { return {static_cast<unsigned>(x), static_cast<unsigned>(y)}; }
};

inline constexpr int most_tile_threads = 32;  // across the channels

constexpr int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

// Uses all blocks that fit, or fewer where that leaves less work to the multiprocessor that has the most.
inline ChannelCut cut_last_channels(const ChannelShape& shape, int width, int rows_at_once, int blocks_at_once) {
  const int64_t multiprocessors = current_multiprocessors();
  ChannelCut cut;
  const int64_t packs = divide_up(shape.channels, width);
  while (cut.x < most_tile_threads && cut.x < packs) cut.x *= 2;
  cut.y = block_size / cut.x;
  cut.tiles = divide_up(packs, cut.x);
  const int64_t batch = int64_t{cut.y} * rows_at_once, batches = std::max<int64_t>(divide_up(shape.outer, batch), 1);
  cut.last_batch = (batches - 1) * batch;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int blocks = blocks_at_once; 2 * blocks > blocks_at_once; --blocks) {
    const int64_t turns = divide_up(batches, std::max<int64_t>(multiprocessors * blocks / cut.tiles, 1));
    const int64_t pieces = divide_up(batches, turns);
    const int64_t most_work = turns * divide_up(pieces * cut.tiles, multiprocessors);
    if (most_work >= least) continue;
    least = most_work;
    cut.pieces = pieces;
  }
  return cut;
}

inline ChannelCut cut_middle_channels(const ChannelShape& shape) {
  ChannelCut cut;
  cut.x = block_size;
  cut.tiles = shape.channels;
  const int64_t length = shape.per_channel();
  const int64_t wanted = std::max<int64_t>(current_multiprocessors() * most_blocks_at_once / cut.tiles, 1);
  const int64_t shortest = std::min<int64_t>(block_size * 4, length);  // a thread has a few elements at least
  cut.piece_length = std::max<int64_t>({divide_up(length, wanted), shortest, 1});
  cut.pieces = std::max<int64_t>(divide_up(length, cut.piece_length), 1);
  return cut;
}

template <class Pass>
ChannelCut cut_channels(const ChannelShape& shape, int width) {
  static_assert(blocks_at_once_of<Pass> <= most_blocks_at_once, "piece_bytes() has room for so many blocks");
  return shape.last() ? cut_last_channels(shape, width, rows_at_once_of<Pass>, blocks_at_once_of<Pass>)
                      : cut_middle_channels(shape);
}

// Scratch for the pieces of every channel, for any terms and pack width, on the current GPU.
inline size_t piece_bytes(const ChannelShape& shape, size_t size_of_compute_type) {
  const int64_t tiles = shape.last() ? divide_up(shape.channels, most_tile_threads * widest_channels) : shape.channels;
  const int64_t pieces = std::clamp<int64_t>(current_multiprocessors() * most_blocks_at_once / tiles, 1,
                                             std::max<int64_t>(shape.per_channel(), 1));
  return static_cast<size_t>(pieces * shape.channels) * 2 * size_of_compute_type;
}

// The numbers of neighbouring channels that a pass needs: pass.at(channel) for each, or pass.read<width>(channel, to)
// if there is such a method, which reads packs of them.
template <int width, class Pass>
__device__ void read_channels(const Pass& pass, int64_t channel, typename Pass::OfChannel (&to)[width]) {
  if constexpr (requires { pass.template read<width>(channel, to); }) {
    pass.template read<width>(channel, to);
  } else {
#pragma unroll
    for (int k = 0; k < width; ++k) to[k] = pass.at(channel + k);
  }
}

// ---- Sums -----------------------------------------------------------------------------------------------------------

// sums[piece][channel] = Σ over the piece. read_channels() reads the numbers that the terms need of a channel,
// terms.load<width>(index) reads their arrays, terms(of_channel, values, k) is the pair that element k adds. Terms with
// a method write(index, values) store an array that they compute on the way. A thread reads several rows before it uses
// the first: the compiler cannot know that what is written does not overlap what is read.

// What terms of the elements of one array, without data per channel, have in common.
template <class T>
struct ElementTerms {
  using Compute = compute_type<T>;
  struct OfChannel {};
  const T* x;

  __device__ OfChannel at(int64_t) const { return {}; }
  template <int width>
  __device__ Packed<T, width> load(int64_t index) const {
    return load_packed<width>(x + index);
  }
};

// The elements themselves.
template <class T>
struct ElementSums : ElementTerms<T> {
  template <int width>
  __device__ PairOf<compute_type<T>> operator()(typename ElementTerms<T>::OfChannel, const Packed<T, width>& values,
                                                int k) const {
    return {values[k], compute_type<T>(0)};
  }
};

template <class Terms, class Values>
__device__ void write_values(const Terms& terms, int64_t index, Values& values) {
  if constexpr (requires { terms.write(index, values); }) terms.write(index, values);
}

// Adds up the values of the threads of a block with the same threadIdx.x, and stores the sums of the block's channels.
template <int width, class C>
__device__ void store_piece(const ChannelShape& shape, PairOf<C> (&sum)[width], PairOf<C>* sums) {
  constexpr int warps = block_size / 32, gap = width > 1 ? width : 2 * block_size;
  // Of each warp, with a gap after every `width` channels: threads then write to different banks.
  __shared__ PairOf<C> shared[warps][most_tile_threads * (width + 1)];
  const int x = static_cast<int>(blockDim.x), columns = x * width;
  const int thread = static_cast<int>(threadIdx.y) * x + static_cast<int>(threadIdx.x), warp = thread / 32;
  for (int offset = x; offset < 32; offset *= 2)
#pragma unroll
    for (int k = 0; k < width; ++k) {
      sum[k].first += __shfl_xor_sync(0xffffffffu, sum[k].first, offset);
      sum[k].second += __shfl_xor_sync(0xffffffffu, sum[k].second, offset);
    }
  if (thread % 32 < x) {
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const int column = static_cast<int>(threadIdx.x) * width + k;
      shared[warp][column + column / gap] = sum[k];
    }
  }
  __syncthreads();
  const int64_t channel = int64_t{blockIdx.x} * columns + thread;
  if (thread >= columns || channel >= shape.channels) return;
  PairOf<C> total = {C(0), C(0)};
#pragma unroll
  for (int i = 0; i < warps; ++i) {
    const PairOf<C> of_warp = shared[i][thread + thread / gap];
    total.first += of_warp.first;
    total.second += of_warp.second;
  }
  sums[int64_t{blockIdx.y} * shape.channels + channel] = total;
}

template <int width, class Terms>
__global__ void __launch_bounds__(block_size, blocks_at_once_of<Terms>)
    sum_last_channels(ChannelShape shape, Terms terms, PairOf<typename Terms::Compute>* sums) {
  using C = typename Terms::Compute;
  static_assert(width <= widest_channels && most_tile_threads * widest_channels <= block_size);
  let_next_start();
  PairOf<C> sum[width];
  for (int k = 0; k < width; ++k) sum[k] = {C(0), C(0)};
  const int64_t channel = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
  if (channel < shape.channels) {
    constexpr int batch = rows_at_once_of<Terms>;
    const int step = static_cast<int>(blockDim.y);
    const int64_t stride = step * shape.channels;
    typename Terms::OfChannel of_channel[width];
    const auto add = [&](int64_t index, auto& values) {
      write_values(terms, index, values);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const PairOf<C> term = terms(of_channel[k], values, k);
        sum[k].first += term.first;
        sum[k].second += term.second;
      }
    };
    int64_t row = int64_t{blockIdx.y} * batch * step + threadIdx.y;
    const auto is_whole = [&] { return row + (batch - 1) * step < shape.outer; };
    decltype(terms.template load<width>(0)) values[batch];
    const auto load_batch = [&] {
      const int64_t index = row * shape.channels + channel;
#pragma unroll
      for (int i = 0; i < batch; ++i) values[i] = terms.template load<width>(index + i * stride);
    };
    if (is_whole()) load_batch();
    read_channels<width>(terms, channel, of_channel);
    while (is_whole()) {
      const int64_t index = row * shape.channels + channel;
#pragma unroll
      for (int i = 0; i < batch; ++i) add(index + i * stride, values[i]);
      row += int64_t{gridDim.y} * batch * step;
      if (is_whole()) load_batch();
    }
    if (row < shape.outer) {  // the last batch, with fewer rows
      const int64_t index = row * shape.channels + channel;
#pragma unroll
      for (int i = 0; i < batch - 1; ++i)
        values[i] = terms.template load<width>(row + i * step < shape.outer ? index + i * stride : index);
      asm volatile("" ::: "memory");  // all loads come before the branches
#pragma unroll
      for (int i = 0; i < batch - 1; ++i)
        if (row + i * step < shape.outer) add(index + i * stride, values[i]);
    }
  }
  store_piece<width>(shape, sum, sums);
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
  typename Terms::OfChannel of_channel[1];
  read_channels<1>(terms, channel, of_channel);
  PairOf<C> sum = {C(0), C(0)};
#pragma unroll 4
  for (int64_t e = begin + threadIdx.x; e < end; e += blockDim.x) {
    const int64_t index = in_channel(shape, channel, static_cast<uint32_t>(e));
    auto values = terms.template load<1>(index);
    write_values(terms, index, values);
    const PairOf<C> term = terms(of_channel[0], values, 0);
    sum.first += term.first;
    sum.second += term.second;
  }
  sum.first = combine_block<Add>(sum.first);
  sum.second = combine_block<Add>(sum.second);
  if (threadIdx.x == 0) sums[int64_t{blockIdx.y} * shape.channels + channel] = sum;
}

// What a Finish with a method at(channel) reads of a channel, before the sums are there. The arrays must have been
// complete when the kernel of the sums started.
struct NothingOfChannel {};
template <class Finish>
__device__ auto finish_data(const Finish& finish, int64_t channel) {
  if constexpr (requires { finish.at(channel); })
    return finish.at(channel);
  else
    return NothingOfChannel{};
}
template <class Finish, class OfChannel>
__device__ void call_finish(const Finish& finish, int64_t channel, const OfChannel& of_channel, PairOf<double> total) {
  if constexpr (requires { finish.at(channel); })
    finish(channel, of_channel, total.first, total.second);
  else
    finish(channel, total.first, total.second);
}

// Adds up the pieces in double and calls finish(channel, Σ first, Σ second), or with finish.at(channel) as its second
// argument where there is such a method. The kernel takes one latency of memory and little more: a block has few
// channels, and its threads have all of their loads in flight.
inline constexpr int finish_channels = 4;
template <class C, class Finish>
__global__ void __launch_bounds__(block_size)
    finish_sums(const PairOf<C>* sums, int64_t pieces, int64_t channels, Finish finish) {
  let_next_start();
  constexpr int warps = block_size / 32, lanes = block_size / finish_channels, at_once = 8;
  __shared__ PairOf<double> shared[warps][finish_channels];
  const int thread = static_cast<int>(threadIdx.x), column = thread % finish_channels;
  const int64_t channel = int64_t{blockIdx.x} * finish_channels + column;
  const bool finishes = thread < finish_channels && channel < channels;
  decltype(finish_data(finish, channel)) of_channel;
  if (finishes) of_channel = finish_data(finish, channel);
  wait_for_previous();
  PairOf<double> total = {0, 0};
  if (channel < channels) {
    const PairOf<C>* next = sums + thread / finish_channels * channels + channel;
    for (int64_t left = pieces - thread / finish_channels; left > 0; left -= at_once * lanes) {
      PairOf<C> values[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i, next += lanes * channels) {
        values[i] = {C(0), C(0)};
        if (i * lanes < left) values[i] = *next;
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        total.first += values[i].first;
        total.second += values[i].second;
      }
    }
  }
#pragma unroll
  for (int offset = finish_channels; offset < 32; offset *= 2) {
    total.first += __shfl_xor_sync(0xffffffffu, total.first, offset);
    total.second += __shfl_xor_sync(0xffffffffu, total.second, offset);
  }
  if (thread % 32 < finish_channels) shared[thread / 32][column] = total;
  __syncthreads();
  if (!finishes) return;
#pragma unroll
  for (int i = 1; i < warps; ++i) {
    total.first += shared[i][column].first;
    total.second += shared[i][column].second;
  }
  call_finish(finish, channel, of_channel, total);
}

// The kernel queued before has written the pieces and calls let_next_start(), and was not launched to overlap with the
// one before it.
template <class C, class Finish>
void queue_finish_sums(cudaStream_t stream, const PairOf<C>* sums, int64_t pieces, int64_t channels,
                       const Finish& finish) {
  launch_after_ours(finish_sums<C, Finish>, static_cast<unsigned>(divide_up(channels, finish_channels)), block_size,
                    stream, sums, pieces, channels, finish);
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
  constexpr int width = pack_width_of<Terms, T>;
  const bool packed = is_packed<T>(shape, wide);
  const ChannelCut cut = cut_channels<Terms>(shape, packed ? width : 1);
  if (packed)
    sum_last_channels<width><<<cut.grid(), cut.block(), 0, stream>>>(shape, terms, sums);
  else if (shape.last())
    sum_last_channels<1><<<cut.grid(), cut.block(), 0, stream>>>(shape, terms, sums);
  else
    sum_middle_channels<<<cut.grid(), cut.block(), 0, stream>>>(shape, cut.piece_length, terms, sums);
  queue_finish_sums(stream, sums, cut.pieces, shape.channels, finish);
}

// ---- Maps -----------------------------------------------------------------------------------------------------------

// Maps with a method store_channel(channel) store numbers of each channel, too.
template <class Map>
__device__ void store_channel(const Map& map, int64_t channel) {
  if constexpr (requires { map.store_channel(channel); }) map.store_channel(channel);
}

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
  compute_type<T> numbers[width];
  if (!HasOtherOutput<Map> || map.out) {
#pragma unroll
    for (int k = 0; k < width; ++k) numbers[k] = map(of_channel[k], values, k);
    const Packed<T, width> results(numbers);
    store_packed(map.out + index, results);
    note_results(map, index, results);
  }
  if constexpr (HasOtherOutput<Map>) {
    if (!map.other_out) return;
#pragma unroll
    for (int k = 0; k < width; ++k) numbers[k] = map.other(of_channel[k], values, k);
    store_packed(map.other_out + index, Packed<T, width>(numbers));
  }
}

// read_channels() reads the numbers that the map needs of a channel, map.load<width>(index) reads its arrays, map(…) is
// the result of one element. An output may be one of the arrays read. A thread reads several rows before it writes
// one: the compiler cannot know that they do not overlap. `reads_early`: the first rows may be read before the
// preceding kernel ends.
template <int width, class Map>
__global__ void __launch_bounds__(block_size, blocks_at_once_of<Map>)
    map_last_channels(ChannelShape shape, int64_t last_batch, Map map, bool reads_early) {
  constexpr int batch = rows_at_once_of<Map>;
  const int step = static_cast<int>(blockDim.y);
  const int64_t channel = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width, stride = step * shape.channels;
  const int64_t turn = int64_t{gridDim.y} * batch * step;
  int64_t row = last_batch - int64_t{blockIdx.y} * batch * step + threadIdx.y;
  if (row >= shape.outer) row -= turn;  // the last batch may have fewer rows
  const bool has_channels = channel < shape.channels, has_rows = has_channels && row >= 0;

  decltype(map.template load<width>(0)) values[batch];
  int64_t index = 0;
  int rows = 0;  // to the end of the batch or of the array
  const auto load_batch = [&] {
    index = row * shape.channels + channel;
    rows = shape.outer - row < batch * step ? static_cast<int>(shape.outer - row) : batch * step;
    // Beyond the end the first row is read again.
#pragma unroll
    for (int i = 0; i < batch; ++i) values[i] = map.template load<width>(index + (i * step < rows ? i * stride : 0));
  };
  if (reads_early && has_rows) load_batch();
  wait_for_previous();
  if (has_channels && blockIdx.y == 0 && threadIdx.y == 0)
    for (int k = 0; k < width; ++k) store_channel(map, channel + k);
  if (!has_rows) return;
  if (!reads_early) load_batch();
  typename Map::OfChannel of_channel[width];
  read_channels<width>(map, channel, of_channel);
  while (true) {
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      if (i * step >= rows) break;
      write_results<width>(map, index + i * stride, of_channel, values[i]);
    }
    row -= turn;
    if (row < 0) return;
    load_batch();
  }
}

template <class Map>
__global__ void map_middle_channels(ChannelShape shape, int64_t piece_length, Map map) {
  wait_for_previous();
  const int64_t channel = blockIdx.x, begin = int64_t{gridDim.y - 1 - blockIdx.y} * piece_length;
  const int64_t length = shape.per_channel(), end = begin + piece_length < length ? begin + piece_length : length;
  typename Map::OfChannel of_channel[1];
  read_channels<1>(map, channel, of_channel);
  if (blockIdx.y == 0 && threadIdx.x == 0) store_channel(map, channel);
#pragma unroll 4
  for (int64_t e = begin + threadIdx.x; e < end; e += blockDim.x) {
    const int64_t index = in_channel(shape, channel, static_cast<uint32_t>(e));
    write_results<1>(map, index, of_channel, map.template load<1>(index));
  }
}

// What a map is queued after. It starts while a kernel that calls let_next_start() still runs.
enum class MapAfter {
  any,              // any kernel
  sums,             // that of queue_channel_sums(), or another one that calls let_next_start() and is queued normally
  sums_that_write,  // the same, and the kernel of the sums writes an array that the map reads
};

template <class Map>
void queue_channel_map(cudaStream_t stream, const ChannelShape& shape, bool wide, const Map& map,
                       MapAfter after = MapAfter::any) {
  using T = typename Map::Element;
  if (shape.size() == 0) return;
  constexpr int width = pack_width_of<Map, T>;
  const bool packed = is_packed<T>(shape, wide);
  const ChannelCut cut = cut_channels<Map>(shape, packed ? width : 1);
  const auto launch = [&](auto kernel, const auto&... arguments) {
    if (after == MapAfter::any)
      kernel<<<cut.grid(), cut.block(), 0, stream>>>(arguments...);
    else
      launch_after_ours(kernel, cut.grid(), cut.block(), stream, arguments...);
  };
  const bool reads_early = after == MapAfter::sums;
  if (packed)
    launch(map_last_channels<width, Map>, shape, cut.last_batch, map, reads_early);
  else if (shape.last())
    launch(map_last_channels<1, Map>, shape, cut.last_batch, map, reads_early);
  else
    launch(map_middle_channels<Map>, shape, cut.piece_length, map);
}

}  // namespace symbind::cuda_backend
