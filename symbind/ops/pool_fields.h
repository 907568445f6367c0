// The fields that Pooling and the operators made from it share, for their definitions.
#pragma once

#include "symbind/graph/define.h"
#include "symbind/ops/pool.h"

namespace symbind {

// Fills the tuples that were left out, and checks what concerns more than one field. Global pooling ignores kernel,
// stride and pad.
void complete(Pooling& params);
// The shapes of data and output from each other.
void infer_pooling(const Pooling& params, Shapes& shapes);

template <class P>
Op<P>& with_pooling_fields(Op<P>& op) {
  return op
      .param(&Pooling::kernel, "kernel", "extent of the window along the spatial axes: (w), (h, w) or (d, h, w)",
             each_at_least(1))
      .param(&Pooling::pool_type, "pool_type",
             "the reduction of each window: 'max', 'avg' (mean), 'sum' or 'lp' (p-norm, see p_value)",
             one_of(pool_type::all))
      .param(
          &Pooling::global_pool, "global_pool",
          "reduce each channel to one element with a window over the whole input; kernel, stride and pad are ignored")
      .param(&Pooling::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .param(&Pooling::pooling_convention, "pooling_convention",
             "how the output extent is rounded: 'valid': down, windows fit into the padded input; 'full': up, the last "
             "window may extend beyond it; 'same': ceil(extent / stride), for one spatial axis and without pad",
             one_of(pooling_convention::all))
      .param(&Pooling::stride, "stride", "step of the window along each spatial axis; (): 1", each_at_least(1))
      .param(&Pooling::pad, "pad", "padding on each side of each spatial axis, less than kernel; (): 0",
             each_at_least(0))
      .param(&Pooling::p_value, "p_value", "the p of 'lp' pooling: 1, 2 or 3")
      .param(&Pooling::count_include_pad, "count_include_pad",
             "whether a mean divides by the whole window, padding included; None: True")
      .param(&Pooling::layout, "layout", "order of the axes, such as 'NCHW' or 'NHWC'; None: channels second",
             one_of(data_layout::all))
      .check([](P& p) { complete(p); });
}

}  // namespace symbind
