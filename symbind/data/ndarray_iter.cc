#include "symbind/data/ndarray_iter.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "symbind/core/log.h"
#include "symbind/data/sharding.h"
#include "symbind/data/shuffle.h"

namespace symbind {
namespace {

constexpr std::array<std::string_view, 3> last_batch_handles = {"pad", "discard", "roll_over"};

// Consecutive rows are copied together. Runs only on the calling thread: it may be a prefetching thread, which must not
// use the cores that compute.
NDArray gather(const NDArray& from, const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  NDArray result(from.shape().with(0, count), from.context(), from.dtype());
  const size_t row_bytes = static_cast<size_t>(from.shape().size(1, from.rank())) * size_of(from.dtype());
  if (row_bytes == 0) return result;
  Device& device = result.storage().device();
  auto* to = static_cast<std::byte*>(result.mutable_data());
  const auto* base = static_cast<const std::byte*>(from.data());
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
    const std::byte* run = base + static_cast<size_t>(rows[begin]) * row_bytes;
    const size_t bytes = (end - begin) * row_bytes;
    if (device.is_host())
      std::memcpy(to, run, bytes);
    else
      device.copy_within(to, run, bytes);
    to += bytes;
  }
  return result;
}

bool consecutive(const std::vector<int64_t>& rows) {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i] != rows[i - 1] + 1) return false;
  return true;
}

}  // namespace

IteratorArrays::IteratorArrays(const NamedArrays& arrays) {
  for (const auto& [name, array] : arrays) {
    names_.push_back(name);
    arrays_.push_back(array);
  }
}

std::vector<std::string> IteratorArrays::names(const std::string& name) const {
  if (!names_.empty()) return names_;
  if (arrays_.size() == 1) return {name};
  std::vector<std::string> numbered;
  for (size_t i = 0; i < arrays_.size(); ++i) numbered.push_back(join("_", i, "_", name));
  return numbered;
}

std::vector<NDArrayIter::Source> NDArrayIter::sources(const IteratorArrays& given, const std::string& name) {
  const std::vector<std::string> names = given.names(name);
  std::vector<Source> result;
  for (size_t i = 0; i < names.size(); ++i) {
    const NDArray& array = given.arrays()[i];
    require(static_cast<bool>(array), "[NDArrayIter] ", names[i], " is an empty array: it was never given a shape");
    require(array.rank() > 0, "[NDArrayIter] ", names[i], " needs an axis of samples: its shape is ", array.shape());
    result.push_back({names[i], array});
  }
  return result;
}

NDArrayIter::NDArrayIter(IteratorArrays data, IteratorArrays label, NDArrayIterOptions options)
    : data_(sources(data, options.data_name)),
      label_(sources(label, options.label_name)),
      options_(std::move(options)) {
  const std::string& handle = options_.last_batch_handle;
  require(std::ranges::find(last_batch_handles, handle) != last_batch_handles.end(),
          "[NDArrayIter] last_batch_handle must be one of ", comma_separated(last_batch_handles), ": ", handle);
  require(options_.batch_size >= 1, "[NDArrayIter] batch_size must be at least 1: ", options_.batch_size);
  require(!data_.empty(), "[NDArrayIter] needs at least one array of data: none was given");
  const Source& first = data_[0];
  num_data_ = first.array.shape()[0];
  for (const auto* group : {&data_, &label_})
    for (const Source& source : *group)
      require(source.array.shape()[0] == num_data_,
              "[NDArrayIter] data and labels must have the same number of samples: ", first.name, " has ", num_data_,
              ", ", source.name, " has ", source.array.shape()[0], " (shapes ", first.array.shape(), " and ",
              source.array.shape(), ")");
  if (const Shard part = shard_of(num_data_, options_.num_parts, options_.part_index, "NDArrayIter");
      part.size() < num_data_) {
    require(part.size() > 0, "[NDArrayIter] ", num_data_, " samples leave none for part ", options_.part_index, " of ",
            options_.num_parts);
    for (auto* group : {&data_, &label_})
      for (Source& source : *group) source.array = source.array.slice(part.begin, part.end);
    num_data_ = part.size();
  }
  if (handle == "discard" && num_data_ < options_.batch_size)
    log_warning("[NDArrayIter] ", num_data_, " samples do not fill a batch of ", options_.batch_size,
                ", and last_batch_handle is discard: epochs have no batches");
  start({});
}

void NDArrayIter::require_samples(const std::vector<Source>& sources) const {
  for (const auto& [name, array] : sources)
    require(array && array.rank() > 0 && array.shape()[0] == num_data_, "[NDArrayIter] ", name, " must have ",
            num_data_, " samples, as before: its shape is ", array ? array.shape() : Shape(),
            "; construct another NDArrayIter for another number");
}

void NDArrayIter::set_data(std::vector<Source> data) {
  const InUse use = in_use("set_data");
  require(!data.empty(), "[NDArrayIter] needs at least one array of data: none was given");
  require_samples(data);
  data_ = std::move(data);
}

void NDArrayIter::set_label(std::vector<Source> label) {
  const InUse use = in_use("set_label");
  require_samples(label);
  label_ = std::move(label);
}

void NDArrayIter::set_cursor(int64_t position) {
  const InUse use = in_use("set_cursor");
  require(position >= -options_.batch_size, "[NDArrayIter] the cursor is at least -batch_size, ", -options_.batch_size,
          ": ", position);
  position_ = position;
  over_ = position_ >= epoch_size();
}

void NDArrayIter::set_batch_size(int64_t batch_size) {
  const InUse use = in_use("set_batch_size");
  require(batch_size >= 1, "[NDArrayIter] batch_size must be at least 1: ", batch_size);
  if (position_ == -options_.batch_size) position_ = -batch_size;
  options_.batch_size = batch_size;
}

std::vector<DataDesc> NDArrayIter::describe(const std::vector<Source>& sources) const {
  std::vector<DataDesc> result;
  for (const auto& [name, array] : sources)
    result.push_back({name, array.shape().with(0, options_.batch_size), array.dtype(), options_.layout});
  return result;
}

void NDArrayIter::start(std::vector<int64_t> carried) {
  carried_ = std::move(carried);
  position_ = -options_.batch_size;
  drawn_ = false;
  over_ = false;
}

void NDArrayIter::begin_epoch() {
  const InUse use = in_use("begin_epoch");
  if (options_.shuffle && !drawn_) order_ = random_order(num_data_);
  drawn_ = true;
}

void NDArrayIter::reset() {
  const InUse use = in_use("reset");
  std::vector<int64_t> left;
  if (over_ && options_.last_batch_handle == "roll_over")
    for (int64_t position = position_; position < epoch_size(); ++position) left.push_back(row(position));
  start(std::move(left));
}

void NDArrayIter::hard_reset() {
  const InUse use = in_use("hard_reset");
  start({});
}

bool NDArrayIter::iter_next() {
  const InUse use = in_use("iter_next");
  if (over_) return false;
  begin_epoch();
  position_ += options_.batch_size;
  const int64_t needed = options_.last_batch_handle == "pad" ? 1 : options_.batch_size;
  over_ = position_ + needed > epoch_size();
  return !over_;
}

std::optional<DataBatch> NDArrayIter::next() {
  const InUse use = in_use("next");
  if (!iter_next()) return std::nullopt;
  std::vector<int64_t> rows = getindex();
  return DataBatch{.data = batch_of(data_, rows),
                   .label = batch_of(label_, rows),
                   .pad = options_.last_batch_handle == "pad" ? getpad() : 0,
                   .index = std::move(rows)};
}

// After the end it wraps around, as often as needed to fill a batch.
int64_t NDArrayIter::row(int64_t position) const {
  const auto carried = static_cast<int64_t>(carried_.size());
  if (position < carried) return carried_[static_cast<size_t>(position)];
  const int64_t index = (position - carried) % num_data_;
  return order_.empty() ? index : order_[static_cast<size_t>(index)];
}

std::vector<int64_t> NDArrayIter::getindex() const {
  const InUse use = in_use("getindex");
  require(position_ >= 0 && !over_, "[NDArrayIter] there is no batch: call iter_next() first");
  std::vector<int64_t> rows(static_cast<size_t>(options_.batch_size));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = row(position_ + static_cast<int64_t>(i));
  return rows;
}

int64_t NDArrayIter::getpad() const {
  const InUse use = in_use("getpad");
  if (options_.last_batch_handle == "pad") return std::max<int64_t>(0, position_ + options_.batch_size - epoch_size());
  return position_ == 0 ? static_cast<int64_t>(carried_.size()) : 0;
}

std::vector<NDArray> NDArrayIter::batch_of(const std::vector<Source>& sources, const std::vector<int64_t>& rows) {
  const bool view = consecutive(rows);
  std::vector<NDArray> result;
  for (const auto& [name, array] : sources)
    result.push_back(view ? array.slice(rows.front(), rows.back() + 1) : gather(array, rows));
  return result;
}

}  // namespace symbind
