#include "symbind/backend/linalg_element.h"

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/visit_types.h"

namespace symbind::cpu_backend {

void add_linalg_element(ImplementationTable& table) {
  linalg::for_each_element_operator([&](const OpDef& op, auto function_of) {
    add_plain(table, op, [function_of](const NodeView& node) {
      const auto function = function_of(node);
      const int64_t count = node.outputs[0].shape.size(), inputs = static_cast<int64_t>(node.inputs.size());
      return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
        return make_kernel([=](const Args& args) {
          const linalg::Arrays<T> in(args, inputs);
          T* const out = args.out<T>();
          parallel_for(count, element_grain / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) out[i] = function(in, i);
          });
        });
      });
    });
  });
}

}  // namespace symbind::cpu_backend
