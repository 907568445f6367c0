#include "symbind/core/dtype.h"

#include <array>

#include "symbind/core/error.h"

namespace symbind {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t bytes;
};

constexpr std::array<Row, 9> table{{{DType::float32, "float32", 4},
                                    {DType::float64, "float64", 8},
                                    {DType::float16, "float16", 2},
                                    {DType::uint8, "uint8", 1},
                                    {DType::int32, "int32", 4},
                                    {DType::int8, "int8", 1},
                                    {DType::int64, "int64", 8},
                                    {DType::boolean, "bool", 1},
                                    {DType::bfloat16, "bfloat16", 2}}};

const Row* find(DType dtype) {
  for (const Row& row : table)
    if (row.dtype == dtype) return &row;
  return nullptr;
}

}  // namespace

size_t size_of(DType dtype) {
  const Row* row = find(dtype);
  if (!row) fail_unknown_dtype(dtype);
  return row->bytes;
}

std::string_view name_of(DType dtype) {
  const Row* row = find(dtype);
  return row ? row->name : "unknown type";
}

DType dtype_from_name(std::string_view name) {
  std::string known;
  for (const Row& row : table) {
    if (row.name == name) return row.dtype;
    known += (known.empty() ? "" : ", ");
    known += row.name;
  }
  fail("unknown element type '", name, "'; there are ", known);
}

bool is_floating(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::float16 || dtype == DType::bfloat16;
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

void fail_unknown_dtype(DType dtype) {
  if (find(dtype)) fail("not supported for elements of type ", dtype);
  fail("element type number ", static_cast<int>(dtype), " is not known");
}

}  // namespace symbind
