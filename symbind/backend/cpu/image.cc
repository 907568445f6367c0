#include "symbind/backend/image.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/units.h"
#include "symbind/backend/visit_types.h"
#include "symbind/image/resize.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <class Function>
decltype(auto) visit_pixels(DType dtype, Function&& function) {
  return visit_types<uint8_t, float, double, float16, bfloat16, int8_t, int32_t, int64_t>(dtype, function);
}
// The type in which pixels of type T are computed.
template <class T>
using Colour = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, int64_t>, double, float>;

// ---- Colours --------------------------------------------------------------------------------------------------------

struct Images {
  int64_t count, pixels;  // of each
  int channels;

  explicit Images(const Shape& data)
      : count(data.rank() == 4 ? data[0] : 1), pixels(data[-3] * data[-2]), channels(static_cast<int>(data[-1])) {}
};

template <class T, class C>
void load_pixel(const T* from, int channels, C (&pixel)[3]) {
  for (int c = 0; c < channels; ++c) pixel[c] = static_cast<C>(from[c]);
}

// The mean of the grey values that an image has before its contrast is changed.
template <class T, class C>
C grey_mean(const T* image, const Images& images, const ColourChanges<C>& changes) {
  const int end = changes.before_contrast();
  double sum = 0;
  for (int64_t i = 0; i < images.pixels; ++i) {
    C pixel[3] = {};
    load_pixel(image + i * images.channels, images.channels, pixel);
    change_pixel(changes, 0, end, C(0), pixel, images.channels);
    sum += static_cast<double>(grey_of(pixel, images.channels));
  }
  return static_cast<C>(sum / static_cast<double>(std::max<int64_t>(1, images.pixels)));
}

template <class T, class C>
void change_image(const T* image, T* out, const Images& images, const ColourChanges<C>& changes) {
  const C mean = changes.has_contrast() ? grey_mean(image, images, changes) : C(0);
  parallel_for(images.pixels, element_grain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C pixel[3] = {};
      load_pixel(image + i * images.channels, images.channels, pixel);
      change_pixel(changes, 0, changes.count, mean, pixel, images.channels);
      for (int c = 0; c < images.channels; ++c) out[i * images.channels + c] = static_cast<T>(as_pixel<T>(pixel[c]));
    }
  });
}

std::unique_ptr<Kernel> build_changes(const NodeView& node, const ColourRanges& ranges) {
  const Images images(node.inputs[0].shape);
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  return visit_pixels(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [=](const Args& args) {
          const auto changes = ranges.draw<Colour<T>>(*args.random, slot);
          const int64_t size = images.pixels * images.channels;
          for (int64_t i = 0; i < images.count; ++i)
            change_image(args.in<T>(0) + i * size, args.out<T>() + i * size, images, changes);
        },
        {.in_place = {{0, 0}}});
  });
}

template <FixedString name>
void add_change(ImplementationTable& table, ColourChange change) {
  add_plain<ImageRandom<name>>(table, [change](const NodeView& node) {
    const auto& p = node.as<ImageRandom<name>>();
    return build_changes(node, one_range(change, p.min_factor, p.max_factor));
  });
}

template <class P>
std::unique_ptr<Kernel> build_light(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  return visit_pixels(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [light = light_of(node.as<P>()), channels = data[-1], count = data.size(),
         slot = static_cast<uint64_t>(std::max(node.random_slot, 0))](const Args& args) {
          using C = Colour<T>;
          C added[3] = {};
          if (channels == 3)
            for (int c = 0; c < 3; ++c) added[c] = light.template added<C>(c, args.random, slot);
          const T* const in = args.in<T>(0);
          T* const out = args.out<T>();
          parallel_for(count, element_grain, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              out[i] = static_cast<T>(as_pixel<T>(static_cast<C>(in[i]) + added[i % channels]));
          });
        },
        {.in_place = {{0, 0}}});
  });
}

// ---- Flips and normalization ----------------------------------------------------------------------------------------

template <FixedString name>
std::unique_ptr<Kernel> build_random_flip(const NodeView& node) {
  const bool vertical = name.view() == "_image_random_flip_top_bottom";
  const RandomFlip flip(node.inputs[0].shape, vertical);
  return visit_unit(size_of(node.inputs[0].dtype), [&]<class Unit>(Unit) -> std::unique_ptr<Kernel> {
    return make_kernel([flip, count = node.inputs[0].shape.size(),
                        slot = static_cast<uint64_t>(std::max(node.random_slot, 0))](const Args& args) {
      const auto* const in = args.in<Unit>(0);
      auto* const out = args.out<Unit>();
      if (!RandomFlip::flips(*args.random, slot)) {
        std::copy_n(in, count, out);
        return;
      }
      parallel_for(count, element_grain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = in[flip.source(i)];
      });
    });
  });
}

template <class In, class T>
std::unique_ptr<Kernel> build_normalization(const Normalization& normalization, KernelTraits traits) {
  using C = compute_type<T>;
  return make_kernel(
      [normalization](const Args& args) {
        const In* const in = args.in<In>(0);
        T* const out = args.out<T>();
        const int64_t plane = normalization.plane;
        parallel_for(normalization.planes * plane, element_grain, [=, &normalization](int64_t begin, int64_t end) {
          while (begin < end) {
            const int64_t plane_end = std::min(end, (begin / plane + 1) * plane);
            const auto normalize = normalization.of_plane<C>(begin / plane);
            for (int64_t i = begin; i < plane_end; ++i) out[i] = static_cast<T>(normalize(static_cast<C>(in[i])));
            begin = plane_end;
          }
        });
      },
      std::move(traits));
}

std::unique_ptr<Kernel> build_normalize(const NodeView& node) {
  const Normalization normalization(node.as<ImageNormalize>(), node.inputs[0].shape);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_normalization<T, T>(normalization, {.in_place = {{0, 0}}});
  });
}
std::unique_ptr<Kernel> build_normalize_pixels(const NodeView& node) {
  const Normalization normalization(node.as<NormalizePixels>(), node.inputs[0].shape);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_normalization<uint8_t, T>(normalization, {});
  });
}

// ---- Sizes ----------------------------------------------------------------------------------------------------------

struct Resizing {
  int64_t images, in_rows, in_columns, out_rows, out_columns, channels;
  int method;

  explicit Resizing(const NodeView& node) : method(static_cast<int>(node.as<ImageResize>().interp)) {
    const Shape &in = node.inputs[0].shape, &out = node.outputs[0].shape;
    images = in.rank() == 4 ? in[0] : 1;
    in_rows = in[-3], in_columns = in[-2], out_rows = out[-3], out_columns = out[-2], channels = in[-1];
  }
  int64_t in_size() const { return in_rows * in_columns * channels; }
  int64_t out_size() const { return out_rows * out_columns * channels; }

  template <class T>
  void run(const T* in, T* out) const {
    resize<T>({in, in_rows, in_columns, channels, in_columns * channels},
              {out, out_rows, out_columns, channels, out_columns * channels}, method);
  }
};

std::unique_ptr<Kernel> build_resize(const NodeView& node) {
  return visit_pixels(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([resizing = Resizing(node)](const Args& args) {
      parallel_for(resizing.images, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* const in = args.in<T>(0) + i * resizing.in_size();
          T* const out = args.out<T>() + i * resizing.out_size();
          if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, float>) {
            resizing.run(in, out);
          } else {  // via float32
            std::vector<float> from(static_cast<size_t>(resizing.in_size()));
            std::vector<float> to(static_cast<size_t>(resizing.out_size()));
            for (size_t k = 0; k < from.size(); ++k) from[k] = static_cast<float>(in[k]);
            resizing.run(std::as_const(from).data(), to.data());
            for (size_t k = 0; k < to.size(); ++k) out[k] = static_cast<T>(as_pixel<T>(to[k]));
          }
        }
      });
    });
  });
}

}  // namespace

void add_image(ImplementationTable& table) {
  add_plain<ImageNormalize>(table, build_normalize);
  add_plain<NormalizePixels>(table, build_normalize_pixels);
  add_plain<ImageResize>(table, build_resize);
  using LeftRight = ImageFlip<"_image_random_flip_left_right">;
  add_plain<LeftRight>(table, build_random_flip<"_image_random_flip_left_right">);
  using TopBottom = ImageFlip<"_image_random_flip_top_bottom">;
  add_plain<TopBottom>(table, build_random_flip<"_image_random_flip_top_bottom">);
  add_change<"_image_random_brightness">(table, ColourChange::brightness);
  add_change<"_image_random_contrast">(table, ColourChange::contrast);
  add_change<"_image_random_saturation">(table, ColourChange::saturation);
  add_change<"_image_random_hue">(table, ColourChange::hue);
  add_plain<ImageRandomColorJitter>(
      table, [](const NodeView& node) { return build_changes(node, ranges_of(node.as<ImageRandomColorJitter>())); });
  add_plain<ImageAdjustLighting>(table, build_light<ImageAdjustLighting>);
  add_plain<ImageRandomLighting>(table, build_light<ImageRandomLighting>);
}

}  // namespace symbind::cpu_backend
