// An array: shape, type and context. It is a handle: copying one shares the data, and a const NDArray is a const
// handle, whose elements may still be written. Elements are always dense and in row-major order, so a view (reshape,
// at, slice on the first axis) is an offset into the same storage; anything else
// is a copy. Arithmetic is in exec/arithmetic.h, saving in files/params.h.
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "symbind/core/context.h"
#include "symbind/core/device.h"
#include "symbind/core/dtype.h"
#include "symbind/core/error.h"
#include "symbind/core/shape.h"

namespace SYMBIND_API symbind {

class NDArray {
 public:
  NDArray() = default;  // no array: false as a condition
  // Uninitialised elements.
  explicit NDArray(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
  // `shape` elements of a storage from a byte offset on.
  NDArray(std::shared_ptr<Storage> storage, size_t byte_offset, const Shape& shape, DType dtype);

  // An array over host memory of the caller: nothing is copied, and each side sees the other's writes. The elements are
  // dense, in row-major order and aligned to their size. `owner` is kept alive as long as any array over the memory;
  // without one the caller must keep the memory until all of them are destroyed.
  static NDArray from_blob(void* data, const Shape& shape, DType dtype, std::shared_ptr<void> owner = nullptr);
  // The same; the type is that of the elements, and `deleter(data)` is called when the last array is destroyed.
  template <class T>
  static NDArray from_blob(T* data, const Shape& shape) {
    return from_blob(data, shape, dtype_of<T>());
  }
  template <class T, std::invocable<T*> Deleter>
  static NDArray from_blob(T* data, const Shape& shape, Deleter deleter) {
    return from_blob(data, shape, dtype_of<T>(),
                     std::shared_ptr<void>(data, [deleter](void* memory) { deleter(static_cast<T*>(memory)); }));
  }

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
  // A view that starts at this array's first element, as another shape and type that need no more bytes.
  NDArray prefix(const Shape& shape, DType dtype) const;

  // One element: a(1, 2) reads it, a(1, 2) = 3 writes it. There are as many indices as axes; negative ones count from
  // the end. Each access is checked and waits for the device: for many elements use to_vector and copy_from.
  class Element;
  template <std::integral... Index>
  Element operator()(Index... indices) const;

  NDArray copy() const { return as_copy_in(context()); }
  NDArray as_copy_in(Context context) const;
  NDArray as_in_context(Context context) const;  // *this if already there
  NDArray astype(DType dtype) const;             // always a copy
  void copyto(const NDArray& dst) const;         // shapes agree; converts the type where needed
  void fill(double value) const;

  // Copies elements to and from the host, with conversion.
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
  // Is it the same memory with the same shape and type?
  bool same_array(const NDArray& other) const {
    return same_memory(other) && shape_ == other.shape_ && dtype_ == other.dtype_;
  }
  std::string str() const;  // values and "<NDArray 2x3 @cpu(0)>"

 private:
  NDArray element_at(std::initializer_list<int64_t> indices) const;
  void write(const void* values, DType from, int64_t count) const;
  void read(void* values, DType to) const;

  std::shared_ptr<Storage> storage_;
  size_t offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::none;
};

// An element of an array that is read and written as a number.
class NDArray::Element {
 public:
  // int64 elements beyond 2^53 are exact only as int64_t.
  template <class T>
  T as() const {
    return element_.to_vector<T>()[0];
  }
  operator double() const { return element_.item(); }
  const Element& operator=(double value) const {
    element_.fill(value);
    return *this;
  }
  const Element& operator=(const Element& other) const {
    other.element_.copyto(element_);
    return *this;
  }
  const Element& operator+=(double value) const { return *this = *this + value; }
  const Element& operator-=(double value) const { return *this = *this - value; }
  const Element& operator*=(double value) const { return *this = *this * value; }
  const Element& operator/=(double value) const { return *this = *this / value; }

 private:
  friend class NDArray;
  explicit Element(NDArray element) : element_(std::move(element)) {}
  NDArray element_;  // a view of one element
};

template <std::integral... Index>
NDArray::Element NDArray::operator()(Index... indices) const {
  return Element(element_at({static_cast<int64_t>(indices)...}));
}

// Arrays by name: a map whose at() fails with a suggestion of similar names.
class NamedArrays : public std::map<std::string, NDArray> {
 public:
  using std::map<std::string, NDArray>::map;
  const NDArray& at(const std::string& name) const;
  NDArray& at(const std::string& name);
};

NDArray empty(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
NDArray full(const Shape& shape, double value, Context context = cpu(), DType dtype = DType::float32);
NDArray zeros(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
NDArray ones(const Shape& shape, Context context = cpu(), DType dtype = DType::float32);
// start, start + step, … before stop, each `repeat` times.
NDArray arange(double start, double stop, double step = 1, int64_t repeat = 1, Context context = cpu(),
               DType dtype = DType::float32);
// Numbers in braces, nested as an array's axes are: {{1, 2}, {3, 4}}.
class NestedNumbers {
 public:
  NestedNumbers(double number) : numbers_{number} {}
  NestedNumbers(std::initializer_list<NestedNumbers> rows);  // fails unless all have one shape
  const Shape& shape() const { return shape_; }
  const std::vector<double>& numbers() const { return numbers_; }

 private:
  Shape shape_;
  std::vector<double> numbers_;
};
// array({1, 2, 3}) has one axis, array({{1, 2}, {3, 4}}) two.
NDArray array(const NestedNumbers& values, Context context = cpu(), DType dtype = DType::float32);
template <class T>
NDArray array(const std::vector<T>& values, const Shape& shape, Context context = cpu(), DType dtype = DType::float32) {
  NDArray result(shape, context, dtype);
  result.copy_from(values);
  return result;
}
NDArray concatenate(std::span<const NDArray> arrays, int axis = 0);

// MXNet's reshape codes applied to a known shape; fails with `who` if they do not fit.
Shape resolve_reshape(const Shape& from, std::span<const int64_t> codes, bool reverse, std::string_view who);

std::ostream& operator<<(std::ostream& out, const NDArray& array);

}  // namespace symbind
