// Transposition in tiles, and rows copied by overlapping vectors, against single elements.
#include "symbind/backend/cpu/transpose.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/short_rows.h"

namespace symbind::cpu_backend {
namespace {

template <class T>
void transpose_and_compare(int64_t rows, int64_t columns) {
  const int64_t in_step = columns + 3, out_step = rows + 2;
  std::vector<T> in(static_cast<size_t>(rows * in_step)), out(static_cast<size_t>(columns * out_step), T(0));
  std::iota(in.begin(), in.end(), T(1));
  std::vector<T> expected = out;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      expected[static_cast<size_t>(j * out_step + i)] = in[static_cast<size_t>(i * in_step + j)];
  transpose_block(in.data(), in_step, out.data(), out_step, rows, columns);
  EXPECT_EQ(out, expected) << rows << " × " << columns << " of " << sizeof(T) << " bytes";
}

TEST(TransposeBlock, MovesEveryElementAndNoOther) {
  for (const int64_t rows : {1, 7, 8, 9, 16, 31})
    for (const int64_t columns : {1, 5, 8, 15, 16, 33}) {
      transpose_and_compare<uint8_t>(rows, columns);
      transpose_and_compare<uint16_t>(rows, columns);
      transpose_and_compare<uint32_t>(rows, columns);
      transpose_and_compare<uint64_t>(rows, columns);
    }
}

template <class C>
void gather_and_compare(int64_t count, int64_t step) {
  std::vector<C> from(static_cast<size_t>(count * step + 1)), to(static_cast<size_t>(count + 2), C(-1));
  std::iota(from.begin(), from.end(), C(1));
  std::vector<C> expected = to;
  for (int64_t i = 0; i < count; ++i) expected[static_cast<size_t>(i + 1)] = from[static_cast<size_t>(i * step)];
  gather_row(from.data(), step, count, to.data() + 1);
  EXPECT_EQ(to, expected) << count << " elements, step " << step;
}

TEST(GatherRow, CopiesItsElementsAndNoOther) {
  for (int64_t count = 0; count <= 50; ++count)
    for (int64_t step = 1; step <= 5; ++step) {
      gather_and_compare<float>(count, step);
      gather_and_compare<double>(count, step);
    }
}

}  // namespace
}  // namespace symbind::cpu_backend
