#include "symbind/ops/pool_v1.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/pad.h"
#include "symbind/ops/slice.h"

namespace symbind {
namespace {

// The same windows as a Pooling; a mean is a sum that is divided afterwards.
Pooling as_pooling(const PoolingV1& p, bool padded_already) {
  Pooling params;
  params.kernel = p.kernel;
  params.pool_type = p.pool_type == "avg" ? "sum" : p.pool_type;
  params.global_pool = p.global_pool;
  params.pooling_convention = p.pooling_convention;
  params.stride = p.stride;
  params.pad = padded_already ? Tuple(p.pad.size(), 0) : p.pad;
  return params;
}

std::shared_ptr<const void> checked(const Pooling& params) { return op_of<Pooling>().checked_params(&params, ""); }

// Padding is zeros, which count in a maximum too.
bool pads(const PoolingV1& p) {
  return !p.global_pool && std::ranges::any_of(p.pad, [](int64_t each) { return each > 0; });
}
Symbol padded(const PoolingV1& p, const Symbol& data) {
  if (!pads(p)) return data;
  Tuple widths{0, 0, 0, 0};
  for (const int64_t each : p.pad) widths.insert(widths.end(), {each, each});
  return pad(data, {.mode = pad_mode::constant, .pad_width = widths});
}

// What a result is divided by.
double divisor(const PoolingV1& p, const Shape& data) {
  if (p.pool_type != "avg") return 1;
  if (p.global_pool) return static_cast<double>(data.size(2, data.rank()));
  double area = 1;
  for (const int64_t extent : p.kernel) area *= static_cast<double>(extent);
  return area;
}

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&PoolingV1::kernel, "kernel", "extent of the window along the spatial axes: (h, w) or (d, h, w)",
             each_at_least(1))
      .param(&PoolingV1::pool_type, "pool_type", "the reduction of each window: 'max', 'avg' (mean) or 'sum'",
             one_of({"avg", "max", "sum"}))
      .param(&PoolingV1::global_pool, "global_pool",
             "reduce each channel to one element with a window over the whole input")
      .param(&PoolingV1::pooling_convention, "pooling_convention",
             "how the output extent is rounded: 'valid': down; 'full': up", one_of({"full", "valid"}))
      .param(&PoolingV1::stride, "stride", "step of the window along each spatial axis; (): 1", each_at_least(1))
      .param(&PoolingV1::pad, "pad", "number of zeros on each side of each spatial axis; (): 0", each_at_least(0))
      .check([](P& p) {
        require(p.global_pool || p.pad.empty() || p.pad.size() == p.kernel.size(),
                "pad must have as many numbers as kernel: pad ", print(p.pad), ", kernel ", print(p.kernel));
        for (const int64_t each : p.pad)
          require(each <= largest_window, "pad must be at most ", largest_window, ": ", each);
        const Pooling params = as_pooling(p, true);  // padding may be wider than the kernel, unlike that of Pooling
        const auto complete = checked(params);
        p.stride = static_cast<const Pooling*>(complete.get())->stride;
        if (p.pad.empty()) p.pad = static_cast<const Pooling*>(complete.get())->pad;
      })
      .infer_type([](const P&, Types& t) { same_floating_type(t); });
}

OpDef define(Op<PoolingV1> op) {
  return with_fields(op)
      .doc(
          "Pooling of MXNet's first versions: reduces a sliding window over the spatial axes of data (n, channels, "
          "spatial…) to its maximum, mean or sum. Padding is zeros, which count in a maximum, and a mean always "
          "divides by the whole window.")
      .infer_shape([](const PoolingV1& p, Shapes& s) {
        require(!s["data"].rank_known() || s["data"].rank() == 4 || s["data"].rank() == 5, s.where(),
                " data must have 4 or 5 axes: data ", s["data"].get());
        const Pooling params = as_pooling(p, false);
        op_of<Pooling>().infer_shape(&params, s);
      })
      .gradient([](const PoolingV1& p, Grad& g) {
        g.set("data", pooling_v1_grad(g.out_grad(), g.input("data"), g.output(), {p}));
      });
}

OpDef define(Op<PoolingV1Grad> op) {
  return with_fields(op)
      .inputs({"out_grad", "data", "output"})
      .outputs({"data_grad"})
      .infer_shape([](const PoolingV1Grad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<PoolingV1>();
}

}  // namespace

Symbol network_of(const PoolingV1& p, const ComposedInputs& in) {
  const Symbol pooled = pooling(padded(p, in[0]), as_pooling(p, true));
  const double by = divisor(p, in.shapes[0]);
  return by == 1 ? pooled : pooled / by;
}

Symbol network_of(const PoolingV1Grad& p, const ComposedInputs& in) {
  const PoolingGrad params{as_pooling(p, true)};
  const Symbol data = padded(p, in[1]);
  const double by = divisor(p, in.shapes[1]);
  const Symbol dy = by == 1 ? in[0] : in[0] / by;
  Symbol dx = p.pool_type == "max" ? pooling_grad(dy, data, in[2], params) : pooling_grad(dy, data, params);
  if (!pads(p)) return dx;
  OptionalTuple begin(2), end(2);
  for (size_t i = 0; i < p.pad.size(); ++i) {
    begin.emplace_back(p.pad[i]);
    end.emplace_back(p.pad[i] + in.shapes[1][static_cast<int>(i) + 2]);
  }
  return slice(dx, {.begin = begin, .end = end});
}

void register_pool_v1(OpRegistry& registry) {
  add<PoolingV1>(registry, "Pooling_v1", define);
  add_internal<PoolingV1Grad>(registry, "_backward_Pooling_v1", define);
}

}  // namespace symbind
