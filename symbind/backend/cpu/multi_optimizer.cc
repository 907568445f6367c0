#include "symbind/ops/multi_optimizer.h"

#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/update.h"
#include "symbind/backend/update_rules.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <class P>
void add_multi_sgd(ImplementationTable& table, Master master) {
  add_plain<P>(table, [master](const NodeView& node) {
    return build_update(
        parts_of<0>(node.outputs, master, [&p = node.as<P>()]<class C>(std::type_identity<C>, size_t i) {
          return update_rules::Sgd<C>(SgdUpdate{
              .lr = p.lrs[i], .wd = p.wds[i], .rescale_grad = p.rescale_grad, .clip_gradient = p.clip_gradient});
        }));
  });
}

template <class P>
void add_multi_sgd_with_momentum(ImplementationTable& table, Master master) {
  add_plain<P>(table, [master](const NodeView& node) {
    return build_update(
        parts_of<1>(node.outputs, master, [&p = node.as<P>()]<class C>(std::type_identity<C>, size_t i) {
          return update_rules::SgdMomentum<C>(SgdMomUpdate{.lr = p.lrs[i],
                                                           .momentum = p.momentum,
                                                           .wd = p.wds[i],
                                                           .rescale_grad = p.rescale_grad,
                                                           .clip_gradient = p.clip_gradient});
        }));
  });
}

constexpr int64_t sum_piece = 4096;

// In pieces of a fixed length, so that the result does not depend on the number of threads.
template <class T>
double sum_of_squares(const T* values, int64_t count) {
  const int64_t pieces = (count + sum_piece - 1) / sum_piece;
  std::vector<double> sums(static_cast<size_t>(pieces));
  parallel_for(pieces, element_grain / sum_piece, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      double sum = 0;
      for (int64_t i = piece * sum_piece; i < std::min(count, (piece + 1) * sum_piece); ++i)
        sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      sums[static_cast<size_t>(piece)] = sum;
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

std::unique_ptr<Kernel> build_sum_sq(const NodeView& node) {
  return make_kernel([inputs = std::vector<Tensor>(node.inputs.begin(), node.inputs.end())](const Args& args) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double sum = visit_floating(inputs[i].dtype, [&]<class T>(std::type_identity<T>) {
        return sum_of_squares(args.in<T>(i), inputs[i].shape.size());
      });
      args.out<float>()[i] = static_cast<float>(sum);
    }
  });
}

std::unique_ptr<Kernel> build_lars(const NodeView& node) {
  return make_kernel(
      [rate = update_rules::LarsRate(node.as<MultiLars>()), count = node.outputs[0].shape.size()](const Args& args) {
        for (int64_t i = 0; i < count; ++i)
          args.out<float>()[i] =
              rate(args.in<float>(0)[i], args.in<float>(1)[i], args.in<float>(2)[i], args.in<float>(3)[i]);
      },
      {.in_place = {{0, 0}}});
}

}  // namespace

void add_multi_optimizer(ImplementationTable& table) {
  add_multi_sgd<MultiSgdUpdate>(table, Master::none);
  add_multi_sgd<MultiMpSgdUpdate>(table, Master::last_state);
  add_multi_sgd_with_momentum<MultiSgdMomUpdate>(table, Master::none);
  add_multi_sgd_with_momentum<MultiMpSgdMomUpdate>(table, Master::last_state);
  add_plain<MultiSumSq>(table, build_sum_sq);
  add_plain<MultiLars>(table, build_lars);
}

}  // namespace symbind::cpu_backend
