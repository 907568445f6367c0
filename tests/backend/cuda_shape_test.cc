// Elements moved, repeated, summed up and created on a GPU against the CPU. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/graph/param.h"
#include "symbind/ops/cumsum.h"
#include "symbind/ops/sequence.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using Case = DeviceCase;
using CudaShapes = GpuTest;

const std::vector<DType> every_type{DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8,
                                    DType::int8,    DType::int32,   DType::int64,   DType::boolean};

// Lengths from 1 to the number of steps, of every type.
void add_sequence_cases(std::vector<Case>& cases) {
  const Attributes with_lengths{{"use_sequence_length", "True"}};
  const std::vector<std::pair<std::string, Shape>> sequences = {
      {"0", {5, 3}}, {"0", {7, 3, 4}}, {"1", {3, 7, 4}}, {"1", {2, 5, 3, 3}}, {"0", {4, 2, 0}}};
  for (const auto& [sequence_axis, data] : sequences) {
    const std::string& axis = sequence_axis;
    const int64_t batch = data[axis == "0" ? 1 : 0];
    Shape last{batch};
    for (int i = 2; i < data.rank(); ++i) last.push_back(data[i]);
    for (const DType lengths : {DType::none, DType::float32, DType::int32, DType::int64, DType::uint8}) {
      const std::vector<DType> types = lengths == DType::none ? float_types : every_type;
      const auto add = [&](const char* op, std::vector<Shape> inputs, Attributes attributes) {
        attributes["axis"] = axis;
        attributes["use_sequence_length"] = "True";
        std::vector<DType> input_types(inputs.size(), DType::none);
        input_types.back() = lengths;
        cases.push_back({op, inputs, attributes, types, 1, 4, 1, true, input_types});
      };
      add("SequenceMask", {data, {batch}}, {{"value", "-3"}});
      if (axis == "0") add("SequenceReverse", {data, {batch}}, {});
      add("SequenceLast", {data, {batch}}, {});
      add("_backward_SequenceLast", {last, data, {batch}}, {});
    }
    for (const char* op : {"SequenceMask", "SequenceLast"}) cases.push_back({op, {data}, {{"axis", axis}}, every_type});
    if (axis == "0") cases.push_back({"SequenceReverse", {data}, {}, every_type});
    cases.push_back({"_backward_SequenceLast", {last, data}, {{"axis", axis}}, every_type});
  }
}

void add_pad_cases(std::vector<Case>& cases) {
  for (const char* mode : {"constant", "edge", "reflect"}) {
    const Attributes flat{{"mode", mode}, {"pad_width", "(0, 0, 0, 0, 2, 1, 3, 2)"}, {"constant_value", "2"}};
    cases.push_back({"Pad", {{2, 3, 4, 5}}, flat, every_type});
    cases.push_back({"_backward_Pad", {{2, 3, 7, 10}}, flat, every_type});
    const Attributes deep{{"mode", mode}, {"pad_width", "(0, 0, 0, 0, 1, 0, 0, 2, 1, 1)"}};
    cases.push_back({"Pad", {{1, 2, 3, 4, 3}}, deep, every_type});
    cases.push_back({"_backward_Pad", {{1, 2, 4, 6, 5}}, deep, every_type});
  }
  // Rows of whole packs and of others; borders along the first axes, and none.
  for (const char* mode : {"constant", "edge", "reflect"})
    for (const Shape& data : {Shape{3, 4, 6, 8}, Shape{3, 4, 6, 9}})
      for (const Tuple& width :
           {Tuple{0, 0, 0, 0, 1, 1, 2, 2}, Tuple{2, 1, 0, 0, 0, 0, 0, 3}, Tuple{0, 0, 1, 2, 0, 0, 0, 0},
            Tuple{0, 0, 0, 0, 0, 0, 0, 0}, Tuple{1, 0, 0, 1, 3, 2, 5, 4}}) {
        const Attributes attributes{{"mode", mode}, {"pad_width", print(width)}, {"constant_value", "2"}};
        Shape padded = data;
        for (int axis = 0; axis < 4; ++axis) {
          const auto i = 2 * static_cast<size_t>(axis);
          padded[axis] += width[i] + width[i + 1];
        }
        cases.push_back({"Pad", {data}, attributes, every_type});
        cases.push_back({"_backward_Pad", {padded}, attributes, every_type, -2, 2, 4});
      }
  const Attributes beyond{{"mode", "edge"}, {"pad_width", "(0, 0, 0, 0, 5, 6, 7, 8)"}};
  cases.push_back({"Pad", {{1, 1, 1, 2}}, beyond, every_type});
  cases.push_back({"_backward_Pad", {{1, 1, 12, 17}}, beyond, float_types, -1, 1, 4});
}

void add_movement_cases(std::vector<Case>& cases) {
  for (const char* k : {"0", "1", "-2"}) {
    cases.push_back({"diag", {{4, 6}}, {{"k", k}}, every_type});
    cases.push_back({"diag", {{5}}, {{"k", k}}, every_type});
    const int64_t length = k[0] == '0' || k[0] == '1' ? 4 : 2, square = 5 + (k[0] == '0' ? 0 : k[0] == '1' ? 1 : 2);
    cases.push_back({"_backward_diag", {{length}, {4, 6}}, {{"k", k}}, every_type});
    cases.push_back({"_backward_diag", {{square, square}, {5}}, {{"k", k}}, every_type});
  }
  cases.push_back({"diag", {{3, 4, 5}}, {{"axis1", "0"}, {"axis2", "2"}}, every_type});
  cases.push_back({"_backward_diag", {{4, 3}, {3, 4, 5}}, {{"axis1", "0"}, {"axis2", "2"}}, every_type});
  const Attributes part{{"begin", "(1, None)"}, {"end", "(4, 6)"}, {"step", "(1, 2)"}};
  cases.push_back({"_slice_assign", {{5, 7}, {3, 3}}, part, every_type});
  cases.push_back({"_slice_assign_scalar", {{5, 7}}, part, every_type});
  const Attributes rows{{"begin", "(1,)"}, {"end", "(3,)"}, {"scalar", "2.5"}};
  cases.push_back({"_slice_assign", {{5, 64}, {2, 64}}, {{"begin", "(1,)"}, {"end", "(3,)"}}, every_type});
  cases.push_back({"_slice_assign_scalar", {{5, 64}}, rows, every_type});
}

void add_repetition_cases(std::vector<Case>& cases) {
  cases.push_back({"_backward_tile", {{6, 12}, {3, 4}}, {{"reps", "(2, 3)"}}, every_type, -2, 2, 2});
  cases.push_back({"_backward_tile", {{2, 3, 4}, {3, 4}}, {{"reps", "(2, 1, 1)"}}, every_type, -2, 2, 2});
  cases.push_back({"_backward_tile", {{3, 4}, {3, 4}}, {{"reps", "(1,)"}}, every_type});
  cases.push_back({"_backward_repeat", {{3, 15}, {3, 5}}, {{"repeats", "3"}, {"axis", "1"}}, every_type, -2, 2, 2});
  cases.push_back({"_backward_repeat", {{6, 8}, {3, 8}}, {{"repeats", "2"}, {"axis", "0"}}, every_type, -2, 2, 2});
  cases.push_back({"_backward_repeat", {{24}, {3, 4}}, {{"repeats", "2"}}, every_type, -2, 2, 2});
}

// Rows for one thread, for a block, for several blocks; along the last axis and along others.
void add_running_sum_cases(std::vector<Case>& cases) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, std::string>>{{{7}, "0"},
                                                                              {{3, 64}, "1"},
                                                                              {{3, 65}, "1"},
                                                                              {{2, 5000}, "1"},
                                                                              {{4100, 3}, "0"},
                                                                              {{70, 4100}, "0"},
                                                                              {{3, 4, 5}, "1"},
                                                                              {{5, 70}, "None"},
                                                                              {{0, 3}, "1"}}) {
    const Shape flat{shape.size()};
    cases.push_back({"_np_cumsum", {shape}, {{"axis", axis}}, every_type, -1, 1, 8});
    cases.push_back(
        {"_backward_np_cumsum", {axis == "None" ? flat : shape, shape}, {{"axis", axis}}, float_types, -1, 1, 8});
  }
  for (const char* dtype : {"float32", "float64", "int32", "int64", "float16"})
    cases.push_back({"_np_cumsum", {{5, 70}}, {{"axis", "1"}, {"dtype", dtype}}, every_type, -2, 2, 4});
}

void add_created_cases(std::vector<Case>& cases) {
  for (const char* dtype : {"float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"}) {
    cases.push_back({"_full", {}, {{"shape", "(3, 5)"}, {"value", "2.5"}, {"dtype", dtype}}});
    cases.push_back({"_eye", {}, {{"N", "5"}, {"M", "7"}, {"k", "1"}, {"dtype", dtype}}});
    if (std::string(dtype) == "bool") continue;  // not a type of numbers
    cases.push_back({"_arange", {}, {{"start", "1"}, {"stop", "40"}, {"step", "1.5"}, {"dtype", dtype}}});
    cases.push_back({"_arange", {}, {{"start", "-3"}, {"stop", "7"}, {"repeat", "3"}, {"dtype", dtype}}});
    cases.push_back({"_linspace", {}, {{"start", "-1"}, {"stop", "7"}, {"num", "33"}, {"dtype", dtype}}});
  }
  cases.push_back({"_linspace", {}, {{"start", "0"}, {"stop", "1"}, {"num", "10"}, {"endpoint", "False"}}});
  cases.push_back({"_eye", {}, {{"N", "4"}, {"k", "-2"}}});
}

void add_cast_cases(std::vector<Case>& cases) {
  for (const char* narrow : {"True", "False"})
    cases.push_back({"amp_multicast",
                     {{3, 5}, {2, 7}, {0, 4}},
                     {{"num_outputs", "3"}, {"cast_narrow", narrow}},
                     every_type,
                     -2,
                     2,
                     1,
                     true,
                     {DType::none, DType::float16, DType::int32}});
}

void add_khatri_rao_cases(std::vector<Case>& cases) {
  const Shape a{3, 5}, b{2, 5}, c{4, 5}, product{24, 5};
  cases.push_back({"khatri_rao", {a, b, c}, {{"num_args", "3"}}, float_types, -2, 2, 2});
  cases.push_back({"_backward_khatri_rao", {product, a, b, c}, {{"num_args", "3"}}, float_types, -2, 2, 4});
  cases.push_back({"khatri_rao", {a}, {{"num_args", "1"}}, float_types});
}

}  // namespace

std::vector<DeviceCase> shape_cases() {
  std::vector<Case> cases;
  add_sequence_cases(cases);
  add_pad_cases(cases);
  add_movement_cases(cases);
  add_repetition_cases(cases);
  add_running_sum_cases(cases);
  add_created_cases(cases);
  add_cast_cases(cases);
  add_khatri_rao_cases(cases);
  return cases;
}

namespace {

TEST(CudaShapeCases, AreAcceptedByTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  expect_accepted(shape_cases());
}

TEST_F(CudaShapes, AreMadeAsOnTheCpu) { compare_devices(shape_cases()); }

TEST_F(CudaShapes, LengthsThatDoNotFitAreReportedByTheNextWait) {
  const NDArray data = counted({3, 2, 4}, DType::float32, gpu(0));
  const NDArray last = invoke(sequence_last, {data, array({3, 5}, gpu(0))}, {.use_sequence_length = true})[0];
  EXPECT_TRUE(fails_with([&] { last.to_vector<float>(); }, "[SequenceLast]", "sequence_length 5 of sequence 1",
                         "between 1 and 3"));
}

// An array of random numbers, or of zeros, that starts one element behind an aligned address.
NDArray at_odd_address(const Shape& shape, uint64_t seed, DType dtype, const Context& context) {
  const Shape flat{shape.size() + 1};
  const NDArray all = seed == 0 ? full(flat, 0, cpu(), dtype) : random_array(flat, seed, -2, 2, dtype);
  return all.as_copy_in(context).slice(1, shape.size() + 1).reshape(shape);
}

TEST_F(CudaShapes, ViewsAtOddAddressesAreReadAndWritten) {
  struct Tried {
    const char* op;
    std::vector<Shape> inputs;
    Shape out;
    Attributes attributes;
  };
  const Attributes border{{"mode", "reflect"}, {"pad_width", "(0, 0, 0, 0, 1, 1, 2, 2)"}};
  const Attributes twice{{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}};
  const Attributes window{{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}};
  const Shape small{2, 3, 4, 8}, large{2, 3, 8, 16}, padded{2, 3, 6, 12}, columns{2, 27, 32};
  const std::vector<Tried> all{{"Pad", {small}, padded, border},
                               {"_backward_Pad", {padded}, small, border},
                               {"UpSampling", {small}, large, twice},
                               {"_backward_UpSampling", {large, small}, small, twice},
                               {"im2col", {small}, columns, window}};
  for (const DType dtype : float_types)
    for (const Tried& tried : all) {
      const auto run = [&](const Context& context) {
        std::vector<NDArray> inputs;
        for (const Shape& shape : tried.inputs) inputs.push_back(at_odd_address(shape, 3, dtype, context));
        const NDArray out = at_odd_address(tried.out, 0, dtype, context);
        const OpDef& op = OpRegistry::get().find(tried.op);
        invoke(op, inputs, op.parse_params(tried.attributes, "node").get(), {.out = {out}});
        return out.as_copy_in(cpu());
      };
      EXPECT_TRUE(all_close(run(gpu(0)), run(cpu()), tolerance_of(dtype))) << tried.op << " in " << dtype;
    }
}

TEST_F(CudaShapes, RunningSumsAreTheSameBitForBit) {
  const NDArray data = random_array({3, 100000}, 1, -1, 1, DType::float32, gpu(0));
  const NDArray first = invoke(cumsum, {data}, {.axis = 1})[0];
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(same_bits(invoke(cumsum, {data}, {.axis = 1})[0], first));
}

}  // namespace
}  // namespace symbind::testing
