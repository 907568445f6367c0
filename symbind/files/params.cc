// The format, all numbers little-endian:
//
//   u64 0x112, u64 0            what this file is
//   u64 count, then each array  u32 generation, i32 storage, i32 rank, i64 dims…, i32 device type, i32 device id,
//                               i32 element type, the elements
//   u64 0 or count              then each name: u64 length, characters
//
// The generation (MXNet's "magic") says how an array is written. V2 is what 1.9.1 writes; V3 is the same with NumPy's
// meaning of shapes, where an array may have no axes. MXNet loads a file only if all its arrays agree in that meaning.
#include "symbind/files/params.h"

#include <limits>

#include "symbind/core/atomic_file.h"
#include "symbind/files/byte_reader.h"

namespace symbind {
namespace {

constexpr uint64_t file_magic = 0x112;

enum Generation : uint32_t { v1 = 0xF993fac8, v2 = 0xF993fac9, v3 = 0xF993faca };
enum StorageKind : int32_t { dense = 0, row_sparse = 1, csr = 2 };

// ---- Writing
// ----------------------------------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {}

  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    file_.write(&value, sizeof value);
  }
  void put_array(const NDArray& array, Generation generation) {
    put<uint32_t>(generation);
    put<int32_t>(dense);
    put<int32_t>(array.rank());
    for (const int64_t dim : array.shape()) put<int64_t>(dim);
    put<int32_t>(static_cast<int32_t>(array.context().type));
    put<int32_t>(array.context().id);
    put<int32_t>(static_cast<int32_t>(array.dtype()));
    const NDArray host = array.context().is_gpu() ? array.as_in_context(cpu()) : array;
    host.wait_to_read();
    file_.write(host.data(), host.bytes());
  }
  void put_name(const std::string& name) {
    put<uint64_t>(name.size());
    file_.write(name);
  }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
};

void check_arrays(const std::string& path, std::span<const std::string> names, std::span<const NDArray> arrays) {
  require(names.empty() || names.size() == arrays.size(), "[", path, "] every array needs one name: ", names.size(),
          " names for ", arrays.size(), " arrays");
  for (size_t i = 0; i < arrays.size(); ++i)
    require(static_cast<bool>(arrays[i]), "[", path, "] cannot save array ", i,
            names.empty() ? "" : join(" (", names[i], ")"), ": there is no array");
}

// ---- Reading
// ----------------------------------------------------------------------------------------------------------

Shape read_shape(ByteReader& in) {
  const uint64_t begin = in.offset();
  const auto rank = in.read<int32_t>("the rank of an array");
  if (rank < 0 || rank > Shape::max_rank)
    in.fail_at(begin, join("a rank of at most ", Shape::max_rank), static_cast<int64_t>(rank));
  Shape shape = Shape::of_rank(rank);
  for (int axis = 0; axis < rank; ++axis) {
    const uint64_t offset = in.offset();
    shape[axis] = in.read<int64_t>("a dimension of an array");
    if (shape[axis] < 0) in.fail_at(offset, "a dimension of at least 0", shape[axis]);
  }
  return shape;
}

DType read_dtype(ByteReader& in) {
  const uint64_t offset = in.offset();
  const auto flag = in.read<int32_t>("the element type of an array");
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::uint8, DType::int32, DType::int8,
                            DType::int64, DType::boolean, DType::bfloat16})
    if (static_cast<int32_t>(dtype) == flag) return dtype;
  in.fail_at(offset, "an element type (0 to 7, or 12)", flag);
}

// The file must hold all elements before memory is taken for them, and products of dimensions must not overflow, those
// of an array without elements included.
void check_size(ByteReader& in, const Shape& shape, DType dtype, uint64_t shape_offset) {
  uint64_t count = 1;
  bool overflow = false, no_elements = false;
  for (const int64_t dim : shape) {
    if (dim == 0)
      no_elements = true;
    else
      overflow |= __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count);
  }
  overflow |= count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / size_of(dtype);
  if (overflow) in.fail_at(shape_offset, "dimensions whose product fits into 64 bits", shape);
  const uint64_t bytes = no_elements ? 0 : count * size_of(dtype);
  if (bytes > in.remaining())
    in.fail_at(in.offset(), join("the ", bytes, " bytes of an array ", shape, " of ", dtype), "only ", in.remaining(),
               " more");
}

NDArray read_elements(ByteReader& in, const Shape& shape, DType dtype) {
  NDArray array(shape, cpu(), dtype);
  in.read(array.mutable_data(), array.bytes(), "the elements of an array");
  if (dtype == DType::boolean) {  // any byte but 0 means true, a C++ bool holds 0 or 1 only
    auto* bytes = static_cast<uint8_t*>(array.mutable_data());
    for (size_t i = 0; i < array.bytes(); ++i) bytes[i] = bytes[i] != 0;
  }
  return array;
}

// An array of generation V2 or V3 behind its generation.
NDArray read_dense(ByteReader& in, Generation generation) {
  const uint64_t storage_offset = in.offset();
  const auto storage = in.read<int32_t>("the storage kind of an array");
  if (storage == row_sparse || storage == csr)
    in.fail_at(storage_offset, "a dense array", storage == csr ? "a csr array" : "a row_sparse array",
               ", which is not read yet");
  if (storage != dense) in.fail_at(storage_offset, "a storage kind (0 for a dense array)", storage);
  const uint64_t shape_offset = in.offset();
  const Shape shape = read_shape(in);
  if (generation == v2 && shape.rank() == 0) return NDArray();  // no array was there: nothing else was written
  (void)in.read<int32_t>("the device type of an array");
  (void)in.read<int32_t>("the device id of an array");
  const DType dtype = read_dtype(in);
  check_size(in, shape, dtype, shape_offset);
  return read_elements(in, shape, dtype);
}

// Each generation has its reader here.
NDArray read_array(ByteReader& in) {
  const uint64_t offset = in.offset();
  const auto generation = in.read<uint32_t>("the generation of an array");
  switch (generation) {
    case v3:
    case v2:
      return read_dense(in, Generation{generation});
    case v1:
      in.fail_at(offset, "an array of generation V2 or V3", "one of generation V1, which is not read yet");
    default:
      break;
  }
  // The first files had no such number: an array began with its rank.
  if (generation <= 32)
    in.fail_at(offset, "an array of generation V2 or V3",
               "one of the first generation (before V1), which is not read yet");
  in.fail_at(offset, "an array of generation V2 or V3", "the number ", generation, ", which begins no array");
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

}  // namespace

NamedArrays LoadedArrays::dict() const {
  require(names.size() == arrays.size(), "the ", arrays.size(), " arrays were saved as a list: they have no names");
  NamedArrays by_name;
  for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = arrays[i];
  return by_name;
}

void save(const std::string& path, std::span<const std::string> names, std::span<const NDArray> arrays) {
  check_arrays(path, names, arrays);
  Generation generation = v2;
  for (const NDArray& array : arrays)
    if (array.rank() == 0) generation = v3;
  Writer out(path);
  out.put(file_magic);
  out.put<uint64_t>(0);
  out.put<uint64_t>(arrays.size());
  for (const NDArray& array : arrays) out.put_array(array, generation);
  out.put<uint64_t>(names.size());
  for (const std::string& name : names) out.put_name(name);
  out.commit();
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

}  // namespace symbind
