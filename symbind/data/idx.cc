// The format, numbers big-endian: two zero bytes, a byte for the element type, a byte for the rank, a u32 per
// dimension, the elements.
#include "symbind/data/idx.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <zlib.h>

#include "symbind/core/error.h"
#include "symbind/core/input_file.h"

namespace symbind {
namespace {

// Deflate compresses by at most 1032:1: a larger size in a header cannot be in the file.
constexpr uint64_t largest_ratio = 1032;

// zlib reads uncompressed files unchanged.
class Unpacker {
 public:
  explicit Unpacker(const std::string& path) : path_(path) {
    packed_bytes_ = size_of_input(path);
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    require(file_ != nullptr, "[", path, "] cannot read this file: ", std::strerror(errno ? errno : ENOMEM));
  }

  uint64_t offset() const { return offset_; }
  bool packed() const { return gzdirect(file_.get()) == 0; }
  // No more than this can be unpacked from the file.
  uint64_t most_bytes() const { return packed() ? packed_bytes_ * largest_ratio : packed_bytes_; }

  void read(void* data, uint64_t bytes, std::string_view what) {
    auto* rest = static_cast<uint8_t*>(data);
    const uint64_t begin = offset_;
    for (uint64_t left = bytes; left > 0;) {
      const auto piece = static_cast<unsigned>(std::min<uint64_t>(left, uint64_t{1} << 30));
      const int got = gzread(file_.get(), rest, piece);
      if (got > 0) {
        rest += got;
        offset_ += static_cast<uint64_t>(got);
        left -= static_cast<uint64_t>(got);
      }
      if (got <= 0) fail_at(begin, join(what, " (", bytes, " bytes)"), why_it_ends());
    }
  }
  // Reads to the end, where a gzipped file has its checksum.
  void expect_end() {
    uint8_t more = 0;
    const int got = gzread(file_.get(), &more, 1);
    if (got > 0) fail_at(offset_, "the end of the data", "more bytes");
    if (int code = Z_OK; got < 0 || (gzerror(file_.get(), &code), code != Z_OK))
      fail_at(offset_, "the end of the data", why_it_ends());
  }

  template <class... Found>
  [[noreturn]] void fail_at(uint64_t offset, std::string_view expected, const Found&... found) const {
    fail("[", path_, "] at offset ", offset, packed() ? " of the unpacked data" : "", " expected ", expected,
         ": found ", found...);
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  std::string why_it_ends() const {
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) return std::strerror(errno);
    if (code == Z_BUF_ERROR) return join("the end of the gzipped data at ", offset_, ": the file is truncated");
    if (code != Z_OK) return join("damaged gzipped data after ", offset_, " bytes (", message, ")");
    return join("the end of the file at ", offset_);
  }

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  uint64_t packed_bytes_ = 0;
  uint64_t offset_ = 0;
};

std::string_view name_of_idx_type(uint8_t type) {
  switch (type) {
    case 0x09:
      return "int8";
    case 0x0B:
      return "int16";
    case 0x0C:
      return "int32";
    case 0x0D:
      return "float32";
    case 0x0E:
      return "float64";
    default:
      return "";
  }
}

int read_rank(Unpacker& in) {
  std::array<uint8_t, 4> magic{};
  in.read(magic.data(), magic.size(), "the four bytes that begin an idx file");
  const auto [zero, another_zero, type, rank] = magic;
  if (zero != 0 || another_zero != 0)
    in.fail_at(0, "the two zero bytes that begin an idx file", int{zero}, " and ", int{another_zero});
  if (type != 0x08) {
    const auto name = name_of_idx_type(type);
    if (name.empty()) in.fail_at(2, "an element type of the idx format (8 for uint8)", int{type});
    in.fail_at(2, "elements of type uint8 (8)", int{type}, ", ", name, ", which is not read");
  }
  if (rank > Shape::max_rank) in.fail_at(3, join("a rank of at most ", Shape::max_rank), int{rank});
  return rank;
}

}  // namespace

IdxArray read_idx(const std::string& path) {
  Unpacker in(path);
  IdxArray result;
  const int rank = read_rank(in);
  const uint64_t shape_offset = in.offset();
  result.shape = Shape::of_rank(rank);
  uint64_t count = 1;
  bool too_large = false;
  for (int axis = 0; axis < rank; ++axis) {
    std::array<uint8_t, 4> bytes{};
    in.read(bytes.data(), bytes.size(), "a dimension");
    const uint32_t dim = uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
    result.shape[axis] = dim;
    too_large |= __builtin_mul_overflow(count, uint64_t{dim}, &count);
  }
  if (too_large || count > in.most_bytes())
    in.fail_at(shape_offset, "dimensions of an array this file could hold", result.shape);
  result.values.resize(count);
  in.read(result.values.data(), count, "the elements");
  in.expect_end();
  return result;
}

}  // namespace symbind
