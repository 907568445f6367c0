// One array as bytes: what `.params` files hold one after another, and what is inside a pickled array. All numbers
// are little-endian. A number (MXNet's "magic") identifies which of four formats follows:
//
//   none     u32 rank itself, u32 dims…, context, type, elements                          the first files
//   V1       i32 rank, i64 dims…, context, type, elements                                 since dimensions have 64 bits
//   V2       i32 storage, [i32 rank, i64 dims… of what is stored], i32 rank, i64 dims…,   since there are sparse
//            context, type, [for each index: i32 type, i32 rank, i64 dims…], elements,    arrays; 1.9.1
//            [each index]                                                                 writes it
//   V3       as V2, with NumPy's meaning of shapes: an array may have no axes
//
// A context is i32 device type, i32 device id; a type is i32; fields in brackets exist only for sparse arrays. An array
// without a rank (0, in V3 -1) is no array, and nothing follows.
#pragma once

#include <cstdint>
#include <functional>

#include "symbind/core/ndarray.h"
#include "symbind/files/byte_reader.h"

namespace symbind {

enum class ArrayGeneration : uint32_t { v1 = 0xF993fac8, v2 = 0xF993fac9, v3 = 0xF993faca };

using ByteSink = std::function<void(const void* data, size_t bytes)>;

// V2 or V3; an array without axes can be written in V3 alone.
void write_array(const ByteSink& sink, const NDArray& array, ArrayGeneration generation = ArrayGeneration::v2);

// Reads any generation, to the CPU whatever the saved context; a sparse array becomes dense. Sizes are checked before
// memory is allocated.
NDArray read_array(ByteReader& in);

}  // namespace symbind
