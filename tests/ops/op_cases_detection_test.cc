#include "tests/ops/op_cases_detection.h"

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

}  // namespace

void add_detection_cases(std::vector<OpCase>& cases) {
  add_proposals(cases);
  add_position_sensitive(cases);
}

}  // namespace symbind::testing
