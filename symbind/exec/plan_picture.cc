#include "symbind/exec/plan_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "symbind/core/error.h"
#include "symbind/exec/plan_table.h"

namespace symbind {

// ---- Lifetimes ------------------------------------------------------------------------------------------------------

namespace {

// Buffers are numbered as they are first written; those that turn out to share bytes on purpose become one.
class Lives {
 public:
  Lives(const Graph& graph, const MemoryPlan& memory)
      : graph_(graph), memory_(memory), buffer_of_(graph.tensors.size(), -1) {}

  std::vector<BufferLife> run() {
    for (const GraphNode& node : graph_.nodes) {
      if (node.is_variable()) continue;
      const std::vector<bool> shape_only = shape_only_inputs(node);
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (!shape_only[k]) read(node.inputs[k], graph_.is_backward(node.id));
      for (int k = 0; k < node.outputs; ++k) write(node, node.first_output + k);
      if (memory_.skip[node.id]) continue;
      add_scratch(node);
      ++step_;
    }
    std::vector<BufferLife> all;
    for (size_t i = 0; i < lives_.size(); ++i)
      if (parent_[i] == static_cast<int>(i)) all.push_back(std::move(lives_[i]));
    return all;
  }

 private:
  const Location& location(TensorId tensor) const { return memory_.tensors[tensor]; }
  size_t bytes(TensorId tensor) const { return graph_.tensor(tensor).bytes(); }
  int root(int buffer) const {
    while (parent_[static_cast<size_t>(buffer)] != buffer) buffer = parent_[static_cast<size_t>(buffer)];
    return buffer;
  }

  int add(BufferLife life) {
    lives_.push_back(std::move(life));
    parent_.push_back(static_cast<int>(lives_.size()) - 1);
    return parent_.back();
  }

  void unite(int a, int b) {
    const int into = std::min(root(a), root(b)), other = std::max(root(a), root(b));
    if (into == other) return;
    parent_[static_cast<size_t>(other)] = into;
    BufferLife& life = lives_[static_cast<size_t>(into)];
    const BufferLife& gone = lives_[static_cast<size_t>(other)];
    const size_t end = std::max(life.offset + life.bytes, gone.offset + gone.bytes);
    life.offset = std::min(life.offset, gone.offset);
    life.bytes = end - life.offset;
    life.last_step = std::max(life.last_step, gone.last_step);
    if (life.kind == BufferLife::Kind::forward && gone.kind != BufferLife::Kind::forward)
      life.kind = BufferLife::Kind::kept_for_backward;
  }

  void read(TensorId tensor, bool backward) {
    const int buffer = buffer_of_[tensor];
    if (buffer < 0) return;
    BufferLife& life = lives_[static_cast<size_t>(root(buffer))];
    life.last_step = std::max(life.last_step, step_);
    if (backward && life.kind == BufferLife::Kind::forward) life.kind = BufferLife::Kind::kept_for_backward;
  }

  void write(const GraphNode& node, TensorId tensor) {
    const Location& at = location(tensor);
    if (at.kind != Location::Kind::arena) return;
    const auto kind = graph_.is_backward(node.id) ? BufferLife::Kind::backward : BufferLife::Kind::forward;
    const int buffer = add({kind, at.index, at.offset, bytes(tensor), step_, step_, node.source->name});
    buffer_of_[tensor] = buffer;
    // An input is alive while its node runs: bytes it shares with an output are shared on purpose.
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const int input = buffer_of_[node.inputs[k]];
      if (input >= 0 && !shape_only[k] && share_bytes(node.inputs[k], tensor)) unite(input, buffer);
    }
  }

  bool share_bytes(TensorId a, TensorId b) const {
    const Location &x = location(a), &y = location(b);
    return x.kind == y.kind && x.index == y.index && x.offset < y.offset + std::max<size_t>(1, bytes(b)) &&
           y.offset < x.offset + std::max<size_t>(1, bytes(a));
  }

  void add_scratch(const GraphNode& node) {
    const Location& at = memory_.scratch[node.id];
    if (at.kind != Location::Kind::arena) return;
    add({BufferLife::Kind::scratch, at.index, at.offset, working_bytes(node), step_, step_, node.source->name});
  }

  const Graph& graph_;
  const MemoryPlan& memory_;
  PerTensor<int> buffer_of_;  // -1: none
  std::vector<BufferLife> lives_;
  std::vector<int> parent_;  // by buffer: the one it is merged into, or itself
  size_t step_ = 0;
};

// ---- Drawing --------------------------------------------------------------------------------------------------------

constexpr double width = 1200, margin = 64, top = 64, panel_height = 480, panel_gap = 56;
constexpr double smallest_height = 0.3;  // in pixels; smaller ones are invisible

struct KindStyle {
  BufferLife::Kind kind;
  const char* color;
  const char* text;
};
constexpr std::array<KindStyle, 4> styles = {{
    {BufferLife::Kind::forward, "#8ecae6", "made and used in forward"},
    {BufferLife::Kind::kept_for_backward, "#219ebc", "made in forward, kept for backward"},
    {BufferLife::Kind::backward, "#fb8500", "made in backward"},
    {BufferLife::Kind::scratch, "#9aa0a6", "scratch of a step"},
}};

// A tenth of a pixel is enough, and makes the file small.
std::string px(double value) { return join(std::round(value * 10) / 10); }

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

// A round number of about a fifth of the whole.
double tick_of(double whole) {
  const double rough = std::max(whole / 5, 1e-9), power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

class Picture {
 public:
  Picture(const Graph& graph, const MemoryPlan& memory) : memory_(memory), lives_(buffer_lives(graph, memory)) {
    for (const GraphNode& node : graph.nodes) {
      const bool has_step = !node.is_variable() && !memory.skip[node.id];
      steps_ += has_step;
      forward_steps_ += has_step && !graph.is_backward(node.id);
    }
  }

  std::string str(const std::string& title) {
    const auto panels = static_cast<double>(std::max<size_t>(1, memory_.arena_bytes.size()));
    const double height = top + panels * (panel_height + panel_gap);
    out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << px(width) << " " << px(height)
         << "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    text(margin, 24, escaped(title), "font-size=\"18\"");
    legend();
    for (size_t i = 0; i < memory_.arena_bytes.size(); ++i) panel(i);
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  double x(size_t step) const {
    return margin + (width - 2 * margin) * static_cast<double>(step) / static_cast<double>(std::max<size_t>(1, steps_));
  }
  double height_of(size_t bytes) const {
    return panel_height * static_cast<double>(bytes) / static_cast<double>(std::max<size_t>(1, arena_bytes_));
  }
  double y(size_t bytes) const { return bottom_ - height_of(bytes); }

  void text(double at_x, double at_y, const std::string& what, const std::string& how = "") {
    out_ << "<text x=\"" << px(at_x) << "\" y=\"" << px(at_y) << "\"" << (how.empty() ? "" : " ") << how << ">" << what
         << "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const std::string& how) {
    out_ << "<path d=\"M" << px(x1) << " " << px(y1) << "L" << px(x2) << " " << px(y2) << "\" " << how << "/>\n";
  }

  void legend() {
    double at = margin;
    for (const KindStyle& style : styles) {
      const bool used = std::any_of(lives_.begin(), lives_.end(), [&](const auto& l) { return l.kind == style.kind; });
      if (!used) continue;
      out_ << "<rect x=\"" << px(at) << "\" y=\"36\" width=\"12\" height=\"12\" fill=\"" << style.color << "\"/>\n";
      text(at + 18, 46, style.text);
      at += 250;
    }
    line(at, 42, at + 12, 42, "stroke=\"#000\"");
    text(at + 18, 46, "bytes alive");
  }

  void panel(size_t arena) {
    arena_bytes_ = memory_.arena_bytes[arena];
    bottom_ = top + panel_height + static_cast<double>(arena) * (panel_height + panel_gap);
    axes();
    size_t hidden = 0, hidden_bytes = 0;
    for (const KindStyle& style : styles) {
      out_ << "<g fill=\"" << style.color << "\" stroke=\"#fff\" stroke-width=\".3\">\n";
      for (const BufferLife& life : lives_) {
        if (life.arena != static_cast<int>(arena) || life.kind != style.kind) continue;
        if (height_of(life.bytes) >= smallest_height) {
          rectangle(life);
        } else {
          ++hidden;
          hidden_bytes += life.bytes;
        }
      }
      out_ << "</g>\n";
    }
    const size_t peak = alive(arena);
    if (forward_steps_ < steps_) {
      line(x(forward_steps_), bottom_ - panel_height, x(forward_steps_), bottom_,
           "stroke=\"#d00\" stroke-dasharray=\"4\"");
      text(x(forward_steps_) - 6, bottom_ - panel_height - 4, "forward", "text-anchor=\"end\"");
      text(x(forward_steps_) + 6, bottom_ - panel_height - 4, "backward");
    }
    std::string caption = join(memory_.arena_contexts[arena], ": ", short_bytes(arena_bytes_), " of working memory, ",
                               short_bytes(peak), " live at the peak");
    if (hidden > 0)
      caption += join("; ", hidden, " buffers too small to be seen (", short_bytes(hidden_bytes), " together)");
    text(margin, bottom_ + 36, escaped(caption));
  }

  void axes() {
    line(margin, bottom_, width - margin, bottom_, "stroke=\"#000\"");
    line(margin, bottom_, margin, bottom_ - panel_height, "stroke=\"#000\"");
    const bool large = arena_bytes_ >= (1 << 20);
    const double unit = large ? 1 << 20 : 1 << 10;
    const double whole = static_cast<double>(arena_bytes_) / unit, tick = tick_of(whole);
    for (int i = 0; i * tick <= whole; ++i) {
      const double at = y(static_cast<size_t>(i * tick * unit));
      line(margin - 4, at, margin, at, "stroke=\"#000\"");
      text(margin - 6, at + 4, join(i * tick), "text-anchor=\"end\"");
    }
    text(margin - 6, bottom_ - panel_height - 6, large ? "MiB" : "KiB", "text-anchor=\"end\"");
    const double step_tick = std::max(1.0, tick_of(static_cast<double>(steps_)));
    for (size_t step = 0; step <= steps_; step += static_cast<size_t>(step_tick)) {
      line(x(step), bottom_, x(step), bottom_ + 4, "stroke=\"#000\"");
      text(x(step), bottom_ + 18, std::to_string(step), "text-anchor=\"middle\"");
    }
    text(width - margin, bottom_ + 36, "step", "text-anchor=\"end\"");
  }

  void rectangle(const BufferLife& life) {
    out_ << "<rect x=\"" << px(x(life.first_step)) << "\" y=\"" << px(y(life.offset + life.bytes)) << "\" width=\""
         << px(x(life.last_step + 1) - x(life.first_step)) << "\" height=\"" << px(height_of(life.bytes))
         << "\"><title>" << escaped(life.name) << (life.kind == BufferLife::Kind::scratch ? " scratch" : "") << " "
         << short_bytes(life.bytes) << ", steps " << life.first_step << "-" << life.last_step << "</title></rect>\n";
  }

  // Draws the bytes alive at each step; returns the largest number.
  size_t alive(size_t arena) {
    std::vector<int64_t> change(steps_ + 1, 0);
    for (const BufferLife& life : lives_) {
      if (life.arena != static_cast<int>(arena)) continue;
      change[life.first_step] += static_cast<int64_t>(life.bytes);
      change[std::min(life.last_step + 1, steps_)] -= static_cast<int64_t>(life.bytes);
    }
    int64_t now = 0, peak = 0;
    out_ << "<path fill=\"none\" stroke=\"#000\" d=\"M" << px(x(0)) << " " << px(bottom_);
    for (size_t step = 0; step < steps_; ++step) {
      now += change[step];
      peak = std::max(peak, now);
      if (change[step] != 0 || step == 0) out_ << "V" << px(y(static_cast<size_t>(now)));
      out_ << "H" << px(x(step + 1));
    }
    out_ << "\"/>\n";
    return static_cast<size_t>(peak);
  }

  const MemoryPlan& memory_;
  std::vector<BufferLife> lives_;
  size_t steps_ = 0, forward_steps_ = 0;
  size_t arena_bytes_ = 0;  // of the panel that is being drawn
  double bottom_ = 0;
  TextStream out_;
};

}  // namespace

std::vector<BufferLife> buffer_lives(const Graph& graph, const MemoryPlan& memory) {
  return Lives(graph, memory).run();
}

std::string plan_picture(const Graph& graph, const MemoryPlan& memory, const std::string& title) {
  return Picture(graph, memory).str(title);
}

}  // namespace symbind
