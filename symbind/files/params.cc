// The format, all numbers little-endian:
//
//   u64 0x112, u64 0   file type
//   u64 count          then each array (array_bytes.h)
//   u64 0 or count     then each name: u64 length, characters
//
// MXNet loads a file only if all its arrays agree in the meaning of shapes: one array without axes makes all of them
// V3.
#include "symbind/files/params.h"

#include "symbind/core/atomic_file.h"
#include "symbind/files/array_bytes.h"
#include "symbind/files/byte_reader.h"

namespace symbind {
namespace {

constexpr uint64_t file_magic = 0x112;

void check_arrays(const std::string& path, std::span<const std::string> names, std::span<const NDArray> arrays) {
  require(names.empty() || names.size() == arrays.size(), "[", path, "] every array needs one name: ", names.size(),
          " names for ", arrays.size(), " arrays");
  for (size_t i = 0; i < arrays.size(); ++i)
    require(static_cast<bool>(arrays[i]), "[", path, "] cannot save array ", i,
            names.empty() ? "" : join(" (", names[i], ")"), ": there is no array");
}

std::vector<std::string> read_names(ByteReader& in, uint64_t arrays) {
  const uint64_t offset = in.offset();
  const auto count = in.read<uint64_t>("the number of names");
  if (count != 0 && count != arrays) in.fail_at(offset, join("no names or ", arrays), count);
  std::vector<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length_offset = in.offset();
    const auto length = in.read<uint64_t>("the length of a name");
    if (length > in.remaining())
      in.fail_at(length_offset, "the length of a name", length, ", with only ", in.remaining(), " bytes more");
    std::string& name = names.emplace_back(length, '\0');
    in.read(name.data(), length, "a name");
  }
  return names;
}

LoadedArrays read_arrays(ByteReader& in) {
  const auto magic = in.read<uint64_t>("the number 274 that begins a file of arrays");
  if (magic != file_magic) in.fail_at(0, "the number 274 that begins a file of arrays", magic);
  (void)in.read<uint64_t>("a reserved number");
  const uint64_t count_offset = in.offset();
  const auto count = in.read<uint64_t>("the number of arrays");
  if (count > in.remaining() / sizeof(uint32_t))
    in.fail_at(count_offset, "the number of arrays", count, ", with only ", in.remaining(), " bytes more");
  LoadedArrays loaded;
  for (uint64_t i = 0; i < count; ++i) loaded.arrays.push_back(read_array(in));
  loaded.names = read_names(in, count);
  if (in.remaining() != 0) in.fail_at(in.offset(), "the end of the file", in.remaining(), " more bytes");
  return loaded;
}

}  // namespace

NamedArrays LoadedArrays::dict() const {
  require(names.size() == arrays.size(), "the ", arrays.size(), " arrays were saved as a list: they have no names");
  NamedArrays by_name;
  for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = arrays[i];
  return by_name;
}

void write_arrays(const ByteSink& sink, const std::string& path, std::span<const std::string> names,
                  std::span<const NDArray> arrays) {
  check_arrays(path, names, arrays);
  ArrayGeneration generation = ArrayGeneration::v2;
  for (const NDArray& array : arrays)
    if (array.rank() == 0) generation = ArrayGeneration::v3;
  const auto put_number = [&](uint64_t number) { sink(&number, sizeof number); };
  put_number(file_magic);
  put_number(0);
  put_number(arrays.size());
  for (const NDArray& array : arrays) write_array(sink, array, generation);
  put_number(names.size());
  for (const std::string& name : names) {
    put_number(name.size());
    sink(name.data(), name.size());
  }
}

void save(const std::string& path, std::span<const std::string> names, std::span<const NDArray> arrays) {
  AtomicFile file(path);
  write_arrays([&](const void* data, size_t bytes) { file.write(data, bytes); }, path, names, arrays);
  file.commit();
}

void save(const std::string& path, const NamedArrays& arrays) {
  std::vector<std::string> names;
  std::vector<NDArray> in_order;
  for (const auto& [name, array] : arrays) {
    names.push_back(name);
    in_order.push_back(array);
  }
  save(path, names, in_order);
}

void save(const std::string& path, const std::vector<NDArray>& arrays) { save(path, {}, arrays); }
void save(const std::string& path, std::initializer_list<NDArray> arrays) { save(path, {}, arrays); }

LoadedArrays load(const std::string& path) {
  ByteReader in(path);
  return read_arrays(in);
}

LoadedArrays load_from_bytes(std::string_view bytes, std::string_view source) {
  ByteReader in(bytes, source);
  return read_arrays(in);
}

}  // namespace symbind
