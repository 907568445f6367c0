#include "symbind/ops/attention.h"

#include "symbind/graph/define.h"
#include "symbind/ops/concat.h"
#include "symbind/ops/contrib.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/reshape.h"
#include "symbind/ops/slice.h"
#include "symbind/ops/transpose.h"

namespace symbind {
namespace {

// ---- Heads taken apart and put together -----------------------------------------------------------------------------

Symbol reshaped(const Symbol& x, Tuple shape) { return reshape(x, {.shape = std::move(shape)}); }

// (length, batch · heads, features) and (batch · heads, length, features)
Symbol turned(const Symbol& x) { return transpose(x, {.axes = {1, 0, 2}}); }

// (length, batch, heads · features) → (batch · heads, length, features)
Symbol by_head(const Symbol& x, int64_t heads) {
  return turned(reshaped(reshaped(x, {0, 0, -4, heads, -1}), {0, -3, 0}));
}
Symbol with_heads_last(const Symbol& x, int64_t heads) {
  return reshaped(reshaped(turned(x), {0, -4, -1, heads, 0}), {0, 0, -3});
}

// One of the parts that the last axis interleaves: (length, batch, heads · parts · features) → (batch · heads, length,
// features)
Symbol part_of(const Symbol& x, int64_t heads, int64_t parts, int64_t index) {
  const Symbol apart = reshaped(reshaped(x, {0, 0, -4, heads, -1}), {0, -3, -4, parts, -1});
  return turned(reshaped(slice_axis(apart, {.axis = 2, .begin = index, .end = index + 1}), {0, 0, -3}));
}

// The inverse of part_of().
Symbol interleaved(const std::vector<Symbol>& parts, int64_t heads) {
  std::vector<Symbol> each;
  for (const Symbol& part : parts) each.push_back(expand_dims(turned(part), {.axis = 2}));
  const Symbol joined = concat(each, {.dim = 2});
  return reshaped(reshaped(reshaped(joined, {0, -4, -1, heads, 0, 0}), {0, 0, -3, 0}), {0, 0, -3});
}

// ---- Products and their gradients -----------------------------------------------------------------------------------

Symbol scores(const Symbol& queries, const Symbol& keys) {
  return batch_dot(div_sqrt_dim(queries), keys, {.transpose_b = true});
}
Symbol query_grad(const Symbol& dy, const Symbol& keys) { return div_sqrt_dim(batch_dot(dy, keys)); }
Symbol key_grad(const Symbol& dy, const Symbol& queries) {
  return batch_dot(dy, div_sqrt_dim(queries), {.transpose_a = true});
}
Symbol value_grad(const Symbol& attention, const Symbol& dy) { return batch_dot(attention, dy, {.transpose_a = true}); }
Symbol attention_grad(const Symbol& dy, const Symbol& values) { return batch_dot(dy, values, {.transpose_b = true}); }

// ---- Shapes ---------------------------------------------------------------------------------------------------------

int64_t divided(int64_t extent, int64_t by) { return extent == unknown_dim ? unknown_dim : extent / by; }

// An array of features, and one with a matrix per batch element and head, have the same batch.
void meet_batch(Shapes& s, Inferred<Shape> features, Inferred<Shape> matrices, int64_t heads) {
  require(matrices[0] == unknown_dim || matrices[0] % heads == 0, s.where(), " the first axis of ", matrices.get(),
          " is (batch, heads), and is no multiple of heads ", heads);
  features.meet_dim(1, divided(matrices[0], heads));
  matrices.meet_dim(0, extent_product(features[1], heads, s.where()));
}

// The last axis of `interleaved` has a multiple of the features of `features`.
void meet_features(Shapes& s, Inferred<Shape> interleaved, Inferred<Shape> features, int64_t parts) {
  features.meet_dim(2, divided(interleaved[2], parts));
  interleaved.meet_dim(2, extent_product(features[2], parts, s.where()));
}

void check_features(Shapes& s, const Shape& shape, int64_t heads, int64_t parts) {
  require(shape[2] == unknown_dim || shape[2] % (heads * parts) == 0, s.where(),
          " the last axis must be a multiple of ", heads * parts, ", ", parts, " vectors for each of ", heads,
          " heads: ", shape);
}

void meet_length(Inferred<Shape> a, int axis, Inferred<Shape> b, int other) {
  a.meet_dim(axis, b[other]);
  b.meet_dim(other, a[axis]);
}

template <class P>
Op<P>& products(Op<P>& op, Names inputs) {
  return op.param(&P::heads, "heads", "number of heads", between(1, 1 << 20))
      .inputs(std::move(inputs))
      .infer_type([](const P&, Types& t) { same_floating_type(t); });
}

// Products of an array of matrices (batch · heads, query_length, length) with vectors of a head's features.
template <class P>
double multiply_adds(const P& p, const Shape& matrices, const Shape& features, int parts = 1) {
  return static_cast<double>(matrices.size()) * static_cast<double>(features[2] / (p.heads * parts));
}

void of_rank_3(Shapes& s) {
  for (size_t i = 0; i < s.inputs(); ++i) s.input(i).meet(Shape::of_rank(3));
  s.output().meet(Shape::of_rank(3));
}

// ---- Operators ------------------------------------------------------------------------------------------------------

OpDef define(Op<SelfAttentionQK> op) {
  return products(op, {"queries_keys_values"})
      .doc(
          "Scores of self-attention: the product of each query with each key, divided by √features. "
          "queries_keys_values is (length, batch, heads · 3 · features), with query, key and value of a head next to "
          "each other; the output is (batch · heads, length, length).")
      .precision(Precision::low)
      .multiply_adds([](const SelfAttentionQK& p, auto in, auto out) { return multiply_adds(p, out[0], in[0], 3); })
      .infer_shape([](const SelfAttentionQK& p, Shapes& s) {
        of_rank_3(s);
        auto data = s.input(0), out = s.output();
        check_features(s, data, p.heads, 3);
        meet_batch(s, data, out, p.heads);
        meet_length(data, 0, out, 1);
        meet_length(data, 0, out, 2);
      })
      .gradient([](const SelfAttentionQK& p, Grad& g) {
        const Symbol x = g.input(0), dy = g.out_grad();
        const Symbol dk = key_grad(dy, part_of(x, p.heads, 3, 0));
        g.set(0, interleaved({query_grad(dy, part_of(x, p.heads, 3, 1)), dk, zeros_like(dk)}, p.heads));
      });
}

OpDef define(Op<SelfAttentionValues> op) {
  return products(op, {"queries_keys_values", "attention"})
      .doc(
          "Values of self-attention weighted by the attention. queries_keys_values is (length, batch, heads · 3 · "
          "features), attention (batch · heads, length, length); the output is (length, batch, heads · features).")
      .precision(Precision::low)
      .multiply_adds([](const SelfAttentionValues& p, auto in, auto out) { return multiply_adds(p, in[1], out[0]); })
      .infer_shape([](const SelfAttentionValues& p, Shapes& s) {
        of_rank_3(s);
        auto data = s.input(0), attention = s.input(1), out = s.output();
        check_features(s, data, p.heads, 3);
        meet_batch(s, data, attention, p.heads);
        meet_length(data, 0, attention, 1);
        meet_length(data, 0, attention, 2);
        meet_length(data, 0, out, 0);
        meet_length(data, 1, out, 1);
        meet_features(s, data, out, 3);
      })
      .gradient([](const SelfAttentionValues& p, Grad& g) {
        const Symbol dy = by_head(g.out_grad(), p.heads);
        const Symbol dv = value_grad(g.input(1), dy), none = zeros_like(dv);
        g.set(0, interleaved({none, none, dv}, p.heads));
        g.set(1, attention_grad(dy, part_of(g.input(0), p.heads, 3, 2)));
      });
}

OpDef define(Op<CrossAttentionQK> op) {
  return products(op, {"queries", "keys_values"})
      .doc(
          "Scores of the attention of a decoder to an encoder: the product of each query with each key, divided by "
          "√features. queries is (query_length, batch, heads · features), keys_values (length, batch, heads · 2 · "
          "features), with key and value of a head next to each other; the output is (batch · heads, query_length, "
          "length).")
      .precision(Precision::low)
      .multiply_adds([](const CrossAttentionQK& p, auto in, auto out) { return multiply_adds(p, out[0], in[0]); })
      .infer_shape([](const CrossAttentionQK& p, Shapes& s) {
        of_rank_3(s);
        auto queries = s.input(0), data = s.input(1), out = s.output();
        check_features(s, queries, p.heads, 1);
        check_features(s, data, p.heads, 2);
        meet_features(s, data, queries, 2);
        meet_length(queries, 1, data, 1);
        meet_batch(s, queries, out, p.heads);
        meet_length(queries, 0, out, 1);
        meet_length(data, 0, out, 2);
      })
      .gradient([](const CrossAttentionQK& p, Grad& g) {
        const Symbol dy = g.out_grad(), dk = key_grad(dy, by_head(g.input(0), p.heads));
        g.set(0, with_heads_last(query_grad(dy, part_of(g.input(1), p.heads, 2, 0)), p.heads));
        g.set(1, interleaved({dk, zeros_like(dk)}, p.heads));
      });
}

OpDef define(Op<CrossAttentionValues> op) {
  return products(op, {"keys_values", "attention"})
      .doc(
          "Values of an encoder weighted by the attention of a decoder. keys_values is (length, batch, heads · 2 · "
          "features), attention (batch · heads, query_length, length); the output is (query_length, batch, heads · "
          "features).")
      .precision(Precision::low)
      .multiply_adds([](const CrossAttentionValues& p, auto in, auto out) { return multiply_adds(p, in[1], out[0]); })
      .infer_shape([](const CrossAttentionValues& p, Shapes& s) {
        of_rank_3(s);
        auto data = s.input(0), attention = s.input(1), out = s.output();
        check_features(s, data, p.heads, 2);
        meet_batch(s, data, attention, p.heads);
        meet_length(data, 0, attention, 2);
        meet_length(out, 0, attention, 1);
        meet_length(data, 1, out, 1);
        meet_features(s, data, out, 2);
      })
      .gradient([](const CrossAttentionValues& p, Grad& g) {
        const Symbol dy = by_head(g.out_grad(), p.heads), dv = value_grad(g.input(1), dy);
        g.set(0, interleaved({zeros_like(dv), dv}, p.heads));
        g.set(1, attention_grad(dy, part_of(g.input(0), p.heads, 2, 1)));
      });
}

}  // namespace

Symbol network_of(const SelfAttentionQK& p, const ComposedInputs& in) {
  return scores(part_of(in[0], p.heads, 3, 0), part_of(in[0], p.heads, 3, 1));
}
Symbol network_of(const SelfAttentionValues& p, const ComposedInputs& in) {
  return with_heads_last(batch_dot(in[1], part_of(in[0], p.heads, 3, 2)), p.heads);
}
Symbol network_of(const CrossAttentionQK& p, const ComposedInputs& in) {
  return scores(by_head(in[0], p.heads), part_of(in[1], p.heads, 2, 0));
}
Symbol network_of(const CrossAttentionValues& p, const ComposedInputs& in) {
  return with_heads_last(batch_dot(in[1], part_of(in[0], p.heads, 2, 1)), p.heads);
}

void register_attention(OpRegistry& registry) {
  add<SelfAttentionQK>(registry, "_contrib_interleaved_matmul_selfatt_qk", define);
  add<SelfAttentionValues>(registry, "_contrib_interleaved_matmul_selfatt_valatt", define);
  add<CrossAttentionQK>(registry, "_contrib_interleaved_matmul_encdec_qk", define);
  add<CrossAttentionValues>(registry, "_contrib_interleaved_matmul_encdec_valatt", define);
}

}  // namespace symbind
