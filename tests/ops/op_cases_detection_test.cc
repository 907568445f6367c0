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

}  // namespace

void add_detection_cases(std::vector<OpCase>& cases) {
  add_proposals(cases);
}

}  // namespace symbind::testing
