#include "symbind/ops/upsample.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"

namespace symbind {
namespace {

template <class P>
Op<P>& fields(Op<P>& op) {
  return op.param(&UpSampling::scale, "scale", "how many times larger the first input becomes", between(1, 1 << 20))
      .param(&UpSampling::num_filter, "num_filter", "for bilinear sampling", at_least(0))
      .param(&UpSampling::sample_type, "sample_type", "nearest: every element becomes a block",
             one_of({"bilinear", "nearest"}))
      .param(&UpSampling::multi_input_mode, "multi_input_mode", "several inputs are joined along channels, or added",
             one_of({"concat", "sum"}))
      .param(&UpSampling::num_args, "num_args", "number of inputs; all become as large as the first", between(1, 1000))
      .param(&UpSampling::workspace, "workspace", "accepted and ignored", at_least(0))
      .check([](P& p) {
        require(p.sample_type == "nearest",
                "sample_type bilinear is not here: Deconvolution with a weight from the initializer Bilinear does it");
      });
}

// Rows and columns of the result; every input's must divide them.
void check_input(const Shape& shape, const Shape& result, const std::string& where) {
  for (int axis = 2; axis < 4; ++axis)
    require(shape[axis] > 0 && result[axis] % shape[axis] == 0, where,
            " the extents of every input must divide those of the result: input ", shape, ", result ", result);
}

OpDef define(Op<UpSampling> op) {
  return fields(op)
      .doc("Images made larger: every element becomes a block.")
      .variadic(&UpSampling::num_args, "num_args")
      .inputs([](const UpSampling& p) {
        Names names;
        for (int64_t i = 0; i < p.num_args; ++i) names.push_back(join("arg", i));
        return names;
      })
      .infer_shape([](const UpSampling& p, Shapes& s) {
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
      })
      .gradient([](const UpSampling& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad()};
        for (size_t i = 0; i < g.inputs(); ++i) inputs.push_back(g.input(i));
        const Symbol grads = up_sampling_grad(inputs, {p});
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, grads[i]);
      });
}

OpDef define(Op<UpSamplingGrad> op) {
  return fields(op)
      .inputs([](const UpSamplingGrad& p) {
        Names names{"out_grad"};
        names.resize(static_cast<size_t>(p.num_args) + 1, "like");
        return names;
      })
      .shape_only({"like"})
      .outputs([](const UpSamplingGrad& p) {
        Names names;
        for (int64_t i = 0; i < p.num_args; ++i) names.push_back(join("grad", i));
        return names;
      })
      .infer_shape([](const UpSamplingGrad&, Shapes& s) {
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(s.input(i + 1).get());
      });
}

}  // namespace

void register_upsample(OpRegistry& registry) {
  add<UpSampling>(registry, "UpSampling", define);
  add<UpSamplingGrad>(registry, "_backward_UpSampling", define);
}

}  // namespace symbind
