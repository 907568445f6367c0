#include "tests/ops/op_cases_detection.h"

#include <algorithm>
#include <cmath>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

// ---- Proposals and regions ------------------------------------------------------------------------------------------

void add_proposals(std::vector<OpCase>& cases) {
  for (const char* op : {"_contrib_Proposal", "_contrib_MultiProposal"}) {
    const int64_t images = std::string(op) == "_contrib_Proposal" ? 1 : 3;
    cases.push_back({.name = op,
                     .op = op,
                     .attributes = {{"scales", "(2,)"},
                                    {"feature_stride", "4"},
                                    {"rpn_min_size", "0"},
                                    {"rpn_post_nms_top_n", "7"},
                                    {"threshold", "0.4321"},
                                    {"output_score", "True"}},
                     .inputs = {{"cls_prob", {images, 6, 3, 4}, 0, 1},
                                {"bbox_pred", {images, 12, 3, 4}, -0.25, 0.25},
                                {"im_info", {images, 3}, 12, 16}},
                     .differentiable = false,
                     .slack = 4});
  }
}

// Image 1, around the element in row 1 and column 1.
const OpInput one_pixel{.name = "rois", .shape = {2, 5}, .low = 1.1, .high = 1.4, .gradient = false};
// Image 0, of one or two pixels.
const OpInput small_regions{.name = "rois", .shape = {3, 5}, .low = 0.1, .high = 0.9, .gradient = false};

void add_position_sensitive(std::vector<OpCase>& cases) {
  cases.push_back({.name = "PSROIPooling_of_one_element",
                   .op = "_contrib_PSROIPooling",
                   .attributes = {{"spatial_scale", "1"}, {"output_dim", "2"}, {"pooled_size", "1"}},
                   .inputs = {{"data", {2, 2, 3, 3}}, one_pixel},
                   .reference = [](Inputs_ in) {
                     const double first = in[0].data[18 + 4], second = in[0].data[18 + 9 + 4];
                     return std::vector{Values{{2, 2, 1, 1}, {first, second, first, second}}};
                   }});
  cases.push_back(
      {.name = "PSROIPooling",
       .op = "_contrib_PSROIPooling",
       .attributes = {{"spatial_scale", "1"}, {"output_dim", "2"}, {"pooled_size", "3"}, {"group_size", "2"}},
       .inputs = {{"data", {1, 8, 4, 5}}, small_regions},
       .more_shapes = {{{2, 9, 3, 3}, {0, 5}}, {{0, 8, 3, 3}, {2, 5}}},
       .slack = 2});
  const OpInput trans{"trans", {3, 2, 2, 2}, 0.1, 0.4};
  cases.push_back({.name = "DeformablePSROIPooling",
                   .op = "_contrib_DeformablePSROIPooling",
                   .attributes = {{"spatial_scale", "1"},
                                  {"output_dim", "2"},
                                  {"pooled_size", "2"},
                                  {"group_size", "2"},
                                  {"sample_per_part", "2"},
                                  {"trans_std", "0.25"}},
                   .inputs = {{"data", {1, 8, 4, 5}}, small_regions, trans},
                   .more_shapes = {{{2, 8, 3, 3}, {0, 5}, {0, 4, 2, 2}}},
                   .slack = 4});
  cases.push_back({.name = "DeformablePSROIPooling_without_offsets",
                   .op = "_contrib_DeformablePSROIPooling",
                   .attributes = {{"spatial_scale", "1"},
                                  {"output_dim", "1"},
                                  {"pooled_size", "2"},
                                  {"group_size", "1"},
                                  {"no_trans", "True"}},
                   .inputs = {{"data", {1, 2, 4, 5}}, small_regions},
                   .slack = 4});
}

void add_aligned(std::vector<OpCase>& cases) {
  // A region of at least one pixel with one point: the mean of the four pixels around its centre, here row 1.1 … 1.4
  // and a half.
  cases.push_back({.name = "ROIAlign_of_one_point",
                   .op = "_contrib_ROIAlign",
                   .attributes = {{"pooled_size", "(1, 1)"}, {"spatial_scale", "1"}, {"sample_ratio", "1"}},
                   .inputs = {{"data", {2, 1, 4, 4}}, one_pixel},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{2, 1, 1, 1}, {}};
                         for (size_t i = 0; i < 2; ++i) {
                           const double x = in[1].data[i * 5 + 1] + 0.5 - 1, y = in[1].data[i * 5 + 2] + 0.5 - 1;
                           const double* const at = in[0].data.data() + 16 + 5;
                           out.data.push_back((1 - y) * ((1 - x) * at[0] + x * at[1]) +
                                              y * ((1 - x) * at[4] + x * at[5]));
                         }
                         return std::vector{out};
                       },
                   .slack = 2});
  cases.push_back({.name = "ROIAlign",
                   .op = "_contrib_ROIAlign",
                   .attributes = {{"pooled_size", "(2, 3)"}, {"spatial_scale", "1"}},
                   .inputs = {{"data", {1, 2, 4, 5}}, small_regions},
                   .more_shapes = {{{2, 9, 3, 3}, {0, 5}}, {{0, 1, 3, 3}, {2, 5}}, {{1, 11, 3, 4}, {4, 5}}},
                   .slack = 4});
  cases.push_back({.name = "ROIAlign_position_sensitive",
                   .op = "_contrib_ROIAlign",
                   .attributes = {{"pooled_size", "(2, 3)"},
                                  {"spatial_scale", "1"},
                                  {"sample_ratio", "2"},
                                  {"position_sensitive", "True"},
                                  {"aligned", "True"}},
                   .inputs = {{"data", {1, 12, 4, 5}}, small_regions},
                   .slack = 4});
}

// A mask of ones covers all regions, and no region's class is above 0.
void add_mask_targets(std::vector<OpCase>& cases) {
  const auto region = [](const char* name, const Shape& shape, double low, double high) {
    return OpInput{.name = name, .shape = shape, .low = low, .high = high, .gradient = false};
  };
  cases.push_back(
      {.name = "mrcnn_mask_target",
       .op = "_contrib_mrcnn_mask_target",
       .attributes = {{"num_rois", "2"}, {"num_classes", "2"}, {"mask_size", "(2, 3)"}},
       .inputs = {region("rois", {1, 2, 4}, 0, 3), region("gt_masks", {1, 1, 4, 4}, 1, 1),
                  region("matches", {1, 2}, 0, 0), region("cls_targets", {1, 2}, 0, 0)},
       .reference =
           [](Inputs_ in) {
             const int64_t images = in[0].shape[0], cells = images * 2 * 2 * 6;
             Values targets{{images, 2, 2, 2, 3}, {}}, weights = targets;
             for (int64_t i = 0; i < cells; ++i) {
               targets.data.push_back(1);
               weights.data.push_back(i / 6 % 2 == 0 ? 1 : 0);
             }
             return std::vector{targets, weights};
           },
       .differentiable = false,
       .more_shapes = {{{3, 2, 4}, {3, 2, 5, 7}, {3, 2}, {3, 2}}, {{0, 2, 4}, {0, 1, 3, 3}, {0, 2}, {0, 2}}}});
}

void add_rotated(std::vector<OpCase>& cases) {
  cases.push_back({.name = "RROIAlign",
                   .op = "_contrib_RROIAlign",
                   .attributes = {{"pooled_size", "(2, 3)"}, {"spatial_scale", "1"}},
                   .inputs = {{"data", {1, 2, 4, 5}},
                              {.name = "rois", .shape = {3, 6}, .low = 0.1, .high = 0.9, .gradient = false}},
                   .differentiable = false,
                   .more_shapes = {{{2, 3, 3, 3}, {0, 6}}, {{0, 1, 3, 3}, {2, 6}}},
                   .slack = 4});
}

// ---- Deformable convolutions ----------------------------------------------------------------------------------------

// One image, kernel 2 × 2, stride 1, no padding, by the definition. Pixels outside count as 0, or, where they do not
// (`last_reaches`), the last row and column reach to the end of the image.
double read_between(const Values& data, int64_t channel, double y, double x, bool last_reaches) {
  const int64_t rows = data.shape[2], columns = data.shape[3];
  if (last_reaches) {
    if (y < 0 || x < 0 || y >= static_cast<double>(rows) || x >= static_cast<double>(columns)) return 0;
    y = std::min(y, static_cast<double>(rows - 1));
    x = std::min(x, static_cast<double>(columns - 1));
  }
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) {
      const double weight = std::max(0.0, 1 - std::abs(y - static_cast<double>(i))) *
                            std::max(0.0, 1 - std::abs(x - static_cast<double>(k)));
      sum += weight * data.data[static_cast<size_t>((channel * rows + i) * columns + k)];
    }
  return sum;
}

std::vector<Values> plain_deformable(const Values& data, const Values& offset, const Values* mask, const Values& weight,
                                     const Values& bias) {
  const int64_t filters = weight.shape[0], channels = weight.shape[1], rows = offset.shape[2],
                columns = offset.shape[3];
  const auto at = [](const Values& values, int64_t index) { return values.data[static_cast<size_t>(index)]; };
  Values out{{1, filters, rows, columns}, {}};
  for (int64_t filter = 0; filter < filters; ++filter)
    for (int64_t position = 0; position < rows * columns; ++position) {
      double sum = at(bias, filter);
      for (int64_t channel = 0; channel < channels; ++channel)
        for (int64_t tap = 0; tap < 4; ++tap) {
          const double down = at(offset, 2 * tap * rows * columns + position);
          const double right = at(offset, (2 * tap + 1) * rows * columns + position);
          const double y = static_cast<double>(position / columns + tap / 2) + down;
          const double x = static_cast<double>(position % columns + tap % 2) + right;
          const double factor = mask ? at(*mask, tap * rows * columns + position) : 1;
          sum += factor * read_between(data, channel, y, x, mask == nullptr) *
                 at(weight, (filter * channels + channel) * 4 + tap);
        }
      out.data.push_back(sum);
    }
  return {out};
}

void add_deformable(std::vector<OpCase>& cases) {
  const OpInput data{"data", {1, 2, 4, 3}}, weight{"weight", {2, 2, 2, 2}}, bias{"bias", {2}};
  const Attributes square{{"kernel", "(2, 2)"}, {"num_filter", "2"}};
  cases.push_back({.name = "DeformableConvolution_by_definition",
                   .op = "_contrib_DeformableConvolution",
                   .attributes = square,
                   .inputs = {data, {"offset", {1, 8, 3, 2}, 0.1, 0.9}, weight, bias},
                   .reference = [](Inputs_ in) { return plain_deformable(in[0], in[1], nullptr, in[2], in[3]); },
                   .slack = 8});
  for (const auto& [name, low, high] : {std::tuple{"inside", 0.1, 0.9}, {"outside", -0.9, -0.1}, {"far", 3.1, 4.9}})
    cases.push_back({.name = std::string("ModulatedDeformableConvolution_") + name,
                     .op = "_contrib_ModulatedDeformableConvolution",
                     .attributes = square,
                     .inputs = {data, {"offset", {1, 8, 3, 2}, low, high}, {"mask", {1, 4, 3, 2}, 0, 1}, weight, bias},
                     .reference = [](Inputs_ in) { return plain_deformable(in[0], in[1], &in[2], in[3], in[4]); },
                     .slack = 8});
  const Attributes wide{{"kernel", "(3, 2)"},          {"num_filter", "4"},  {"num_group", "2"},   {"pad", "(1, 2)"},
                        {"num_deformable_group", "2"}, {"stride", "(2, 1)"}, {"dilate", "(1, 2)"}, {"no_bias", "True"}};
  const OpInput grouped{"weight", {4, 2, 3, 2}};
  cases.push_back({.name = "DeformableConvolution_with_groups",
                   .op = "_contrib_DeformableConvolution",
                   .attributes = wide,
                   .inputs = {{"data", {2, 4, 5, 4}}, {"offset", {2, 24, 3, 6}, 0.1, 0.9}, grouped},
                   .more_shapes = {{{0, 4, 5, 4}, {0, 24, 3, 6}, {4, 2, 3, 2}}},
                   .slack = 8});
  cases.push_back({.name = "ModulatedDeformableConvolution_with_groups",
                   .op = "_contrib_ModulatedDeformableConvolution",
                   .attributes = wide,
                   .inputs = {{"data", {2, 4, 5, 4}},
                              {"offset", {2, 24, 3, 6}, -0.9, -0.1},
                              {"mask", {2, 12, 3, 6}, 0, 1},
                              grouped},
                   .more_shapes = {{{0, 4, 5, 4}, {0, 24, 3, 6}, {0, 12, 3, 6}, {4, 2, 3, 2}}},
                   .slack = 8});
}

// ---- Boxes ----------------------------------------------------------------------------------------------------------

std::vector<Values> plain_overlaps(Inputs_ in) {
  Values out{{in[0].shape[0], in[1].shape[0]}, {}};
  const auto area = [](const double* box) { return std::max(0.0, box[2] - box[0]) * std::max(0.0, box[3] - box[1]); };
  for (size_t i = 0; i < in[0].data.size(); i += 4)
    for (size_t k = 0; k < in[1].data.size(); k += 4) {
      const double *const a = &in[0].data[i], *const b = &in[1].data[k];
      const double both[] = {std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]), std::min(a[3], b[3])};
      const double all = area(a) + area(b) - area(both);
      out.data.push_back(all > 0 ? area(both) / all : 0);
    }
  return {out};
}

void add_boxes(std::vector<OpCase>& cases) {
  cases.push_back({.name = "box_iou",
                   .op = "_contrib_box_iou",
                   .inputs = {{"lhs", {7, 4}, 0, 1}, {"rhs", {5, 4}, 0, 1}},
                   .reference = plain_overlaps,
                   .differentiable = false,
                   .more_shapes = {{{0, 4}, {3, 4}}, {{40, 4}, {33, 4}}},
                   .slack = 4});
  cases.push_back({.name = "box_nms",
                   .op = "_contrib_box_nms",
                   .attributes = {{"overlap_thresh", "0.1234"}, {"id_index", "-1"}, {"topk", "6"}},
                   .inputs = {{"data", {2, 9, 6}, -1, 1}},
                   .more_shapes = {{{3, 0, 6}}, {{1, 600, 7}}}});
  cases.push_back({.name = "box_nms_of_nothing",
                   .op = "_contrib_box_nms",
                   .attributes = {{"topk", "0"}},
                   .inputs = {{"data", {2, 3, 6}}},
                   .reference = [](Inputs_ in) { return std::vector{in[0]}; }});
  cases.push_back({.name = "bipartite_matching",
                   .op = "_contrib_bipartite_matching",
                   .attributes = {{"threshold", "-0.5"}, {"topk", "3"}},
                   .inputs = {{"data", {2, 5, 4}}},
                   .differentiable = false,
                   .more_shapes = {{{5, 0}}, {{0, 4, 3}}, {{1, 40, 70}}}});
  cases.push_back({.name = "box_encode",
                   .op = "_contrib_box_encode",
                   .inputs = {{"samples", {2, 3}, -1, 1},
                              {"matches", {2, 3}, 0, 3.75},
                              {"anchors", {2, 3, 4}, 0, 1},
                              {"refs", {2, 4, 4}, 0, 1},
                              {"means", {4}},
                              {"stds", {4}, 0.5, 1}},
                   .differentiable = false,
                   .more_shapes = {{{2, 0}, {2, 0}, {2, 0, 4}, {2, 3, 4}, {4}, {4}},
                                   {{1, 3}, {1, 3}, {1, 3, 4}, {1, 0, 4}, {4}, {4}}},
                   .slack = 8});
  cases.push_back({.name = "box_decode",
                   .op = "_contrib_box_decode",
                   .attributes = {{"std2", "0.5"}, {"clip", "0.25"}},
                   .inputs = {{"data", {2, 3, 4}}, {"anchors", {1, 3, 4}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (size_t i = 0; i < out.data.size(); i += 4) {
                           const double *const code = &in[0].data[i], *const anchor =
                                                                          &in[1].data[i % in[1].data.size()];
                           const double x = code[0] * anchor[2] + anchor[0], y = code[1] * anchor[3] + anchor[1];
                           const double across = std::exp(std::min(code[2] / 2, 0.25)) * anchor[2] / 2;
                           const double down = std::exp(std::min(code[3], 0.25)) * anchor[3] / 2;
                           const double box[] = {x - across, y - down, x + across, y + down};
                           std::copy(box, box + 4, &out.data[i]);
                         }
                         return std::vector{out};
                       },
                   .differentiable = false,
                   .more_shapes = {{{0, 3, 4}, {1, 3, 4}}},
                   .slack = 4});
}

// ---- Single-shot detection ------------------------------------------------------------------------------------------

void add_multi_box(std::vector<OpCase>& cases) {
  cases.push_back({.name = "MultiBoxPrior",
                   .op = "_contrib_MultiBoxPrior",
                   .attributes = {{"sizes", "(0.5, 0.25)"}, {"ratios", "(1, 4)"}},
                   .inputs = {{"data", {2, 3, 2, 4}}},
                   .reference =
                       [](Inputs_ in) {
                         const int64_t rows = in[0].shape[2], columns = in[0].shape[3];
                         const double square = static_cast<double>(rows) / static_cast<double>(columns);
                         const double sizes[][2] = {{0.5, 0.5}, {0.25, 0.25}, {1, 0.25}};  // across and down
                         Values out{{1, rows * columns * 3, 4}, {}};
                         for (int64_t i = 0; i < rows; ++i)
                           for (int64_t k = 0; k < columns; ++k)
                             for (const auto& size : sizes) {
                               const double x = (static_cast<double>(k) + 0.5) / static_cast<double>(columns);
                               const double y = (static_cast<double>(i) + 0.5) / static_cast<double>(rows);
                               const double across = size[0] * square / 2, down = size[1] / 2;
                               for (const double value : {x - across, y - down, x + across, y + down})
                                 out.data.push_back(value);
                             }
                         return std::vector{out};
                       },
                   .differentiable = false,
                   .more_shapes = {{{0, 0, 3, 1}}, {{1, 1, 9, 40}}},
                   .slack = 2});
  for (const char* ratio : {"-1", "2"})
    cases.push_back(
        {.name = std::string("MultiBoxTarget") + (ratio[0] == '-' ? "" : "_with_mining"),
         .op = "_contrib_MultiBoxTarget",
         .attributes = {{"negative_mining_ratio", ratio}, {"overlap_threshold", "0.1234"}},
         .inputs = {{"anchor", {1, 20, 4}, 0, 1}, {"label", {3, 4, 5}, 0, 1}, {"cls_pred", {3, 3, 20}, -2, 2}},
         .differentiable = false,
         .more_shapes = {{{1, 7, 4}, {2, 0, 6}, {2, 1, 7}}, {{1, 0, 4}, {2, 2, 5}, {2, 2, 0}}},
         .slack = 16});
  cases.push_back({.name = "MultiBoxDetection",
                   .op = "_contrib_MultiBoxDetection",
                   .attributes = {{"nms_threshold", "0.1234"}, {"threshold", "0.3"}, {"nms_topk", "15"}},
                   .inputs = {{"cls_prob", {2, 3, 20}, 0, 1}, {"loc_pred", {2, 80}}, {"anchor", {1, 20, 4}, 0, 1}},
                   .differentiable = false,
                   .more_shapes = {{{1, 2, 1500}, {1, 6000}, {1, 1500, 4}}, {{2, 3, 0}, {2, 0}, {1, 0, 4}}},
                   .slack = 4});
}

}  // namespace

void add_detection_cases(std::vector<OpCase>& cases) {
  add_proposals(cases);
  add_position_sensitive(cases);
  add_aligned(cases);
  add_mask_targets(cases);
  add_rotated(cases);
  add_deformable(cases);
  add_boxes(cases);
  add_multi_box(cases);
}

}  // namespace symbind::testing
