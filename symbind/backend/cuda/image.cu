// Images by a thread per pixel or per element. A change of contrast is preceded by the mean of the grey values of each
// image, which one block sums in a fixed order.
#include "symbind/backend/image.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/units.h"
#include "symbind/backend/visit_types.h"
#include "symbind/image/resize.h"
#include "symbind/image/resize_taps.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

template <class Function>
decltype(auto) visit_pixels(DType dtype, Function&& function) {
  return visit_types<uint8_t, float, double, float16, bfloat16, int8_t, int32_t, int64_t>(dtype, function);
}
// The type in which pixels of type T are computed.
template <class T>
using Colour = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, int64_t>, double, float>;

template <class T, class C>
__device__ void store_pixel(T& to, C value) {
  if constexpr (std::is_integral_v<T>)
    to = as_pixel<T>(value);
  else
    to = store<T>(static_cast<compute_type<T>>(value));
}

// ---- Colours --------------------------------------------------------------------------------------------------------

struct Images {
  int64_t count, pixels;  // of each
  int channels;

  explicit Images(const Shape& data)
      : count(data.rank() == 4 ? data[0] : 1), pixels(data[-3] * data[-2]), channels(static_cast<int>(data[-1])) {}
};

template <class T, class C>
__device__ void load_pixel(const T* from, int channels, C (&pixel)[3]) {
  for (int c = 0; c < channels; ++c) pixel[c] = static_cast<C>(load(from[c]));
}

template <class T>
__global__ void grey_means(const T* in, Images images, ColourRanges ranges, const RandomCursor* cursor, uint64_t slot,
                           double* means) {
  using C = Colour<T>;
  const auto changes = ranges.template draw<C>(*cursor, slot);
  const int end = changes.before_contrast();
  for (int64_t image = blockIdx.x; image < images.count; image += gridDim.x) {
    const T* const pixels = in + image * images.pixels * images.channels;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < images.pixels; i += blockDim.x) {
      C pixel[3] = {};
      load_pixel(pixels + i * images.channels, images.channels, pixel);
      change_pixel(changes, 0, end, C(0), pixel, images.channels);
      sum += static_cast<double>(grey_of(pixel, images.channels));
    }
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) means[image] = sum / static_cast<double>(images.pixels);
  }
}

template <class T>
__global__ void change_images(const T* in, T* out, Images images, ColourRanges ranges, const RandomCursor* cursor,
                              uint64_t slot, const double* means) {
  using C = Colour<T>;
  const auto changes = ranges.template draw<C>(*cursor, slot);
  const bool contrast = changes.has_contrast();
  for (int64_t i = first_element(); i < images.count * images.pixels; i += element_step()) {
    C pixel[3] = {};
    load_pixel(in + i * images.channels, images.channels, pixel);
    const C mean = contrast ? static_cast<C>(means[i / images.pixels]) : C(0);
    change_pixel(changes, 0, changes.count, mean, pixel, images.channels);
    for (int c = 0; c < images.channels; ++c) store_pixel(out[i * images.channels + c], pixel[c]);
  }
}

bool may_change_contrast(const ColourRanges& ranges) {
  for (int i = 0; i < ranges.count; ++i)
    if (ranges.change[i] == ColourChange::contrast) return true;
  return false;
}

std::unique_ptr<Kernel> build_changes(const NodeView& node, const ColourRanges& ranges) {
  const Images images(node.inputs[0].shape);
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  const bool contrast = may_change_contrast(ranges);
  return visit_pixels(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [=](const Args& args) {
          const int64_t pixels = images.count * images.pixels;
          if (pixels == 0) return;
          auto* const means = static_cast<double*>(args.scratch);
          if (contrast)
            grey_means<<<blocks_for(images.count, 1), block_size, 0, stream_of(args)>>>(args.in<T>(0), images, ranges,
                                                                                        args.random, slot, means);
          change_images<<<blocks_for(pixels), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.out<T>(), images,
                                                                                ranges, args.random, slot, means);
        },
        {.in_place = {{0, 0}}, .scratch_bytes = contrast ? static_cast<size_t>(images.count) * sizeof(double) : 0});
  });
}

template <class T>
__global__ void add_light(const T* in, T* out, int64_t count, int64_t channels, Light light, const RandomCursor* cursor,
                          uint64_t slot) {
  using C = Colour<T>;
  C added[3] = {};
  if (channels == 3)
    for (int c = 0; c < 3; ++c) added[c] = light.template added<C>(c, cursor, slot);
  for (int64_t i = first_element(); i < count; i += element_step())
    store_pixel(out[i], static_cast<C>(load(in[i])) + added[i % channels]);
}

template <class P>
std::unique_ptr<Kernel> build_light(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  const Light light = light_of(node.as<P>());
  const int64_t count = data.size(), channels = data[-1];
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  return visit_pixels(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [=](const Args& args) {
                       if (count == 0) return;
                       add_light<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                           args.in<T>(0), args.out<T>(), count, channels, light, args.random, slot);
                     },
                     {.in_place = {{0, 0}}});
  });
}

// ---- Flips and normalization ----------------------------------------------------------------------------------------

template <class Unit>
__global__ void flip_randomly(const Unit* in, Unit* out, int64_t count, RandomFlip flip, const RandomCursor* cursor,
                              uint64_t slot) {
  const bool flips = RandomFlip::flips(*cursor, slot);
  for (int64_t i = first_element(); i < count; i += element_step()) out[i] = in[flips ? flip.source(i) : i];
}

std::unique_ptr<Kernel> build_random_flip(const NodeView& node, bool vertical) {
  const RandomFlip flip(node.inputs[0].shape, vertical);
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  return make_step(node, [flip, slot, count = node.inputs[0].shape.size(),
                          element = size_of(node.inputs[0].dtype)](const Args& args) {
    if (count == 0) return;
    visit_unit(element, [&]<class Unit>(Unit) {
      flip_randomly<<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.in<Unit>(0), args.out<Unit>(), count,
                                                                           flip, args.random, slot);
    });
  });
}

// A row of blocks per plane, whose elements are a multiple of `width`.
template <int width, class In, class T>
__global__ void normalize(const In* in, T* out, Normalization normalization) {
  using C = compute_type<T>;
  for (int64_t index = blockIdx.y; index < normalization.planes; index += gridDim.y) {
    const auto of_plane = normalization.of_plane<C>(index);
    const auto of_element = [&](const In& value) { return store<T>(of_plane(static_cast<C>(load(value)))); };
    const int64_t begin = index * normalization.plane;
    map_packs<width>(of_element, out + begin, normalization.plane, in + begin);
  }
}

template <class In, class T>
std::unique_ptr<Kernel> build_normalization(const NodeView& node, const Normalization& normalization,
                                            KernelTraits traits) {
  const auto run = [normalization](const Args& args) {
    if (normalization.planes * normalization.plane == 0) return;
    constexpr int64_t most_rows = 65535;  // of blocks
    constexpr int64_t most_packs = 8;     // of a thread, which finds the factors of its plane once
    constexpr int width = std::min(4, widest<T>);
    const In* const in = args.in<In>(0);
    T* const out = args.out<T>();
    const bool packs = normalization.plane % width == 0 && all_aligned_for_packs({in, out});
    const int64_t of_plane = packs ? normalization.plane / width : normalization.plane;
    const int64_t of_thread =
        std::clamp<int64_t>(normalization.planes * of_plane / (most_blocks * block_size), 1, most_packs);
    const dim3 blocks(blocks_for(of_plane, block_size * of_thread),
                      static_cast<unsigned>(std::min(normalization.planes, most_rows)));
    if (packs)
      normalize<width><<<blocks, block_size, 0, stream_of(args)>>>(in, out, normalization);
    else
      normalize<1><<<blocks, block_size, 0, stream_of(args)>>>(in, out, normalization);
  };
  return make_step(node, run, std::move(traits));
}

std::unique_ptr<Kernel> build_normalize(const NodeView& node) {
  const Normalization normalization(node.as<ImageNormalize>(), node.inputs[0].shape);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_normalization<T, T>(node, normalization, {.in_place = {{0, 0}}});
  });
}
std::unique_ptr<Kernel> build_normalize_pixels(const NodeView& node) {
  const Normalization normalization(node.as<NormalizePixels>(), node.inputs[0].shape);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_normalization<uint8_t, T>(node, normalization, {});
  });
}

// ---- Sizes ----------------------------------------------------------------------------------------------------------
// By the arithmetic of image/resize_taps.h: bytes in whole numbers, other types in float.

struct Resizing {
  int64_t rows, columns, out_rows, out_columns, channels;
  int method;
  bool shrinks, halves;

  explicit Resizing(const NodeView& node) : method(static_cast<int>(node.as<ImageResize>().interp)) {
    const Shape &in = node.inputs[0].shape, &out = node.outputs[0].shape;
    rows = in[-3], columns = in[-2], out_rows = out[-3], out_columns = out[-2], channels = in[-1];
    halves = rows == 2 * out_rows && columns == 2 * out_columns;
    shrinks = out_rows <= rows && out_columns <= columns;
    if (rows == out_rows && columns == out_columns) method = interpolation::nearest;  // a copy
    if (halves && method == interpolation::linear) method = interpolation::area;
  }
};

// pixel(y, x) is a source pixel as Element: uint8_t or float.
template <class Element, int taps, class Pixel>
__device__ Element resized_by_taps(const Pixel& pixel, int64_t row, int64_t column, const Resizing& size) {
  const bool by_area = size.method == interpolation::area;
  const auto y = resizing::taps_at<taps>(row, size.rows, size.out_rows, by_area);
  const auto x = resizing::taps_at<taps>(column, size.columns, size.out_columns, by_area);
  if constexpr (std::is_same_v<Element, float>) {
    float sum = 0;
    for (int i = 0; i < taps; ++i) {
      float along_x = 0;
      for (int j = 0; j < taps; ++j) along_x += pixel(y.source[i], x.source[j]) * x.weight[j];
      sum += along_x * y.weight[i];
    }
    return sum;
  } else {
    resizing::RowSum<uint8_t, taps> rows[taps];
    for (int i = 0; i < taps; ++i) {
      int32_t along_x = 0;
      for (int j = 0; j < taps; ++j) along_x += pixel(y.source[i], x.source[j]) * resizing::fixed_weight(x.weight[j]);
      rows[i] = resizing::row_sum<taps>(along_x);
    }
    if constexpr (taps == 2) {
      return resizing::sum_of_two(rows[0], rows[1], resizing::fixed_weight(y.weight[0]),
                                  resizing::fixed_weight(y.weight[1]));
    } else {
      int64_t sum = resizing::half_of_rows;
      for (int i = 0; i < taps; ++i) sum += int64_t{rows[i]} * resizing::fixed_weight(y.weight[i]);
      return resizing::sum_of_rows(sum);
    }
  }
}

template <class Element, class Pixel>
__device__ Element shrunk_by_area(const Pixel& pixel, int64_t row, int64_t column, const Resizing& size) {
  const auto y = resizing::cover_of(row, size.rows, size.out_rows);
  const auto x = resizing::cover_of(column, size.columns, size.out_columns);
  float sum = 0;
  for (int64_t i = 0; i < y.count; ++i) {
    float along_x = 0;
    for (int64_t j = 0; j < x.count; ++j) along_x += static_cast<float>(pixel(y.first + i, x.first + j)) * x.weight(j);
    sum += along_x * y.weight(i);
  }
  return resizing::from_average<Element>(sum, size.halves);
}

template <class Element, class Pixel>
__device__ Element resized(const Pixel& pixel, int64_t row, int64_t column, const Resizing& size) {
  if (size.method == interpolation::nearest)
    return pixel(resizing::nearest_source(row, size.rows, size.out_rows),
                 resizing::nearest_source(column, size.columns, size.out_columns));
  if (size.method == interpolation::area && size.shrinks) return shrunk_by_area<Element>(pixel, row, column, size);
  if (size.method == interpolation::cubic) return resized_by_taps<Element, 4>(pixel, row, column, size);
  if (size.method == interpolation::lanczos) return resized_by_taps<Element, 8>(pixel, row, column, size);
  return resized_by_taps<Element, 2>(pixel, row, column, size);
}

// read(i) is element i of the input as Element, write(i, value) sets one of the output.
template <class Element, class Read, class Write>
__device__ void resize_all(const Read& read, const Write& write, int64_t count, const Resizing& size) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t channel = i % size.channels, column = i / size.channels % size.out_columns;
    const int64_t row = i / (size.channels * size.out_columns) % size.out_rows;
    const int64_t image = i / (size.channels * size.out_columns * size.out_rows);
    const auto pixel = [&](int64_t y, int64_t x) {
      return read(((image * size.rows + y) * size.columns + x) * size.channels + channel);
    };
    write(i, resized<Element>(pixel, row, column, size));
  }
}

template <class T>
__global__ void resize(const T* in, T* out, int64_t count, Resizing size) {
  resize_all<T>([&](int64_t i) { return in[i]; }, [&](int64_t i, T value) { out[i] = value; }, count, size);
}
// Other types are computed in float.
__global__ void resize_any(AnyInput in, AnyOutput out, int64_t count, Resizing size) {
  const auto write = [&](int64_t i, float value) {
    visit_any(out.dtype, [&]<class T>(std::type_identity<T>) { store_pixel(static_cast<T*>(out.data)[i], value); });
  };
  resize_all<float>([&](int64_t i) { return in.at<float>(i); }, write, count, size);
}

std::unique_ptr<Kernel> build_resize(const NodeView& node) {
  const Resizing size(node);
  const int64_t count = node.outputs[0].shape.size();
  const DType dtype = node.inputs[0].dtype;
  return make_step(node, [size, count, dtype](const Args& args) {
    if (count == 0) return;
    const unsigned blocks = blocks_for(count);
    if (dtype == DType::uint8)
      resize<<<blocks, block_size, 0, stream_of(args)>>>(args.in<uint8_t>(0), args.out<uint8_t>(), count, size);
    else if (dtype == DType::float32)
      resize<<<blocks, block_size, 0, stream_of(args)>>>(args.in<float>(0), args.out<float>(), count, size);
    else
      resize_any<<<blocks, block_size, 0, stream_of(args)>>>({args.inputs[0], dtype}, {args.outputs[0], dtype}, count,
                                                             size);
  });
}

// ---- All of them ----------------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node) { return node.inputs[0].layout == Layout::plain ? "" : "needs plain layouts"; }

// P has the ends of a range.
template <class P>
Implementation changing(ColourChange change) {
  return {"cuda", refuse, [change](const NodeView& node) {
            const P& p = node.as<P>();
            return build_changes(node, one_range(change, p.min_factor, p.max_factor));
          }};
}

}  // namespace

void add_image(ImplementationTable& table) {
  table.add<ImageNormalize>({"cuda", refuse, build_normalize});
  table.add<NormalizePixels>({"cuda", refuse, build_normalize_pixels});
  table.add<ImageResize>({"cuda", refuse, build_resize});
  table.add(op_of<ImageFlip<"_image_random_flip_left_right">>(),
            {"cuda", refuse, [](const NodeView& node) { return build_random_flip(node, false); }});
  table.add(op_of<ImageFlip<"_image_random_flip_top_bottom">>(),
            {"cuda", refuse, [](const NodeView& node) { return build_random_flip(node, true); }});
  using Brightness = ImageRandom<"_image_random_brightness">;
  table.add(op_of<Brightness>(), changing<Brightness>(ColourChange::brightness));
  using Contrast = ImageRandom<"_image_random_contrast">;
  table.add(op_of<Contrast>(), changing<Contrast>(ColourChange::contrast));
  using Saturation = ImageRandom<"_image_random_saturation">;
  table.add(op_of<Saturation>(), changing<Saturation>(ColourChange::saturation));
  using Hue = ImageRandom<"_image_random_hue">;
  table.add(op_of<Hue>(), changing<Hue>(ColourChange::hue));
  table.add<ImageRandomColorJitter>({"cuda", refuse, [](const NodeView& node) {
                                       return build_changes(node, ranges_of(node.as<ImageRandomColorJitter>()));
                                     }});
  table.add<ImageAdjustLighting>({"cuda", refuse, build_light<ImageAdjustLighting>});
  table.add<ImageRandomLighting>({"cuda", refuse, build_light<ImageRandomLighting>});
}

}  // namespace symbind::cuda_backend
