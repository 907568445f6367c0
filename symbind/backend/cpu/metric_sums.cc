#include "symbind/backend/metric_sums.h"

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {
namespace {

template <class T>
struct Elements {
  const T* data;
  compute_type<T> operator()(int64_t i) const { return static_cast<compute_type<T>>(data[i]); }
};

struct Labels {
  const void* data;
  DType dtype;

  template <class C>
  C at(int64_t i) const {
    return visit_dtype(dtype,
                       [&]<class T>(std::type_identity<T>) { return convert<C>(static_cast<const T*>(data)[i]); });
  }
};

struct OneThread {
  static int64_t lane() { return 0; }
  static int64_t size() { return 1; }
  static int64_t sum(int64_t value) { return value; }
};

template <class T>
std::unique_ptr<Kernel> build_for(const MetricPair& pair) {
  return make_kernel([pair, finish = MetricFinish::of(pair)](const Args& args) {
    const size_t pred = pair.has_label() ? 1 : 0;
    const Labels labels{args.inputs[0], pair.label_dtype};
    visit_metric_terms<T>(pair, Elements<T>{args.in<T>(pred)}, labels, [&](const auto& terms) {
      MetricPart all;
      for (int64_t i = 0; i < terms.count; ++i) terms.template add<OneThread>(i, all);
      finish(all, labels, args.state<double>(pred + 1));
    });
  });
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const MetricPair pair(node);
  return visit_floating(pair.pred_dtype, [&]<class T>(std::type_identity<T>) { return build_for<T>(pair); });
}

std::unique_ptr<Kernel> build_take(const NodeView& /*node*/) {
  return make_kernel([](const Args& args) { take_metric_totals(args.state<double>(0), args.out<double>()); });
}

}  // namespace

void add_metric_sums(ImplementationTable& table) {
  add_plain<MetricSums>(table, build);
  add_plain<TakeMetricSums>(table, build_take);
}

}  // namespace symbind::cpu_backend
