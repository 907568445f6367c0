#include "symbind/data/record_source.h"

#include <algorithm>

#include "symbind/core/error.h"
#include "symbind/data/sharding.h"
#include "symbind/data/shuffle.h"

namespace symbind {
namespace {

constexpr uint32_t seed_offset = 111;                             // MXNet's
constexpr uint64_t default_window = uint64_t{256} << 20;          // bytes
constexpr uint32_t epoch_stride = 1000003, window_stride = 7919;  // seeds of other epochs and windows

// Runs of equal length except the last, as in MXNet; sharding.h uses lengths that differ by at most one.
template <class Number>
std::pair<Number, Number> run_of(Number count, Number parts, Number part, Number unit) {
  const Number length = ((count + parts - 1) / parts + unit - 1) / unit * unit;
  return {std::min(count, part * length), std::min(count, (part + 1) * length)};
}

}  // namespace

RecordSource::RecordSource(RecordSourceOptions options) : options_(std::move(options)), reader_(options_.path) {
  (void)shard_of(0, options_.num_parts, options_.part_index, options_.who);  // validates the arguments
  if (options_.window_bytes == 0) options_.window_bytes = default_window;
  if (!options_.index_path.empty()) {
    use_index();
  } else {
    const auto parts = static_cast<uint64_t>(options_.num_parts), part = static_cast<uint64_t>(options_.part_index);
    const auto [first, last] = run_of<uint64_t>(reader_.size(), parts, part, 4);
    reader_.seek_record_after(last);
    end_ = reader_.tell();
    reader_.seek_record_after(first);
    begin_ = reader_.tell();
  }
  require(end_ > begin_ || !offsets_.empty(), "[", options_.who, "] ", options_.path, " has no records",
          options_.num_parts > 1 ? join(" for part ", options_.part_index, " of ", options_.num_parts) : "");
  order_ = offsets_;
  shuffle_ahead();
}

void RecordSource::use_index() {
  const auto positions = read_record_index(options_.index_path);
  const auto [first, last] =
      run_of<int64_t>(static_cast<int64_t>(positions.size()), options_.num_parts, options_.part_index, 1);
  for (int64_t i = first; i < last; ++i) {
    const uint64_t offset = positions[static_cast<size_t>(i)].offset;
    require(offset < reader_.size(), "[", options_.who, "] ", options_.index_path, " does not belong to ",
            options_.path, ": it has a record at ", offset, " of ", reader_.size(), " bytes");
    offsets_.push_back(offset);
  }
  reader_.seek(end_);  // nothing to scan
}

// The next records of the file, as many as are shuffled together.
void RecordSource::scan_window() {
  const uint64_t first = reader_.tell();
  const uint64_t bytes = options_.shuffle ? options_.window_bytes : uint64_t{1} << 20;
  while (!scanned() && reader_.tell() - first < bytes) {
    offsets_.push_back(reader_.tell());
    order_.push_back(reader_.tell());
    reader_.skip();
  }
}

// Shuffles the remaining entries of order_.
void RecordSource::shuffle_ahead() {
  if (!options_.shuffle || next_ == order_.size()) return;
  const std::vector<uint64_t> before(order_.begin() + static_cast<ptrdiff_t>(next_), order_.end());
  const auto order = seeded_order(static_cast<int64_t>(before.size()),
                                  seed_offset + options_.seed + epoch_ * epoch_stride + window_ * window_stride);
  for (size_t i = 0; i < before.size(); ++i) order_[next_ + i] = before[static_cast<size_t>(order[i])];
}

std::optional<uint64_t> RecordSource::next() {
  if (next_ == order_.size()) {
    if (scanned()) return std::nullopt;
    // Drops the records already returned.
    order_.clear();
    next_ = 0;
    scan_window();
    shuffle_ahead();
    ++window_;
  }
  return order_[next_++];
}

void RecordSource::begin_epoch() {
  ++epoch_;
  window_ = 0;
  next_ = 0;
  if (scanned()) {
    order_ = offsets_;
  } else {
    order_.clear();
    offsets_.clear();
    reader_.seek(begin_);
  }
  shuffle_ahead();
}

std::optional<RecordBatch> RecordBatches::next() {
  if (over_) return std::nullopt;
  RecordBatch batch{.offsets = {}, .pad = 0, .epoch = epoch_, .first = position_};
  while (batch.offsets.size() < batch_size_) {
    if (const std::optional<uint64_t> offset = source_.next()) {
      batch.offsets.push_back(*offset);
      batch.pad += batch.epoch != epoch_ ? 1 : 0;
      ++position_;
      if (first_.size() < batch_size_) first_.push_back(*offset);
      continue;
    }
    over_ = true;
    if (batch.offsets.empty()) return std::nullopt;
    if (!round_) {
      batch.pad = static_cast<int64_t>(batch_size_ - batch.offsets.size());
      for (size_t i = 0; batch.offsets.size() < batch_size_; ++i) batch.offsets.push_back(first_[i % first_.size()]);
      break;
    }
    source_.begin_epoch();
    ++epoch_;
    position_ = 0;
  }
  return batch;
}

void RecordBatches::reset(bool carry) {
  if (!carry) {
    source_.begin_epoch();
    position_ = 0;
    ++epoch_;
  }
  first_.clear();
  over_ = false;
}

}  // namespace symbind
