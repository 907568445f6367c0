// An array: shape, type and place. It is a handle: copying one shares the data, and a const one is a handle that stays
// what it is, whose elements may be written. Elements are always dense and in
// row-major order, so a view (reshape, at, slice on the first axis) is an offset into the same storage; anything else
// is a copy. Arithmetic stands in exec/arithmetic.h, saving in files/params.h.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "symbind/core/context.h"
#include "symbind/core/device.h"
#include "symbind/core/dtype.h"
#include "symbind/core/error.h"
#include "symbind/core/shape.h"

namespace symbind {

class NDArray {
 public:
  NDArray() = default;  // no array: false as a condition
  // Uninitialised elements.
  explicit NDArray(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
  // `shape` elements of a storage from a byte offset on.
  NDArray(std::shared_ptr<Storage> storage, size_t byte_offset, const Shape& shape, DType dtype);

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Context context() const { return storage().device().context(); }
  int rank() const { return shape_.rank(); }
  int64_t size() const { return shape_.size(); }
  size_t bytes() const { return static_cast<size_t>(size()) * size_of(dtype_); }

  // Addresses on the array's device. mutable_data counts as a write.
  const void* data() const { return static_cast<const std::byte*>(storage().data()) + offset_; }
  void* mutable_data() const { return static_cast<std::byte*>(storage().mutable_data()) + offset_; }
  Storage& storage() const;
  const std::shared_ptr<Storage>& storage_ptr() const { return storage_; }
  size_t byte_offset() const { return offset_; }

  // Views of the same memory. reshape knows MXNet's codes: 0 keeps a dimension, -1 infers one, -2 takes all the rest,
  // -3 merges two, -4 splits one.
  NDArray reshape(std::span<const int64_t> dims) const;
  NDArray reshape(std::initializer_list<int64_t> dims) const { return reshape(std::span(dims.begin(), dims.size())); }
  NDArray at(int64_t index) const;                  // a[i]
  NDArray slice(int64_t begin, int64_t end) const;  // a[begin:end]
  // The first elements of the storage seen as another shape that needs no more bytes.
  NDArray prefix(const Shape& shape, DType dtype) const;

  NDArray copy() const { return as_copy_in(context()); }
  NDArray as_copy_in(Context context) const;
  NDArray as_in_context(Context context) const;  // itself when it is there already
  NDArray astype(DType dtype) const;             // always a copy
  void copyto(const NDArray& dst) const;         // shapes agree; converts the type where needed
  void fill(double value) const;

  // Elements from and to the host, converted.
  template <class T>
  void copy_from(std::span<const T> values) const {
    write(values.data(), dtype_of<T>(), static_cast<int64_t>(values.size()));
  }
  template <class T>
  void copy_from(const std::vector<T>& values) const {
    copy_from(std::span<const T>(values));
  }
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<size_t>(size()));
    read(values.data(), dtype_of<T>());
    return values;
  }
  double item() const;  // the only element

  void wait_to_read() const { storage().device().synchronize(); }
  bool same_memory(const NDArray& other) const { return storage_ == other.storage_ && offset_ == other.offset_; }
  std::string str() const;  // values and "<NDArray 2x3 @cpu(0)>"

 private:
  void write(const void* values, DType from, int64_t count) const;
  void read(void* values, DType to) const;

  std::shared_ptr<Storage> storage_;
  size_t offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::none;
};

using NamedArrays = std::map<std::string, NDArray>;

NDArray empty(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
NDArray full(const Shape& shape, double value, Context context = cpu(), DType dtype = DType::float32);
NDArray zeros(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
NDArray ones(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
// start, start + step, … before stop, each `repeat` times.
NDArray arange(double start, double stop, double step = 1, int64_t repeat = 1, Context context = cpu(),
               DType dtype = DType::float32);
// A float32 array of the given numbers; the shape defaults to one axis.
NDArray array(std::initializer_list<double> values, Context context = cpu(), DType dtype = DType::float32);
template <class T>
NDArray array(const std::vector<T>& values, const Shape& shape, Context context = cpu(), DType dtype = DType::float32) {
  NDArray result(shape, context, dtype);
  result.copy_from(values);
  return result;
}
NDArray concatenate(std::span<const NDArray> arrays, int axis = 0);

// MXNet's reshape codes applied to a known shape; fails with `who` when they do not fit.
Shape resolve_reshape(const Shape& from, std::span<const int64_t> codes, bool reverse, std::string_view who);

std::ostream& operator<<(std::ostream& out, const NDArray& array);

}  // namespace symbind
