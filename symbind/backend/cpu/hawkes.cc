// Each thread computes whole sequences.
#include "symbind/ops/hawkes.h"

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/hawkes.h"
#include "symbind/backend/visit_types.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using hawkes::Kind;

// The inputs of a node from number `first` on, and the working memory.
struct Process {
  size_t first;
  hawkes::Size size;
  DType marks_type;
  std::string where;

  Process(const NodeView& node, size_t first_input)
      : first(first_input),
        size{node.inputs[first].shape[0], node.inputs[first].shape[1], node.inputs[first + 4].shape[1]},
        marks_type(node.inputs[first + 5].dtype),
        where(node.where()) {}

  size_t scratch_bytes() const {
    return static_cast<size_t>(size.batch * size.kinds) * sizeof(Kind) +
           static_cast<size_t>(size.batch * size.events) * sizeof(int64_t);
  }

  // visit(n, sequence, likelihood) for every sequence.
  template <class T, class Visit>
  void run(const Args& args, const Visit& visit) const {
    Kind* const kinds = static_cast<Kind*>(args.scratch);
    auto* const marks = reinterpret_cast<int64_t*>(kinds + size.batch * size.kinds);
    convert_array(marks, DType::int64, args.inputs[first + 5], marks_type, size.batch * size.events);
    const hawkes::Inputs<T> in{args.in<T>(first),     args.in<T>(first + 1), args.in<T>(first + 2),
                               args.in<T>(first + 3), args.in<T>(first + 4), marks,
                               args.in<T>(first + 6), args.in<T>(first + 7)};
    parallel_for(size.batch, element_grain / 64 / (size.kinds + size.events + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t count = index_of(in.valid_length[n]);
        check(in.marks + n * size.events, n, count);
        const hawkes::Sequence<T> sequence{in, size, n, kinds + n * size.kinds};
        visit(n, sequence, sequence.likelihood(count));
      }
    });
  }
  void check(const int64_t* marks, int64_t n, int64_t count) const {
    require(count >= 0 && count <= size.events, where, " valid_length ", count, " of sequence ", n,
            " is not between 0 and ", size.events);
    for (int64_t i = 0; i < count; ++i)
      require(marks[i] >= 0 && marks[i] < size.kinds, where, " mark ", marks[i], " of event ", i, " of sequence ", n,
              " is not between 0 and ", size.kinds - 1);
  }
};

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Process process(node, 0);
  return visit_types<float, double>(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [process](const Args& args) {
          T *const likelihoods = args.out<T>(0), *const states = args.out<T>(1);
          const int64_t kinds = process.size.kinds;
          process.run<T>(args, [=](int64_t n, const hawkes::Sequence<T>& sequence, double likelihood) {
            if (likelihoods) likelihoods[n] = static_cast<T>(likelihood);
            if (states)
              for (int64_t k = 0; k < kinds; ++k) states[n * kinds + k] = static_cast<T>(sequence.kinds[k].state);
          });
        },
        {.scratch_bytes = process.scratch_bytes()});
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto p = node.as<HawkesLLGrad>();
  const Process process(node, size_t{p.of_likelihood} + size_t{p.of_state});
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [process, p](const Args& args) {
          const T* const of_likelihood = p.of_likelihood ? args.in<T>(0) : nullptr;
          const T* const of_state = p.of_state ? args.in<T>(p.of_likelihood ? 1 : 0) : nullptr;
          T *const lda = args.out<T>(0), *const state = args.out<T>(1), *const alpha = args.out<T>(2),
                   *const beta = args.out<T>(3);
          const int64_t kinds = process.size.kinds;
          process.run<T>(args, [=](int64_t n, const hawkes::Sequence<T>& sequence, double) {
            const double dy = of_likelihood ? static_cast<double>(of_likelihood[n]) : 0.0;
            for (int64_t k = 0; k < kinds; ++k) {
              const Kind& kind = sequence.kinds[k];
              const int64_t at = n * kinds + k;
              const double ds = of_state ? static_cast<double>(of_state[at]) : 0.0;
              if (lda) lda[at] = static_cast<T>(dy * kind.likelihood_by_lda);
              if (state) state[at] = static_cast<T>(dy * kind.likelihood_by_state + ds * kind.by_initial);
              if (alpha) alpha[at] = static_cast<T>(dy * kind.likelihood_by_alpha);
              if (beta) beta[at] = static_cast<T>(dy * kind.likelihood_by_beta + ds * kind.by_beta);
            }
          });
        },
        {.scratch_bytes = process.scratch_bytes()});
  });
}

}  // namespace

void add_hawkes(ImplementationTable& table) {
  add_plain<HawkesLL>(table, build_forward);
  add_plain<HawkesLLGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
