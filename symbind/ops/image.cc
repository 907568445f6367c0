#include "symbind/ops/image.h"

#include <algorithm>
#include <cmath>

#include "symbind/graph/define.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/rearrange.h"
#include "symbind/ops/slice.h"
#include "symbind/ops/transpose.h"

namespace symbind {
namespace {

// ---- Shapes ---------------------------------------------------------------------------------------------------------

// One image or a batch of them.
void check_rank(Shapes& s, const Shape& data) {
  require(!data.rank_known() || data.rank() == 3 || data.rank() == 4, s.where(),
          " data must be an image (rows, columns, channels) or a batch of them: data ", data);
}

void same_image(Shapes& s) {
  same_shape(s);
  check_rank(s, s["data"]);
}

// For operators that look at colours.
void same_colours(Shapes& s) {
  same_image(s);
  const Shape& data = s["data"];
  if (!data.rank_known() || data[-1] == unknown_dim) return;
  require(data[-1] == 1 || data[-1] == 3, s.where(), " images must have 1 or 3 channels, along the last axis: data ",
          data);
}

// ---- Tensors --------------------------------------------------------------------------------------------------------

OpDef define(Op<ImageToTensor> op) {
  return op
      .doc(
          "An image (rows, columns, channels) with values from 0 to 255 as a tensor (channels, rows, columns) of "
          "float32 with values from 0 to 1; or a batch of images as a batch of tensors.")
      .infer_shape([](const ImageToTensor&, Shapes& s) {
        auto data = s["data"], out = s.output();
        check_rank(s, data);
        if (!data.rank_known()) {
          if (!out.rank_known()) return;
          data.meet(Shape::of_rank(out.rank()));
        }
        const int first = data.rank() - 3;
        Shape result = data;
        result[first] = data[-1];
        result[first + 1] = data[first];
        result[first + 2] = data[first + 1];
        out.meet(result);
        Shape back = out;
        back[first] = out[first + 1];
        back[first + 1] = out[first + 2];
        back[first + 2] = out[first];
        data.meet(back);
      })
      .infer_type([](const ImageToTensor&, Types& t) { t.output().meet(DType::float32); })
      .gradient([](const ImageToTensor&, Grad& g) {
        g.set("data", cast_like(image_to_tensor_grad(g.out_grad(), g.input("data")), g.input("data")));
      });
}

OpDef define(Op<ImageToTensorGrad> op) {
  return op.inputs({"out_grad", "like"})
      .shape_only({"like"})
      .infer_shape([](const ImageToTensorGrad&, Shapes& s) { s.output().meet(s["like"].get()); })
      .infer_type([](const ImageToTensorGrad&, Types& t) { t.output().meet(t["out_grad"]); });
}

// Shared by the operators that normalize tensors, which have 1, 3 or, where `four`, 4 channels.
template <class P>
Op<P>& normalize_fields(Op<P>& op, bool four) {
  return op.param(&ImageNormalize::mean, "mean", "what is subtracted: one number, or one per channel")
      .param(&ImageNormalize::std, "std", "what is divided by: one number, or one per channel")
      .check([](P& p) {
        if (std::ranges::find(p.std, 0.0) != p.std.end()) fail("std must not be 0: std ", print(p.std));
      })
      .infer_shape([four](const P& p, Shapes& s) {
        same_shape(s);
        const Shape& data = s["data"];
        require(!data.rank_known() || data.rank() == 3 || data.rank() == 4, s.where(),
                " data must be a tensor (channels, rows, columns) or a batch of them: data ", data);
        if (!data.rank_known() || data[-3] == unknown_dim) return;
        require(data[-3] == 1 || data[-3] == 3 || (four && data[-3] == 4), s.where(), " tensors must have ",
                four ? "1, 3 or 4" : "1 or 3", " channels: data ", data);
        for (const auto* each : {&p.mean, &p.std})
          require(each->size() == 1 || static_cast<int64_t>(each->size()) == data[-3], s.where(),
                  " mean and std must be one number, or one per channel: mean ", print(p.mean), ", std ", print(p.std),
                  ", data ", data);
      });
}

OpDef define(Op<ImageNormalize> op) {
  return normalize_fields(op, false)
      .doc(
          "(x - mean) / std for each channel of a tensor (channels, rows, columns), or of a batch of them. There are 1 "
          "or 3 channels.")
      .infer_type([](const ImageNormalize&, Types& t) { same_floating_type(t); })
      .gradient([](const ImageNormalize& p, Grad& g) {
        g.set("data", image_normalize(g.out_grad(), {.mean = {0}, .std = p.std}));
      });
}

// In the order of operations of ImageRecordIter, so that the results have the same bits.
OpDef define(Op<NormalizePixels> op) {
  return normalize_fields(op, true)
      .doc("(x - mean) * scale / std for each channel of tensors (channels, rows, columns) of uint8.")
      .param(&NormalizePixels::scale, "scale", "factor")
      .param(&NormalizePixels::dtype, "dtype", "floating type of the result")
      .infer_type([](const NormalizePixels& p, Types& t) {
        t["data"].meet(DType::uint8);
        require(is_floating(p.dtype), t.where(), " dtype must be a floating type: ", p.dtype);
        t.output().meet(p.dtype);
      });
}

// ---- Sizes ----------------------------------------------------------------------------------------------------------

// The rows and columns of an image that is resized.
std::pair<int64_t, int64_t> resized(const ImageResize& p, int64_t rows, int64_t columns) {
  if (p.size.size() == 2) return {p.size[1], p.size[0]};
  const int64_t shorter = p.size[0];
  if (!p.keep_ratio) return {shorter, shorter};
  if (rows > columns) return {rows * shorter / columns, shorter};
  return {shorter, columns * shorter / rows};
}

OpDef define(Op<ImageResize> op) {
  return op
      .doc(
          "Resizes an image (rows, columns, channels) or a batch of them to size, as OpenCV does. There is no "
          "gradient.")
      .param(&ImageResize::size, "size", "(columns, rows) of the result, or one number for both", each_at_least(1))
      .param(&ImageResize::keep_ratio, "keep_ratio",
             "where size is one number: the length of the shorter side; the other keeps the ratio")
      .param(&ImageResize::interp, "interp",
             "the interpolation: 0: nearest, 1: bilinear, 2: bicubic, 3: by area, 4: Lanczos", between(0, 4))
      .check([](ImageResize& p) {
        require(p.size.size() == 1 || p.size.size() == 2, "size must be one or two numbers: size ", print(p.size));
        for (const int64_t each : p.size) require(each <= 1 << 20, "size is too large: ", print(p.size));
      })
      .infer_shape([](const ImageResize& p, Shapes& s) {
        auto data = s["data"], out = s.output();
        check_rank(s, data);
        if (!data.rank_known()) return;
        const int first = data.rank() - 3;
        Shape result = data;
        result[first] = result[first + 1] = unknown_dim;
        if (data[first] != unknown_dim && data[first + 1] != unknown_dim) {
          require(data[first] > 0 && data[first + 1] > 0, s.where(), " an image without pixels: data ", data.get());
          const auto [rows, columns] = resized(p, data[first], data[first + 1]);
          require(rows > 0 && columns > 0, s.where(), " the result would have no pixels: data ", data.get());
          result[first] = rows;
          result[first + 1] = columns;
        }
        out.meet(result);
      })
      .gradient([](const ImageResize&, Grad&) {});
}

OptionalTuple crop_begin(const ImageCrop& p, int rank) {
  OptionalTuple begin(static_cast<size_t>(rank - 3));
  begin.emplace_back(p.y);
  begin.emplace_back(p.x);
  return begin;
}
OptionalTuple crop_end(const ImageCrop& p, int rank) {
  OptionalTuple end(static_cast<size_t>(rank - 3));
  end.emplace_back(p.y + p.height);
  end.emplace_back(p.x + p.width);
  return end;
}

template <class P>
Op<P>& crop_fields(Op<P>& op) {
  constexpr double most = 1 << 30;
  return op.param(&ImageCrop::x, "x", "first column of the rectangle", between(0, most))
      .param(&ImageCrop::y, "y", "first row of the rectangle", between(0, most))
      .param(&ImageCrop::width, "width", "number of columns", between(1, most))
      .param(&ImageCrop::height, "height", "number of rows", between(1, most));
}

OpDef define(Op<ImageCrop> op) {
  return crop_fields(op)
      .doc("The rectangle of height × width pixels at (x, y) of an image (rows, columns, channels) or a batch of them.")
      .memory_bound()
      .infer_shape([](const ImageCrop& p, Shapes& s) {
        auto data = s["data"], out = s.output();
        check_rank(s, data);
        if (!data.rank_known()) return;
        const int first = data.rank() - 3;
        require(data[first] == unknown_dim || p.y + p.height <= data[first], s.where(), " rows ", int64_t(p.y), " to ",
                p.y + p.height, " are not inside of the image: data ", data.get());
        require(data[first + 1] == unknown_dim || p.x + p.width <= data[first + 1], s.where(), " columns ",
                int64_t(p.x), " to ", p.x + p.width, " are not inside of the image: data ", data.get());
        out.meet(data.get().with(first, p.height).with(first + 1, p.width));
      })
      .gradient(
          [](const ImageCrop& p, Grad& g) { g.set("data", image_crop_grad(g.out_grad(), g.input("data"), {p})); });
}

OpDef define(Op<ImageCropGrad> op) {
  return crop_fields(op)
      .inputs({"out_grad", "like"})
      .shape_only({"like"})
      .infer_shape([](const ImageCropGrad&, Shapes& s) { s.output().meet(s["like"].get()); })
      .shapes_of<ImageCrop>();
}

// ---- Flips ----------------------------------------------------------------------------------------------------------

template <FixedString name>
void add_flip(OpRegistry& registry, std::string doc) {
  using P = ImageFlip<name>;
  Op<P> op{std::string(name.view())};
  op.doc(std::move(doc)).infer_shape([](const P&, Shapes& s) { same_image(s); }).gradient([](const P&, Grad& g) {
    g.set("data", Builder<P>{}(g.out_grad()));
  });
  registry.add(op, typeid(P));
}

template <FixedString name>
void add_random_flip(OpRegistry& registry, std::string doc) {
  using P = ImageFlip<name>;
  Op<P> op{std::string(name.view())};
  op.doc(std::move(doc)).random().infer_shape([](const P&, Shapes& s) { same_image(s); }).gradient([](const P&, Grad&) {
  });
  registry.add(op, typeid(P));
}

// ---- Colours --------------------------------------------------------------------------------------------------------

template <FixedString name>
void add_random(OpRegistry& registry, std::string doc) {
  using P = ImageRandom<name>;
  Op<P> op{std::string(name.view())};
  op.doc(std::move(doc) + " Results of a whole-number type are cut off and limited to its range. There is no gradient.")
      .param(&P::min_factor, "min_factor", "lower end of the range of the factor", at_least(0))
      .param(&P::max_factor, "max_factor", "upper end of the range of the factor", at_least(0))
      .random()
      .infer_shape([](const P&, Shapes& s) { same_colours(s); })
      .gradient([](const P&, Grad&) {});
  registry.add(op, typeid(P));
}

void add_colours(OpRegistry& registry) {
  add_random<"_image_random_brightness">(registry, "Multiplies an image by a random factor.");
  add_random<"_image_random_contrast">(
      registry,
      "Moves the values of an image away from the mean of its grey values by a random factor, or towards it.");
  add_random<"_image_random_saturation">(
      registry, "Moves the colours of an image away from its grey values by a random factor, or towards them.");
  add_random<"_image_random_hue">(registry,
                                  "Turns the hues of an image around the circle of colours by a random factor.");
}

OpDef define(Op<ImageRandomColorJitter> op) {
  return op
      .doc(
          "Changes brightness, contrast, saturation and hue of an image in random order, each by a random factor from "
          "1 - x to 1 + x (the hue by a part of the circle from -x to x); an x of 0 or less changes nothing. There is "
          "no gradient.")
      .param(&ImageRandomColorJitter::brightness, "brightness", "how far the factor of the brightness is from 1")
      .param(&ImageRandomColorJitter::contrast, "contrast", "how far the factor of the contrast is from 1")
      .param(&ImageRandomColorJitter::saturation, "saturation", "how far the factor of the saturation is from 1")
      .param(&ImageRandomColorJitter::hue, "hue", "how far hues are turned, in parts of the circle")
      .check([](ImageRandomColorJitter& p) {
        for (const double x : {p.brightness.get(), p.contrast.get(), p.saturation.get(), p.hue.get()})
          require(!std::isnan(x), "brightness, contrast, saturation and hue must be numbers: ", x);
      })
      .random()
      .infer_shape([](const ImageRandomColorJitter&, Shapes& s) { same_colours(s); })
      .gradient([](const ImageRandomColorJitter&, Grad&) {});
}

OpDef define(Op<ImageAdjustLighting> op) {
  return op
      .doc(
          "Adds a colour to an image: the three main directions of the colours of natural images, weighted by alpha. "
          "Images of one channel stay as they are.")
      .param(&ImageAdjustLighting::alpha, "alpha", "the three weights")
      .check([](ImageAdjustLighting& p) {
        require(p.alpha.get().size() == 3, "alpha must be three numbers: alpha ", print(p.alpha.get()));
      })
      .infer_shape([](const ImageAdjustLighting&, Shapes& s) { same_colours(s); })
      .gradient([](const ImageAdjustLighting&, Grad& g) { g.set("data", g.out_grad()); });
}

OpDef define(Op<ImageRandomLighting> op) {
  return op.doc("Adds a random colour to an image, as adjust_lighting with normally distributed weights does.")
      .param(&ImageRandomLighting::alpha_std, "alpha_std", "standard deviation of the weights")
      .random()
      .infer_shape([](const ImageRandomLighting&, Shapes& s) { same_colours(s); })
      .gradient([](const ImageRandomLighting&, Grad& g) { g.set("data", g.out_grad()); });
}

// (…, rows, columns, channels) and (…, channels, rows, columns)
Tuple axes_to_tensor(int rank) { return rank == 3 ? Tuple{2, 0, 1} : Tuple{0, 3, 1, 2}; }
Tuple axes_to_image(int rank) { return rank == 3 ? Tuple{1, 2, 0} : Tuple{0, 2, 3, 1}; }

}  // namespace

Symbol network_of(const ImageToTensor&, const ComposedInputs& in) {
  const Symbol numbers = in.types[0] == DType::float32 ? in[0] : cast(in[0], {.dtype = DType::float32});
  return transpose(numbers, {.axes = axes_to_tensor(in.shapes[0].rank())}) / 255.0;
}
Symbol network_of(const ImageToTensorGrad&, const ComposedInputs& in) {
  return transpose(in[0], {.axes = axes_to_image(in.shapes[1].rank())}) / 255.0;
}
Symbol network_of(const ImageCrop& p, const ComposedInputs& in) {
  const int rank = in.shapes[0].rank();
  return slice(in[0], {.begin = crop_begin(p, rank), .end = crop_end(p, rank)});
}
Symbol network_of(const ImageCropGrad& p, const ComposedInputs& in) {
  SliceGrad params;
  params.begin = crop_begin(p, in.shapes[1].rank());
  params.end = crop_end(p, in.shapes[1].rank());
  return slice_grad(in[0], in[1], params);
}
Symbol network_of(const ImageFlip<"_image_flip_left_right">&, const ComposedInputs& in) {
  return reverse(in[0], {.axis = Tuple{-2}});
}
Symbol network_of(const ImageFlip<"_image_flip_top_bottom">&, const ComposedInputs& in) {
  return reverse(in[0], {.axis = Tuple{-3}});
}

void register_image(OpRegistry& registry) {
  add<ImageToTensor>(registry, "_image_to_tensor", define);
  add_internal<ImageToTensorGrad>(registry, "_backward_image_to_tensor", define);
  add<ImageNormalize>(registry, "_image_normalize", define);
  add_internal<NormalizePixels>(registry, "_normalize_pixels", define);
  add<ImageResize>(registry, "_image_resize", define);
  add<ImageCrop>(registry, "_image_crop", define);
  add_internal<ImageCropGrad>(registry, "_backward_image_crop", define);
  add_flip<"_image_flip_left_right">(registry, "Mirrors an image, or a batch of them, left to right.");
  add_flip<"_image_flip_top_bottom">(registry, "Mirrors an image, or a batch of them, top to bottom.");
  add_random_flip<"_image_random_flip_left_right">(
      registry, "Mirrors an image, or a batch of them, left to right in half of the calls. There is no gradient.");
  add_random_flip<"_image_random_flip_top_bottom">(
      registry, "Mirrors an image, or a batch of them, top to bottom in half of the calls. There is no gradient.");
  add_colours(registry);
  add<ImageRandomColorJitter>(registry, "_image_random_color_jitter", define);
  add<ImageAdjustLighting>(registry, "_image_adjust_lighting", define);
  add<ImageRandomLighting>(registry, "_image_random_lighting", define);
}

}  // namespace symbind
