// A thread processes a sequence. Invalid marks and lengths make the likelihood and the gradients of their sequence NaN.
#include "symbind/ops/hawkes.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/hawkes.h"
#include "symbind/backend/visit_types.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using hawkes::Kind;

template <class T>
struct Results {
  T *likelihoods, *states;                // forward
  const T *likelihood_grad, *state_grad;  // backward: either may be missing
  T *lda_grad, *initial_grad, *alpha_terms, *beta_terms;
};

template <class T>
__global__ void run_sequences(hawkes::Inputs<T> in, hawkes::Size size, Kind* kinds, Results<T> out) {
  for (int64_t n = first_element(); n < size.batch; n += element_step()) {
    const int64_t count = index_of(in.valid_length[n]);
    const hawkes::Sequence<T> sequence{in, size, n, kinds + n * size.kinds};
    double likelihood = freestanding::quiet_nan<double>();
    if (count >= 0 && count <= size.events) likelihood = sequence.likelihood(count);
    const bool valid = likelihood == likelihood;
    if (out.likelihoods) out.likelihoods[n] = static_cast<T>(likelihood);
    const double dy = out.likelihood_grad ? static_cast<double>(out.likelihood_grad[n]) : 0.0;
    for (int64_t k = 0; k < size.kinds; ++k) {
      const Kind kind = valid ? sequence.kinds[k] : Kind{likelihood, likelihood, likelihood, 0,
                                                         likelihood, likelihood, likelihood, likelihood};
      const int64_t at = n * size.kinds + k;
      const double ds = out.state_grad ? static_cast<double>(out.state_grad[at]) : 0.0;
      if (out.states) out.states[at] = static_cast<T>(kind.state);
      if (out.lda_grad) out.lda_grad[at] = static_cast<T>(dy * kind.likelihood_by_lda);
      if (out.initial_grad) out.initial_grad[at] = static_cast<T>(dy * kind.likelihood_by_state + ds * kind.by_initial);
      if (out.alpha_terms) out.alpha_terms[at] = static_cast<T>(dy * kind.likelihood_by_alpha);
      if (out.beta_terms) out.beta_terms[at] = static_cast<T>(dy * kind.likelihood_by_beta + ds * kind.by_beta);
    }
  }
}

std::string refuse(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

// `first` is the number of the input lda; results(args) says where the results go.
template <class ResultsOf>
std::unique_ptr<Kernel> build(const NodeView& node, size_t first, ResultsOf results_of) {
  const hawkes::Size size{node.inputs[first].shape[0], node.inputs[first].shape[1], node.inputs[first + 4].shape[1]};
  const size_t kinds_bytes = static_cast<size_t>(size.batch * size.kinds) * sizeof(Kind);
  const int64_t marks_count = size.batch * size.events;
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T> type) {
    return make_step(
        node,
        [=, marks_type = node.inputs[first + 5].dtype](const Args& args) {
          if (size.batch == 0) return;
          const cudaStream_t stream = stream_of(args);
          auto* const marks = reinterpret_cast<int64_t*>(static_cast<std::byte*>(args.scratch) + kinds_bytes);
          if (marks_count > 0 && marks_type == DType::int64)
            cudaMemcpyAsync(marks, args.inputs[first + 5], static_cast<size_t>(marks_count) * sizeof(int64_t),
                            cudaMemcpyDeviceToDevice, stream);
          else if (marks_count > 0)
            queue_cast(stream, marks, DType::int64, args.inputs[first + 5], marks_type, marks_count);
          const hawkes::Inputs<T> in{args.in<T>(first),     args.in<T>(first + 1), args.in<T>(first + 2),
                                     args.in<T>(first + 3), args.in<T>(first + 4), marks,
                                     args.in<T>(first + 6), args.in<T>(first + 7)};
          run_sequences<T><<<blocks_for(size.batch, 32), 32, 0, stream>>>(in, size, static_cast<Kind*>(args.scratch),
                                                                          results_of(type, args));
        },
        {.scratch_bytes = kinds_bytes + static_cast<size_t>(marks_count) * sizeof(int64_t)});
  });
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  return build(node, 0, []<class T>(std::type_identity<T>, const Args& args) {
    return Results<T>{args.out<T>(0), args.out<T>(1), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto p = node.as<HawkesLLGrad>();
  return build(node, size_t{p.of_likelihood} + size_t{p.of_state},
               [p]<class T>(std::type_identity<T>, const Args& args) {
                 return Results<T>{nullptr,
                                   nullptr,
                                   p.of_likelihood ? args.in<T>(0) : nullptr,
                                   p.of_state ? args.in<T>(p.of_likelihood ? 1 : 0) : nullptr,
                                   args.out<T>(0),
                                   args.out<T>(1),
                                   args.out<T>(2),
                                   args.out<T>(3)};
               });
}

}  // namespace

void add_hawkes(ImplementationTable& table) {
  table.add<HawkesLL>({"cuda", refuse, build_forward});
  table.add<HawkesLLGrad>({"cuda", refuse, build_backward});
}

}  // namespace symbind::cuda_backend
