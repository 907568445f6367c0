#include "symbind/data/csv_iter.h"

#include <cstring>

#include "symbind/data/round_batches.h"
#include "symbind/data/sharding.h"
#include "symbind/data/text_rows.h"

namespace symbind {
namespace {

template <class Number>
void parse_row(std::string_view line, int64_t columns, std::vector<Number>& to) {
  const char* const begin = line.data();
  int64_t count = 0;
  for (bool more = true; more; ++count) {
    const size_t comma = line.find(',');
    more = comma != std::string_view::npos;
    const std::string_view cell = trimmed(line.substr(0, comma));
    if (!more && cell.empty() && count == columns) break;  // a comma at the end of the line
    if (cell.empty()) throw LineError{begin, join("there is no number in column ", count + 1)};
    to.push_back(number_in<Number>(cell));
    line.remove_prefix(more ? comma + 1 : line.size());
  }
  if (count != columns)
    throw LineError{begin, join("expected as many numbers as the shape has elements, ", columns, ": found ", count)};
}

// Rows of `columns` numbers each, one row after the other.
template <class Number>
std::vector<Number> read_rows(const std::string& path, int64_t columns) {
  std::vector<Number> all;
  std::vector<std::vector<Number>> pieces(most_pieces());
  for (const std::string& file : files_of(path))
    for_each_line_block(
        file,
        [&](std::string_view text, size_t piece) {
          pieces[piece].clear();
          while (!text.empty())
            if (const std::string_view line = take_line(text); !line.empty()) parse_row(line, columns, pieces[piece]);
        },
        [&](size_t piece) { all.insert(all.end(), pieces[piece].begin(), pieces[piece].end()); });
  return all;
}

// The rows of one part, as bytes.
struct Rows {
  int64_t count = 0;  // in the whole file
  Shard part = {};
  std::string bytes = {};
};

template <class Number>
Rows part_of(const std::string& path, int64_t columns, const CSVIterOptions& options) {
  const std::vector<Number> all = read_rows<Number>(path, columns);
  Rows rows{.count = static_cast<int64_t>(all.size()) / columns};
  rows.part = shard_of(rows.count, options.num_parts, options.part_index, "CSVIter");
  rows.bytes.assign(reinterpret_cast<const char*>(all.data() + rows.part.begin * columns),
                    static_cast<size_t>(rows.part.size() * columns) * sizeof(Number));
  return rows;
}

Rows read_part(const std::string& path, int64_t columns, const CSVIterOptions& options) {
  switch (options.dtype) {
    case DType::float32:
      return part_of<float>(path, columns, options);
    case DType::float64:
      return part_of<double>(path, columns, options);
    case DType::int32:
      return part_of<int32_t>(path, columns, options);
    case DType::int64:
      return part_of<int64_t>(path, columns, options);
    default:
      fail("[CSVIter] dtype must be float32, float64, int32 or int64: ", name_of(options.dtype));
  }
}

Shape with_batch(int64_t batch_size, const Shape& sample) {
  std::vector<int64_t> dims{batch_size};
  for (int axis = 0; axis < sample.rank(); ++axis) dims.push_back(sample[axis]);
  return Shape(dims);
}

// A label of one number adds no axis.
Shape label_batch(int64_t batch_size, const Shape& label) {
  return label == Shape{1} ? Shape{batch_size} : with_batch(batch_size, label);
}

}  // namespace

struct CSVIter::State {
  explicit State(CSVIterOptions given)
      : options(check(std::move(given))),
        data(read_part(options.data_csv, options.data_shape.size(), options)),
        batches(data.part.size(), options.batch_size, options.round_batch) {
    require(data.part.size() > 0, "[CSVIter] ", options.data_csv, " has no samples",
            options.num_parts > 1 ? join(" for part ", options.part_index, " of ", options.num_parts) : "");
    if (options.label_csv.empty()) return;
    label = read_part(options.label_csv, options.label_shape.size(), options);
    require(label.count == data.count, "[CSVIter] there must be as many labels as samples: ", options.data_csv, " has ",
            data.count, " lines, ", options.label_csv, " has ", label.count);
  }
  static CSVIterOptions check(CSVIterOptions given) {
    require(given.batch_size >= 1, "[CSVIter] batch_size must be at least 1: ", given.batch_size);
    for (const Shape* shape : {&given.data_shape, &given.label_shape})
      require(shape->size() >= 1 && shape->rank() >= 1 && shape->rank() < Shape::max_rank, "[CSVIter] ",
              shape == &given.data_shape ? "data_shape" : "label_shape",
              " must be the shape of a sample, with at least one element: ", *shape);
    return given;
  }

  NDArray gather(const Rows& rows, const Shape& shape, const std::vector<int64_t>& samples) const {
    NDArray array(shape, cpu(), options.dtype);
    auto* to = static_cast<char*>(array.mutable_data());
    const size_t row = static_cast<size_t>(shape.size() / options.batch_size) * size_of(options.dtype);
    for (size_t i = 0; i < samples.size(); ++i) {
      if (rows.bytes.empty())
        std::memset(to + i * row, 0, row);
      else
        std::memcpy(to + i * row, rows.bytes.data() + static_cast<size_t>(samples[i]) * row, row);
    }
    return array;
  }

  CSVIterOptions options;
  Rows data, label;
  RoundBatches batches;
};

CSVIter::CSVIter(CSVIterOptions options) : state_(std::make_unique<State>(std::move(options))) {}
CSVIter::~CSVIter() = default;

std::vector<DataDesc> CSVIter::provide_data() const {
  const CSVIterOptions& options = state_->options;
  return {
      {.name = options.data_name, .shape = with_batch(options.batch_size, options.data_shape), .dtype = options.dtype}};
}
std::vector<DataDesc> CSVIter::provide_label() const {
  const CSVIterOptions& options = state_->options;
  return {{.name = options.label_name,
           .shape = label_batch(options.batch_size, options.label_shape),
           .dtype = options.dtype}};
}
int64_t CSVIter::batch_size() const { return state_->options.batch_size; }
int64_t CSVIter::num_data() const { return state_->data.part.size(); }

void CSVIter::reset() {
  const InUse use = in_use("reset");
  state_->batches.reset();
}

std::optional<DataBatch> CSVIter::next() {
  const InUse use = in_use("next");
  std::vector<int64_t> samples;
  if (!state_->batches.next(samples)) return std::nullopt;
  DataBatch batch{.data = {state_->gather(state_->data, provide_data()[0].shape, samples)},
                  .label = {state_->gather(state_->label, provide_label()[0].shape, samples)},
                  .pad = state_->batches.pad()};
  batch.index = std::move(samples);
  for (int64_t& sample : batch.index) sample += state_->data.part.begin;
  return batch;
}

}  // namespace symbind
