#include "tests/support/oracle.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <zlib.h>

#include "tests/support/source_dir.h"

namespace symbind::testing {

namespace {

std::filesystem::path recorded_folder() { return std::filesystem::path(source_dir()) / "tests/oracle/recorded"; }

std::string unpack(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files too
  require(file != nullptr, "cannot open ", path.string());
  std::string text;
  std::vector<char> part(1 << 16);
  int read = 0;
  while ((read = gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0)
    text.append(part.data(), static_cast<size_t>(read));
  const bool good = read == 0;
  gzclose(file);
  require(good, "cannot unpack ", path.string());
  return text;
}

double number(const nlohmann::json& value) {
  if (!value.is_string()) return value.get<double>();
  const auto& text = value.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

DType dtype_named(const std::string& name) { return name == "bool" ? DType::boolean : dtype_from_name(name); }

Shape shape_in(const nlohmann::json& encoded) { return Shape(encoded.at("shape").get<std::vector<int64_t>>()); }

NamedArrays named_arrays(const nlohmann::json& encoded) {
  NamedArrays arrays;
  for (const auto& [name, array] : encoded.items()) arrays[name] = decode_array(array);
  return arrays;
}

Attributes attributes_in(const nlohmann::json& encoded) {
  Attributes attributes;
  for (const auto& [key, value] : encoded.items())
    attributes[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return attributes;
}

OracleAnswer answer_in(const nlohmann::json& encoded) {
  OracleAnswer answer;
  if (encoded.contains("outputs")) {
    answer.outputs.emplace();
    for (const auto& array : encoded.at("outputs")) answer.outputs->push_back(decode_array(array));
  }
  if (encoded.contains("grads")) answer.grads = named_arrays(encoded.at("grads"));
  if (encoded.contains("aux_after")) answer.aux_after = named_arrays(encoded.at("aux_after"));
  return answer;
}

OracleCase case_in(const nlohmann::json& encoded, const std::string& family) {
  OracleCase result;
  result.family = family;
  result.id = encoded.at("id");
  result.op = encoded.at("op");
  result.attributes = attributes_in(encoded.at("attrs"));
  for (const auto& input : encoded.at("inputs"))
    result.inputs.push_back({input.at("name"), input.at("role") == "aux", decode_array(input.at("array"))});
  result.error = encoded.value("error", false);
  result.quirk = encoded.value("quirk", "");
  result.grad_req = encoded.value("grad_req", "write");
  if (result.error) return result;
  result.values = encoded.at("compare") == "values";
  result.output_names = encoded.at("output_names").get<std::vector<std::string>>();
  if (encoded.contains("out_grads"))
    for (const auto& array : encoded.at("out_grads")) result.out_grads.push_back(decode_array(array));
  if (encoded.contains("init_grads")) result.init_grads = named_arrays(encoded.at("init_grads"));
  if (encoded.contains("sane_grads")) result.sane_grads = named_arrays(encoded.at("sane_grads"));
  result.untouched_grads = encoded.value("untouched_grads", std::vector<std::string>{});
  result.train = answer_in(encoded);
  if (encoded.contains("infer")) {
    result.infer_error = encoded.at("infer").value("error", false);
    result.infer = answer_in(encoded.at("infer"));
  }
  if (encoded.contains("without_onednn")) result.without_onednn = answer_in(encoded.at("without_onednn"));
  return result;
}

RejectedCase rejected_in(const nlohmann::json& encoded, const std::string& family) {
  RejectedCase result{family, encoded.at("id"), encoded.at("op"), attributes_in(encoded.at("attrs")), {}};
  for (const auto& input : encoded.at("inputs"))
    result.inputs.push_back({input.at("name"), dtype_named(input.at("dtype")), shape_in(input)});
  return result;
}

struct Everything {
  std::vector<OracleCase> cases;
  std::vector<RejectedCase> rejected;
};

const Everything& everything() {
  static const Everything all = [] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(recorded_folder()))
      if (entry.path().string().ends_with(".json.gz")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    Everything found;
    for (const auto& file : files) {
      const auto json = nlohmann::json::parse(unpack(file));
      if (!json.is_object() || json.value("format", "") != "symbind-oracle-1" || !json.contains("cases")) continue;
      for (const auto& each : json.at("cases")) found.cases.push_back(case_in(each, json.at("family")));
      for (const auto& each : json.at("rejected")) found.rejected.push_back(rejected_in(each, json.at("family")));
    }
    return found;
  }();
  return all;
}

}  // namespace

const std::vector<OracleCase>& oracle_cases() { return everything().cases; }
const std::vector<RejectedCase>& rejected_cases() { return everything().rejected; }

nlohmann::json read_recorded(const std::string& file) {
  return nlohmann::json::parse(unpack(recorded_folder() / file));
}

NDArray decode_array(const nlohmann::json& encoded) {
  const DType dtype = dtype_named(encoded.at("dtype"));
  const Shape shape = shape_in(encoded);
  if (!encoded.contains("data")) return zeros(shape, cpu(), dtype);
  if (!is_floating(dtype)) return array(encoded.at("data").get<std::vector<int64_t>>(), shape, cpu(), dtype);
  std::vector<double> values;
  for (const auto& value : encoded.at("data")) values.push_back(number(value));
  return array(values, shape, cpu(), dtype);
}

std::ostream& operator<<(std::ostream& out, const OracleCase& oracle_case) {
  out << oracle_case.id;
  for (const auto& [key, value] : oracle_case.attributes) out << " " << key << "=" << value;
  for (const auto& input : oracle_case.inputs)
    out << " " << input.name << input.array.shape() << ":" << input.array.dtype();
  return out;
}

std::ostream& operator<<(std::ostream& out, const RejectedCase& rejected) {
  out << rejected.id;
  for (const auto& [key, value] : rejected.attributes) out << " " << key << "=" << value;
  for (const auto& input : rejected.inputs) out << " " << input.name << input.shape << ":" << input.dtype;
  return out;
}

std::string test_name(const std::string& id, Context context) {
  std::string name = id + (context.is_gpu() ? "_on_gpu" : "_on_cpu");
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

}  // namespace symbind::testing
