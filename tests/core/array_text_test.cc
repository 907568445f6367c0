// The expected texts are what NumPy prints for the same arrays.
#include "symbind/core/array_text.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/core/ndarray.h"

namespace symbind {
namespace {

std::string text(const NestedNumbers& values, DType dtype = DType::float32) {
  return values_text(array(values, cpu(), dtype));
}

TEST(ArrayText, WholeFloatsEndInAPoint) {
  EXPECT_EQ(text({4}), "[4.]");
  EXPECT_EQ(text({-0.0}), "[-0.]");
  EXPECT_EQ(text({12345678.9}), "[12345679.]");
}

TEST(ArrayText, ElementsHaveOneWidth) {
  EXPECT_EQ(values_text(array({1, 2.5, 3, 4}).reshape({2, 2})), "[[1.  2.5]\n [3.  4. ]]");
  EXPECT_EQ(text({-1.5, 2}), "[-1.5  2. ]");
  EXPECT_EQ(text({123456.789, 1234.5}), "[123456.79   1234.5 ]");
}

TEST(ArrayText, FloatsHaveTheFewestDigitsThatTellThemApart) {
  EXPECT_EQ(text({1.0 / 3, 2.0 / 3}), "[0.33333334 0.6666667 ]");
  EXPECT_EQ(text({1.0 / 3, 2.0 / 3}, DType::float64), "[0.33333333 0.66666667]");
  EXPECT_EQ(text({0.1, 1.0 / 3}, DType::float16), "[0.1    0.3333]");
}

TEST(ArrayText, NumbersOfVeryDifferentSizeHaveExponents) {
  EXPECT_EQ(text({0.1, -0.001, 100}), "[ 1.e-01 -1.e-03  1.e+02]");
  EXPECT_EQ(text({1e-5, 150}), "[1.0e-05 1.5e+02]");
  EXPECT_EQ(text({1e8, 2}), "[1.e+08 2.e+00]");
  EXPECT_EQ(text({67108864, 100000}), "[67108864.   100000.]");
}

TEST(ArrayText, InfinitiesAndNaNsFitTheWidth) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(text({nan, inf, -inf, 1.5}), "[ nan  inf -inf  1.5]");
  EXPECT_EQ(text({nan, 1}), "[nan  1.]");
}

TEST(ArrayText, WholeNumbersAndBooleansAreRightAligned) {
  EXPECT_EQ(text({1, -20, 300}, DType::int32), "[  1 -20 300]");
  EXPECT_EQ(text({1, 0}, DType::boolean), "[ True False]");
  EXPECT_EQ(text({1, 1}, DType::boolean), "[ True  True]");
}

TEST(ArrayText, LongRowsAreWrapped) {
  EXPECT_EQ(values_text(arange(0, 30)),
            "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.\n"
            " 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29.]");
}

TEST(ArrayText, BlocksAreSeparatedByEmptyLines) {
  EXPECT_EQ(values_text(zeros({2, 2, 2})), "[[[0. 0.]\n  [0. 0.]]\n\n [[0. 0.]\n  [0. 0.]]]");
}

TEST(ArrayText, OfManyElementsTheFirstAndLastAreShown) {
  EXPECT_EQ(values_text(arange(0, 1001)), "[   0.    1.    2. ...  998.  999. 1000.]");
  EXPECT_EQ(values_text(arange(0, 2000, 1, 1, cpu(), DType::int32).reshape({2, 1000})),
            "[[   0    1    2 ...  997  998  999]\n [1000 1001 1002 ... 1997 1998 1999]]");
  EXPECT_EQ(values_text(arange(0, 1600).reshape({40, 40})),
            "[[0.000e+00 1.000e+00 2.000e+00 ... 3.700e+01 3.800e+01 3.900e+01]\n"
            " [4.000e+01 4.100e+01 4.200e+01 ... 7.700e+01 7.800e+01 7.900e+01]\n"
            " [8.000e+01 8.100e+01 8.200e+01 ... 1.170e+02 1.180e+02 1.190e+02]\n"
            " ...\n"
            " [1.480e+03 1.481e+03 1.482e+03 ... 1.517e+03 1.518e+03 1.519e+03]\n"
            " [1.520e+03 1.521e+03 1.522e+03 ... 1.557e+03 1.558e+03 1.559e+03]\n"
            " [1.560e+03 1.561e+03 1.562e+03 ... 1.597e+03 1.598e+03 1.599e+03]]");
}

TEST(ArrayText, ArraysWithoutAxesOrElements) {
  EXPECT_EQ(values_text(full(Shape::scalar(), 3)), "3.0");
  EXPECT_EQ(values_text(zeros({0, 3})), "[]");
}

}  // namespace
}  // namespace symbind
