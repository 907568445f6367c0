// Arrays in a file, with names or without: MXNet's `.params`, bit for bit as its version 1.9.1 writes them, and read as
// any of its versions wrote them.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/core/ndarray.h"

namespace SYMBIND_API symbind {

// What a file holds, in its order. `names` is empty when the arrays were saved as a list.
struct LoadedArrays {
  std::vector<std::string> names;
  std::vector<NDArray> arrays;

  // By name; of several arrays with the same name the last is returned. Fails when the file has no names.
  NamedArrays dict() const;
};

// A crash, a full disk or any other failure leaves the old file as it was. MXNet loads a file that holds an array
// without axes only with its NumPy shapes on (`mx.util.np_shape`).
void save(const std::string& path, const NamedArrays& arrays);
void save(const std::string& path, std::span<const std::string> names, std::span<const NDArray> arrays);
void save(const std::string& path, const std::vector<NDArray>& arrays);
void save(const std::string& path, std::initializer_list<NDArray> arrays);
// The bytes of such a file; `path` is named in errors.
void write_arrays(const std::function<void(const void* data, size_t bytes)>& sink, const std::string& path,
                  std::span<const std::string> names, std::span<const NDArray> arrays);

// Returns dense arrays on the CPU, whatever their device and storage type were when saved. A truncated or malformed
// file fails with its name, the offset and what was expected there.
LoadedArrays load(const std::string& path);
// The bytes of such a file; `source` is named in errors.
LoadedArrays load_from_bytes(std::string_view bytes, std::string_view source = "arrays");

}  // namespace symbind
