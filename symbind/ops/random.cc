#include "symbind/ops/random.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

DType type_of(const std::optional<DType>& dtype) { return dtype.value_or(DType::float32); }

template <class P>
void require_floating_dtype(const P& p) {
  require(is_floating(type_of(p.dtype)), "dtype must be a floating type: dtype ", print(p.dtype));
}

template <class P>
void add_common(Op<P>& op) {
  op.param(&P::shape, "shape", "the shape of the result", each_at_least(0))
      .param(&P::ctx, "ctx", "the context to compute on, as text: \"cpu(0)\"")
      .param(&P::dtype, "dtype", "a floating type; None: float32")
      .inputs({})
      .random()
      .infer_shape([](const P& p, Shapes& s) { s.output().meet(Shape::from_public(p.shape)); })
      .infer_type([](const P& p, Types& t) { t.output().meet(type_of(p.dtype)); });
}

OpDef define(Op<RandomUniform> op) {
  op.doc("Numbers drawn evenly from [low, high).")
      .aliases({"random_uniform", "uniform"})
      .param(&RandomUniform::low, "low", "the least number")
      .param(&RandomUniform::high, "high", "the bound above");
  add_common(op);
  return op.check([](RandomUniform& p) {
    require_floating_dtype(p);
    require(p.high >= p.low, "high must be at least low: low ", p.low, ", high ", p.high);
  });
}

OpDef define(Op<RandomNormal> op) {
  op.doc("Numbers drawn from a normal distribution.")
      .aliases({"random_normal", "normal"})
      .param(&RandomNormal::loc, "loc", "the mean")
      .param(&RandomNormal::scale, "scale", "the standard deviation");
  add_common(op);
  return op.check([](RandomNormal& p) {
    require_floating_dtype(p);
    require(p.scale > 0, "scale must be positive: scale ", p.scale);
  });
}

// The result has the inputs' axes, then those of `shape`.
template <class P>
OpDef sampler(Op<P> op) {
  return op.param(&P::shape, "shape", "the shape of what is drawn from each distribution", each_at_least(1))
      .param(&P::dtype, "dtype", "a floating type; None: float32")
      .check([](P& p) { require_floating_dtype(p); })
      .random()
      .infer_shape([](const P& p, Shapes& s) {
        s.input(0).meet(s.input(1));
        if (!s.input(0).rank_known()) return;
        Shape shape = s.input(0);
        for (int64_t dim : p.shape) shape.push_back(dim);
        s.output().meet(shape);
      })
      .infer_type([](const P& p, Types& t) {
        t.input(0).meet(t.input(1));
        t.input(1).meet(t.input(0));
        t.output().meet(type_of(p.dtype));
      });
}

}  // namespace

void register_random(OpRegistry& registry) {
  add<RandomUniform>(registry, "_random_uniform", define);
  add<RandomNormal>(registry, "_random_normal", define);
  Op<SampleUniform> uniform("_sample_uniform");
  uniform.doc("Numbers drawn evenly from [low, high), for each pair of low and high.")
      .aliases({"sample_uniform"})
      .inputs({"low", "high"});
  registry.add(sampler(uniform), typeid(SampleUniform));
  Op<SampleNormal> normal("_sample_normal");
  normal.doc("Numbers drawn from normal distributions, one for each pair of mean and standard deviation.")
      .aliases({"sample_normal"})
      .inputs({"mu", "sigma"});
  registry.add(sampler(normal), typeid(SampleNormal));
}

}  // namespace symbind
