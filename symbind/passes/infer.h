// Infers the shapes and types of a network, forward and backward until a fixed point is reached.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/core/dtype.h"
#include "symbind/core/shape.h"
#include "symbind/graph/symbol.h"

namespace SYMBIND_API symbind {

using NamedShapes = std::map<std::string, Shape>;
using NamedTypes = std::map<std::string, DType>;

// In the order of list_arguments(), list_outputs(), list_auxiliary_states(); unknown dimensions are 0, a shape of
// unknown rank has none.
struct InferredShapes {
  std::vector<std::vector<int64_t>> args, outputs, aux;
  bool complete = false;
};
struct InferredTypes {
  std::vector<DType> args, outputs, aux;
  bool complete = false;
};

// Dimensions that are 0 are unknown. infer_shape fails if something stays unknown, and names it; infer_shape_partial
// does not fail.
InferredShapes infer_shape(const Symbol& symbol, const NamedShapes& known);
InferredShapes infer_shape_partial(const Symbol& symbol, const NamedShapes& known);
InferredTypes infer_type(const Symbol& symbol, const NamedTypes& known);

}  // namespace symbind
