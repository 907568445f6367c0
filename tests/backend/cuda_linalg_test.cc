// Operators on matrices, alignments of sequences, Fourier transforms and sketches on a GPU against the CPU's. Skipped
// where there is no GPU.
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/ctc.h"
#include "symbind/ops/linalg_element.h"
#include "symbind/ops/linalg_factor.h"
#include "symbind/ops/linalg_product.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"
#include "tests/support/lapack.h"

namespace symbind::testing {
namespace {

using Numbers = std::vector<double>;
using CudaLinalg = GpuTest;
const std::vector<DType> real = {DType::float32, DType::float64};

// Square matrices far from singular: random ones and `shift` on the diagonal.
NDArray shifted(const Shape& shape, DType dtype, double shift) {
  const NDArray diagonal = full(shape.slice(0, shape.rank() - 1), shift, cpu(), dtype);
  return random_array(shape, 21, -1, 1, dtype) + linalg_makediag(diagonal);
}

// The same call on both devices, by implementations of their own.
void compare(const char* op, const std::vector<NDArray>& inputs, const Attributes& attributes = {}, double slack = 1) {
  SCOPED_TRACE(join(op, " of ", inputs[0].shape(), " in ", inputs[0].dtype()));
  const OpDef& definition = OpRegistry::get().find(op);
  const auto params = definition.parse_params(attributes, "tried");
  EXPECT_TRUE(runs_on_device(definition, gpu(0)));
  std::vector<NDArray> on_gpu;
  for (const NDArray& input : inputs) on_gpu.push_back(input.as_in_context(gpu(0)));
  const auto expected = invoke(definition, inputs, params.get()), actual = invoke(definition, on_gpu, params.get());
  ASSERT_EQ(actual.size(), expected.size());
  Tolerance tolerance = tolerance_of(inputs[0].dtype());
  tolerance.relative *= slack, tolerance.absolute *= slack, tolerance.of_largest += 1e-6 * slack;
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(all_close(actual[i].as_in_context(cpu()), expected[i], tolerance)) << "output " << i;
}

// One matrix, a few, and ones that are too large for functions of many.
std::vector<Shape> shapes_of_square() { return {{4, 4}, {2, 3, 5, 5}, {2, 300, 300}, {1, 1}}; }

TEST_F(CudaLinalg, ProductsAgreeWithTheCpu) {
  for (const DType dtype : real)
    for (const char* ta : {"False", "True"})
      for (const char* tb : {"False", "True"}) {
        const Attributes attributes{{"transpose_a", ta}, {"transpose_b", tb}, {"alpha", "1.5"}};
        const NDArray a = random_array({2, 3, 7, 7}, 1, -1, 1, dtype), b = random_array({2, 3, 7, 7}, 2, -1, 1, dtype);
        compare("_linalg_gemm2", {a, b}, attributes, 4);
        compare("_linalg_gemm", {a, b, random_array({2, 3, 7, 7}, 3, -1, 1, dtype)}, attributes, 4);
        for (const char* axis : {"0", "1"}) {  // rows before the other axes
          Attributes moved = attributes;
          moved["axis"] = axis;
          const NDArray left = random_array({4, 4, 3, 4}, 1, -1, 1, dtype),
                        right = random_array({4, 4, 3, 4}, 2, -1, 1, dtype);
          compare("_linalg_gemm2", {left, right}, moved, 4);
        }
        compare("_linalg_syrk", {random_array({2, 3, 5}, 4, -1, 1, dtype)}, {{"transpose", ta}, {"alpha", "-2"}}, 4);
      }
}

TEST_F(CudaLinalg, TriangularProductsAndSystemsAgreeWithTheCpu) {
  if (lapack_is_missing()) GTEST_SKIP() << without_lapack;
  for (const DType dtype : real)
    for (const Shape& shape : shapes_of_square())
      for (int flags = 0; flags < 8; ++flags) {
        const Attributes attributes{{"transpose", flags & 1 ? "True" : "False"},
                                    {"rightside", flags & 2 ? "True" : "False"},
                                    {"lower", flags & 4 ? "True" : "False"},
                                    {"alpha", "0.5"}};
        const int rank = shape.rank();
        const Shape other = shape.with(flags & 2 ? rank - 2 : rank - 1, 3);
        const double extent = static_cast<double>(shape[rank - 1]);
        const NDArray a = shifted(shape, dtype, extent), b = random_array(other, 5, -1, 1, dtype);
        compare("_linalg_trmm", {a, b}, attributes, 16);
        compare("_linalg_trsm", {a, b}, attributes, 64);
      }
}

TEST_F(CudaLinalg, FactorizationsAgreeWithTheCpu) {
  if (lapack_is_missing()) GTEST_SKIP() << without_lapack;
  for (const DType dtype : real)
    for (const Shape& shape : shapes_of_square()) {
      const double extent = static_cast<double>(shape[shape.rank() - 1]);
      const NDArray a = shifted(shape, dtype, 2 * extent);
      compare("_linalg_potrf", {a}, {}, 16);
      compare("_linalg_potri", {a}, {}, 64);
      compare("_linalg_gelqf", {a}, {}, 64);
      compare("_linalg_inverse", {a}, {}, 64);
      compare("_backward_linalg_inverse", {a}, {}, 64);
      compare("_linalg_slogdet", {a}, {}, 16);
      if (extent < 100) compare("_linalg_det", {a}, {}, 64);
    }
  for (const DType dtype : real) compare("_linalg_gelqf", {random_array({3, 4, 9}, 8, -1, 1, dtype)}, {}, 64);
}

// The rows of matrices that need exchanges in reverse order, smaller and larger than what cuBLAS inverts with one call.
TEST_F(CudaLinalg, InversesOfMatricesThatNeedPivotsAgreeWithTheCpu) {
  if (lapack_is_missing()) GTEST_SKIP() << without_lapack;
  for (const DType dtype : real)
    for (const int64_t extent : {2, 17, 32, 33, 70, 256, 257}) {
      const NDArray a = shifted({3, extent, extent}, dtype, 2 * static_cast<double>(extent));
      compare("_linalg_inverse", {invoke("reverse", {a}, {{"axis", "1"}})[0]}, {}, 64);
    }
}

// Eigenvectors of random matrices differ by more than rounding where eigenvalues are close; what they make does not.
TEST_F(CudaLinalg, EigenvectorsMakeTheMatrix) {
  if (lapack_is_missing()) GTEST_SKIP() << without_lapack;
  for (const DType dtype : real) {
    const NDArray a = linalg_syrk(random_array({3, 20, 20}, 6, -1, 1, dtype));
    const auto parts = invoke("_linalg_syevd", {a.as_in_context(gpu(0))});
    const NDArray u = parts[0].as_in_context(cpu()), l = parts[1].as_in_context(cpu());
    const double tolerance = dtype == DType::float32 ? 1e-4 : 1e-11;
    EXPECT_TRUE(all_close(linalg_gemm2(u, linalg_gemm2(linalg_makediag(l), u), {.transpose_a = true}), a,
                          {.absolute = tolerance}));
    EXPECT_TRUE(all_close(l, invoke("_linalg_syevd", {a})[1], {.absolute = tolerance}));
    compare("_linalg_syevd", {a.slice(0, 1)}, {}, 1000);
  }
}

// Features that fill vectors and others, one and several heads and batch elements.
TEST_F(CudaLinalg, ProductsOfAttentionAgreeWithTheCpu) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    for (const int64_t batch : {1, 3})
      for (const int64_t heads : {1, 4})
        for (const int64_t features : {5, 8, 64}) {
          const Attributes attributes{{"heads", std::to_string(heads)}};
          const int64_t all = heads * features, slots = batch * heads;
          const auto random = [&](const Shape& shape, uint64_t seed) {
            return random_array(shape, seed, -1, 1, dtype);
          };
          const NDArray own = random({9, batch, 3 * all}, 1), keys_values = random({7, batch, 2 * all}, 2);
          compare("_contrib_interleaved_matmul_selfatt_qk", {own}, attributes, 8);
          compare("_contrib_interleaved_matmul_selfatt_valatt", {own, random({slots, 9, 9}, 3)}, attributes, 8);
          compare("_contrib_interleaved_matmul_encdec_qk", {random({9, batch, all}, 4), keys_values}, attributes, 8);
          compare("_contrib_interleaved_matmul_encdec_valatt", {keys_values, random({slots, 9, 7}, 5)}, attributes, 8);
        }
}

TEST_F(CudaLinalg, ElementsAgreeWithTheCpu) {
  for (const DType dtype : real) {
    const NDArray a = random_array({3, 9, 9}, 3, 0.25, 2, dtype);
    compare("_linalg_sumlogdiag", {a}, {}, 4);
    compare("_backward_linalg_sumlogdiag", {random_array({3}, 4, -1, 1, dtype), a});
    compare("_backward_linalg_triangle", {a}, {{"mirrored", "True"}, {"factor", "0.5"}});
    compare("_backward_linalg_triangle", {a}, {{"lower", "False"}});
    compare("_backward_linalg_plus_transpose", {a});
    compare("_backward_linalg_scaled_transpose", {a, random_array({3}, 4, -1, 1, dtype)});
    const NDArray values = random_array({3, 9}, 5, -1, 1, dtype);
    compare("_backward_linalg_eigen", {a, values, random_array({3, 9}, 6, -1, 1, dtype)}, {}, 4);
    compare("_backward_linalg_eigen", {a, values}, {{"values", "False"}}, 4);
    for (const char* offset : {"-2", "0", "3"})
      for (const char* lower : {"True", "False"}) {
        const Attributes attributes{{"offset", offset}, {"lower", lower}};
        compare("_linalg_extracttrian", {a}, attributes);
        compare("_linalg_maketrian", {random_array({2, 2, 21}, 6, -1, 1, dtype)}, attributes);
        compare("_linalg_extractdiag", {a}, {{"offset", offset}});
        compare("_linalg_makediag", {values}, {{"offset", offset}});
      }
  }
}

TEST_F(CudaLinalg, MatricesThatCannotBeFactorizedBecomeNaN) {
  const NDArray two = array(Numbers{4, 0, 0, 4, 1, 2, 2, 1}, {2, 2, 2}, gpu(0));
  const auto factors = linalg_potrf(two).to_vector<double>();
  EXPECT_EQ(Numbers(factors.begin(), factors.begin() + 4), (Numbers{2, 0, 0, 2}));
  EXPECT_TRUE(std::isnan(factors[4]) && std::isnan(factors[7]));
  const NDArray singular = array(Numbers{1, 0, 0, 2, 1, 2, 2, 4}, {2, 2, 2}, gpu(0));
  const auto inverses = linalg_inverse(singular).to_vector<double>();
  EXPECT_EQ(Numbers(inverses.begin(), inverses.begin() + 4), (Numbers{1, 0, 0, 0.5}));
  EXPECT_TRUE(std::isnan(inverses[4]) && std::isnan(inverses[7]));
  EXPECT_EQ(linalg_det(singular).to_vector<double>(), (Numbers{2, 0}));

  // By two triangular systems: a diagonal of twos, and a matrix whose second half is zero.
  constexpr size_t extent = 40, size = extent * extent;
  Numbers both(2 * size, 0);
  for (size_t k = 0; k < extent; ++k) both[k * extent + k] = 2;
  for (size_t k = 0; k < extent / 2; ++k) both[size + k * extent + k] = 2;
  const auto larger = linalg_inverse(array(both, {2, extent, extent}, gpu(0))).to_vector<double>();
  for (size_t i = 0; i < size; ++i) {
    EXPECT_EQ(larger[i], i / extent == i % extent ? 0.5 : 0) << i;
    EXPECT_TRUE(std::isnan(larger[size + i])) << i;
  }
}

TEST_F(CudaLinalg, LossesOfAlignmentsAgreeWithTheCpu) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    for (const char* blank : {"first", "last"}) {
      const NDArray label = random_array({5, 40}, 2, 1, 20, DType::int32);
      const NDArray data_lengths = random_array({5}, 3, 90, 120, DType::int32);
      const NDArray label_lengths = random_array({5}, 4, 0, 40, DType::int64);
      compare("CTCLoss", {random_array({120, 5, 22}, 1, -3, 3, dtype), label, data_lengths, label_lengths},
              {{"blank_label", blank}, {"use_data_lengths", "True"}, {"use_label_lengths", "True"}}, 4);
      compare("CTCLoss", {random_array({9, 2, 300}, 1, -3, 3, dtype), array(Numbers{7, 7, 9, 3, 7, 3}, {2, 3})},
              {{"blank_label", blank}}, 4);
    }
}

TEST_F(CudaLinalg, FourierTransformsAgreeWithTheCpu) {
  for (const DType dtype : real)
    for (const int64_t length : {1, 8, 30, 97}) {
      compare("_contrib_fft", {random_array({3, length}, 1, -1, 1, dtype)}, {}, 16);
      compare("_contrib_ifft", {random_array({2, 3, 2 * length}, 2, -1, 1, dtype)}, {}, 16);
    }
}

TEST_F(CudaLinalg, SketchesAgreeWithTheCpu) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    const NDArray h = random_array({1, 50}, 2, 0, 6.9, dtype), s = random_array({50}, 3, -1, 1, dtype);
    compare("_contrib_count_sketch", {random_array({4, 50}, 1, -1, 1, dtype), h, s}, {{"out_dim", "7"}}, 4);
    compare("_backward_contrib_count_sketch", {random_array({4, 7}, 1, -1, 1, dtype), h, s}, {{"out_dim", "7"}});
  }
}

TEST_F(CudaLinalg, LikelihoodsOfEventsAgreeWithTheCpu) {
  for (const DType dtype : real) {
    const std::vector<NDArray> inputs{
        random_array({40, 3}, 1, 0.5, 2, dtype),  random_array({3}, 2, 0.25, 0.75, dtype),
        random_array({3}, 3, 0.5, 2, dtype),      random_array({40, 3}, 4, 0, 1, dtype),
        random_array({40, 9}, 5, 0.25, 1, dtype), random_array({40, 9}, 6, 0, 2, DType::int32),
        random_array({40}, 7, 0, 9, dtype),       random_array({40}, 8, 9, 12, dtype)};
    compare("_contrib_hawkesll", inputs, {}, 8);
    std::vector<NDArray> with_gradients{random_array({40}, 9, -1, 1, dtype), random_array({40, 3}, 10, -1, 1, dtype)};
    with_gradients.insert(with_gradients.end(), inputs.begin(), inputs.end());
    compare("_backward_contrib_hawkesll", with_gradients, {}, 16);
  }
}

TEST_F(CudaLinalg, LabelsThatAreNoClassesMakeTheirLossNaN) {
  const NDArray data = zeros({3, 3, 3}, gpu(0));
  const NDArray label = array(Numbers{1, 2, 1, 7, -1, 0}, {3, 2}, gpu(0));
  const auto losses = ctc_loss(data, label).to_vector<double>();
  EXPECT_NEAR(losses[0], std::log(27.0 / 5), 1e-5);
  EXPECT_TRUE(std::isnan(losses[1]) && std::isnan(losses[2]));
}

}  // namespace
}  // namespace symbind::testing
