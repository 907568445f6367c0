// The matrix products of multi-head attention, on arrays that hold the heads' queries, keys and values next to each
// other: the last axis is (head, query | key | value, feature).
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

// queries_keys_values (length, batch, heads · 3 · features) → (batch · heads, length, length), the product of each
// query with each key, divided by √features.
struct SelfAttentionQK {
  Required<int64_t> heads = {};
};
inline constexpr Builder<SelfAttentionQK> interleaved_matmul_selfatt_qk;

// queries_keys_values and attention (batch · heads, length, length) → (length, batch, heads · features): the values
// weighted by the attention.
struct SelfAttentionValues {
  Required<int64_t> heads = {};
};
inline constexpr Builder<SelfAttentionValues> interleaved_matmul_selfatt_valatt;

// queries (query_length, batch, heads · features) and keys_values (length, batch, heads · 2 · features) →
// (batch · heads, query_length, length).
struct CrossAttentionQK {
  Required<int64_t> heads = {};
};
inline constexpr Builder<CrossAttentionQK> interleaved_matmul_encdec_qk;

// keys_values and attention (batch · heads, query_length, length) → (query_length, batch, heads · features).
struct CrossAttentionValues {
  Required<int64_t> heads = {};
};
inline constexpr Builder<CrossAttentionValues> interleaved_matmul_encdec_valatt;

// The networks that compute them.
Symbol network_of(const SelfAttentionQK& params, const ComposedInputs& in);
Symbol network_of(const SelfAttentionValues& params, const ComposedInputs& in);
Symbol network_of(const CrossAttentionQK& params, const ComposedInputs& in);
Symbol network_of(const CrossAttentionValues& params, const ComposedInputs& in);

}  // namespace symbind
