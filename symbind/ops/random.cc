#include "symbind/ops/random.h"

#include <limits>

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

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

OpDef define(Op<RandomExponential> op) {
  op.doc("Numbers drawn from an exponential distribution.")
      .aliases({"random_exponential"})
      .param(&RandomExponential::lam, "lam", "the rate: one over the mean");
  add_common(op);
  return op.check([](RandomExponential& p) {
    require_floating_dtype(p);
    require(p.lam > 0, "lam must be positive: lam ", p.lam);
  });
}

OpDef define(Op<RandomGamma> op) {
  op.doc("Numbers drawn from a gamma distribution of mean alpha · beta.")
      .aliases({"random_gamma"})
      .param(&RandomGamma::alpha, "alpha", "the shape")
      .param(&RandomGamma::beta, "beta", "the scale");
  add_common(op);
  return op.check([](RandomGamma& p) {
    require_floating_dtype(p);
    require(p.alpha > 0 && p.beta > 0, "alpha and beta must be positive: alpha ", p.alpha, ", beta ", p.beta);
  });
}

OpDef define(Op<RandomPoisson> op) {
  op.doc("Counts drawn from a Poisson distribution, as floating numbers.")
      .aliases({"random_poisson"})
      .param(&RandomPoisson::lam, "lam", "the mean");
  add_common(op);
  return op.check([](RandomPoisson& p) {
    require_floating_dtype(p);
    require(p.lam >= 0, "lam must not be negative: lam ", p.lam);
  });
}

OpDef define(Op<RandomNegativeBinomial> op) {
  op.doc("Counts drawn from a negative binomial distribution of mean k (1 - p) / p, as floating numbers.")
      .aliases({"random_negative_binomial"})
      .param(&RandomNegativeBinomial::k, "k", "the trials of the kind that ends the count", at_least(0))
      .param(&RandomNegativeBinomial::p, "p", "the probability of that kind");
  add_common(op);
  return op.check([](RandomNegativeBinomial& p) {
    require_floating_dtype(p);
    require(p.p > 0 && p.p <= 1, "p must be positive and at most 1: p ", p.p);
  });
}

OpDef define(Op<RandomGeneralizedNegativeBinomial> op) {
  op.doc("Counts of mean mu and variance mu + alpha · mu², as floating numbers.")
      .aliases({"random_generalized_negative_binomial"})
      .param(&RandomGeneralizedNegativeBinomial::mu, "mu", "the mean")
      .param(&RandomGeneralizedNegativeBinomial::alpha, "alpha", "the dispersion; 0: a Poisson distribution");
  add_common(op);
  return op.check([](RandomGeneralizedNegativeBinomial& p) {
    require_floating_dtype(p);
    require(p.mu >= 0 && p.alpha >= 0, "mu and alpha must not be negative: mu ", p.mu, ", alpha ", p.alpha);
  });
}

OpDef define(Op<RandomRandint> op) {
  op.doc("Whole numbers drawn evenly from low to below high.")
      .aliases({"random_randint"})
      .param(&RandomRandint::low, "low", "the least number")
      .param(&RandomRandint::high, "high", "the bound above");
  add_common(op);
  return op.infer_type([](const RandomRandint& p, Types& t) { t.output().meet(p.dtype.value_or(DType::int32)); })
      .check([](RandomRandint& p) {
        const DType dtype = p.dtype.value_or(DType::int32);
        require(dtype == DType::int32 || dtype == DType::int64, "dtype must be int32 or int64: dtype ", dtype);
        require(p.high > p.low, "high must be greater than low: low ", p.low, ", high ", p.high);
        require(dtype == DType::int64 ||
                    (p.low >= std::numeric_limits<int32_t>::min() && p.high - 1 <= std::numeric_limits<int32_t>::max()),
                "low and high must fit into dtype int32: low ", p.low, ", high ", p.high);
      });
}

// One or two inputs: they are alike.
template <class Known>
void meet_inputs(Known& known) {
  for (size_t i = 1; i < known.inputs(); ++i) {
    known.input(0).meet(known.input(i));
    known.input(i).meet(known.input(0));
  }
}

// The result has the inputs' axes, then those of `shape`.
template <class P>
OpDef sampler(Op<P> op) {
  return op.param(&P::shape, "shape", "the shape of what is drawn from each distribution", each_at_least(1))
      .param(&P::dtype, "dtype", "a floating type; None: float32")
      .check([](P& p) { require_floating_dtype(p); })
      .random()
      .infer_shape([](const P& p, Shapes& s) {
        meet_inputs(s);
        if (!s.input(0).rank_known()) return;
        Shape shape = s.input(0);
        for (int64_t dim : p.shape) shape.push_back(dim);
        s.output().meet(shape);
      })
      .infer_type([](const P& p, Types& t) {
        meet_inputs(t);
        t.output().meet(type_of(p.dtype));
      });
}

template <class P>
void add_sampler(OpRegistry& registry, const std::string& name, Names inputs, std::string doc) {
  Op<P> op("_sample_" + name);
  op.doc(std::move(doc)).aliases({"sample_" + name}).inputs(std::move(inputs));
  registry.add(sampler(op), typeid(P));
}

OpDef define(Op<SampleMultinomial> op) {
  return op.doc("Places along the last axis of data, drawn with the probabilities that stand there.")
      .aliases({"sample_multinomial"})
      .param(&SampleMultinomial::shape, "shape", "the shape of what is drawn from each distribution", each_at_least(1))
      .param(&SampleMultinomial::get_prob, "get_prob", "a second output: the logarithms of their probabilities")
      .param(&SampleMultinomial::dtype, "dtype", "the type of the places")
      .outputs([](const SampleMultinomial& p) {
        return p.get_prob ? Names{"output0", "output1"} : Names{"output"};
      })
      .random()
      .infer_shape([](const SampleMultinomial& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() >= 1, s.where(), " data must have an axis of probabilities: data ", data.get());
        Shape shape = data.get().slice(0, data.rank() - 1);
        require(shape.rank() + static_cast<int>(p.shape.size()) <= Shape::max_rank, s.where(),
                " the result would have more than ", Shape::max_rank, " axes: data ", data.get(), ", shape ",
                print(p.shape));
        for (int64_t dim : p.shape) shape.push_back(dim);
        if (shape.rank() == 0) shape = Shape{1};
        s.output(0).meet(shape);
        if (p.get_prob) s.output(1).meet(shape);
      })
      .infer_type([](const SampleMultinomial& p, Types& t) {
        t.output(0).meet(p.dtype);
        if (p.get_prob) {
          t["data"].meet(t.output(1).get());
          t.output(1).meet(t["data"].get());
        }
        if (t["data"].known()) require_floating(t, "data", t["data"].get());
      })
      .gradient([](const SampleMultinomial& p, Grad& g) {
        if (p.get_prob && g.has_out_grad(1))
          g.set("data", sample_multinomial_grad(g.out_grad(1), g.input("data"), g.output(0)));
      });
}

OpDef define(Op<SampleMultinomialGrad> op) {
  return op.inputs({"out_grad", "data", "places"})
      .infer_shape([](const SampleMultinomialGrad&, Shapes& s) {
        const auto data = s["data"];
        s["out_grad"].meet(s["places"]);
        s.output().meet(data.get());
        if (!data.rank_known() || !s["places"].known()) return;
        require(data.rank() >= 1, s.where(), " data must have an axis of probabilities: data ", data.get());
        const Shape& places = s["places"];
        // Each distribution has as many draws as the others; a single one may have lost its axis.
        const Shape each = data.get().slice(0, data.rank() - 1);
        Shape start = each;
        require(each.rank() == 0 || (each.rank() <= places.rank() && unify(start, places.slice(0, each.rank()))),
                s.where(), " places must begin with the axes of data: places ", places, ", data ", data.get());
        require(data.get()[-1] != 0 || places.size() == 0, s.where(), " there is nothing to draw from: data ",
                data.get());
      })
      .infer_type([](const SampleMultinomialGrad&, Types& t) {
        t["out_grad"].meet(t["data"].get());
        t.output().meet(t["data"].get());
        require_floating(t, "data", t["data"]);
      });
}

OpDef define(Op<Shuffle> op) {
  return op.doc("The slices along the first axis in a random order.")
      .aliases({"shuffle"})
      .random()
      .gradient([](const Shuffle&, Grad&) {
        fail("[_shuffle] has no gradient; put a BlockGrad behind it where none is due");
      });
}

}  // namespace

void register_random(OpRegistry& registry) {
  add<RandomUniform>(registry, "_random_uniform", define);
  add<RandomNormal>(registry, "_random_normal", define);
  add<RandomExponential>(registry, "_random_exponential", define);
  add<RandomGamma>(registry, "_random_gamma", define);
  add<RandomPoisson>(registry, "_random_poisson", define);
  add<RandomNegativeBinomial>(registry, "_random_negative_binomial", define);
  add<RandomGeneralizedNegativeBinomial>(registry, "_random_generalized_negative_binomial", define);
  add<RandomRandint>(registry, "_random_randint", define);
  add_sampler<SampleUniform>(registry, "uniform", {"low", "high"},
                             "Numbers drawn evenly from [low, high), for each pair of low and high.");
  add_sampler<SampleNormal>(
      registry, "normal", {"mu", "sigma"},
      "Numbers drawn from normal distributions, one for each pair of mean and standard deviation.");
  add_sampler<SampleExponential>(registry, "exponential", {"lam"},
                                 "Numbers drawn from exponential distributions, one for each rate.");
  add_sampler<SampleGamma>(registry, "gamma", {"alpha", "beta"},
                           "Numbers drawn from gamma distributions, one for each pair of shape and scale.");
  add_sampler<SamplePoisson>(registry, "poisson", {"lam"},
                             "Counts drawn from Poisson distributions, one for each mean.");
  add_sampler<SampleNegativeBinomial>(
      registry, "negative_binomial", {"k", "p"},
      "Counts drawn from negative binomial distributions, one for each pair of k and p.");
  add_sampler<SampleGeneralizedNegativeBinomial>(
      registry, "generalized_negative_binomial", {"mu", "alpha"},
      "Counts drawn from negative binomial distributions, one for each pair of mean and dispersion.");
  add<SampleMultinomial>(registry, "_sample_multinomial", define);
  add_internal<SampleMultinomialGrad>(registry, "_backward_sample_multinomial", define);
  add<Shuffle>(registry, "_shuffle", define);
}

}  // namespace symbind
