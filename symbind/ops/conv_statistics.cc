#include "symbind/ops/conv_statistics.h"

#include "symbind/ops/cast.h"
#include "symbind/ops/conv_fields.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/reduce.h"

namespace symbind {
namespace {

DType type_of_sums(DType data) { return data == DType::float16 || data == DType::bfloat16 ? DType::float32 : data; }

OpDef define(Op<ConvolutionStatistics> op) {
  return with_convolution_fields(op)
      .doc("A convolution that also returns the sums of each channel's elements and of their squares.")
      .inputs([](const ConvolutionStatistics& p) {
        return p.no_bias ? Names{"data", "weight"} : Names{"data", "weight", "bias"};
      })
      .outputs({"output", "channel_sum", "channel_square_sum"})
      .infer_shape([](const ConvolutionStatistics& p, Shapes& s) {
        infer_convolution(p, s);
        for (const size_t index : {1, 2}) s.output(index).meet({p.num_filter});
      })
      .infer_type([](const ConvolutionStatistics& p, Types& t) {
        t["data"].meet(t.output(0));
        t.output(0).meet(t["data"]);
        if (!t["data"].known()) return;
        require_floating(t, "data", t["data"]);
        t["weight"].meet(t["data"]);
        if (!p.no_bias) t["bias"].meet(t["data"]);
        for (const size_t index : {1, 2}) t.output(index).meet(type_of_sums(t["data"]));
      });
}

}  // namespace

Symbol network_of(const ConvolutionStatistics& p, const ComposedInputs& in) {
  const Symbol output = p.no_bias ? convolution({in[0], in[1]}, p) : convolution({in[0], in[1], in[2]}, p);
  const Symbol values = cast(output, {.dtype = in.output_types[1]});
  const int rank = in.shapes[0].rank();
  const Sum over_channels{.axis = Tuple{is_channels_last(p.layout) ? rank - 1 : 1}, .exclude = true};
  return Symbol::group({output, sum(values, over_channels), sum(square(values), over_channels)});
}

void register_conv_statistics(OpRegistry& registry) { add_internal(registry, "_Convolution_Statistics", define); }

}  // namespace symbind
