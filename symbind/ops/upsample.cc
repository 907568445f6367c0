#include "symbind/ops/upsample.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

bool is_bilinear(const UpSampling& p) { return p.sample_type == "bilinear"; }

template <class P>
Op<P>& fields(Op<P>& op) {
  return op
      .param(&UpSampling::scale, "scale", "factor by which the rows and columns of the first input grow",
             between(1, 1 << 20))
      .param(&UpSampling::num_filter, "num_filter", "number of channels of data; required for 'bilinear'")
      .param(&UpSampling::sample_type, "sample_type",
             "the interpolation: 'nearest': each element is repeated; 'bilinear': a transposed convolution with the "
             "input weight, one kernel per channel",
             one_of(sample_type::all))
      .param(&UpSampling::multi_input_mode, "multi_input_mode",
             "how several inputs are combined with 'nearest': 'concat': concatenated along the channels; 'sum': added",
             one_of(multi_input_mode::all))
      .param(&UpSampling::num_args, "num_args",
             "number of inputs; with 'nearest' all grow to the size of the enlarged first one, with 'bilinear' they "
             "are data and weight",
             between(1, 1000))
      .param(&UpSampling::workspace, "workspace", "accepted for compatibility and ignored")
      .check([](P& p) {
        require(!is_bilinear(p) || p.num_args <= 2, "sample_type bilinear takes data and weight, not ", p.num_args,
                " inputs");
        require(!is_bilinear(p) || p.num_filter > 0, "sample_type bilinear needs num_filter, the number of channels");
      });
}

// Rows and columns of the result; every input's must divide them.
void check_input(const Shape& shape, const Shape& result, const std::string& where) {
  for (int axis = 2; axis < 4; ++axis)
    require(shape[axis] > 0 && result[axis] % shape[axis] == 0, where,
            " the extents of every input must divide those of the result: input ", shape, ", result ", result);
}

void infer_nearest(const UpSampling& p, Shapes& s) {
  for (size_t i = 0; i < s.inputs(); ++i) {
    s.input(i).meet(Shape::of_rank(4));
    if (!s.input(i).known()) return;
  }
  Shape result = s.input(0);
  for (int axis = 2; axis < 4; ++axis) result[axis] = extent_product(result[axis], p.scale, s.where());
  for (size_t i = 0; i < s.inputs(); ++i) {
    const Shape& shape = s.input(i);
    check_input(shape, result, s.where());
    require(shape[0] == result[0] && (p.multi_input_mode == "concat" || shape[1] == s.input(0)[1]), s.where(),
            " the inputs do not fit together: ", s.input(0).get(), " and ", shape);
    if (p.multi_input_mode == "concat" && i > 0) result[1] = extent_sum(result[1], shape[1], s.where());
  }
  s.output().meet(result);
}

void infer_bilinear(const UpSampling& p, Shapes& s) {
  const int64_t kernel = bilinear_deconvolution(p).kernel[0];
  s["weight"].meet({p.num_filter, 1, kernel, kernel});
  s["data"].meet({unknown_dim, p.num_filter, unknown_dim, unknown_dim});
  const Shape& data = s["data"];
  s.output().meet(
      {data[0], data[1], extent_product(data[2], p.scale, s.where()), extent_product(data[3], p.scale, s.where())});
}

OpDef define(Op<UpSampling> op) {
  return fields(op)
      .doc("Enlarges images (n, channels, rows, columns) to (n, channels, rows · scale, columns · scale).")
      .memory_bound()
      .precision(Precision::widest)
      .full_precision_if("sample_type", {"bilinear"})
      .variadic(&UpSampling::num_args, "num_args")
      .inputs([](const UpSampling& p) { return is_bilinear(p) ? size_t{2} : count_of(p.num_args); },
              [](const UpSampling& p, size_t index) {
                return !is_bilinear(p) ? "arg" + std::to_string(index) : index == 0 ? "data" : "weight";
              })
      .initialize("weight", R"(["bilinear", {}])")
      .infer_shape([](const UpSampling& p, Shapes& s) { is_bilinear(p) ? infer_bilinear(p, s) : infer_nearest(p, s); })
      .infer_type([](const UpSampling& p, Types& t) { is_bilinear(p) ? same_floating_type(t) : same_type(t); })
      .gradient([](const UpSampling& p, Grad& g) {
        if (is_bilinear(p)) {
          const Deconvolution made = bilinear_deconvolution(p);
          const auto dy = g.out_grad(), x = g.input("data"), w = g.input("weight");
          if (g.wants("data")) g.set("data", deconvolution_grad_data(dy, w, x, {made}));
          if (g.wants("weight")) g.set("weight", deconvolution_grad_weight(dy, x, w, {made}));
          return;
        }
        std::vector<Symbol> inputs{g.out_grad()};
        for (size_t i = 0; i < g.inputs(); ++i) inputs.push_back(g.input(i));
        const Symbol grads = up_sampling_grad(inputs, {p});
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, grads[i]);
      });
}

// Only for sample_type nearest: the gradient of bilinear is that of a deconvolution.
OpDef define(Op<UpSamplingGrad> op) {
  return fields(op)
      .inputs([](const UpSamplingGrad& p) { return count_of(p.num_args) + 1; },
              [](const UpSamplingGrad&, size_t index) { return index == 0 ? "out_grad" : "like"; })
      .shape_only({"like"})
      .outputs(&UpSampling::num_args, numbered("grad"))
      .infer_shape([](const UpSamplingGrad& p, Shapes& s) {
        require(!is_bilinear(p), s.where(), " is the gradient of sample_type nearest alone");
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(s.input(i + 1).get());
      })
      .shapes_of<UpSampling>();
}

}  // namespace

Deconvolution bilinear_deconvolution(const UpSampling& params) {
  const int64_t scale = params.scale, kernel = 2 * scale - scale % 2, pad = scale / 2;
  return {.kernel = {kernel, kernel},
          .stride = {scale, scale},
          .pad = {pad, pad},
          .num_filter = params.num_filter,
          .num_group = params.num_filter};
}

void register_upsample(OpRegistry& registry) {
  add<UpSampling>(registry, "UpSampling", define);
  add_internal<UpSamplingGrad>(registry, "_backward_UpSampling", define);
}

}  // namespace symbind
