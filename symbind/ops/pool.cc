#include "symbind/ops/pool.h"

#include "symbind/ops/conv.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/pool_fields.h"

namespace symbind {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t pooled(const Pooling& p, size_t i, int64_t extent) {
  const int64_t padded = extent + 2 * p.pad[i];
  if (p.pooling_convention == "same") return ceil_div(padded, p.stride[i]);
  const int64_t last_begin = padded - p.kernel[i];
  return 1 + (p.pooling_convention == "full" ? ceil_div(last_begin, p.stride[i]) : last_begin / p.stride[i]);
}

int first_spatial_axis(const Pooling& p) { return is_channels_last(p.layout) ? 1 : 2; }

// Only the gradients of max and p-norm pooling read the data.
bool grad_reads_data(const Pooling& p) { return p.pool_type == "max" || p.pool_type == "lp"; }

OpDef define_pooling(Op<Pooling> op) {
  return with_pooling_fields(op)
      .doc(
          "Reduces a sliding window over the spatial axes to its maximum, mean, sum or p-norm. data is (n, channels, "
          "spatial…); the output is (n, channels, out…) with out = (in + 2 · pad - kernel) / stride + 1, rounded by "
          "pooling_convention.")
      .memory_bound()
      .infer_shape([](const Pooling& p, Shapes& s) { infer_pooling(p, s); })
      .infer_type([](const Pooling&, Types& t) { same_floating_type(t); })
      // With oneDNN, MXNet stores the indices of the maxima in a second output, which files count.
      .outputs_in_files([](const Pooling& p) {
        return p.pool_type == "max" && !p.kernel.empty() && !is_channels_last(p.layout) ? 2 : 1;
      })
      .gradient([](const Pooling& p, Grad& g) {
        if (grad_reads_data(p))
          g.set("data", pooling_grad(g.out_grad(), g.input("data"), g.output(), {p}));
        else
          g.set("data", pooling_grad(g.out_grad(), g.input("data"), {p}));
      });
}

OpDef define_pooling_grad(Op<PoolingGrad> op) {
  return with_pooling_fields(op)
      .inputs([](const PoolingGrad& p) {
        return grad_reads_data(p) ? Names{"out_grad", "data", "output"} : Names{"out_grad", "like"};
      })
      .shape_only({"like"})
      .outputs({"data_grad"})
      .infer_shape([](const PoolingGrad&, Shapes& s) { s.output().meet(s.input(1)); })
      .shapes_of<Pooling>()
      .types_of<Pooling>();
}

}  // namespace

void complete(Pooling& p) {
  const size_t rank = p.kernel.size();
  for (const Tuple* tuple : {&p.kernel, &p.stride, &p.pad})
    for (int64_t number : *tuple)
      require(number <= largest_window, "kernel, stride and pad must be at most ", largest_window, ": ", number);
  if (p.pool_type == "lp") {
    require(p.p_value.has_value(), "pool_type lp needs p_value");
    require(*p.p_value >= 1 && *p.p_value <= 3, "p_value must be 1, 2 or 3: ", *p.p_value);
  }
  if (p.global_pool) return;
  require(rank >= 1 && rank <= 3, "kernel must have 1, 2 or 3 numbers (or global_pool=True): ", print(p.kernel));
  if (p.stride.empty()) p.stride.assign(rank, 1);
  require(p.stride.size() == rank, "stride must have as many numbers as kernel: stride ", print(p.stride), ", kernel ",
          print(p.kernel));
  if (p.pooling_convention == "same") {
    // Scripts written for MXNet give three zeros here, whatever the rank.
    for (int64_t pad : p.pad) require(pad == 0, "pooling_convention same takes no pad: ", print(p.pad));
    p.pad.assign(rank, 0);
    require(rank == 1, "pooling_convention same works along one spatial axis: kernel ", print(p.kernel));
  }
  if (p.pad.empty()) p.pad.assign(rank, 0);
  require(p.pad.size() == rank, "pad must have as many numbers as kernel: pad ", print(p.pad), ", kernel ",
          print(p.kernel));
  for (size_t i = 0; i < rank; ++i)
    require(p.pad[i] < p.kernel[i], "pad must be smaller than kernel: pad ", print(p.pad), ", kernel ",
            print(p.kernel));
  require(!p.layout || p.layout->size() == rank + 2, "layout must fit the kernel: layout ", p.layout.value_or(""),
          ", kernel ", print(p.kernel));
}

void infer_pooling(const Pooling& p, Shapes& s) {
  auto data = s["data"], output = s.output();
  if (!data.rank_known()) return;
  const int spatial = data.rank() - 2;
  require(spatial >= 1 && spatial <= 3, s.where(), " data must have 3, 4 or 5 axes: data ", data.get());
  require(!p.layout || static_cast<int>(p.layout->size()) == data.rank(), s.where(),
          " layout must name every axis of data: layout ", p.layout.value_or(""), ", data ", data.get());
  if (!p.global_pool)
    require(static_cast<int>(p.kernel.size()) == spatial, s.where(), " kernel must have ", spatial,
            " numbers for this data: kernel ", print(p.kernel), ", data ", data.get());
  Shape result = data;
  for (int i = 0; i < spatial; ++i) {
    const int axis = first_spatial_axis(p) + i;
    const auto k = static_cast<size_t>(i);
    if (p.global_pool) {
      result[axis] = 1;
    } else if (data[axis] != unknown_dim) {
      require(p.kernel[k] <= data[axis] + 2 * p.pad[k], s.where(), " kernel has ", p.kernel[k],
              " elements, padded data has ", data[axis] + 2 * p.pad[k], " along axis ", axis, ": kernel ",
              print(p.kernel), ", data ", data.get());
      result[axis] = pooled(p, k, data[axis]);
    }
  }
  output.meet(result);
  data.meet_dim(0, output[0]);
  const int channels = is_channels_last(p.layout) ? data.rank() - 1 : 1;
  data.meet_dim(channels, output[channels]);
}

PoolingSize size_of(const Pooling& params, const Shape& data, const Shape& output) {
  PoolingSize size{};
  size.channels_last = is_channels_last(params.layout);
  size.rank = data.rank() - 2;
  size.batch = data[0];
  size.channels = data[size.channels_last ? data.rank() - 1 : 1];
  size.count_padding = params.count_include_pad.value_or(true);
  size.in = size.out = size.kernel = size.stride = {1, 1, 1};
  const auto missing = static_cast<size_t>(3 - size.rank);
  for (size_t i = 0; i + missing < 3; ++i) {
    const int axis = first_spatial_axis(params) + static_cast<int>(i);
    size.in[missing + i] = data[axis];
    size.out[missing + i] = output[axis];
    size.kernel[missing + i] = params.global_pool ? data[axis] : params.kernel[i];
    if (params.global_pool) continue;
    size.stride[missing + i] = params.stride[i];
    size.pad[missing + i] = params.pad[i];
  }
  return size;
}

void register_pool(OpRegistry& registry) {
  add(registry, "Pooling", define_pooling);
  add_internal(registry, "_backward_Pooling", define_pooling_grad);
}

}  // namespace symbind
