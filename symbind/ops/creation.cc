#include "symbind/ops/creation.h"

#include <cmath>

#include "symbind/graph/define.h"

namespace symbind {
namespace {

template <class P>
Op<P>& add_common(Op<P>& op) {
  return op
      .param(&P::ctx, "ctx",
             "context of the result when called on arrays, as text such as \"gpu(0)\"; a network computes on the "
             "context of its executor")
      .param(&P::dtype, "dtype", "element type of the result")
      .inputs({})
      .infer_type([](const P& p, Types& t) { t.output().meet(p.dtype); });
}

template <class P>
Op<P>& creation(Op<P>& op) {
  op.param(&P::shape, "shape", "shape of the result; a 0 is inferred from the rest of the network", each_at_least(0))
      .infer_shape([](const P& p, Shapes& s) { s.output().meet(Shape::from_public(p.shape)); });
  return add_common(op);
}

OpDef define(Op<Full> op) {
  return creation(op)
      .doc("An array in which every element is value.")
      .param(&Full::value, "value", "value of every element; it must be given")
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
  op.doc(
        "The numbers start, start + step, … below stop (above it for a negative step), each repeated repeat times; a "
        "result with one axis. start and step are converted to dtype before they are added.")
      .param(&Arange::start, "start", "first number; when stop is None, the range is from 0 to start")
      .param(&Arange::stop, "stop", "end of the range, which is not part of it; None: see start and infer_range")
      .param(&Arange::step, "step",
             "difference between neighbouring numbers; not 0, and negative for a descending range")
      .param(&Arange::repeat, "repeat", "number of times each number is repeated", at_least(1))
      .param(&Arange::infer_range, "infer_range",
             "when stop is None: infer the length of the result from the rest of the network, starting at start")
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
  op.doc("num evenly spaced numbers from start to stop; a result with one axis.")
      .param(&Linspace::start, "start", "first number of the result")
      .param(&Linspace::stop, "stop", "last number of the result, or with endpoint=False the number after the last")
      .param(&Linspace::num, "num", "number of elements of the result", at_least(0))
      .param(&Linspace::endpoint, "endpoint", "whether stop is the last number; with False it would be the next one")
      .check([](Linspace& p) { require_numbers(p); })
      .infer_shape([](const Linspace& p, Shapes& s) { s.output().meet(Shape{p.num}); });
  return add_common(op);
}

OpDef define(Op<Eye> op) {
  op.doc("A matrix (N, M) with ones on diagonal k and zeros elsewhere.")
      .param(&Eye::N, "N", "number of rows", at_least(0))
      .param(&Eye::M, "M", "number of columns; 0: the number of rows")
      .param(&Eye::k, "k",
             "index of the diagonal: 0 is the main diagonal, k > 0 the k-th above it, k < 0 the k-th below it")
      .infer_shape([](const Eye& p, Shapes& s) {
        s.output().meet(Shape{p.N, p.M > 0 ? p.M : p.N.get()});
      });
  return add_common(op);
}

}  // namespace

void register_creation(OpRegistry& registry) {
  Op<Zeros> zeros_op("_zeros");
  zeros_op.doc("An array of zeros of the given shape.");
  registry.add(creation(zeros_op), typeid(Zeros));
  Op<Ones> ones_op("_ones");
  ones_op.doc("An array of ones of the given shape.");
  registry.add(creation(ones_op), typeid(Ones));
  add<Full>(registry, "_full", define);
  add<Arange>(registry, "_arange", define);
  add<Linspace>(registry, "_linspace", define);
  add<Eye>(registry, "_eye", define);
}

}  // namespace symbind
