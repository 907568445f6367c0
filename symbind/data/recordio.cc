// The format, numbers little-endian. A record is stored in one or more parts: a magic number, a word with the part's
// kind in its upper three bits and its length below, the data, zeros up to a multiple of four bytes. Parts ensure that
// the magic number occurs at multiples of four only at the start of a part: a record that contains it there is split
// there, the number itself is left out, and restored when the parts are read.
#include "symbind/data/recordio.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/core/input_file.h"

namespace symbind {
namespace {

constexpr uint32_t magic = 0xced7230a;
constexpr uint64_t head_bytes = 8;
constexpr uint32_t length_bits = 29;
constexpr uint64_t longest_part = (uint64_t{1} << length_bits) - 1;

enum PartKind : uint32_t { whole = 0, first = 1, middle = 2, last = 3 };

uint64_t padded(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

uint32_t word_at(const char* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

template <class Number>
void append_number(std::string& to, Number number) {
  std::array<char, sizeof number> bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  to.append(bytes.data(), bytes.size());
}

}  // namespace

// ---- writing --------------------------------------------------------------------------------------------------------

class RecordWriter::File {
 public:
  explicit File(const std::string& path) : path_(path) {
    check_path(path);
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    require(descriptor_ >= 0, "[", path, "] cannot write this file: ", std::strerror(errno));
  }
  ~File() {
    if (descriptor_ < 0) return;
    // A forked copy has the same buffered bytes as the original, and only the original may write them.
    if (::getpid() == process_) write_out();
    ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  uint64_t offset() const { return offset_; }

  void write_part(uint32_t kind, std::string_view data) {
    require(descriptor_ >= 0, "[", path_, "] this writer is closed");
    const size_t before = waiting_.size();
    append_number(waiting_, magic);
    append_number(waiting_, kind << length_bits | static_cast<uint32_t>(data.size()));
    waiting_.append(data);
    waiting_.append(padded(data.size()) - data.size(), '\0');
    offset_ += waiting_.size() - before;
    if (waiting_.size() >= block) flush();
  }
  void flush() {
    require(descriptor_ >= 0, "[", path_, "] this writer is closed");
    check(write_out());
  }
  void close() {
    flush();
    check(::close(std::exchange(descriptor_, -1)) == 0);
  }

 private:
  static constexpr size_t block = size_t{1} << 18;

  void check(bool done) const { require(done, "[", path_, "] cannot write to this file: ", std::strerror(errno)); }
  bool write_out() {
    std::string_view rest = waiting_;
    while (!rest.empty()) {
      const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) break;
      rest.remove_prefix(static_cast<size_t>(written));
    }
    waiting_.erase(0, waiting_.size() - rest.size());
    return waiting_.empty();
  }

  std::string path_;
  int descriptor_ = -1;
  pid_t process_ = ::getpid();
  std::string waiting_;
  uint64_t offset_ = 0;
};

RecordWriter::RecordWriter(const std::string& path) : file_(std::make_unique<File>(path)) {}
RecordWriter::~RecordWriter() = default;
RecordWriter::RecordWriter(RecordWriter&&) noexcept = default;
RecordWriter& RecordWriter::operator=(RecordWriter&&) noexcept = default;

uint64_t RecordWriter::tell() const { return file_->offset(); }
void RecordWriter::flush() { file_->flush(); }
void RecordWriter::close() { file_->close(); }

void RecordWriter::write(std::string_view record) {
  require(record.size() <= longest_part, "a record may have at most ", longest_part, " bytes: ", record.size());
  size_t begin = 0;
  for (size_t at = 0; at + 4 <= record.size(); at += 4) {
    if (word_at(record.data() + at) != magic) continue;
    file_->write_part(begin == 0 ? first : middle, record.substr(begin, at - begin));
    begin = at + 4;
  }
  // A magic number at the very front gives an empty first part.
  file_->write_part(begin == 0 ? whole : last, record.substr(begin));
}

// ---- reading --------------------------------------------------------------------------------------------------------

class RecordReader::File {
 public:
  explicit File(const std::string& path) : path_(path), size_(size_of_input(path)) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(descriptor_ >= 0, "[", path, "] cannot read this file: ", std::strerror(errno));
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  struct Part {
    uint32_t kind = whole;
    uint64_t length = 0;
  };

  uint64_t size() const { return size_; }

  // The head of the part at `offset`; none at the end of the file.
  std::optional<Part> part_at(uint64_t offset) {
    if (offset >= size_) return std::nullopt;
    if (size_ - offset < head_bytes)
      fail_at(offset, "the head of a record (8 bytes)", join("the end of the file at ", size_, ": it is truncated"));
    const char* head = buffered(offset, head_bytes);
    if (word_at(head) != magic) fail_at(offset, "the mark of a record", join("the number ", word_at(head)));
    const uint32_t word = word_at(head + 4);
    const Part part{word >> length_bits, word & static_cast<uint32_t>(longest_part)};
    if (part.kind > last) fail_at(offset + 4, "a kind of part from 0 to 3", part.kind);
    if (part.length > size_ - offset - head_bytes)
      fail_at(offset + head_bytes, join("a part of ", part.length, " bytes"),
              join("the end of the file at ", size_, ": it is truncated"));
    return part;
  }
  // Where the next part begins. The padding of the last may be missing.
  uint64_t after(uint64_t offset, const Part& part) const {
    return std::min(offset + head_bytes + padded(part.length), size_);
  }
  void append(uint64_t offset, uint64_t bytes, std::string& to) {
    const size_t before = to.size();
    to.resize(before + bytes);
    const uint64_t ready = offset >= begin_ && offset < begin_ + buffer_.size()
                               ? std::min<uint64_t>(bytes, begin_ + buffer_.size() - offset)
                               : 0;
    if (ready) std::memcpy(to.data() + before, buffer_.data() + (offset - begin_), ready);
    read_from(offset + ready, to.data() + before + ready, bytes - ready);
  }

  template <class Found>
  [[noreturn]] void fail_at(uint64_t offset, std::string_view expected, const Found& found) const {
    fail("[", path_, "] at offset ", offset, " expected ", expected, ": found ", found);
  }

  // The offset of the next record, not of its next part.
  uint64_t position = 0;

 private:
  static constexpr uint64_t block = uint64_t{1} << 16;

  // `bytes` bytes that exist, valid until the next call.
  const char* buffered(uint64_t offset, uint64_t bytes) {
    if (offset < begin_ || offset + bytes > begin_ + buffer_.size()) {
      buffer_.resize(std::min(std::max(block, bytes), size_ - offset));
      begin_ = offset;
      read_from(offset, buffer_.data(), buffer_.size());
    }
    return buffer_.data() + (offset - begin_);
  }
  void read_from(uint64_t offset, char* to, uint64_t bytes) {
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        const std::string why = got < 0 ? std::strerror(errno) : "the end of the file: it was truncated meanwhile";
        buffer_.clear();
        fail_at(offset, join(bytes, " more bytes"), why);
      }
      to += got;
      offset += static_cast<uint64_t>(got);
      bytes -= static_cast<uint64_t>(got);
    }
  }

  std::string path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
  uint64_t begin_ = 0;  // of the buffer, in the file
  std::string buffer_;
};

RecordReader::RecordReader(const std::string& path) : file_(std::make_unique<File>(path)) {}
RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader& RecordReader::operator=(RecordReader&&) noexcept = default;

uint64_t RecordReader::tell() const { return file_->position; }
void RecordReader::seek(uint64_t offset) { file_->position = offset; }
uint64_t RecordReader::size() const { return file_->size(); }

namespace {

// Calls take(data offset, length, a later part) for every part of the record at `file.position`, and advances the
// position after the last one.
template <class File, class Take>
bool for_each_part(File& file, Take take) {
  uint64_t offset = file.position;
  auto part = file.part_at(offset);
  if (!part) return false;
  if (part->kind != whole && part->kind != first)
    file.fail_at(offset + 4, "the first part of a record", join("a later part (kind ", part->kind, ")"));
  for (bool later = false;; later = true) {
    take(offset + head_bytes, part->length, later);
    offset = file.after(offset, *part);
    if (part->kind == whole || part->kind == last) break;
    part = file.part_at(offset);
    if (!part) file.fail_at(offset, "the next part of a record", "the end of the file: it is truncated");
    if (part->kind != middle && part->kind != last)
      file.fail_at(offset + 4, "a later part of a record", join("the beginning of another (kind ", part->kind, ")"));
  }
  file.position = offset;
  return true;
}

}  // namespace

bool RecordReader::read(std::string& record) {
  record.clear();
  return for_each_part(*file_, [&](uint64_t offset, uint64_t length, bool later) {
    if (later) append_number(record, magic);
    file_->append(offset, length, record);
  });
}

bool RecordReader::skip() {
  return for_each_part(*file_, [](uint64_t, uint64_t, bool) {});
}

void RecordReader::seek_record_after(uint64_t offset) {
  std::string words;
  for (offset = padded(offset); offset + head_bytes <= size();) {
    words.clear();
    file_->append(offset, std::min<uint64_t>(size() - offset, uint64_t{1} << 16), words);
    for (size_t at = 0; at + head_bytes <= words.size(); at += 4)
      if (const uint32_t kind = word_at(words.data() + at + 4) >> length_bits;
          word_at(words.data() + at) == magic && (kind == whole || kind == first))
        return seek(offset + at);
    offset += words.size() / 4 * 4 - 4;  // the last word may be a magic number whose kind is in the next block
  }
  seek(size());
}

// ---- the index ------------------------------------------------------------------------------------------------------

std::vector<RecordPosition> read_record_index(const std::string& path) {
  const std::string text = read_whole_file(path);
  std::vector<RecordPosition> positions;
  size_t number = 0;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    const char* const line_end = std::find(at, end, '\n');
    ++number;
    std::string_view line(at, static_cast<size_t>(line_end - at));
    if (line.ends_with('\r')) line.remove_suffix(1);
    at = line_end + 1;
    if (line.empty()) continue;
    RecordPosition position;
    const auto key = std::from_chars(line.data(), line.data() + line.size(), position.key);
    const bool tab = key.ec == std::errc{} && key.ptr != line.data() + line.size() && *key.ptr == '\t';
    const auto offset = tab ? std::from_chars(key.ptr + 1, line.data() + line.size(), position.offset) : key;
    require(tab && offset.ec == std::errc{} && offset.ptr == line.data() + line.size(), "[", path, "] line ", number,
            " must be a key, a tab and an offset: '", line.substr(0, 60), "'");
    positions.push_back(position);
  }
  return positions;
}

void write_record_index(const std::string& path, const std::vector<RecordPosition>& positions) {
  check_path(path);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  require(file != nullptr, "[", path, "] cannot write this file: ", std::strerror(errno));
  bool written = true;
  for (const auto& [key, offset] : positions) {
    const std::string line = join(key, '\t', offset, '\n');
    written &= std::fwrite(line.data(), 1, line.size(), file) == line.size();
  }
  written &= std::fclose(file) == 0;
  require(written, "[", path, "] cannot write to this file: ", std::strerror(errno));
}

// ---- records of images: a u32 count of labels (0: the one after it), a float32 label, two u64, the labels, the data
// ---

namespace {
constexpr size_t header_bytes = 4 + 4 + 8 + 8;
}

std::string pack_record(const RecordHeader& header, std::string_view data) {
  std::string record;
  record.reserve(header_bytes + header.labels.size() * sizeof(float) + data.size());
  append_number(record, static_cast<uint32_t>(header.labels.size()));
  append_number(record, header.labels.empty() ? header.label : 0.F);
  append_number(record, header.id);
  append_number(record, header.id2);
  for (const float label : header.labels) append_number(record, label);
  return record.append(data);
}

ImageRecord unpack_record(std::string_view record) {
  require(record.size() >= header_bytes, "a record for an image begins with a header of ", header_bytes,
          " bytes: this one has ", record.size(), " bytes in all");
  ImageRecord image;
  RecordHeader& header = image.header;
  const uint32_t count = word_at(record.data());
  std::memcpy(&header.label, record.data() + 4, sizeof header.label);
  std::memcpy(&header.id, record.data() + 8, sizeof header.id);
  std::memcpy(&header.id2, record.data() + 16, sizeof header.id2);
  const std::string_view rest = record.substr(header_bytes);
  require(count <= rest.size() / sizeof(float), "the header of this record promises ", count, " labels (",
          uint64_t{count} * sizeof(float), " bytes), but only ", rest.size(), " bytes follow");
  header.labels.resize(count);
  if (count) std::memcpy(header.labels.data(), rest.data(), count * sizeof(float));
  image.data = rest.substr(count * sizeof(float));
  return image;
}

}  // namespace symbind
