#include "symbind/ops/hawkes.h"

#include "symbind/core/error.h"
#include "symbind/graph/define.h"
#include "symbind/ops/reduce.h"

namespace symbind {
namespace {

const Names arguments{"lda", "alpha", "beta", "state", "lags", "marks", "valid_length", "max_time"};

// The numbers of sequences, kinds and events are propagated between all arrays.
void infer_arguments(Shapes& s) {
  int64_t batch = unknown_dim, kinds = unknown_dim, events = unknown_dim;
  const auto learn = [](int64_t& known, int64_t dim) {
    if (known == unknown_dim) known = dim;
  };
  const std::pair<const char*, int> ranks[] = {{"lda", 2},  {"alpha", 1}, {"beta", 1},         {"state", 2},
                                               {"lags", 2}, {"marks", 2}, {"valid_length", 1}, {"max_time", 1}};
  for (const auto& [name, rank] : ranks) s[name].meet(Shape::of_rank(rank));
  for (const char* name : {"lda", "state", "lags", "marks", "valid_length", "max_time"}) learn(batch, s[name][0]);
  for (const char* name : {"lda", "state"}) learn(kinds, s[name][1]);
  for (const char* name : {"alpha", "beta"}) learn(kinds, s[name][0]);
  for (const char* name : {"lags", "marks"}) learn(events, s[name][1]);
  for (const char* name : {"lda", "state"}) s[name].meet({batch, kinds});
  for (const char* name : {"alpha", "beta"}) s[name].meet({kinds});
  for (const char* name : {"lags", "marks"}) s[name].meet({batch, events});
  for (const char* name : {"valid_length", "max_time"}) s[name].meet({batch});
}

// All are float32 or float64; the marks are whole numbers of any type.
void infer_types(Types& t) {
  DType type = DType::none;
  const auto each = [&](auto&& visit) {
    for (size_t i = 0; i < t.inputs(); ++i)
      if (t.input_name(i) != "marks") visit(t.input(i));
    for (size_t i = 0; i < t.outputs(); ++i) visit(t.output(i));
  };
  each([&](auto array) {
    if (type == DType::none) type = array.get();
  });
  each([&](auto array) { array.meet(type); });
  require(type == DType::none || type == DType::float32 || type == DType::float64, t.where(),
          " lda must be float32 or float64: ", type);
  if (!t["marks"].known()) t["marks"].meet(DType::int32);
}

OpDef define(Op<HawkesLL> op) {
  return op
      .doc(
          "Logarithm of the likelihood of events under a marked self-exciting Hawkes process. Kind k has the rate "
          "lda[k] + alpha[k] · beta[k] · s[k], where s[k] decays as e^(-beta[k] · t) and grows by 1 at each event of "
          "the kind. lda and state, the s at time 0, are (n, k); alpha and beta (k); lags, the times since the event "
          "before, and marks, the kinds, (n, t); valid_length, the number of events of each sequence, and max_time, "
          "the end of the observation, (n). The outputs are the likelihoods (n) and the states at max_time (n, k). "
          "There are no gradients by lags and max_time.")
      .precision(Precision::full)
      .inputs(arguments)
      .outputs({"output", "out_state"})
      .infer_shape([](const HawkesLL&, Shapes& s) {
        s["lda"].meet(s.output(1));
        infer_arguments(s);
        s.output(0).meet({s["lda"][0]});
        s.output(1).meet(s["lda"].get());
      })
      .infer_type([](const HawkesLL&, Types& t) { infer_types(t); })
      .gradient([](const HawkesLL&, Grad& g) {
        const HawkesLLGrad wanted{.of_likelihood = g.has_out_grad(0), .of_state = g.has_out_grad(1)};
        if (!wanted.of_likelihood && !wanted.of_state) return;
        std::vector<Symbol> inputs;
        if (wanted.of_likelihood) inputs.push_back(g.out_grad(0));
        if (wanted.of_state) inputs.push_back(g.out_grad(1));
        for (const std::string& name : arguments) inputs.push_back(g.input(name));
        const Symbol grads = contrib_hawkesll_grad(inputs, wanted);
        g.set("lda", grads[0]);
        g.set("state", grads[1]);
        if (g.wants("alpha")) g.set("alpha", sum(grads[2], {.axis = Tuple{0}}));
        if (g.wants("beta")) g.set("beta", sum(grads[3], {.axis = Tuple{0}}));
      });
}

OpDef define(Op<HawkesLLGrad> op) {
  return op.param(&HawkesLLGrad::of_likelihood, "of_likelihood", "take the gradient of the likelihoods")
      .param(&HawkesLLGrad::of_state, "of_state", "take the gradient of the states at the end")
      .inputs([](const HawkesLLGrad& p) {
        Names names;
        if (p.of_likelihood) names.push_back("likelihood_grad");
        if (p.of_state) names.push_back("state_grad");
        names.insert(names.end(), arguments.begin(), arguments.end());
        return names;
      })
      .outputs({"lda_grad", "state_grad", "alpha_terms", "beta_terms"})
      .infer_shape([](const HawkesLLGrad& p, Shapes& s) {
        infer_arguments(s);
        if (p.of_likelihood) s["likelihood_grad"].meet({s["lda"][0]});
        if (p.of_state) s["state_grad"].meet(s["lda"].get());
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(s["lda"].get());
      })
      .infer_type([](const HawkesLLGrad&, Types& t) { infer_types(t); });
}

}  // namespace

void register_hawkes(OpRegistry& registry) {
  add<HawkesLL>(registry, "_contrib_hawkesll", define);
  add_internal<HawkesLLGrad>(registry, "_backward_contrib_hawkesll", define);
}

}  // namespace symbind
