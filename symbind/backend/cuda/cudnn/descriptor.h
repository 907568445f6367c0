// cuDNN's descriptors: typed attributes that are set one by one and then finalized.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "symbind/backend/cuda/cudnn/cudnn_library.h"
#include "symbind/core/dtype.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend::cudnn {

inline void check(cudnnStatus_t status, std::string_view doing) {
  require(status == CUDNN_STATUS_SUCCESS, "[cuDNN] ", doing, ": ", cudnnGetErrorString(status));
}

inline cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return CUDNN_DATA_FLOAT;
    case DType::float64:
      return CUDNN_DATA_DOUBLE;
    case DType::float16:
      return CUDNN_DATA_HALF;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      fail_unknown_dtype(dtype);
  }
}

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &raw_), "making a descriptor");
  }
  ~Descriptor() {
    if (raw_) cudnnBackendDestroyDescriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }

  cudnnBackendDescriptor_t raw() const { return raw_; }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    check(cudnnBackendSetAttribute(raw_, name, type, static_cast<int64_t>(values.size()), values.data()),
          "describing a convolution");
    return *this;
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, std::span<const int64_t>(values));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.raw_);
  }

  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(raw_); }
  void finalize() { check(try_finalize(), "describing a convolution"); }

  // The values of an attribute, at most `most`.
  template <class T>
  std::vector<T> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t most) const {
    std::vector<T> values(most);
    int64_t count = 0;
    check(cudnnBackendGetAttribute(raw_, name, type, static_cast<int64_t>(most), &count, values.data()),
          "asking about a convolution");
    values.resize(std::min(most, static_cast<size_t>(std::max<int64_t>(count, 0))));
    return values;
  }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace symbind::cuda_backend::cudnn
