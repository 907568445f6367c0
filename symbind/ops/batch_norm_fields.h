// The fields and arrays that BatchNorm and the operators made from it share, for their definitions.
#pragma once

#include "symbind/graph/define.h"
#include "symbind/ops/batch_norm.h"

namespace symbind {

template <class P>
Op<P>& with_batch_norm_fields(Op<P>& op) {
  const auto not_nan = [](auto) { return Rule<double>{[](double eps) { return eps == eps; }, "must not be NaN"}; };
  return op.param(&BatchNorm::eps, "eps", "small constant added to the variance before the root", not_nan)
      .param(&BatchNorm::momentum, "momentum",
             "fraction of the old value kept when a moving statistic is updated, in [0, 1]")
      .param(&BatchNorm::fix_gamma, "fix_gamma", "treat gamma as 1, and set its gradient to 0")
      .param(&BatchNorm::use_global_stats, "use_global_stats", "normalize by the moving statistics in training as well")
      .param(&BatchNorm::output_mean_var, "output_mean_var",
             "return the mean and the reciprocal of the standard deviation as further outputs")
      .param(&BatchNorm::axis, "axis", "axis of the channels; negative ones count from the end")
      .param(&BatchNorm::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .param(&BatchNorm::min_calib_range, "min_calib_range",
             "for quantized networks: accepted for compatibility and ignored")
      .param(&BatchNorm::max_calib_range, "max_calib_range",
             "for quantized networks: accepted for compatibility and ignored");
}

// Their moving statistics, outputs, and inputs of full precision. The inputs are set before.
template <class P>
Op<P>& with_batch_norm_results(Op<P>& op) {
  return op.aux({"moving_mean", "moving_var"})
      .initialize("moving_mean", R"(["zero", {}])")
      .initialize("moving_var", R"(["one", {}])")
      .full_precision_inputs({"gamma", "beta"})
      .outputs({"output", "mean", "var"})
      .visible_outputs([](const P& p) { return p.output_mean_var ? 3 : 1; });
}

}  // namespace symbind
