#include "symbind/exec/plan_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "symbind/core/error.h"
#include "symbind/ops/pointwise.h"
#include "symbind/ops/system.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

constexpr size_t widest_line = 160;

// Names differ at their ends as often as at their beginnings, so the middle is removed.
std::string shortened(const std::string& text, size_t width) {
  constexpr size_t dots = 2;
  if (text.size() <= width || width <= dots) return text;
  const size_t front = (width - dots + 1) / 2, back = width - dots - front;
  return text.substr(0, front) + ".." + text.substr(text.size() - back);
}

// For a fused program its instructions, which say more than the operator's name.
std::string operator_text(const Node& node) {
  constexpr size_t width = 40;
  if (node.op == &op_of<Pointwise>())
    return shortened(static_cast<const Pointwise*>(node.params.get())->program, width);
  if (node.op == &op_of<PointwiseCell>())
    return shortened(static_cast<const PointwiseCell*>(node.params.get())->program, width);
  return node.op->name;
}

// ---- Columns --------------------------------------------------------------------------------------------------------

struct Column {
  std::string head;
  bool is_number = false;  // right-aligned
  size_t least_width = 0;  // longer texts may be shortened to this width; 0: never
  size_t width = 0;
};

class Columns {
 public:
  explicit Columns(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void add_line(std::string text) { lines_.emplace(rows_.size(), std::move(text)); }  // across all columns

  std::string str() {
    drop_empty();
    fit();
    TextStream out;
    std::vector<std::string> heads;
    for (const Column& column : columns_) heads.push_back(column.head);
    write(out, heads);
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (const auto line = lines_.find(i); line != lines_.end()) write_line(out, line->second);
      write(out, rows_[i]);
    }
    return out.str();
  }

 private:
  void drop_empty() {
    for (size_t c = columns_.size(); c-- > 0;) {
      if (std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) { return !row[c].empty(); })) continue;
      columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(c));
      for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
    }
  }

  void fit() {
    for (size_t c = 0; c < columns_.size(); ++c) {
      columns_[c].width = columns_[c].head.size();
      for (const auto& row : rows_) columns_[c].width = std::max(columns_[c].width, row[c].size());
    }
    // The widest column that may be shortened is shortened first.
    for (size_t excess = total() > widest_line ? total() - widest_line : 0; excess > 0; --excess) {
      Column* widest = nullptr;
      for (Column& column : columns_)
        if (column.least_width > 0 && column.width > column.least_width && (!widest || column.width > widest->width))
          widest = &column;
      if (!widest) break;
      --widest->width;
    }
  }

  size_t total() const {
    size_t sum = columns_.empty() ? 0 : 2 * (columns_.size() - 1);
    for (const Column& column : columns_) sum += column.width;
    return sum;
  }

  void write(std::ostream& out, const std::vector<std::string>& row) const {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string text = shortened(row[c], columns_[c].width);
      const std::string gap(columns_[c].width - std::min(columns_[c].width, text.size()), ' ');
      line += (c > 0 ? "  " : "") + (columns_[c].is_number ? gap + text : text + gap);
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }

  void write_line(std::ostream& out, const std::string& text) const {
    const size_t width = std::max(total(), text.size() + 6);
    out << "---- " << text << " " << std::string(width - text.size() - 6, '-') << "\n";
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::map<size_t, std::string> lines_;  // by the row they are before
};

// ---- Contents of the table ------------------------------------------------------------------------------------------

class PlanTable {
 public:
  PlanTable(const Graph& graph, const MemoryPlan& memory, const StepTimes* times)
      : graph_(graph), memory_(memory), times_(times) {
    const Context* first = nullptr;
    for (const GraphNode& node : graph_.nodes) {
      if (node.is_variable()) continue;
      several_contexts_ |= first && *first != node.context;
      first = &node.context;
    }
    for (const GraphNode& node : graph_.nodes) {
      step_of_.push_back(steps_);
      if (!has_step(node)) continue;
      ++steps_;
      if (times_) seconds_ += seconds(node.id);
    }
  }

  std::string str() {
    Columns columns({{"step", true},
                     {"node", false, 16},
                     {"operator", false, 12},
                     {"how"},
                     {"on"},
                     {"layout"},
                     {"output", false, 16},
                     {"in", true},
                     {"out", true},
                     {"where"},
                     {"scratch", true},
                     {"cached", true},
                     {"note"},
                     {"ms", true},
                     {"%", true}});
    for (const GraphNode& node : graph_.nodes) {
      if (index_of(node.id) == graph_.forward_nodes && graph_.forward_nodes > 0) columns.add_line("backward");
      if (!node.is_variable()) columns.add(row(node));
    }
    return columns.str() + summary() + times_by_operator();
  }

  // The slowest first.
  std::vector<OperatorCost> costs() const {
    std::map<std::string, OperatorCost> by_name;
    for (const GraphNode& node : graph_.nodes) {
      if (!has_step(node)) continue;
      OperatorCost& cost = by_name[node.op().name];
      const auto [in, out] = traffic(node);
      cost.seconds += seconds(node.id);
      cost.bytes += in + out;
      cost.multiply_adds += multiply_adds(graph_, node);
      ++cost.steps;
    }
    std::vector<OperatorCost> sorted;
    for (auto& [name, cost] : by_name) {
      cost.op = name;
      sorted.push_back(std::move(cost));
    }
    std::ranges::stable_sort(sorted, std::greater(), &OperatorCost::seconds);
    return sorted;
  }

 private:
  bool has_step(const GraphNode& node) const { return !node.is_variable() && !memory_.skip[node.id]; }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  const Location& location(TensorId id) const { return memory_.tensors[id]; }

  double seconds(NodeId node) const {  // of one run
    const uint64_t runs = graph_.is_backward(node) ? times_->backward_runs : times_->forward_runs;
    return runs == 0 ? 0 : times_->seconds[step_of_[node]] / static_cast<double>(runs);
  }

  struct Traffic {
    size_t in = 0, out = 0;  // bytes
  };
  Traffic traffic(const GraphNode& node) const {
    Traffic bytes;
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (!shape_only[k]) bytes.in += tensor(node.inputs[k]).bytes();
    for (int k = 0; k < node.outputs; ++k)
      if (location(node.first_output + k).kind != Location::Kind::nowhere)
        bytes.out += tensor(node.first_output + k).bytes();
    return bytes;
  }

  std::vector<std::string> row(const GraphNode& node) {
    const bool runs = has_step(node);
    const Tensor& output = tensor(node.first_output);
    const bool in_place = runs && overwrites_an_input(node);
    const auto [in, out] = traffic(node);
    const size_t scratch = runs ? working_bytes(node) : 0;
    const size_t cached = runs && node.caches_derived ? node.kernel->cached_bytes : 0;

    count(node, runs, in_place, cached);
    const std::string note = !runs ? "view" : in_place ? "in place" : "";
    const std::string type = output.dtype == DType::float32 ? "" : join(" ", output.dtype);
    return {runs ? std::to_string(step_of_[node.id]) : "",
            node.source->name,
            operator_text(*node.source),
            runs ? node.implementation->name : "nothing",
            several_contexts_ ? node.context.str() : "",
            output.layout == Layout::plain ? "" : std::string(name_of(output.layout)),
            join(output.shape, type),
            runs ? short_bytes(in) : "",
            runs ? short_bytes(out) : "",
            where(location(node.first_output)),
            scratch > 0 ? short_bytes(scratch) : "",
            cached > 0 ? short_bytes(cached) : "",
            note,
            runs && times_ ? fixed_text(1e3 * seconds(node.id), 3) : "",
            runs && times_ ? fixed_text(seconds_ > 0 ? 100 * seconds(node.id) / seconds_ : 0, 1) : ""};
  }

  bool overwrites_an_input(const GraphNode& node) const {
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Location& from = location(node.inputs[k]);
      if (from.kind != Location::Kind::arena || shape_only[k]) continue;
      for (int i = 0; i < node.outputs; ++i) {
        const Location& to = location(node.first_output + i);
        if (to.kind == from.kind && to.index == from.index && to.offset == from.offset) return true;
      }
    }
    return false;
  }

  std::string where(const Location& at) const {
    switch (at.kind) {
      case Location::Kind::nowhere:
        return "nowhere";
      case Location::Kind::outside:
        return "outside";
      case Location::Kind::arena:
        return "arena+" + short_bytes(at.offset);
    }
    return "";
  }

  void count(const GraphNode& node, bool runs, bool in_place, size_t cached) {
    views_ += !runs;
    in_place_ += in_place;
    cached_ += cached;
    reorders_ += runs && &node.op() == &op_of<Reorder>();
    copies_ += runs && &node.op() == &op_of<CrossDeviceCopy>();
  }

  std::string summary() const {
    TextStream out;
    out << "working memory " << short_bytes(memory_.total_bytes());
    if (memory_.arena_bytes.size() > 1) {
      const char* separator = " (";
      for (size_t i = 0; i < memory_.arena_bytes.size(); ++i) {
        out << separator << memory_.arena_contexts[i] << " " << short_bytes(memory_.arena_bytes[i]);
        separator = ", ";
      }
      out << ")";
    }
    out << ", live at the peak " << short_bytes(memory_.lower_bound) << ", without sharing "
        << short_bytes(memory_.unshared_bytes);
    if (cached_ > 0) out << ", cached from parameters " << short_bytes(cached_);
    out << "\nsteps " << steps_ << ": in place " << in_place_ << ", reorders " << reorders_;
    if (copies_ > 0) out << ", copies between contexts " << copies_;
    out << "; views that need no step " << views_ << "\n";
    return out.str();
  }

  std::string times_by_operator() const {
    if (!times_) return "";
    Columns columns({{"operator", false, 12},
                     {"steps", true},
                     {"ms", true},
                     {"%", true},
                     {"bytes", true},
                     {"GB/s", true},
                     {"GFLOP/s", true}});
    for (const OperatorCost& cost : costs()) {
      const auto rate = [&](double amount) { return cost.seconds > 0 ? 1e-9 * amount / cost.seconds : 0; };
      columns.add({cost.op, std::to_string(cost.steps), fixed_text(1e3 * cost.seconds, 3),
                   fixed_text(seconds_ > 0 ? 100 * cost.seconds / seconds_ : 0, 1), short_bytes(cost.bytes),
                   fixed_text(rate(static_cast<double>(cost.bytes)), 1),
                   cost.multiply_adds > 0 ? fixed_text(rate(2 * cost.multiply_adds), 1) : ""});
    }
    return join("time ", fixed_text(1e3 * seconds_, 3), " ms a run, mean of ", times_->forward_runs, " forward and ",
                times_->backward_runs, " backward\n\n", columns.str());
  }

  const Graph& graph_;
  const MemoryPlan& memory_;
  const StepTimes* times_;
  bool several_contexts_ = false;
  PerNode<size_t> step_of_;  // of a node without a step: the next step
  double seconds_ = 0;       // of all steps in one run
  size_t steps_ = 0, views_ = 0, in_place_ = 0, reorders_ = 0, copies_ = 0, cached_ = 0;
};

}  // namespace

std::string short_bytes(size_t bytes) {
  if (bytes < 1024) return std::to_string(bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* const next : {"K", "M", "G", "T"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fixed_text(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + unit;
}

std::string plan_table(const Graph& graph, const MemoryPlan& memory, const StepTimes* times) {
  return PlanTable(graph, memory, times).str();
}

std::vector<OperatorCost> operator_costs(const Graph& graph, const MemoryPlan& memory, const StepTimes& times) {
  return PlanTable(graph, memory, &times).costs();
}

}  // namespace symbind
