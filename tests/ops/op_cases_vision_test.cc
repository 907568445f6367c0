#include <algorithm>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

void add_regions(std::vector<OpCase>& cases) {
  // Coordinates far from a half: every type rounds them alike.
  const OpInput rois{.name = "rois", .shape = {2, 5}, .low = 1.1, .high = 1.4, .gradient = false};
  cases.push_back({.name = "ROIPooling_of_one_element",
                   .op = "ROIPooling",
                   .attributes = {{"pooled_size", "(1, 2)"}, {"spatial_scale", "1"}},
                   .inputs = {{"data", {2, 1, 2, 3}}, rois},
                   .reference = [](Inputs_ in) {
                     const double only = in[0].data[6 + 4];  // image 1, row 1, column 1
                     return std::vector{Values{{2, 1, 1, 2}, {only, only, only, only}}};
                   }});
  cases.push_back({.name = "ROIPooling",
                   .op = "ROIPooling",
                   .attributes = {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.5"}},
                   .inputs = {{"data", {1, 2, 6, 5}, -20, 20},
                              {.name = "rois", .shape = {3, 5}, .low = 0.1, .high = 0.8, .gradient = false}},
                   .more_shapes = {{{2, 1, 2, 3}, {0, 5}}, {{2, 0, 2, 3}, {2, 5}}}});
}

void add_sampling(std::vector<OpCase>& cases) {
  cases.push_back({.name = "GridGenerator_affine",
                   .op = "GridGenerator",
                   .attributes = {{"transform_type", "affine"}, {"target_shape", "(2, 3)"}},
                   .inputs = {{"data", {1, 6}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{in[0].shape[0], 2, 2, 3}, {}};
                         for (size_t part = 0; part < in[0].data.size(); part += 3)
                           for (double y : {-1, 1})
                             for (double x : {-1, 0, 1})
                               out.data.push_back(in[0].data[part] * x + in[0].data[part + 1] * y +
                                                  in[0].data[part + 2]);
                         return std::vector{out};
                       },
                   .more_shapes = {{{0, 6}}, {{3, 6}}},
                   .slack = 2});
  cases.push_back({.name = "GridGenerator_warp",
                   .op = "GridGenerator",
                   .attributes = {{"transform_type", "warp"}},
                   .inputs = {{"data", {1, 2, 2, 3}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         const auto rows = static_cast<size_t>(out.shape[2]),
                                    columns = static_cast<size_t>(out.shape[3]);
                         for (size_t i = 0; i < out.data.size(); ++i) {
                           const bool down = i / (rows * columns) % 2 == 1;
                           const size_t pixel = down ? i / columns % rows : i % columns;
                           const auto steps = static_cast<double>(down ? rows - 1 : columns - 1);
                           out.data[i] = (out.data[i] + static_cast<double>(pixel)) * 2 / steps - 1;
                         }
                         return std::vector{out};
                       },
                   .more_shapes = {{{0, 2, 2, 3}}, {{3, 2, 7, 5}}},
                   .slack = 2});
  // Between the second-last and the last pixel, away from both: there it has a slope.
  cases.push_back(
      {.name = "BilinearSampler",
       .op = "BilinearSampler",
       .inputs = {{"data", {2, 3, 4, 4}}, {"grid", {2, 2, 3, 2}, 0.4, 0.9}},
       .more_shapes = {{{0, 3, 4, 4}, {0, 2, 3, 2}}, {{2, 0, 4, 4}, {2, 2, 3, 2}}, {{1, 1, 4, 1}, {1, 2, 1, 1}}},
       .slack = 4});
  cases.push_back({.name = "BilinearSampler_over_the_edge",
                   .op = "BilinearSampler",
                   .inputs = {{"data", {1, 2, 4, 4}}, {"grid", {1, 2, 3, 2}, 1.1, 1.6}},
                   .slack = 4});
  // Every point is between the same two columns and rows.
  cases.push_back(
      {.name = "SpatialTransformer",
       .op = "SpatialTransformer",
       .attributes = {{"transform_type", "affine"}, {"sampler_type", "bilinear"}, {"target_shape", "(2, 3)"}},
       .inputs = {{"data", {2, 3, 2, 2}}, {"loc", {2, 6}, -0.3, 0.3}},
       .more_shapes = {{{0, 3, 2, 2}, {0, 6}}},
       .slack = 4});
}

void add_comparisons(std::vector<OpCase>& cases) {
  cases.push_back({.name = "Correlation_of_one_pixel",
                   .op = "Correlation",
                   .attributes = {{"max_displacement", "0"}},
                   .inputs = {{"data1", {1, 2, 1, 1}}, {"data2", {1, 2, 1, 1}}},
                   .reference =
                       [](Inputs_ in) {
                         const auto &a = in[0].data, &b = in[1].data;
                         return std::vector{Values{{1, 1, 1, 1}, {(a[0] * b[0] + a[1] * b[1]) / 2}}};
                       },
                   .slack = 2});
  cases.push_back({.name = "Correlation",
                   .op = "Correlation",
                   .attributes = {{"kernel_size", "3"}, {"max_displacement", "2"}, {"stride2", "2"}, {"pad_size", "2"}},
                   .inputs = {{"data1", {2, 2, 4, 3}}, {"data2", {2, 2, 4, 3}}},
                   .more_shapes = {{{0, 2, 4, 3}, {0, 2, 4, 3}}},
                   .slack = 4});
  cases.push_back({.name = "Correlation_as_distance",
                   .op = "Correlation",
                   .attributes = {{"is_multiply", "False"}},
                   .inputs = {{"data1", {1, 2, 3, 4}, 1, 2}, {"data2", {1, 2, 3, 4}, -2, -1}},
                   .slack = 4});
}

}  // namespace

void add_vision_cases(std::vector<OpCase>& cases) {
  add_regions(cases);
  add_sampling(cases);
  add_comparisons(cases);
}

}  // namespace symbind::testing
