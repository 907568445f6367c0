// The results of MXNet 1.9.1 for our cases, read from tests/oracle/recorded (see tests/oracle/README.md).
#pragma once

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "symbind/core/ndarray.h"
#include "symbind/graph/symbol.h"

namespace symbind::testing {

struct OracleInput {
  std::string name;
  bool aux = false;
  NDArray array;
};

// The parts of an answer. Where only shapes were recorded the arrays hold zeros.
struct OracleAnswer {
  std::optional<std::vector<NDArray>> outputs;
  std::optional<NamedArrays> grads, aux_after;
};

struct OracleCase {
  std::string family, id, op;
  Attributes attributes;
  std::vector<OracleInput> inputs;
  bool error = false;  // MXNet refuses it, and so should we
  std::string quirk;   // what MXNet does wrong here, in words; we need not do so
  bool values = true;  // false: random results, of which only shape and type are compared
  std::string grad_req = "null";
  std::vector<std::string> output_names;
  std::vector<NDArray> out_grads;
  NamedArrays init_grads;  // what the gradients held before, with grad_req add
  std::vector<std::string> untouched_grads;
  NamedArrays sane_grads;  // with a quirk: what the gradients should be
  OracleAnswer train;
  OracleAnswer infer;  // what differs in a forward in inference
  bool infer_error = false;
  OracleAnswer without_onednn;  // another result of MXNet, equally valid
};

// A case for which the wheel has no result (a type it does not compute in).
struct RejectedCase {
  std::string family, id, op;
  Attributes attributes;
  struct Input {
    std::string name;
    DType dtype;
    Shape shape;
  };
  std::vector<Input> inputs;
};

// Printed by gtest when a case fails.
std::ostream& operator<<(std::ostream& out, const OracleCase& oracle_case);
std::ostream& operator<<(std::ostream& out, const RejectedCase& rejected);

const std::vector<OracleCase>& oracle_cases();
const std::vector<RejectedCase>& rejected_cases();

// A recorded file by its name, unpacked and parsed.
nlohmann::json read_recorded(const std::string& file);
NDArray decode_array(const nlohmann::json& encoded);

// "Convolution/float32_1d" as a test's name.
std::string test_name(const std::string& id, Context context);

}  // namespace symbind::testing
