// The detection operators on a GPU against the CPU, at sizes where blocks, tiles and sorts have more than one part.
// Skipped where there is no GPU. Small sizes, and what MXNet answers, are compared by tests/ops and tests/oracle.
//
// Where boxes are compared, they come from sums and products alone: exponentials differ in the last digit, and one box
// more or less would be another result.
#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

struct Input {
  Shape shape;
  double low = -1, high = 1;
  DType dtype = DType::none;  // none: the type under test
};

struct Case {
  std::string op;
  Attributes attributes;
  std::vector<Input> inputs;
  double slack = 4;
};

std::vector<NDArray> run(const Case& tried, const std::vector<NDArray>& arrays, Context context) {
  const OpDef& op = OpRegistry::get().find(tried.op);
  std::vector<NDArray> inputs, outputs;
  for (const NDArray& array : arrays) inputs.push_back(array.as_copy_in(context));
  for (const NDArray& output :
       invoke(op, inputs, op.parse_params(tried.attributes, "node").get(), {.context = context}))
    outputs.push_back(output.as_copy_in(cpu()));
  return outputs;
}

void compare(const Case& tried) {
  EXPECT_TRUE(runs_on_device(OpRegistry::get().find(tried.op), gpu(0))) << tried.op;
  for (const DType dtype : float_types) {
    SCOPED_TRACE(join(tried.op, " in ", dtype));
    std::vector<NDArray> arrays;
    for (size_t i = 0; i < tried.inputs.size(); ++i) {
      const Input& input = tried.inputs[i];
      arrays.push_back(
          random_array(input.shape, 7 + i, input.low, input.high, input.dtype == DType::none ? dtype : input.dtype));
    }
    const auto expected = run(tried, arrays, cpu()), actual = run(tried, arrays, gpu(0)),
               again = run(tried, arrays, gpu(0));
    ASSERT_EQ(actual.size(), expected.size());
    Tolerance tolerance = tolerance_of(dtype);
    tolerance = {tolerance.relative * tried.slack, tolerance.absolute * tried.slack,
                 tolerance.of_largest * tried.slack};
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(all_close(actual[i], expected[i], tolerance)) << "output " << i;
      EXPECT_TRUE(same_bits(actual[i], again[i])) << "output " << i << " of a second run";
    }
  }
}

void compare(const std::vector<Case>& cases) {
  for (const Case& each : cases) EXPECT_NO_THROW(compare(each)) << each.op;
}

using CudaDetection = GpuTest;

TEST_F(CudaDetection, ProposalsAgreeWithTheCpu) {
  const Attributes attributes{{"scales", "(2, 4)"},          {"feature_stride", "4"}, {"rpn_min_size", "0"},
                              {"rpn_post_nms_top_n", "400"}, {"threshold", "0.7123"}, {"rpn_pre_nms_top_n", "1500"},
                              {"iou_loss", "True"}};
  const auto inputs = [](int64_t images) {
    return std::vector<Input>{{{images, 12, 20, 25}, 0, 1}, {{images, 24, 20, 25}, -4, 4}, {{images, 3}, 60, 100}};
  };
  compare({{"_contrib_Proposal", attributes, inputs(1)}, {"_contrib_MultiProposal", attributes, inputs(3)}});
}

TEST_F(CudaDetection, PooledRegionsAgreeWithTheCpu) {
  const Attributes pool{{"spatial_scale", "0.5"}, {"output_dim", "5"}, {"pooled_size", "4"}, {"group_size", "3"}};
  const Attributes deformable{{"spatial_scale", "0.5"}, {"output_dim", "6"}, {"pooled_size", "4"}, {"group_size", "3"},
                              {"sample_per_part", "3"}, {"part_size", "2"},  {"trans_std", "0.2"}};
  // Image 1 of a few; corners near each other.
  const Input rois{{60, 5}, 1, 1.9}, spread{{60, 5}, 0, 2.9};
  const Input trans{{60, 6, 2, 2}, -1, 1};
  compare({{"_contrib_PSROIPooling", pool, {{{3, 45, 11, 13}}, spread}},
           {"_backward_PSROIPooling", pool, {{{60, 5, 4, 4}}, spread, {{3, 45, 11, 13}}}, 16},
           {"_contrib_DeformablePSROIPooling", deformable, {{{3, 54, 11, 13}}, rois, trans}, 16},
           {"_backward_DeformablePSROIPooling", deformable, {{{60, 6, 4, 4}}, {{3, 54, 11, 13}}, rois, trans}, 64}});
}

TEST_F(CudaDetection, AlignedRegionsAgreeWithTheCpu) {
  const Attributes plain{{"pooled_size", "(5, 3)"}, {"spatial_scale", "1"}};
  const Attributes sensitive{
      {"pooled_size", "(2, 3)"}, {"spatial_scale", "0.7"}, {"position_sensitive", "1"}, {"sample_ratio", "2"}};
  const Input rois{{70, 5}, 0, 2.9}, data{{3, 21, 9, 8}}, split{{3, 18, 9, 8}};
  compare({{"_contrib_ROIAlign", plain, {data, rois}, 16},
           {"_backward_ROIAlign", plain, {{{70, 21, 5, 3}}, rois, data}, 64},
           {"_contrib_ROIAlign", sensitive, {split, rois}, 16},
           {"_backward_ROIAlign", sensitive, {{{70, 3, 2, 3}}, rois, split}, 64},
           {"_contrib_RROIAlign", plain, {data, {{70, 6}, 0, 2.9}}, 16}});
}

TEST_F(CudaDetection, DeformableConvolutionsAgreeWithTheCpu) {
  const Attributes attributes{{"kernel", "(3, 3)"},          {"pad", "(1, 1)"},
                              {"num_filter", "10"},          {"num_group", "2"},
                              {"num_deformable_group", "3"}, {"stride", "(1, 2)"}};
  const Input data{{3, 12, 17, 20}}, offset{{3, 54, 17, 10}, -3, 3}, mask{{3, 27, 17, 10}, 0, 1};
  const Input weight{{10, 6, 3, 3}}, bias{{10}}, dy{{3, 10, 17, 10}};
  const std::string plain = "_contrib_DeformableConvolution", modulated = "_contrib_ModulatedDeformableConvolution";
  compare({{plain, attributes, {data, offset, weight, bias}, 32},
           {"_backward_DeformableConvolution_data", attributes, {dy, data, offset, weight}, 64},
           {"_backward_DeformableConvolution_weight", attributes, {dy, data, offset, weight}, 64},
           {modulated, attributes, {data, offset, mask, weight, bias}, 32},
           {"_backward_ModulatedDeformableConvolution_data", attributes, {dy, data, offset, mask, weight}, 64},
           {"_backward_ModulatedDeformableConvolution_weight", attributes, {dy, data, offset, mask, weight}, 64}});
}

TEST_F(CudaDetection, AnchorsAndDetectionsAgreeWithTheCpu) {
  const Input anchor{{1, 3000, 4}, 0, 1};
  const Attributes mining{{"negative_mining_ratio", "3"}, {"overlap_threshold", "0.3123"}};
  const Attributes detection{{"nms_threshold", "0.4123"}, {"threshold", "0.2"}};
  compare({{"_contrib_MultiBoxPrior", {{"sizes", "(0.2, 0.3)"}, {"ratios", "(1, 2, 0.5)"}}, {{{1, 1, 40, 33}}}},
           {"_contrib_MultiBoxTarget", {}, {anchor, {{3, 7, 5}, 0, 1}, {{3, 4, 3000}}}, 64},
           {"_contrib_MultiBoxTarget", mining, {anchor, {{3, 7, 6}, 0, 1}, {{3, 2, 3000}}}, 64},
           {"_contrib_MultiBoxDetection", detection, {{{3, 4, 3000}, 0, 1}, {{3, 12000}, 0, 0}, anchor}}});
}

TEST_F(CudaDetection, BoxesAgreeWithTheCpu) {
  const Attributes nms{{"overlap_thresh", "0.4123"}, {"id_index", "0"}, {"force_suppress", "True"}, {"topk", "2000"}};
  const Attributes center{{"overlap_thresh", "0.4123"}, {"in_format", "center"}, {"out_format", "corner"}};
  compare({{"_contrib_box_nms", nms, {{{2, 3000, 7}, -0.25, 1}}},
           {"_contrib_box_nms", center, {{{4, 700, 6}, -0.25, 1}}},
           {"_contrib_box_nms", {{"topk", "0"}}, {{{4, 70, 6}}}},
           {"_backward_contrib_box_nms", {}, {{{9, 1, 6}}, {{9, 1}, 0, 0, DType::int32}, {{9, 1, 6}}}},
           {"_contrib_box_iou", {}, {{{300, 4}, 0, 1}, {{2, 100, 4}, 0, 1}}},
           {"_contrib_bipartite_matching", {{"threshold", "-0.5"}}, {{{3, 60, 70}}}},
           {"_contrib_bipartite_matching", {{"threshold", "0.5"}, {"is_ascend", "1"}, {"topk", "9"}}, {{{300, 20}}}},
           {"_contrib_box_encode",
            {},
            {{{2, 700}}, {{2, 700}, 0, 50}, {{2, 700, 4}, 0, 1}, {{2, 40, 4}, 0, 1}, {{4}}, {{4}, 0.5, 1}},
            16},
           {"_contrib_box_decode", {{"clip", "0.5"}}, {{{2, 700, 4}}, {{1, 700, 4}}}}});
}

}  // namespace
}  // namespace symbind::testing
