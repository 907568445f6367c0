// Networks written in float32 that compute in 16 bits where that is fast and safe. Parameters, checkpoints and
// everything the user sees stay float32.
#pragma once

#include <string>
#include <vector>

#include "symbind/core/dtype.h"
#include "symbind/graph/symbol.h"
#include "symbind/ops/loss_scale.h"
#include "symbind/passes/infer.h"

namespace SYMBIND_API symbind {

// Which operators compute in which type, by name or alias. Operators in no list compute in the type of their inputs.
struct PrecisionRules {
  std::vector<std::string> low{};        // in the 16-bit type: they accumulate in float32
  std::vector<std::string> full{};       // in float32: they lose digits, or overflow, in 16 bits
  std::vector<std::string> widest{};     // their inputs are cast to the widest type among them
  std::vector<std::string> narrowest{};  // and to the narrowest: the other input is a parameter
  // In float32 where a parameter has one of these values.
  struct Condition {
    std::string op, parameter;
    std::vector<std::string> values;
  };
  std::vector<Condition> full_if{};
  std::vector<std::string> full_nodes{};  // names of nodes that compute in float32 whatever they are
};
// What the definitions of the operators state (OpDef::precision).
PrecisionRules default_precision_rules();

// The network with casts before operators that compute in a type other than that of their inputs. `target` is float16
// or bfloat16. Auxiliary states are never cast.
Symbol mixed_precision(const Symbol& network, DType target, const PrecisionRules& rules = default_precision_rules());

// A converted network whose parameters are of the 16-bit type themselves where nothing else reads them. `except` names
// variables that are not parameters.
Symbol with_low_parameters(const Symbol& converted, DType target, const std::vector<std::string>& except = {});

// ModuleOptions::compute_dtype with float32 for none; other types than float32, float16 and bfloat16 are an error.
DType effective_compute_dtype(DType compute_dtype);
bool computes_in_16_bits(DType compute_dtype);

// Fails if float64 of an input of these types reaches an operator that computes in `target`: only float32 is converted.
void require_float32(const Symbol& network, DType target, const NamedTypes& inputs);

// A float32 network as a module computes it: mixed_precision() by the default rules, with the outputs in float32 again.
Symbol computed_in(const Symbol& network, DType target);

// Gradients of 16 bits vanish below 6e-8 in float16. The network with its losses multiplied by the variable `scale`,
// and the gradients of `arguments` by `inverse`. Both are arrays of one number in float32 (LossScale).
Symbol with_scaled_loss(const Symbol& network, const std::vector<std::string>& arguments, const std::string& scale,
                        const std::string& inverse);

}  // namespace symbind
