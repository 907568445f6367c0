#include "symbind/ops/random_pdf.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// The parameters have one shape, which is a prefix of the shape of the samples; `first` is the index of the samples.
void infer_samples(Shapes& s, size_t first) {
  for (size_t i = first + 2; i < s.inputs(); ++i) s.input(first + 1).meet(s.input(i));
  const auto sample = s.input(first), parameter = s.input(first + 1);
  if (!sample.rank_known() || !parameter.rank_known()) return;
  require(parameter.rank() <= sample.rank(), s.where(),
          " the samples must begin with the axes of the parameters: ", sample.get(), " and ", parameter.get());
  for (int axis = 0; axis < parameter.rank(); ++axis) {
    s.input(first).meet_dim(axis, parameter[axis]);
    s.input(first + 1).meet_dim(axis, sample[axis]);
  }
}

// The last axis has the numbers of one sample, and one parameter for each; what is before it is as above.
Shape infer_dirichlet(Shapes& s, size_t first) {
  const auto sample = s.input(first), alpha = s.input(first + 1);
  if (!sample.rank_known() || !alpha.rank_known()) return {};
  require(alpha.rank() >= 1 && alpha.rank() <= sample.rank(), s.where(),
          " sample and alpha must end with one axis, and sample begin with the others of alpha: ", sample.get(),
          " and ", alpha.get());
  const int numbers = sample.rank() - 1, parameters = alpha.rank() - 1;
  s.input(first).meet_dim(numbers, alpha[parameters]);
  s.input(first + 1).meet_dim(parameters, sample[numbers]);
  for (int axis = 0; axis < parameters; ++axis) {
    s.input(first).meet_dim(axis, alpha[axis]);
    s.input(first + 1).meet_dim(axis, sample[axis]);
  }
  return sample.get().slice(0, numbers);
}

template <class P>
constexpr bool is_dirichlet = std::is_base_of_v<RandomPdfDirichlet, P>;

void one_floating_type(Types& t) {
  same_type(t);
  require_floating(t, "sample", t.input(0));
}

template <class P>
OpDef density(Op<P> op, const std::string& doc, Names inputs, const std::string& alias) {
  return op.doc(doc)
      .aliases({alias})
      .precision(Precision::full)
      .param(&RandomPdf::is_log, "is_log", "return the logarithm of the density")
      .inputs(std::move(inputs))
      .infer_shape([](const P&, Shapes& s) {
        if constexpr (is_dirichlet<P>) {
          s.output().meet(infer_dirichlet(s, 0));
        } else {
          infer_samples(s, 0);
          s.output().meet(s.input(0));
        }
      })
      .infer_type([](const P&, Types& t) { one_floating_type(t); })
      .gradient([](const P& p, Grad& g) {
        std::vector<Symbol> inputs_of_gradient{g.out_grad()};
        for (size_t i = 0; i < g.inputs(); ++i) inputs_of_gradient.push_back(g.input(i));
        static constexpr Builder<PdfGrad<P>> gradients;
        const Symbol all = gradients(inputs_of_gradient, {p});
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, all[i]);
      });
}

template <class P>
OpDef density_gradient(Op<PdfGrad<P>> op, const Names& inputs) {
  Names all{"out_grad"}, grads;
  for (const auto& name : inputs) {
    all.push_back(name);
    grads.push_back(name + "_grad");
  }
  return op.param(&RandomPdf::is_log, "is_log", "the logarithm was returned")
      .inputs(all)
      .outputs(grads)
      .infer_shape([](const auto&, Shapes& s) {
        if constexpr (is_dirichlet<P>) {
          s.input(0).meet(infer_dirichlet(s, 1));
        } else {
          infer_samples(s, 1);
          s.input(0).meet(s.input(1));
        }
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(s.input(i + 1));
      })
      .infer_type([](const auto&, Types& t) { one_floating_type(t); });
}

template <class P>
void add_density(OpRegistry& registry, const std::string& name, const Names& inputs, const std::string& what) {
  const std::string shapes =
      is_dirichlet<P> ? " sample has the axes of alpha but the last, any others, and the last; the output has those of "
                        "sample but the last."
                      : " The parameters have one shape; sample has it and any further axes, and the output has the "
                        "shape of sample. The density is 0 where no sample can be.";
  registry.add(
      density(Op<P>("_random_pdf_" + name), "The density of " + what + "." + shapes, inputs, "random_pdf_" + name),
      typeid(P));
  Op<PdfGrad<P>> gradient("_backward_random_pdf_" + name);
  registry.add(density_gradient<P>(std::move(gradient.internal()), inputs), typeid(PdfGrad<P>));
}

}  // namespace

void register_random_pdf(OpRegistry& registry) {
  add_density<RandomPdfUniform>(registry, "uniform", {"sample", "low", "high"},
                                "the uniform distribution over [low, high]");
  add_density<RandomPdfNormal>(registry, "normal", {"sample", "mu", "sigma"},
                               "the normal distribution with mean mu and standard deviation sigma");
  add_density<RandomPdfGamma>(registry, "gamma", {"sample", "alpha", "beta"},
                              "the gamma distribution with shape parameter alpha and rate beta (mean alpha / beta)");
  add_density<RandomPdfExponential>(registry, "exponential", {"sample", "lam"},
                                    "the exponential distribution with rate lam");
  add_density<RandomPdfPoisson>(registry, "poisson", {"sample", "lam"}, "the Poisson distribution with mean lam");
  add_density<RandomPdfNegativeBinomial>(registry, "negative_binomial", {"sample", "k", "p"},
                                         "the negative binomial distribution: failures before success number k");
  add_density<RandomPdfGeneralizedNegativeBinomial>(
      registry, "generalized_negative_binomial", {"sample", "mu", "alpha"},
      "the negative binomial distribution with mean mu and variance mu + alpha · mu²");
  add_density<RandomPdfDirichlet>(registry, "dirichlet", {"sample", "alpha"},
                                  "the Dirichlet distribution with concentrations alpha");
}

}  // namespace symbind
