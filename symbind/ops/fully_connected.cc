#include "symbind/ops/fully_connected.h"

#include "symbind/graph/define.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/reduce.h"
#include "symbind/ops/reshape.h"

namespace symbind {
namespace {

// A row is everything after the first axis (one number, where there is no other axis), or without flatten the last
// axis alone.
int64_t row_length(const Shape& data, bool flatten) {
  if (!flatten) return data[data.rank() - 1];
  const Shape row = data.slice(1, data.rank());
  return row.known() ? row.size() : unknown_dim;
}

void infer(const FullyConnected& p, Shapes& s) {
  auto data = s["data"], weight = s["weight"], output = s.output();
  if (!data.rank_known()) return;
  require(data.rank() >= 1, s.where(), " data needs at least one axis: data ", data.get());
  const int64_t row = row_length(data, p.flatten);
  const Shape known_weight = weight;
  if (row != unknown_dim && known_weight.rank_known() && known_weight.rank() == 2 && known_weight[1] != unknown_dim)
    require(row == known_weight[1], s.where(), " weight has ", known_weight[1], " inputs, a row of data has ", row,
            ": weight ", known_weight, ", data ", data.get());
  weight.meet({p.num_hidden, row});
  if (!p.no_bias) s["bias"].meet({p.num_hidden});
  if (!p.flatten || data.rank() == 2) data.meet_dim(data.rank() - 1, weight[1]);
  if (p.flatten) {
    output.meet({data[0], p.num_hidden});
    data.meet_dim(0, output[0]);
  } else {
    const int last = data.rank() - 1;
    output.meet(data.get().with(last, p.num_hidden));
    data.meet(output.get().with(last, weight[1]));
  }
}

template <class P>
Op<P>& common(Op<P>& op) {
  return op
      .param(&FullyConnected::num_hidden, "num_hidden", "number of outputs per row: the rows of weight", at_least(1))
      .param(&FullyConnected::no_bias, "no_bias", "compute without the bias input")
      .param(
          &FullyConnected::flatten, "flatten",
          "flatten all axes of data but the first into one; False: apply the map to the last axis and keep the others")
      .inputs([](const P& p) {
        return p.no_bias ? Names{"data", "weight"} : Names{"data", "weight", "bias"};
      })
      .multiply_adds([](const P& p, auto in, auto) {
        const FullyConnectedSize size = size_of(p, in[0]);
        return static_cast<double>(size.rows) * static_cast<double>(size.inner) * static_cast<double>(size.hidden);
      })
      .infer_shape([](const P& p, Shapes& s) { infer(p, s); })
      .infer_type([](const P&, Types& t) { same_floating_type(t); });
}

OpDef define_fully_connected(Op<FullyConnected> op) {
  return common(op)
      .doc(
          "Affine map of rows: y = x·Wᵀ + b. With flatten, data (batch, …) is flattened to (batch, inputs) and the "
          "output is (batch, num_hidden); otherwise the map applies to the last axis, (…, inputs) to (…, num_hidden). "
          "weight is (num_hidden, inputs), bias (num_hidden).")
      .precision(Precision::low)
      .gradient([](const FullyConnected& p, Grad& g) {
        const auto dy = g.out_grad();
        const auto dy_rows = p.flatten ? dy : reshape(dy, {.shape = {-1, p.num_hidden}});
        if (g.wants("data")) {
          const auto dx = dot(dy, g.input("weight"));
          g.set("data", p.flatten ? reshape_like(dx, g.input("data")) : dx);
        }
        if (g.wants("weight")) {
          const auto x = g.input("data");
          const auto x_rows = p.flatten ? flatten(x) : reshape(x, {.shape = {-1, 0}, .reverse = true});
          g.set("weight", dot(dy_rows, x_rows, {.transpose_a = true}));
        }
        if (!p.no_bias && g.wants("bias")) g.set("bias", sum(dy_rows, {.axis = Tuple{0}}));
      });
}

OpDef define_fully_connected_activation(Op<FullyConnectedActivation> op) {
  return common(op).param(&FullyConnectedActivation::act_type, "act_type", "the function applied to the result",
                          one_of(act_type::all));
}

OpDef define_fully_connected_transposed(Op<FullyConnectedTransposed> op) {
  return common(op).infer_shape([](const FullyConnectedTransposed& p, Shapes& s) {
    auto data = s["data"];
    if (!data.known()) return;
    s["weight"].meet({row_length(data, p.flatten), p.num_hidden});
    if (!p.no_bias) s["bias"].meet({p.num_hidden});
    s.output().meet(p.flatten ? Shape{data[0], p.num_hidden} : data.get().with(data.rank() - 1, p.num_hidden));
  });
}

}  // namespace

FullyConnectedSize size_of(const FullyConnected& params, const Shape& data) {
  const int split = params.flatten ? 1 : data.rank() - 1;
  return {data.size(0, split), data.size(split, data.rank()), params.num_hidden};
}

void register_fully_connected(OpRegistry& registry) {
  add(registry, "FullyConnected", define_fully_connected);
  add_internal(registry, "_FullyConnected_Activation", define_fully_connected_activation);
  add_internal(registry, "_FullyConnected_Transposed", define_fully_connected_transposed);
}

}  // namespace symbind
