// The writer reproduces MXNet's text to the letter (a map of more than one entry and a list of more than ten are on
// lines of their own). The reader is event-based (SAX) and builds no tree, so deep or large texts need no extra stack
// or memory.
#include "symbind/graph/json.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "symbind/core/error.h"
#include "symbind/graph/old_json.h"
#include "symbind/graph/op.h"

namespace symbind {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += join("\\u00", "0123456789abcdef"[(c >> 4) & 15], "0123456789abcdef"[c & 15]);
        else
          out += c;
    }
  }
  return out + "\"";
}

constexpr std::string_view subgraph_prefix = "subgraph:";

// Moves the attributes that are networks out of the others.
Attributes take_subgraphs(Attributes& attributes) {
  Attributes taken;
  for (auto each = attributes.lower_bound(std::string(subgraph_prefix)); each != attributes.end();) {
    if (!each->first.starts_with(subgraph_prefix)) break;
    taken.insert(*each);
    each = attributes.erase(each);
  }
  return taken;
}

class Writer {
 public:
  std::string write(const Symbol& symbol) {
    const auto order = topological_order(symbol.entries());
    std::unordered_map<const Node*, size_t> number;
    std::unordered_map<const Node*, int> updates;  // how often a variable has been updated so far
    std::vector<std::string> variables, first_outputs{"0"};
    size_t outputs = 0;

    text_ = "{\n  \"nodes\": [";
    for (const NodePtr& node : order) {
      text_ += number.empty() ? "\n    {\n" : ", \n    {\n";
      write_node(*node, number, updates);
      text_ += "\n    }";
      if (node->is_variable()) variables.push_back(std::to_string(number.size()));
      number[node.get()] = number.size();
      outputs += outputs_in_files(*node);
      first_outputs.push_back(std::to_string(outputs));
    }
    text_ += "\n  ], \n  \"arg_nodes\": ";
    write_list(variables, 2);
    text_ += ", \n  \"node_row_ptr\": ";
    write_list(first_outputs, 2);
    text_ += ", \n  \"heads\": ";
    std::vector<std::string> heads;
    for (const Entry& head : symbol.entries()) heads.push_back(triple(number.at(head.node.get()), head.index, 0));
    write_list(heads, 2);
    text_ += ", \n  \"attrs\": {\"mxnet_version\": [\"int\", 10901]}\n}";
    return std::move(text_);
  }

 private:
  static std::string triple(size_t node, int index, int version) {
    return "[" + std::to_string(node) + ", " + std::to_string(index) + ", " + std::to_string(version) + "]";
  }

  static size_t outputs_in_files(const Node& node) {
    if (node.is_variable()) return 1;
    const void* params = node.params.get();
    return node.op->outputs_in_files ? static_cast<size_t>(node.op->outputs_in_files(params))
                                     : node.op->output_count(params);
  }

  void write_list(const std::vector<std::string>& items, size_t indent) {
    const bool lines = items.size() > 10;
    text_ += "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text_ += ", ";
      if (lines) text_.append("\n").append(indent + 2, ' ');
      text_ += items[i];
    }
    if (lines) text_.append("\n").append(indent, ' ');
    text_ += "]";
  }

  void write_node(const Node& node, const std::unordered_map<const Node*, size_t>& number,
                  std::unordered_map<const Node*, int>& updates) {
    text_ += "      \"op\": " + quoted(node.is_variable() ? "null" : node.op->name) + ", \n";
    text_ += "      \"name\": " + quoted(node.name) + ", \n";
    Attributes attributes = node.attributes;
    const Attributes subgraphs = take_subgraphs(attributes);
    if (!attributes.empty()) {
      const bool lines = attributes.size() > 1;
      text_ += "      \"attrs\": {";
      bool first = true;
      for (const auto& [key, value] : attributes) {
        if (!first) text_ += ", ";
        first = false;
        if (lines) text_ += "\n        ";
        text_ += quoted(key) + ": " + quoted(value);
      }
      text_ += lines ? "\n      }, \n" : "}, \n";
    }
    const size_t aux = node.is_variable() ? 0 : node.op->aux_count(node.params.get());
    std::vector<std::string> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Entry& input = node.inputs[i];
      int version = 0;
      if (input.node->is_variable()) {
        if (i + aux >= node.inputs.size()) ++updates[input.node.get()];
        const auto found = updates.find(input.node.get());
        version = found == updates.end() ? 0 : found->second;
      }
      inputs.push_back(triple(number.at(input.node.get()), input.index, version));
    }
    text_ += "      \"inputs\": ";
    write_list(inputs, 6);
    if (!subgraphs.empty()) write_subgraphs(subgraphs);
  }

  // The networks that are parameters of a node (ops/control_flow.h), as MXNet writes them: indented, and without the
  // attributes that name the version.
  void write_subgraphs(const Attributes& subgraphs) {
    text_ += ", \n      \"subgraphs\": [";
    bool first = true;
    for (const auto& [key, text] : subgraphs) {
      text_ += first ? "\n        " : ", \n        ";
      first = false;
      const std::string whole = Writer().write(from_json(text, key));
      for (const char c : whole.substr(0, whole.rfind(", \n  \"attrs\": {\"mxnet_version\"")) + "\n}") {
        text_ += c;
        if (c == '\n') text_.append(8, ' ');
      }
    }
    text_ += "\n      ]";
  }

  std::string text_;
};

// Collects records from the parser's events by the path of keys they are under. Anything at an unknown path is
// skipped.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  std::vector<NodeRecord> nodes;
  std::vector<std::vector<int64_t>> heads;
  int64_t version = 0;  // of the MXNet that wrote the text; 0 where it does not say
  bool saw_nodes = false, saw_heads = false;
  std::string error;

  bool null() override { return copies("null") || value(""); }
  bool boolean(bool v) override { return copies(v ? "true" : "false") || value(v ? "True" : "False"); }
  bool number_integer(number_integer_t v) override { return copies(std::to_string(v)) || number(v); }
  bool number_unsigned(number_unsigned_t v) override {
    const int64_t limited = v > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(v);
    return copies(std::to_string(limited)) || number(limited);
  }
  bool number_float(number_float_t, const string_t& text) override { return copies(text) || value(text); }
  bool string(string_t& v) override { return (is_copying() && copies(quoted(std::as_const(v)))) || value(v); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override {
    ++depth_;
    if (depth_ == subgraph_depth && key_ == "nodes" && node_key_ == "subgraphs" && !nodes.empty()) copy_ = "";
    if (copies("{")) return separated_ = true;
    if (depth_ == 3 && key_ == "nodes") {
      nodes.emplace_back();
      node_key_.clear();
      apart_ = false;
    }
    if (depth_ == 4 && node_key_ == "param") apart_ = true;
    return true;
  }
  bool key(string_t& v) override {
    if (is_copying()) {
      copies(quoted(std::as_const(v)));
      *copy_ += ": ";
      return separated_ = true;
    }
    if (depth_ == 1) {
      key_ = v;
      saw_nodes |= key_ == "nodes";
      saw_heads |= key_ == "heads";
    } else if (depth_ == 2) {
      graph_attribute_ = v;
    } else if (depth_ == 3) {
      node_key_ = v;
    } else if (depth_ == 4) {
      attribute_key_ = v;
    }
    return true;
  }
  bool end_object() override {
    if (is_copying()) {
      *copy_ += "}";
      separated_ = false;
      if (depth_-- == subgraph_depth) {
        Attributes& attributes = nodes.back().attributes;
        copy_->insert(copy_->size() - 1, R"(, "attrs": {"mxnet_version": ["int", 10901]})");
        attributes[std::string(subgraph_prefix) + std::to_string(subgraphs_in(attributes))] = *copy_;
        copy_.reset();
      }
      return true;
    }
    // Files with `param` store the node's own attributes separately; files without it mix the two.
    if (depth_ == 3 && key_ == "nodes" && !nodes.empty() && !apart_) nodes.back().own.clear();
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    ++depth_;
    if (copies("[")) return separated_ = true;
    if (key_ == "nodes" && node_key_ == "inputs" && depth_ == 5 && !nodes.empty()) nodes.back().inputs.emplace_back();
    if (key_ == "heads" && depth_ == 3) heads.emplace_back();
    return true;
  }
  bool end_array() override {
    --depth_;
    if (is_copying()) {
      *copy_ += "]";
      separated_ = false;
      return true;
    }
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& exception) override {
    const std::string_view what = exception.what();
    const size_t detail = what.rfind("; ");
    error = join(source_, ": not a network in JSON, at byte ", position, ": ",
                 detail == std::string_view::npos ? what : what.substr(detail + 2));
    return false;
  }

 private:
  bool value(const std::string& v) {
    if (key_ != "nodes" || nodes.empty()) return true;
    NodeRecord& node = nodes.back();
    if (depth_ == 3 && node_key_ == "op") node.op = v;
    if (depth_ == 3 && node_key_ == "name") node.name = v;
    if (depth_ == 4 && (node_key_ == "attrs" || node_key_ == "attr" || node_key_ == "param"))
      node.attributes[attribute_key_] = v;
    if (depth_ == 4 && node_key_ == "attr") node.own[attribute_key_] = v;
    return true;
  }
  bool number(int64_t v) {
    if (key_ == "nodes" && depth_ == 5 && node_key_ == "inputs" && !nodes.empty() && !nodes.back().inputs.empty()) {
      nodes.back().inputs.back().push_back(v);
      return true;
    }
    if (key_ == "heads" && depth_ == 3 && !heads.empty()) {
      heads.back().push_back(v);
      return true;
    }
    if (key_ == "attrs" && depth_ == 3 && graph_attribute_ == "mxnet_version") version = v;
    return value(std::to_string(v));
  }

  // Networks inside a node are stored as text, which the operator parses: their events are written out as JSON again.
  bool is_copying() const { return copy_.has_value(); }
  bool copies(std::string_view text) {
    if (!is_copying()) return false;
    if (!separated_ && !copy_->empty()) *copy_ += ", ";
    *copy_ += text;
    separated_ = false;
    return true;
  }
  static size_t subgraphs_in(const Attributes& attributes) {
    size_t count = 0;
    for (const auto& [key, text] : attributes) count += key.starts_with(subgraph_prefix) ? 1 : 0;
    return count;
  }

  static constexpr size_t subgraph_depth = 5;
  std::optional<std::string> copy_;  // of the network that is being read
  bool separated_ = false;           // is no comma needed before the next item?
  std::string_view source_;
  size_t depth_ = 0;
  std::string key_, graph_attribute_, node_key_, attribute_key_;
  bool apart_ = false;
};

std::shared_ptr<const void> parse_params(const Node& node, std::string_view source) {
  try {
    return node.op->parse_params(node.attributes, node.name);
  } catch (const Error& error) {
    fail(source, ": ", error.what());
  }
}

bool is_at_most(std::string_view text, size_t most) {
  int64_t number = 0;
  parse(text, number);
  return number >= 0 && static_cast<size_t>(number) <= most;
}

Symbol build(std::vector<NodeRecord>& records, const std::vector<std::vector<int64_t>>& heads, int64_t version,
             std::string_view source) {
  std::vector<NodePtr> nodes;
  OldJson old(version);
  const auto entry = [&](const std::vector<int64_t>& numbers, size_t before, const std::string& user) -> Entry {
    require(numbers.size() == 2 || numbers.size() == 3, source, ": ", user,
            " refers to an output by two or three numbers, not ", numbers.size());
    require(numbers[0] >= 0 && static_cast<size_t>(numbers[0]) < before, source, ": ", user, " refers to node ",
            numbers[0], ", which does not come before it");
    const NodePtr& node = nodes[static_cast<size_t>(numbers[0])];
    const int64_t outputs = node->is_variable() ? 1 : static_cast<int64_t>(node->op->output_count(node->params.get()));
    require(numbers[1] >= 0 && numbers[1] < outputs, source, ": ", user, " refers to output ", numbers[1], " of '",
            node->name, "', which has ", outputs);
    return {node, static_cast<int>(numbers[1])};
  };
  nodes.reserve(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    NodeRecord& record = records[i];
    require(!record.op.empty(), source, ": node ", i, " has no op");
    require(!record.name.empty(), source, ": node ", i, " has no name");
    auto node = std::make_shared<Node>();
    node->name = record.name;
    const std::string user = join("node ", i, " ('", record.name, "')");
    const bool variable = record.op == "null";
    if (!variable) node->op = OpRegistry::get().find_or_null(record.op);
    if (!variable && !node->op) fail(source, ": ", user, " is of the unknown operator '", record.op, "'");
    if (!variable && node->op->internal)
      fail(source, ": ", user, " is of the operator '", record.op,
           "', which is internal to the library: a file cannot hold it");
    require(!variable || record.inputs.empty(), source, ": ", user, " is a variable and has inputs");
    old.fix_attributes(record, node->op);
    node->attributes = std::move(record.attributes);
    if (!variable) {
      node->params = parse_params(*node, source);
      // Checked before the names of that many inputs are generated. Inputs that an operator adds to those counted (the
      // weight of a bilinear UpSampling) are counted below.
      const auto count = node->attributes.find(node->op->count_field);
      if (count != node->attributes.end())
        require(is_at_most(count->second, record.inputs.size()), source, ": ", user, " has ", record.inputs.size(),
                " inputs, but ", count->first, " is ", count->second);
    }
    for (const auto& numbers : record.inputs) node->inputs.push_back(entry(numbers, i, user));
    old.complete(*node, source);
    if (!variable) {
      const size_t wanted = node->op->all_input_count(node->params.get());
      require(node->inputs.size() == wanted, source, ": ", user, " has ", node->inputs.size(), " inputs; ", record.op,
              " takes ", wanted);
    }
    nodes.push_back(std::move(node));
  }
  std::vector<Entry> outputs;
  for (const auto& numbers : heads) outputs.push_back(entry(numbers, nodes.size(), "a head"));
  require(!outputs.empty(), source, ": the network has no heads");
  return Symbol(std::move(outputs));
}

}  // namespace

std::string to_json(const Symbol& symbol) { return Writer().write(symbol); }

Symbol from_json(std::string_view text, std::string_view source) {
  Reader reader(source);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  if (!parsed) fail(reader.error.empty() ? join(source, ": not a network in JSON") : reader.error);
  require(reader.saw_nodes && reader.saw_heads, source, ": not a network: 'nodes' and 'heads' are expected");
  return build(reader.nodes, reader.heads, reader.version, source);
}

}  // namespace symbind
