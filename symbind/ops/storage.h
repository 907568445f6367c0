// MXNet's operators on sparse arrays, for dense arrays: the results are the same.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

struct CastStorage {
  Required<std::string> stype = {};  // default, row_sparse or csr; arrays are dense whatever it is
};
inline constexpr Builder<CastStorage> cast_storage;

// Rows of data whose number is among the indices; other rows are 0.
struct SparseRetain {};
inline constexpr Builder<SparseRetain> sparse_retain;

// The number of elements that are not 0: of the array, or along an axis of a matrix.
struct CountNonzero {
  std::optional<int64_t> axis = {};
};
inline constexpr Builder<CountNonzero> getnnz;

struct SquareSum {
  TupleOrNone axis = {};
  bool keepdims = false;
  bool exclude = false;
};
inline constexpr Builder<SquareSum> square_sum;

// Zeros whose type, and extents given as 0, are inferred.
struct ZerosWithoutDtype {
  Tuple shape = {};
  std::string ctx = "";
  int64_t dtype = -1;
};
inline constexpr Builder<ZerosWithoutDtype> zeros_without_dtype;

// Row i is 0 but for element lhs[i], which is 1; rhs gives the shape.
struct OnehotEncode {};
inline constexpr Builder<OnehotEncode> onehot_encode;

Symbol network_of(const SparseRetain& params, const ComposedInputs& in);
Symbol network_of(const CountNonzero& params, const ComposedInputs& in);
Symbol network_of(const SquareSum& params, const ComposedInputs& in);
Symbol network_of(const ZerosWithoutDtype& params, const ComposedInputs& in);
Symbol network_of(const OnehotEncode& params, const ComposedInputs& in);

}  // namespace symbind
