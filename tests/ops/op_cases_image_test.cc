#include <algorithm>
#include <cmath>

#include "symbind/core/error.h"

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

const std::vector<DType> pixels{DType::float32, DType::float64, DType::uint8, DType::int32};
const std::vector<DType> floating{DType::float32, DType::float64};

size_t at(int64_t index) { return static_cast<size_t>(index); }

// Every image, row, column and channel: visit(index in (…, rows, columns, channels), image, row, column, channel).
template <class Visit>
void each_pixel(const Shape& shape, Visit visit) {
  const int64_t images = shape.rank() == 4 ? shape[0] : 1;
  size_t index = 0;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < shape[-3]; ++y)
      for (int64_t x = 0; x < shape[-2]; ++x)
        for (int64_t c = 0; c < shape[-1]; ++c) visit(index++, n, y, x, c);
}

void add_tensors(std::vector<OpCase>& cases) {
  cases.push_back(
      {.name = "image_to_tensor",
       .op = "_image_to_tensor",
       .inputs = {{"data", {2, 3, 3}, 0, 255}},
       .reference =
           [](Inputs_ in) {
             const Shape& x = in[0].shape;
             Values out{x.rank() == 4 ? Shape{x[0], x[3], x[1], x[2]} : Shape{x[2], x[0], x[1]}, in[0].data};
             each_pixel(x, [&](size_t from, int64_t n, int64_t y, int64_t column, int64_t c) {
               out.data[at(((n * x[-1] + c) * x[-3] + y) * x[-2] + column)] = in[0].data[from] / 255;
             });
             return std::vector{out};
           },
       .dtypes = {DType::float32, DType::uint8},
       .more_shapes = {{{2, 3, 2, 3}}, {{0, 3, 2, 1}}},
       .slack = 2});
  cases.push_back({.name = "image_normalize",
                   .op = "_image_normalize",
                   .attributes = {{"mean", "(1, 2, 3)"}, {"std", "(2, 4, 0.5)"}},
                   .inputs = {{"data", {3, 2, 2}, -4, 4}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (size_t i = 0; i < out.data.size(); ++i) {
                           const size_t channel = i / at(in[0].shape[-1] * in[0].shape[-2]) % 3;
                           out.data[i] = (out.data[i] - static_cast<double>(channel + 1)) / (channel == 0   ? 2
                                                                                             : channel == 1 ? 4
                                                                                                            : 0.5);
                         }
                         return std::vector{out};
                       },
                   .more_shapes = {{{2, 3, 1, 4}}, {{0, 3, 2, 2}}},
                   .in_place = true,
                   .slack = 4});
}

void add_crops_and_flips(std::vector<OpCase>& cases) {
  cases.push_back({.name = "image_crop",
                   .op = "_image_crop",
                   .attributes = {{"x", "1"}, {"y", "0"}, {"width", "2"}, {"height", "1"}},
                   .inputs = {{"data", {2, 3, 3}, 0, 255}},
                   .reference =
                       [](Inputs_ in) {
                         const Shape& x = in[0].shape;
                         Values out{x.rank() == 4 ? Shape{x[0], 1, 2, x[3]} : Shape{1, 2, x[2]}, {}};
                         each_pixel(x, [&](size_t from, int64_t, int64_t y, int64_t column, int64_t) {
                           if (y == 0 && (column == 1 || column == 2)) out.data.push_back(in[0].data[from]);
                         });
                         return std::vector{out};
                       },
                   .dtypes = pixels,
                   .more_shapes = {{{2, 1, 4, 1}}, {{0, 3, 3, 3}}}});
  for (const bool vertical : {false, true})
    cases.push_back({.name = vertical ? "image_flip_top_bottom" : "image_flip_left_right",
                     .op = vertical ? "_image_flip_top_bottom" : "_image_flip_left_right",
                     .inputs = {{"data", {2, 3, 3}, 0, 255}},
                     .reference =
                         [vertical](Inputs_ in) {
                           const Shape& x = in[0].shape;
                           Values out = in[0];
                           each_pixel(x, [&](size_t from, int64_t n, int64_t y, int64_t column, int64_t c) {
                             const int64_t row = vertical ? x[-3] - 1 - y : y;
                             const int64_t to = vertical ? column : x[-2] - 1 - column;
                             out.data[at(((n * x[-3] + row) * x[-2] + to) * x[-1] + c)] = in[0].data[from];
                           });
                           return std::vector{out};
                         },
                     .dtypes = pixels,
                     .more_shapes = {{{2, 3, 2, 1}}, {{0, 3, 3, 3}}}});
  cases.push_back({.name = "image_resize_nearest",
                   .op = "_image_resize",
                   .attributes = {{"size", "(4, 2)"}, {"interp", "0"}},
                   .inputs = {{"data", {1, 2, 3}, 0, 255}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{2, 4, 3}, {}};
                         for (int64_t i = 0; i < 24; ++i) out.data.push_back(in[0].data[at(i / 3 % 4 / 2 * 3 + i % 3)]);
                         return std::vector{out};
                       },
                   .dtypes = pixels,
                   .differentiable = false});
  cases.push_back({.name = "image_resize_halved",
                   .op = "_image_resize",
                   .attributes = {{"size", "(1, 1)"}},
                   .inputs = {{"data", {2, 2, 1}, 0, 255}},
                   .reference =
                       [](Inputs_ in) {
                         double sum = 0;
                         for (const double each : in[0].data) sum += each / 4;
                         return std::vector{Values{{1, 1, 1}, {sum}}};
                       },
                   .dtypes = floating,
                   .differentiable = false});
}

double grey(const std::vector<double>& data, size_t pixel) {
  return 0.299 * data[pixel] + 0.587 * data[pixel + 1] + 0.114 * data[pixel + 2];
}

// A random operator with a range of one factor.
OpCase colours(const std::string& which, const std::string& factor, Reference reference) {
  return {.name = "image_random_" + which,
          .op = "_image_random_" + which,
          .attributes = {{"min_factor", factor}, {"max_factor", factor}},
          .inputs = {{"data", {2, 2, 3}, 0, 255}},
          .reference = std::move(reference),
          .dtypes = floating,
          .differentiable = false,
          .slack = 8};
}

void add_colours(std::vector<OpCase>& cases) {
  cases.push_back(colours("brightness", "1.5", [](Inputs_ in) {
    Values out = in[0];
    for (double& value : out.data) value *= 1.5;
    return std::vector{out};
  }));
  cases.push_back(colours("contrast", "0.5", [](Inputs_ in) {
    Values out = in[0];
    double mean = 0;
    for (size_t i = 0; i < 12; i += 3) mean += grey(in[0].data, i) / 4;
    for (double& value : out.data) value = (value + mean) / 2;
    return std::vector{out};
  }));
  cases.push_back(colours("saturation", "0.5", [](Inputs_ in) {
    Values out = in[0];
    for (size_t i = 0; i < 12; ++i) out.data[i] = (out.data[i] + grey(in[0].data, i / 3 * 3)) / 2;
    return std::vector{out};
  }));
  // A third of the circle: red becomes green, green blue, and blue red.
  OpCase hue = colours("hue", "0.33333333333333331", [](Inputs_ in) {
    Values out = in[0];
    for (size_t i = 0; i < 12; ++i) out.data[i / 3 * 3 + (i + 1) % 3] = in[0].data[i];
    return std::vector{out};
  });
  hue.slack = 100;
  cases.push_back(hue);
  const Reference identity = [](Inputs_ in) { return std::vector{in[0]}; };
  cases.push_back({.name = "image_random_color_jitter",
                   .op = "_image_random_color_jitter",
                   .attributes = {{"brightness", "0"}, {"contrast", "0"}, {"saturation", "0"}, {"hue", "0"}},
                   .inputs = {{"data", {2, 2, 3}, 0, 255}},
                   .reference = identity,
                   .dtypes = pixels,
                   .differentiable = false});
  cases.push_back({.name = "image_random_color_jitter_below_0",
                   .op = "_image_random_color_jitter",
                   .attributes = {{"brightness", "-0.5"}, {"contrast", "-1"}, {"saturation", "-2"}, {"hue", "-0.5"}},
                   .inputs = {{"data", {2, 2, 3}, 0, 255}},
                   .reference = identity,
                   .dtypes = pixels,
                   .differentiable = false});
  cases.push_back({.name = "image_random_lighting",
                   .op = "_image_random_lighting",
                   .attributes = {{"alpha_std", "0"}},
                   .inputs = {{"data", {2, 2, 3}, 0, 255}},
                   .reference = identity,
                   .dtypes = pixels});
  cases.push_back({.name = "image_adjust_lighting",
                   .op = "_image_adjust_lighting",
                   .attributes = {{"alpha", "(1, 0, 0)"}},
                   .inputs = {{"data", {2, 2, 3}, 0, 255}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         const double light[] = {55.46 * -0.5675, 55.46 * -0.5808, 55.46 * -0.5836};
                         for (size_t i = 0; i < out.data.size(); ++i) out.data[i] += light[i % 3];
                         return std::vector{out};
                       },
                   .dtypes = floating,
                   .in_place = true,
                   .slack = 8});
}

}  // namespace

void add_image_cases(std::vector<OpCase>& cases) {
  add_tensors(cases);
  add_crops_and_flips(cases);
  add_colours(cases);
}

}  // namespace symbind::testing
