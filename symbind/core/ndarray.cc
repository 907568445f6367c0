#include "symbind/core/ndarray.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "symbind/core/array_text.h"
#include "symbind/core/near_names.h"

namespace symbind {

NDArray::NDArray(const Shape& shape, Context context, DType dtype) : shape_(shape), dtype_(dtype) {
  require(shape.known(), "an array needs a known shape, not ", shape);
  storage_ = std::make_shared<Storage>(Device::get(context), bytes());
}

NDArray::NDArray(std::shared_ptr<Storage> storage, size_t byte_offset, const Shape& shape, DType dtype)
    : storage_(std::move(storage)), offset_(byte_offset), shape_(shape), dtype_(dtype) {
  require(storage_ != nullptr, "an array needs a storage");
  const size_t capacity = storage_->bytes();
  require(bytes() <= capacity && offset_ <= capacity - bytes(), "an array of shape ", shape, " and type ", dtype,
          " does not fit at byte ", byte_offset, " of a storage of ", capacity, " bytes");
}

Storage& NDArray::storage() const {
  require(storage_ != nullptr, "this array is empty: it was never given a shape");
  return *storage_;
}

NDArray NDArray::reshape(std::span<const int64_t> dims) const {
  return {storage_, offset_, resolve_reshape(shape_, dims, false, "[reshape]"), dtype_};
}

NDArray NDArray::at(int64_t index) const {
  require(rank() > 0, "an array without axes cannot be indexed");
  const int64_t counted = index < 0 ? index + shape_[0] : index;
  require(counted >= 0 && counted < shape_[0], "index ", index, " is outside of an axis of length ", shape_[0]);
  const Shape rest = rank() == 1 ? Shape{1} : shape_.slice(1, rank());
  const size_t step = static_cast<size_t>(shape_.size(1, rank())) * size_of(dtype_);
  return {storage_, offset_ + static_cast<size_t>(counted) * step, rest, dtype_};
}

NDArray NDArray::slice(int64_t begin, int64_t end) const {
  require(rank() > 0, "an array without axes cannot be sliced");
  const int64_t from = begin < 0 ? begin + shape_[0] : begin, to = end < 0 ? end + shape_[0] : end;
  require(from >= 0 && from <= to && to <= shape_[0], "the slice ", begin, ":", end,
          " is outside of an axis of length ", shape_[0]);
  const size_t step = static_cast<size_t>(shape_.size(1, rank())) * size_of(dtype_);
  return {storage_, offset_ + static_cast<size_t>(from) * step, shape_.with(0, to - from), dtype_};
}

NDArray NDArray::prefix(const Shape& shape, DType dtype) const { return {storage_, offset_, shape, dtype}; }

NDArray NDArray::as_copy_in(Context context) const {
  NDArray result(shape_, context, dtype_);
  copyto(result);
  return result;
}

NDArray NDArray::as_in_context(Context context) const {
  return context == this->context() ? *this : as_copy_in(context);
}

NDArray NDArray::astype(DType dtype) const {
  NDArray result(shape_, context(), dtype);
  copyto(result);
  return result;
}

void NDArray::copyto(const NDArray& dst) const {
  require(dst.shape_ == shape_, "an array of shape ", shape_, " cannot be copied to one of shape ", dst.shape_);
  Device& here = storage().device();
  Device& there = dst.storage().device();
  if (dst.dtype_ == dtype_) {
    if (!same_memory(dst)) copy_bytes(there, dst.mutable_data(), here, data(), bytes());
  } else if (&here == &there) {
    here.cast(dst.mutable_data(), dst.dtype_, data(), dtype_, size());
  } else {
    // Convert where the data is, then move it.
    NDArray converted(shape_, context(), dst.dtype_);
    here.cast(converted.mutable_data(), dst.dtype_, data(), dtype_, size());
    copy_bytes(there, dst.mutable_data(), here, converted.data(), converted.bytes());
  }
}

void NDArray::fill(double value) const { storage().device().fill(mutable_data(), dtype_, size(), value); }

void NDArray::write(const void* values, DType from, int64_t count) const {
  require(count == size(), count, " values were given for an array of shape ", shape_, ", which holds ", size());
  Device& device = storage().device();
  if (from == dtype_) return device.copy_from_host(mutable_data(), values, bytes());
  std::vector<std::byte> converted(bytes());
  Device::get(cpu()).cast(converted.data(), dtype_, values, from, count);
  device.copy_from_host(mutable_data(), converted.data(), bytes());
}

NDArray NDArray::from_blob(void* data, const Shape& shape, DType dtype, std::shared_ptr<void> owner) {
  require(shape.known(), "[from_blob] the shape must be known: ", shape);
  const size_t element = size_of(dtype), bytes = static_cast<size_t>(shape.size()) * element;
  require(data != nullptr || bytes == 0, "[from_blob] the address is null, and the shape ", shape, " needs ", bytes,
          " bytes");
  require(reinterpret_cast<uintptr_t>(data) % element == 0, "[from_blob] the address of ", dtype,
          " elements must be a multiple of ", element);
  Device& device = Device::get(cpu());
  auto storage =
      owner ? std::make_shared<Storage>(device, data, bytes, std::move(owner)) : Storage::borrowed(device, data, bytes);
  return NDArray(std::move(storage), 0, shape, dtype);
}

NDArray NDArray::element_at(std::initializer_list<int64_t> indices) const {
  require(storage_ != nullptr, "[NDArray] an empty handle has no elements");
  require(static_cast<int>(indices.size()) == rank(), "[NDArray] an element has one index per axis: ", indices.size(),
          indices.size() == 1 ? " index" : " indices", " for an array of shape ", shape_);
  int64_t position = 0;
  int axis = 0;
  for (const int64_t index : indices) {
    const int64_t length = shape_[axis], counted = index < 0 ? index + length : index;
    require(counted >= 0 && counted < length, "[NDArray] index ", index, " is out of bounds for axis ", axis,
            " of an array of shape ", shape_);
    position = position * length + counted;
    ++axis;
  }
  return NDArray(storage_, offset_ + static_cast<size_t>(position) * size_of(dtype_), Shape{1}, dtype_);
}

void NDArray::read(void* values, DType to) const {
  Device& device = storage().device();
  if (to == dtype_) return device.copy_to_host(values, data(), bytes());
  std::vector<std::byte> original(bytes());
  device.copy_to_host(original.data(), data(), bytes());
  Device::get(cpu()).cast(values, to, original.data(), dtype_, size());
}

double NDArray::item() const {
  require(size() == 1, "only an array of one element is a number, not one of shape ", shape_);
  return to_vector<double>()[0];
}

std::string NDArray::str() const {
  if (!storage_) return "<NDArray, empty>";
  TextStream out;
  out << values_text(*this) << "\n<NDArray ";
  for (int axis = 0; axis < rank(); ++axis) out << (axis ? "x" : "") << shape_[axis];
  out << " @" << context() << ">";
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const NDArray& array) { return out << array.str(); }

NDArray empty(const Shape& shape, Context context, DType dtype) { return NDArray(shape, context, dtype); }

NDArray full(const Shape& shape, double value, Context context, DType dtype) {
  NDArray result(shape, context, dtype);
  result.fill(value);
  return result;
}

NDArray zeros(const Shape& shape, Context context, DType dtype) { return full(shape, 0, context, dtype); }
NDArray ones(const Shape& shape, Context context, DType dtype) { return full(shape, 1, context, dtype); }

NDArray arange(double start, double stop, double step, int64_t repeat, Context context, DType dtype) {
  require(step != 0 && std::isfinite(start) && std::isfinite(stop) && std::isfinite(step),
          "[arange] start, stop and step must be finite and step not zero: ", start, ", ", stop, ", ", step);
  require(repeat >= 1, "[arange] repeat must be at least 1: ", repeat);
  const double steps = std::max(0.0, std::ceil((stop - start) / step));
  require(steps * static_cast<double>(repeat) < 1e15, "[arange] ", steps, " elements, each ", repeat,
          " times, are too many");
  const auto count = static_cast<int64_t>(steps);
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count * repeat));
  for (int64_t i = 0; i < count; ++i)
    values.insert(values.end(), static_cast<size_t>(repeat), start + static_cast<double>(i) * step);
  return array(values, Shape{count * repeat}, context, dtype);
}

NestedNumbers::NestedNumbers(std::initializer_list<NestedNumbers> rows) {
  std::vector<int64_t> dims{static_cast<int64_t>(rows.size())};
  if (rows.size() > 0) {
    const Shape& first = rows.begin()->shape_;
    for (int axis = 0; axis < first.rank(); ++axis) dims.push_back(first[axis]);
    for (const NestedNumbers& row : rows) {
      require(row.shape_ == first, "[array] rows must have one shape: ", first, " and ", row.shape_);
      numbers_.insert(numbers_.end(), row.numbers_.begin(), row.numbers_.end());
    }
  }
  shape_ = Shape(dims);
}

NDArray array(const NestedNumbers& values, Context context, DType dtype) {
  return array(values.numbers(), values.shape(), context, dtype);
}

NDArray concatenate(std::span<const NDArray> arrays, int axis) {
  require(!arrays.empty(), "[concatenate] needs at least one array");
  const NDArray& first = arrays[0];
  const int along = first.shape().axis(axis, "[concatenate]");
  Shape shape = first.shape();
  shape[along] = 0;
  for (const NDArray& part : arrays) {
    require(part.rank() == first.rank() && part.shape().with(along, 0) == first.shape().with(along, 0),
            "[concatenate] arrays differ in more than axis ", along, ": ", first.shape(), " and ", part.shape());
    require(part.dtype() == first.dtype(), "[concatenate] arrays have types ", first.dtype(), " and ", part.dtype());
    shape[along] += part.shape()[along];
  }
  NDArray result(shape, first.context(), first.dtype());
  Device& device = result.storage().device();
  auto* const base = static_cast<std::byte*>(result.mutable_data());
  const size_t item = size_of(first.dtype());
  const auto rows = static_cast<size_t>(shape.size(0, along));
  const size_t row_bytes = static_cast<size_t>(shape.size(along, shape.rank())) * item;
  size_t offset = 0;
  for (const NDArray& given : arrays) {
    const NDArray part = given.as_in_context(result.context());
    const size_t part_bytes = static_cast<size_t>(part.shape().size(along, shape.rank())) * item;
    for (size_t row = 0; row < rows; ++row)
      device.copy_within(base + row * row_bytes + offset, static_cast<const std::byte*>(part.data()) + row * part_bytes,
                         part_bytes);
    offset += part_bytes;
  }
  return result;
}

Shape resolve_reshape(const Shape& from, std::span<const int64_t> codes, bool reverse, std::string_view who) {
  std::vector<int64_t> source(from.begin(), from.end()), target(codes.begin(), codes.end());
  const auto bad = [&](const char* rule) {
    fail(who, " ", rule, ": cannot reshape ", from, " to (", comma_separated(codes), ")");
  };
  if (reverse) {
    std::reverse(source.begin(), source.end());
    std::reverse(target.begin(), target.end());
    // Reading from the right, the numbers after a -4 are before it.
    for (size_t i = 0; i + 2 < target.size(); ++i)
      if (target[i + 2] == -4) {
        std::swap(target[i], target[i + 2]);
        std::swap(target[i + 1], target[i + 2]);
        i += 2;
      }
  }
  const int64_t size = from.size();
  const auto product = [&](int64_t a, int64_t b) {
    int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) bad("the sizes are too large");
    return result;
  };
  std::vector<int64_t> dims;
  size_t next = 0;  // the source axis to be used next
  int inferred = -1;
  const auto take = [&] {
    if (next >= source.size()) bad("a code refers to an axis that is not there");
    return source[next++];
  };
  for (size_t i = 0; i < target.size(); ++i) {
    const int64_t code = target[i];
    if (code == 0) {
      dims.push_back(take());
    } else if (code == -1) {
      if (inferred >= 0) bad("only one dimension may be -1");
      inferred = static_cast<int>(dims.size());
      dims.push_back(1);
      ++next;
    } else if (code == -2) {
      while (next < source.size()) dims.push_back(source[next++]);
    } else if (code == -3) {
      const int64_t first = take(), second = take();
      dims.push_back(product(first, second));
    } else if (code == -4) {
      if (i + 2 >= target.size()) bad("-4 must be followed by two numbers");
      const int64_t whole = take();
      int64_t first = target[++i], second = target[++i];
      if (first == -1 && second == -1) bad("-4 can infer one of its two numbers, not both");
      if (first == 0 || second == 0 || first < -1 || second < -1) bad("-4 must be followed by two sizes");
      if (first == -1) first = whole / second;
      if (second == -1) second = whole / first;
      if (product(first, second) != whole) bad("-4 must split an axis into two that multiply to it");
      dims.push_back(first);
      dims.push_back(second);
    } else if (code < 0) {
      bad("codes below -4 mean nothing");
    } else {
      dims.push_back(code);
      ++next;
    }
  }
  if (inferred >= 0) {
    const int64_t rest = std::accumulate(dims.begin(), dims.end(), int64_t{1}, product);
    if (rest == 0 || size % rest != 0) bad("the sizes do not divide");
    dims[static_cast<size_t>(inferred)] = size / rest;
  }
  if (reverse) std::reverse(dims.begin(), dims.end());
  const Shape result(dims);
  if (result.size() != size) bad("the number of elements must stay the same");
  return result;
}

const NDArray& NamedArrays::at(const std::string& name) const {
  const auto found = find(name);
  if (found != end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [each, array] : *this) known.push_back(each);
  fail("unknown array '", name, "'", suggestion(name, known));
}

NDArray& NamedArrays::at(const std::string& name) {
  return const_cast<NDArray&>(static_cast<const NamedArrays*>(this)->at(name));
}

}  // namespace symbind
