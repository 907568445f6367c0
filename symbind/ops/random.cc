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
void add_common(Op<P>& op, const char* dtype_doc = "element type of the result, a floating type; None: float32") {
  op.param(&P::shape, "shape", "shape of the result", each_at_least(0))
      .param(&P::ctx, "ctx",
             "context of the result when called on arrays, as text such as \"gpu(0)\"; a network computes on the "
             "context of its executor")
      .param(&P::dtype, "dtype", dtype_doc)
      .inputs({})
      .random()
      .infer_shape([](const P& p, Shapes& s) { s.output().meet(Shape::from_public(p.shape)); })
      .infer_type([](const P& p, Types& t) { t.output().meet(type_of(p.dtype)); });
}

OpDef define(Op<RandomUniform> op) {
  op.doc("Samples from the uniform distribution over [low, high), an array of the given shape.")
      .aliases({"random_uniform", "uniform"})
      .param(&RandomUniform::low, "low", "smallest value that is drawn")
      .param(&RandomUniform::high, "high", "upper bound, which is never drawn");
  add_common(op);
  return op.check([](RandomUniform& p) {
    require_floating_dtype(p);
    require(p.high >= p.low, "high must be at least low: low ", p.low, ", high ", p.high);
  });
}

OpDef define(Op<RandomNormal> op) {
  op.doc(
        "Samples from the normal distribution with mean loc and standard deviation scale, an array of the given shape.")
      .aliases({"random_normal", "normal"})
      .param(&RandomNormal::loc, "loc", "mean of the distribution")
      .param(&RandomNormal::scale, "scale", "standard deviation of the distribution, positive");
  add_common(op);
  return op.check([](RandomNormal& p) {
    require_floating_dtype(p);
    require(p.scale > 0, "scale must be positive: scale ", p.scale);
  });
}

OpDef define(Op<RandomExponential> op) {
  op.doc("Samples from the exponential distribution with rate lam, an array of the given shape.")
      .aliases({"random_exponential"})
      .param(&RandomExponential::lam, "lam", "rate of the distribution: 1 / mean, positive");
  add_common(op);
  return op.check([](RandomExponential& p) {
    require_floating_dtype(p);
    require(p.lam > 0, "lam must be positive: lam ", p.lam);
  });
}

OpDef define(Op<RandomGamma> op) {
  op.doc(
        "Samples from the gamma distribution with shape parameter alpha and scale beta (mean alpha · beta), an array "
        "of the given shape.")
      .aliases({"random_gamma"})
      .param(&RandomGamma::alpha, "alpha", "shape parameter of the distribution, positive")
      .param(&RandomGamma::beta, "beta", "scale of the distribution, positive");
  add_common(op);
  return op.check([](RandomGamma& p) {
    require_floating_dtype(p);
    require(p.alpha > 0 && p.beta > 0, "alpha and beta must be positive: alpha ", p.alpha, ", beta ", p.beta);
  });
}

OpDef define(Op<RandomPoisson> op) {
  op.doc(
        "Samples from the Poisson distribution with mean lam, an array of the given shape. The counts have a floating "
        "type.")
      .aliases({"random_poisson"})
      .param(&RandomPoisson::lam, "lam", "mean of the distribution");
  add_common(op);
  return op.check([](RandomPoisson& p) {
    require_floating_dtype(p);
    require(p.lam >= 0, "lam must not be negative: lam ", p.lam);
  });
}

OpDef define(Op<RandomNegativeBinomial> op) {
  op.doc(
        "Samples from the negative binomial distribution, an array of the given shape: the number of failures before "
        "success number k, with mean k · (1 - p) / p. The counts have a floating type.")
      .aliases({"random_negative_binomial"})
      .param(&RandomNegativeBinomial::k, "k", "number of successes that end the count, at least 0", at_least(0))
      .param(&RandomNegativeBinomial::p, "p", "probability of success in one trial, in (0, 1]");
  add_common(op);
  return op.check([](RandomNegativeBinomial& p) {
    require_floating_dtype(p);
    require(p.p > 0 && p.p <= 1, "p must be positive and at most 1: p ", p.p);
  });
}

OpDef define(Op<RandomGeneralizedNegativeBinomial> op) {
  op.doc(
        "Samples from the negative binomial distribution with mean mu and variance mu + alpha · mu², an array of the "
        "given shape. The counts have a floating type.")
      .aliases({"random_generalized_negative_binomial"})
      .param(&RandomGeneralizedNegativeBinomial::mu, "mu", "mean of the distribution")
      .param(&RandomGeneralizedNegativeBinomial::alpha, "alpha",
             "dispersion, at least 0; 0 gives the Poisson distribution with mean mu");
  add_common(op);
  return op.check([](RandomGeneralizedNegativeBinomial& p) {
    require_floating_dtype(p);
    require(p.mu >= 0 && p.alpha >= 0, "mu and alpha must not be negative: mu ", p.mu, ", alpha ", p.alpha);
  });
}

OpDef define(Op<RandomRandint> op) {
  op.doc("Integers drawn uniformly from low, low + 1, …, high - 1, an array of the given shape.")
      .aliases({"random_randint"})
      .param(&RandomRandint::low, "low", "smallest value that is drawn")
      .param(&RandomRandint::high, "high", "upper bound, which is never drawn");
  add_common(op, "element type of the result: int32 or int64; None: int32");
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

// ---- the same for the shape of an array -----------------------------------------------------------------------------

template <class P>
Op<P>& like_data(Op<P>& op, const char* name, const std::string& what) {
  return op.doc("Samples from " + what + ", an array of the shape and type of data, whose elements are not read.")
      .aliases({std::string("random_") + name + "_like"})
      .shape_only({"data"})
      .random()
      .infer_type([](const P&, Types& t) {
        same_type(t);
        require_floating(t, "data", t["data"]);
      })
      .gradient([](const P&, Grad&) {});
}

OpDef define(Op<RandomUniformLike> op) {
  return like_data(op, "uniform", "the uniform distribution over [low, high)")
      .param(&RandomUniformLike::low, "low", "smallest value that is drawn")
      .param(&RandomUniformLike::high, "high", "upper bound, which is never drawn")
      .check([](RandomUniformLike& p) {
        require(p.high >= p.low, "high must be at least low: low ", p.low, ", high ", p.high);
      });
}

OpDef define(Op<RandomNormalLike> op) {
  return like_data(op, "normal", "the normal distribution with mean loc and standard deviation scale")
      .param(&RandomNormalLike::loc, "loc", "mean of the distribution")
      .param(&RandomNormalLike::scale, "scale", "standard deviation of the distribution, positive")
      .check([](RandomNormalLike& p) { require(p.scale > 0, "scale must be positive: scale ", p.scale); });
}

OpDef define(Op<RandomExponentialLike> op) {
  return like_data(op, "exponential", "the exponential distribution with rate lam")
      .param(&RandomExponentialLike::lam, "lam", "rate of the distribution: 1 / mean, positive")
      .check([](RandomExponentialLike& p) { require(p.lam > 0, "lam must be positive: lam ", p.lam); });
}

OpDef define(Op<RandomGammaLike> op) {
  return like_data(op, "gamma", "the gamma distribution with shape parameter alpha and scale beta")
      .param(&RandomGammaLike::alpha, "alpha", "shape parameter of the distribution, positive")
      .param(&RandomGammaLike::beta, "beta", "scale of the distribution, positive")
      .check([](RandomGammaLike& p) {
        require(p.alpha > 0 && p.beta > 0, "alpha and beta must be positive: alpha ", p.alpha, ", beta ", p.beta);
      });
}

OpDef define(Op<RandomPoissonLike> op) {
  return like_data(op, "poisson", "the Poisson distribution with mean lam")
      .param(&RandomPoissonLike::lam, "lam", "mean of the distribution")
      .check([](RandomPoissonLike& p) { require(p.lam >= 0, "lam must not be negative: lam ", p.lam); });
}

OpDef define(Op<RandomNegativeBinomialLike> op) {
  return like_data(op, "negative_binomial", "the negative binomial distribution")
      .param(&RandomNegativeBinomialLike::k, "k", "number of successes that end the count, at least 0", at_least(0))
      .param(&RandomNegativeBinomialLike::p, "p", "probability of success in one trial, in (0, 1]")
      .check([](RandomNegativeBinomialLike& p) {
        require(p.p > 0 && p.p <= 1, "p must be positive and at most 1: p ", p.p);
      });
}

OpDef define(Op<RandomGeneralizedNegativeBinomialLike> op) {
  return like_data(op, "generalized_negative_binomial",
                   "the negative binomial distribution with mean mu and variance mu + alpha · mu²")
      .param(&RandomGeneralizedNegativeBinomialLike::mu, "mu", "mean of the distribution")
      .param(&RandomGeneralizedNegativeBinomialLike::alpha, "alpha",
             "dispersion, at least 0; 0 gives the Poisson distribution with mean mu")
      .check([](RandomGeneralizedNegativeBinomialLike& p) {
        require(p.mu >= 0 && p.alpha >= 0, "mu and alpha must not be negative: mu ", p.mu, ", alpha ", p.alpha);
      });
}

// The inputs, one or two, have the same shape or type.
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
  return op
      .param(&P::shape, "shape", "shape of the samples drawn from each distribution; (): one sample", each_at_least(1))
      .param(&P::dtype, "dtype", "element type of the result, a floating type; None: float32")
      .check([](P& p) { require_floating_dtype(p); })
      .precision(Precision::full)
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
  op.doc(doc + " The result has the axes of the inputs followed by those of shape.")
      .aliases({"sample_" + name})
      .inputs(std::move(inputs));
  registry.add(sampler(op), typeid(P));
}

OpDef define(Op<SampleMultinomial> op) {
  return op
      .doc(
          "Indices drawn from categorical distributions: the last axis of data holds the probabilities of the "
          "categories. The result has the other axes of data followed by those of shape. Probabilities below 0, or "
          "that sum up to 0, are an error on a CPU; on a GPU they are not checked.")
      .precision(Precision::full)
      .aliases({"sample_multinomial"})
      .param(&SampleMultinomial::shape, "shape", "shape of the samples drawn from each distribution; (): one sample",
             each_at_least(0))
      .param(&SampleMultinomial::get_prob, "get_prob",
             "return a second output, the logarithm of the probability of each index that was drawn; gradients flow "
             "through it")
      .param(&SampleMultinomial::dtype, "dtype", "element type of the indices")
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
  return op.inputs({"out_grad", "data", "indices"})
      .infer_shape([](const SampleMultinomialGrad&, Shapes& s) {
        const auto data = s["data"];
        s["out_grad"].meet(s["indices"]);
        s.output().meet(data.get());
        if (!data.rank_known() || !s["indices"].known()) return;
        require(data.rank() >= 1, s.where(), " data must have an axis of probabilities: data ", data.get());
        const Shape& indices = s["indices"];
        // All distributions have the same number of draws; a single draw may have no axis.
        const Shape each = data.get().slice(0, data.rank() - 1);
        Shape start = each;
        require(each.rank() == 0 || (each.rank() <= indices.rank() && unify(start, indices.slice(0, each.rank()))),
                s.where(), " indices must begin with the axes of data: indices ", indices, ", data ", data.get());
        require(data.get()[-1] != 0 || indices.size() == 0, s.where(), " there is nothing to draw from: data ",
                data.get());
      })
      .infer_type([](const SampleMultinomialGrad&, Types& t) {
        t["out_grad"].meet(t["data"].get());
        t.output().meet(t["data"].get());
        require_floating(t, "data", t["data"]);
      });
}

OpDef define(Op<SampleUniqueZipfian> op) {
  return op
      .doc(
          "Different classes in each row, drawn from the approximately log-uniform distribution over [0, range_max): "
          "class c has the probability log((c + 2) / (c + 1)) / log(range_max + 1). The first output has the classes, "
          "an array of the given shape (rows, classes per row), the second the number of draws that each row took.")
      .param(&SampleUniqueZipfian::range_max, "range_max", "number of classes", at_least(1))
      .param(&SampleUniqueZipfian::shape, "shape", "number of rows, and of classes in each", each_at_least(0))
      .check([](SampleUniqueZipfian& p) {
        require(p.shape.size() == 2, "shape must be (rows, classes per row): shape ", print(p.shape));
        require(p.shape[1] <= p.range_max, "a row cannot have more different classes than there are: ", p.shape[1],
                " of ", int64_t(p.range_max));
      })
      .inputs({})
      .outputs({"output0", "output1"})
      .random()
      .infer_shape([](const SampleUniqueZipfian& p, Shapes& s) {
        s.output(0).meet(Shape{p.shape[0], p.shape[1]});
        s.output(1).meet(Shape{p.shape[0]});
      })
      .infer_type([](const SampleUniqueZipfian&, Types& t) {
        t.output(0).meet(DType::int64);
        t.output(1).meet(DType::int64);
      });
}

OpDef define(Op<Shuffle> op) {
  return op
      .doc(
          "The slices of data along its first axis in a random order; the result has the shape of data. There is no "
          "gradient.")
      .aliases({"shuffle"})
      .random()
      .refuses_gradient();
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
  add_sampler<SampleUniform>(
      registry, "uniform", {"low", "high"},
      "Samples from uniform distributions over [low, high), one distribution for each pair of elements.");
  add_sampler<SampleNormal>(registry, "normal", {"mu", "sigma"},
                            "Samples from normal distributions with mean mu and standard deviation sigma, one "
                            "distribution for each pair of elements.");
  add_sampler<SampleExponential>(
      registry, "exponential", {"lam"},
      "Samples from exponential distributions with rate lam, one distribution for each element.");
  add_sampler<SampleGamma>(registry, "gamma", {"alpha", "beta"},
                           "Samples from gamma distributions with shape parameter alpha and scale beta, one "
                           "distribution for each pair of elements.");
  add_sampler<SamplePoisson>(registry, "poisson", {"lam"},
                             "Samples from Poisson distributions with mean lam, one distribution for each element.");
  add_sampler<SampleNegativeBinomial>(registry, "negative_binomial", {"k", "p"},
                                      "Samples from negative binomial distributions (failures before success number k, "
                                      "with probability of success p), one distribution for each pair of elements.");
  add_sampler<SampleGeneralizedNegativeBinomial>(
      registry, "generalized_negative_binomial", {"mu", "alpha"},
      "Samples from negative binomial distributions with mean mu and variance mu + alpha · mu², one distribution for "
      "each pair of elements.");
  add<RandomUniformLike>(registry, "_random_uniform_like", define);
  add<RandomNormalLike>(registry, "_random_normal_like", define);
  add<RandomExponentialLike>(registry, "_random_exponential_like", define);
  add<RandomGammaLike>(registry, "_random_gamma_like", define);
  add<RandomPoissonLike>(registry, "_random_poisson_like", define);
  add<RandomNegativeBinomialLike>(registry, "_random_negative_binomial_like", define);
  add<RandomGeneralizedNegativeBinomialLike>(registry, "_random_generalized_negative_binomial_like", define);
  add<SampleUniqueZipfian>(registry, "_sample_unique_zipfian", define);
  add<SampleMultinomial>(registry, "_sample_multinomial", define);
  add_internal<SampleMultinomialGrad>(registry, "_backward_sample_multinomial", define);
  add<Shuffle>(registry, "_shuffle", define);
}

}  // namespace symbind
