// The fields that Convolution and the operators made from it share, for their definitions.
#pragma once

#include "symbind/graph/define.h"
#include "symbind/ops/conv.h"

namespace symbind {

template <class P>
Op<P>& with_convolution_fields(Op<P>& op) {
  return op
      .param(&Convolution::kernel, "kernel", "extent of the window along the spatial axes: (w), (h, w) or (d, h, w)",
             each_at_least(1))
      .param(&Convolution::stride, "stride", "step of the window along each spatial axis; (): 1", each_at_least(1))
      .param(&Convolution::dilate, "dilate",
             "distance between neighbouring elements of the kernel along each spatial axis; (): 1", each_at_least(1))
      .param(&Convolution::pad, "pad", "number of zeros added on each side of each spatial axis; (): 0",
             each_at_least(0))
      .param(&Convolution::num_filter, "num_filter", "number of output channels", at_least(1))
      .param(&Convolution::num_group, "num_group",
             "number of groups that the channels are split into; each group is computed separately", at_least(1))
      .param(&Convolution::workspace, "workspace",
             "on a GPU, the scratch memory cuDNN may use, in megabytes; ignored on a CPU")
      .param(&Convolution::no_bias, "no_bias", "compute without the bias input")
      .param(&Convolution::cudnn_tune, "cudnn_tune",
             "on a GPU, how the cuDNN algorithm is chosen: 'off': cuDNN's heuristic; 'limited_workspace': the fastest "
             "measured within 256 MB of scratch memory; 'fastest': the fastest measured within workspace; None: as "
             "MXNET_CUDNN_AUTOTUNE_DEFAULT selects (0, 1 or 2), else 'limited_workspace'. Ignored on a CPU",
             one_of({"fastest", "limited_workspace", "off"}))
      .param(&Convolution::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .param(&Convolution::layout, "layout",
             "order of the axes of data and output, such as 'NCHW' or 'NHWC'; None: channels second",
             one_of(data_layout::all))
      .check([](P& p) { complete(p); });
}

}  // namespace symbind
