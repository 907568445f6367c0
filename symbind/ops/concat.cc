#include "symbind/ops/concat.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

constexpr int64_t most_inputs = 1'000'000;

Names numbered(const std::string& stem, int64_t count) {
  Names names;
  for (int64_t i = 0; i < count; ++i) names.push_back(join(stem, i));
  return names;
}

// The joined shape from the parts and back: all agree but along the axis, where one unknown part follows from the rest.
void infer_joined(Shapes& s, int64_t dim, size_t first, Inferred<Shape> whole) {
  int rank = whole.rank();
  for (size_t i = first; i < s.inputs() && rank < 0; ++i) rank = s.input(i).rank();
  if (rank < 0) return;
  const int along = Shape::of_rank(rank).axis(dim, s.where());
  Shape common = whole.rank_known() ? whole.get().with(along, unknown_dim) : Shape::of_rank(rank);
  for (size_t i = first; i < s.inputs(); ++i) {
    s.input(i).meet(common);
    common = s.input(i).get().with(along, unknown_dim);
  }
  int64_t sum = 0;
  int unknown = -1, unknowns = 0;
  for (size_t i = first; i < s.inputs(); ++i) {
    s.input(i).meet(common);
    const int64_t extent = s.input(i)[along];
    if (extent == unknown_dim)
      unknown = static_cast<int>(i), ++unknowns;
    else
      require(!__builtin_add_overflow(sum, extent, &sum), s.where(), " the parts are too long together along axis ",
              along);
  }
  whole.meet(unknowns == 0 ? common.with(along, sum) : common);
  if (whole[along] == unknown_dim) return;
  require(sum <= whole[along], s.where(), " the parts have ", sum, " elements along axis ", along, ", the whole has ",
          whole[along]);
  if (unknowns == 1) s.input(static_cast<size_t>(unknown)).meet_dim(along, whole[along] - sum);
}

OpDef define(Op<Concat> op) {
  return op.doc("The inputs joined along an axis.")
      .aliases({"concat"})
      .param(&Concat::num_args, "num_args", "number of inputs", at_least(1))
      .param(&Concat::dim, "dim", "the axis to join along")
      .variadic(&Concat::num_args, "num_args")
      .check([](Concat& p) {
        // A name is made for each: a number out of a broken file must not fill the memory.
        require(p.num_args <= most_inputs, "num_args must be at most ", most_inputs, ": ", p.num_args);
      })
      .inputs([](const Concat& p) { return numbered("arg", p.num_args); })
      .infer_shape([](const Concat& p, Shapes& s) { infer_joined(s, p.dim, 0, s.output()); })
      .gradient([](const Concat& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad()};
        for (size_t i = 0; i < g.inputs(); ++i) inputs.push_back(g.input(i));
        const Symbol parts = concat_grad(inputs, {p});
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, parts[i]);
      });
}

OpDef define(Op<ConcatGrad> op) {
  return op.param(&Concat::num_args, "num_args", "number of parts", at_least(1))
      .param(&Concat::dim, "dim", "the axis that was joined along")
      .inputs([](const ConcatGrad& p) {
        Names names{"out_grad"};
        names.resize(static_cast<size_t>(p.num_args) + 1, "like");
        return names;
      })
      .shape_only({"like"})
      .outputs([](const ConcatGrad& p) { return numbered("grad", p.num_args); })
      .infer_shape([](const ConcatGrad& p, Shapes& s) {
        infer_joined(s, p.dim, 1, s.input(0));
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(s.input(i + 1));
      });
}

}  // namespace

void register_concat(OpRegistry& registry) {
  add<Concat>(registry, "Concat", define);
  add<ConcatGrad>(registry, "_backward_Concat", define);
}

}  // namespace symbind
