#include "symbind/data/libsvm_iter.h"

#include <algorithm>

#include "symbind/data/round_batches.h"
#include "symbind/data/sharding.h"
#include "symbind/data/text_rows.h"

namespace symbind {
namespace {

// Rows without their zeros: row i has the elements end[i - 1] … end[i] - 1.
struct SparseRows {
  std::vector<float> label;
  std::vector<size_t> end;
  std::vector<int32_t> index;
  std::vector<float> value;

  void append(const SparseRows& more) {
    const size_t before = index.size();
    label.insert(label.end(), more.label.begin(), more.label.end());
    for (const size_t border : more.end) end.push_back(before + border);
    index.insert(index.end(), more.index.begin(), more.index.end());
    value.insert(value.end(), more.value.begin(), more.value.end());
  }
  // `to` is zero.
  void scatter(int64_t row, float* to) const {
    const auto r = static_cast<size_t>(row);
    for (size_t i = r == 0 ? 0 : end[r - 1]; i < end[r]; ++i) to[index[i]] = value[i];
  }
  int64_t count() const { return static_cast<int64_t>(end.size()); }
};

std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line = trimmed(line.substr(end));
  return word;
}

void parse_row(std::string_view line, int64_t width, SparseRows& rows) {
  rows.label.push_back(number_in<float>(take_word(line)));
  for (int64_t before = -1; !line.empty() && line.front() != '#';) {
    const std::string_view word = take_word(line);
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos)
      throw LineError{word.data(), join("expected index:value: found '", word.substr(0, 40), "'")};
    const auto index = number_in<int64_t>(word.substr(0, colon));
    if (index < 0 || index >= width)
      throw LineError{word.data(), join("an index must be between 0 and ", width - 1, ": ", index)};
    if (index <= before)
      throw LineError{word.data(), join("indices must increase along a line: ", index, " follows ", before)};
    before = index;
    rows.index.push_back(static_cast<int32_t>(index));
    rows.value.push_back(number_in<float>(word.substr(colon + 1)));
  }
  rows.end.push_back(rows.index.size());
}

SparseRows read_rows(const std::string& path, int64_t width) {
  SparseRows all;
  std::vector<SparseRows> pieces(most_pieces());
  for (const std::string& file : files_of(path))
    for_each_line_block(
        file,
        [&](std::string_view text, size_t piece) {
          pieces[piece] = {};
          while (!text.empty())
            if (const std::string_view line = take_line(text); !line.empty() && line.front() != '#')
              parse_row(line, width, pieces[piece]);
        },
        [&](size_t piece) { all.append(pieces[piece]); });
  return all;
}

}  // namespace

struct LibSVMIter::State {
  explicit State(LibSVMIterOptions given)
      : options(check(std::move(given))),
        data(read_rows(options.data_libsvm, options.data_shape.size())),
        part(shard_of(data.count(), options.num_parts, options.part_index, "LibSVMIter")),
        batches(part.size(), options.batch_size, options.round_batch) {
    require(part.size() > 0, "[LibSVMIter] ", options.data_libsvm, " has no samples",
            options.num_parts > 1 ? join(" for part ", options.part_index, " of ", options.num_parts) : "");
    if (options.label_libsvm.empty()) return;
    label = read_rows(options.label_libsvm, options.label_shape.size());
    require(label.count() == data.count(),
            "[LibSVMIter] there must be as many labels as samples: ", options.data_libsvm, " has ", data.count(),
            " lines, ", options.label_libsvm, " has ", label.count());
  }
  static LibSVMIterOptions check(LibSVMIterOptions given) {
    require(given.batch_size >= 1, "[LibSVMIter] batch_size must be at least 1: ", given.batch_size);
    for (const Shape* shape : {&given.data_shape, &given.label_shape})
      require(shape->rank() == 1 && (*shape)[0] >= 1 && (*shape)[0] <= INT32_MAX, "[LibSVMIter] ",
              shape == &given.data_shape ? "data_shape" : "label_shape",
              " must have one axis of at least one element: ", *shape);
    require(!given.label_libsvm.empty() || given.label_shape == Shape{1},
            "[LibSVMIter] label_shape must be (1,) without label_libsvm: ", given.label_shape);
    return given;
  }
  Shape data_shape() const { return {options.batch_size, options.data_shape[0]}; }
  Shape label_shape() const {
    return options.label_shape == Shape{1} ? Shape{options.batch_size}
                                           : Shape{options.batch_size, options.label_shape[0]};
  }

  static NDArray gather(const SparseRows& rows, const Shape& shape, const std::vector<int64_t>& samples) {
    NDArray array(shape);
    auto* to = static_cast<float*>(array.mutable_data());
    std::fill_n(to, shape.size(), 0.F);
    const int64_t width = shape.rank() == 1 ? 1 : shape[1];
    for (const int64_t sample : samples) {
      rows.scatter(sample, to);
      to += width;
    }
    return array;
  }
  NDArray labels(const std::vector<int64_t>& samples) const {
    if (!options.label_libsvm.empty()) return gather(label, label_shape(), samples);
    NDArray array(label_shape());
    std::transform(samples.begin(), samples.end(), static_cast<float*>(array.mutable_data()),
                   [this](int64_t sample) { return data.label[static_cast<size_t>(sample)]; });
    return array;
  }

  LibSVMIterOptions options;
  SparseRows data, label;
  Shard part;
  RoundBatches batches;
};

LibSVMIter::LibSVMIter(LibSVMIterOptions options) : state_(std::make_unique<State>(std::move(options))) {}
LibSVMIter::~LibSVMIter() = default;

std::vector<DataDesc> LibSVMIter::provide_data() const {
  return {{.name = state_->options.data_name, .shape = state_->data_shape()}};
}
std::vector<DataDesc> LibSVMIter::provide_label() const {
  return {{.name = state_->options.label_name, .shape = state_->label_shape()}};
}
int64_t LibSVMIter::batch_size() const { return state_->options.batch_size; }
int64_t LibSVMIter::num_data() const { return state_->part.size(); }

void LibSVMIter::reset() {
  const InUse use = in_use("reset");
  state_->batches.reset();
}

std::optional<DataBatch> LibSVMIter::next() {
  const InUse use = in_use("next");
  std::vector<int64_t> samples;
  if (!state_->batches.next(samples)) return std::nullopt;
  for (int64_t& sample : samples) sample += state_->part.begin;
  return DataBatch{.data = {State::gather(state_->data, state_->data_shape(), samples)},
                   .label = {state_->labels(samples)},
                   .pad = state_->batches.pad(),
                   .index = samples};
}

}  // namespace symbind
