#include "symbind/ops/creation.h"

#include <cmath>

#include "symbind/graph/define.h"

namespace symbind {
namespace {

template <class P>
Op<P>& add_common(Op<P>& op) {
  return op.param(&P::ctx, "ctx", "the context to compute on, as text: \"cpu(0)\"")
      .param(&P::dtype, "dtype", "the type")
      .inputs({})
      .infer_type([](const P& p, Types& t) { t.output().meet(p.dtype); });
}

template <class P>
Op<P>& creation(Op<P>& op) {
  op.param(&P::shape, "shape", "the shape, where 0 is to be inferred", each_at_least(0))
      .infer_shape([](const P& p, Shapes& s) { s.output().meet(Shape::from_public(p.shape)); });
  return add_common(op);
}

OpDef define(Op<Full> op) {
  return creation(op)
      .doc("An array of one value.")
      .param(&Full::value, "value", "the value, which must be given")
      .check([](Full& p) { require(p.value.has_value(), "value must be given"); });
}

template <class P>
void require_numbers(const P& p) {
  require(p.dtype != DType::boolean, "dtype must be a type of numbers: dtype ", p.dtype);
}

// How many numbers there are up to the stop.
int64_t length_of(const Arange& p) {
  const double start = p.stop ? p.start.get() : 0, stop = p.stop.value_or(p.start.get());
  const double steps = std::max(0.0, std::ceil((stop - start) / p.step));
  require(steps * static_cast<double>(p.repeat) < 1e15, steps, " numbers, each ", p.repeat, " times, are too many");
  return static_cast<int64_t>(steps) * p.repeat;
}

OpDef define(Op<Arange> op) {
  op.doc("start, start + step, … before stop; start and step become numbers of dtype before they are added.")
      .param(&Arange::start, "start", "the first number; without a stop, the stop of a range from 0")
      .param(&Arange::stop, "stop", "the bound, which is not reached")
      .param(&Arange::step, "step", "from each number to the next")
      .param(&Arange::repeat, "repeat", "how often each number stands in the result", at_least(1))
      .param(&Arange::infer_range, "infer_range", "without a stop: as many numbers as the network needs")
      .check([](Arange& p) {
        require_numbers(p);
        require(p.step != 0 && std::isfinite(p.start) && std::isfinite(p.step) && std::isfinite(p.stop.value_or(0)),
                "start, stop and step must be finite and step not zero: start ", p.start, ", stop ", print(p.stop),
                ", step ", p.step);
        if (p.stop || !p.infer_range) length_of(p);
      })
      .infer_shape([](const Arange& p, Shapes& s) {
        s.output().meet(p.stop || !p.infer_range ? Shape{length_of(p)} : Shape::of_rank(1));
      });
  return add_common(op);
}

OpDef define(Op<Linspace> op) {
  op.doc("Evenly spaced numbers from start to stop.")
      .param(&Linspace::start, "start", "the first number")
      .param(&Linspace::stop, "stop", "the last number")
      .param(&Linspace::num, "num", "how many", at_least(0))
      .param(&Linspace::endpoint, "endpoint", "stop is one of them; otherwise it would be the next one")
      .check([](Linspace& p) { require_numbers(p); })
      .infer_shape([](const Linspace& p, Shapes& s) { s.output().meet(Shape{p.num}); });
  return add_common(op);
}

OpDef define(Op<Eye> op) {
  op.doc("A matrix with ones on a diagonal and zeros elsewhere.")
      .param(&Eye::N, "N", "number of rows", at_least(0))
      .param(&Eye::M, "M", "number of columns; 0: as many as rows")
      .param(&Eye::k, "k", "the diagonal: 0 begins at the corner, positive ones lie above, negative ones below")
      .infer_shape([](const Eye& p, Shapes& s) {
        s.output().meet(Shape{p.N, p.M > 0 ? p.M : p.N.get()});
      });
  return add_common(op);
}

}  // namespace

void register_creation(OpRegistry& registry) {
  Op<Zeros> zeros_op("_zeros");
  zeros_op.doc("An array of zeros.");
  registry.add(creation(zeros_op), typeid(Zeros));
  Op<Ones> ones_op("_ones");
  ones_op.doc("An array of ones.");
  registry.add(creation(ones_op), typeid(Ones));
  add<Full>(registry, "_full", define);
  add<Arange>(registry, "_arange", define);
  add<Linspace>(registry, "_linspace", define);
  add<Eye>(registry, "_eye", define);
}

}  // namespace symbind
