// The fields that Convolution and the operators made from it share, for their definitions.
#pragma once

#include "symbind/graph/define.h"
#include "symbind/ops/conv.h"

namespace symbind {

template <class P>
Op<P>& with_convolution_fields(Op<P>& op) {
  return op.param(&Convolution::kernel, "kernel", "extent of the window: (w), (h, w) or (d, h, w)", each_at_least(1))
      .param(&Convolution::stride, "stride", "step of the window; ones when left out", each_at_least(1))
      .param(&Convolution::dilate, "dilate", "distance between the kernel's elements; ones when left out",
             each_at_least(1))
      .param(&Convolution::pad, "pad", "zeros put on each side; none when left out", each_at_least(0))
      .param(&Convolution::num_filter, "num_filter", "number of output channels", at_least(1))
      .param(&Convolution::num_group, "num_group", "number of groups the channels are split into", at_least(1))
      .param(&Convolution::workspace, "workspace", "on a GPU: megabytes of memory cuDNN may work in", at_least(0))
      .param(&Convolution::no_bias, "no_bias", "leave the bias out")
      .param(&Convolution::cudnn_tune, "cudnn_tune",
             "on a GPU: take cuDNN's own first choice (off), or time what it has within 256 MB (limited_workspace) or "
             "within workspace (fastest); None: as MXNET_CUDNN_AUTOTUNE_DEFAULT says (0, 1, 2), or limited_workspace",
             one_of({"fastest", "limited_workspace", "off"}))
      .param(&Convolution::cudnn_off, "cudnn_off", "accepted and ignored")
      .param(&Convolution::layout, "layout", "order of the axes of data and output; None: channels second",
             one_of(data_layout::all))
      .check([](P& p) { complete(p); });
}

}  // namespace symbind
