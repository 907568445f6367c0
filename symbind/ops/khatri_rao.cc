#include "symbind/ops/khatri_rao.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

OpDef define(Op<KhatriRao> op) {
  return op
      .doc(
          "Khatri-Rao product: column k of the result is the Kronecker product of columns k of the inputs. Inputs (r₁, "
          "n), (r₂, n), … give (r₁ · r₂ · …, n).")
      .precision(Precision::full)
      .param(&KhatriRao::num_args, "num_args", "number of input matrices; counted from the inputs when it is left out",
             between(1, 1000))
      .variadic(&KhatriRao::num_args, "num_args")
      .inputs(&KhatriRao::num_args, numbered("arg"))
      .infer_shape([](const KhatriRao&, Shapes& s) {
        int64_t rows = 1, columns = unknown_dim;
        for (int round = 0; round < 2; ++round)
          for (size_t i = 0; i < s.inputs(); ++i) {
            s.input(i).meet({unknown_dim, columns});
            columns = s.input(i)[1];
          }
        for (size_t i = 0; i < s.inputs(); ++i) rows = extent_product(rows, s.input(i)[0], s.where());
        s.output().meet({rows, columns});
      })
      .infer_type([](const KhatriRao&, Types& t) { same_floating_type(t); })
      .gradient([](const KhatriRao& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad()};
        for (size_t i = 0; i < g.inputs(); ++i) inputs.push_back(g.input(i));
        const Symbol grads = khatri_rao_grad(inputs, {p});
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, grads[i]);
      });
}

OpDef define(Op<KhatriRaoGrad> op) {
  return op
      .param(&KhatriRao::num_args, "num_args", "number of input matrices; counted from the inputs when it is left out",
             between(1, 1000))
      .inputs([](const KhatriRaoGrad& p) { return count_of(p.num_args) + 1; },
              [](const KhatriRaoGrad&, size_t index) {
                return index == 0 ? "out_grad" : "arg" + std::to_string(index - 1);
              })
      .outputs(&KhatriRao::num_args, numbered("grad"))
      .infer_shape([](const KhatriRaoGrad&, Shapes& s) {
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(s.input(i + 1).get());
      })
      .shapes_of<KhatriRao>()
      .types_of<KhatriRao>();
}

}  // namespace

void register_khatri_rao(OpRegistry& registry) {
  add<KhatriRao>(registry, "khatri_rao", define);
  add_internal<KhatriRaoGrad>(registry, "_backward_khatri_rao", define);
}

}  // namespace symbind
