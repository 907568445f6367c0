#include "tests/support/device_case.h"

#include <algorithm>
#include <ostream>

#include "symbind/exec/invoke.h"
#include "symbind/passes/target.h"

namespace symbind::testing {
namespace {

std::vector<NDArray> random_inputs(const DeviceCase& tried, DType dtype) {
  std::vector<NDArray> arrays;
  for (size_t i = 0; i < tried.inputs.size(); ++i) {
    const DType type = tried.type_of(i, dtype);
    const bool whole = !is_floating(type);
    arrays.push_back(random_array(tried.inputs[i], 11 + i, whole && tried.low > 0 ? 1 : tried.low, tried.high, type));
  }
  return arrays;
}

Tolerance tolerance_for(const DeviceCase& tried, DType dtype) {
  Tolerance tolerance = tolerance_of(dtype);
  tolerance.relative *= tried.slack;
  tolerance.absolute *= tried.slack;
  tolerance.of_largest *= tried.slack;
  return tolerance;
}

std::shared_ptr<const void> params_of(const DeviceCase& tried) {
  const OpDef& op = OpRegistry::get().find(tried.op);
  return tried.params ? op.checked_params(tried.params.get(), "node") : op.parse_params(tried.attributes, "node");
}

std::vector<NDArray> run(const DeviceCase& tried, const std::vector<NDArray>& inputs, Context context) {
  return invoke(OpRegistry::get().find(tried.op), inputs, params_of(tried).get(),
                {.context = context, .is_train = tried.is_train});
}

// A node as a GPU sees it when it is about to be built.
struct GpuNode {
  const OpDef& op;
  std::shared_ptr<const void> params;
  std::vector<Tensor> in, out;
  bool is_train;

  GpuNode(const DeviceCase& tried, const std::vector<NDArray>& inputs, const std::vector<NDArray>& outputs)
      : op(OpRegistry::get().find(tried.op)), is_train(tried.is_train) {
    params = params_of(tried);
    for (const NDArray& array : inputs) in.push_back({array.shape(), array.dtype(), Layout::plain});
    for (const NDArray& array : outputs) out.push_back({array.shape(), array.dtype(), Layout::plain});
    // Hidden outputs: no implementation here checks more than the first when it accepts a node.
    while (out.size() < op.outputs(params.get()).size()) out.push_back(out[0]);
  }
  NodeView view() const {
    return {op, params.get(), "node", in, out, is_train, op.is_random(params.get(), is_train) ? 0 : -1, gpu(0)};
  }
  const Implementation& chosen() const {
    for (const Implementation& implementation : Target::get(gpu(0)).implementations(op))
      if (!implementation.refuse || implementation.refuse(view()).empty()) return implementation;
    return Target::get(gpu(0)).implementations(op).back();
  }
};

// (batch, channels, space…) with the channels moved to the end, or back.
NDArray permuted(const NDArray& array, bool to_last) {
  const Shape& shape = array.shape();
  const int64_t batch = shape[0], channels = shape[1], space = shape.size(2, shape.rank());
  const std::vector<double> from = array.to_vector<double>();
  std::vector<double> to(from.size());
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t s = 0; s < space; ++s) {
        const auto plain = static_cast<size_t>((n * channels + c) * space + s);
        const auto last = static_cast<size_t>((n * space + s) * channels + c);
        if (to_last)
          to[last] = from[plain];
        else
          to[plain] = from[last];
      }
  NDArray result(shape, cpu(), DType::float64);
  result.copy_from(to);
  return result.astype(array.dtype());
}

bool holds(const std::vector<size_t>& numbers, size_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const DeviceCase& tried) {
  out << tried.op << "(" << comma_separated(tried.inputs) << ")";
  for (const auto& [key, value] : tried.attributes) out << " " << key << "=" << value;
  return out << (tried.is_train ? "" : " in inference");
}

void compare_devices(const DeviceCase& tried, DType dtype) {
  SCOPED_TRACE(join(tried, " in ", dtype));
  const std::vector<NDArray> on_cpu = random_inputs(tried, dtype);
  std::vector<NDArray> on_gpu;
  for (const NDArray& array : on_cpu) on_gpu.push_back(array.as_copy_in(gpu(0)));
  seed(5);
  const auto expected = run(tried, on_cpu, cpu());
  seed(5);
  const auto actual = run(tried, on_gpu, gpu(0));
  EXPECT_NE(GpuNode(tried, on_gpu, actual).chosen().name, "host");
  const Tolerance tolerance = tolerance_for(tried, expected[0].dtype());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(all_close(actual[i].as_copy_in(cpu()), expected[i], tolerance)) << "output " << i;
  for (size_t i = 0; i < on_cpu.size(); ++i)
    EXPECT_TRUE(all_close(on_gpu[i].as_copy_in(cpu()), on_cpu[i], tolerance)) << "input " << i << " afterwards";
}

void compare_devices(const std::vector<DeviceCase>& cases) {
  for (const DeviceCase& tried : cases) {
    const bool no_inputs = tried.inputs.empty();
    for (const DType dtype : no_inputs ? std::vector<DType>{DType::float32} : tried.dtypes)
      EXPECT_NO_THROW(compare_devices(tried, dtype)) << tried << " in " << dtype;
  }
}

bool built_with_cuda() {
  return error_of([] { Target::get(gpu(0)); }).empty();
}

void expect_accepted(const std::vector<DeviceCase>& cases) {
  for (const DeviceCase& tried : cases)
    for (const DType dtype : tried.inputs.empty() ? std::vector<DType>{DType::float32} : tried.dtypes) {
      SCOPED_TRACE(join(tried, " in ", dtype));
      const std::vector<NDArray> inputs = random_inputs(tried, dtype);
      EXPECT_NO_THROW({
        const auto outputs = run(tried, inputs, cpu());
        EXPECT_NE(GpuNode(tried, inputs, outputs).chosen().name, "host");
      });
    }
}

void compare_channels_last(const DeviceCase& tried, DType dtype, const std::vector<size_t>& inputs,
                           const std::vector<size_t>& outputs) {
  SCOPED_TRACE(join(tried, " in ", dtype, ", channels last"));
  const std::vector<NDArray> on_cpu = random_inputs(tried, dtype);
  std::vector<NDArray> on_gpu, results;
  for (size_t i = 0; i < on_cpu.size(); ++i)
    on_gpu.push_back((holds(inputs, i) ? permuted(on_cpu[i], true) : on_cpu[i]).as_copy_in(gpu(0)));
  const auto expected = run(tried, on_cpu, cpu());
  GpuNode node(tried, on_cpu, expected);
  std::vector<void*> addresses;
  for (size_t i = 0; i < on_cpu.size(); ++i) {
    if (holds(inputs, i)) node.in[i].layout = Layout::channels_last;
    addresses.push_back(on_gpu[i].mutable_data());
  }
  for (size_t i = 0; i < node.out.size(); ++i) {
    if (i < expected.size() && holds(outputs, i)) node.out[i].layout = Layout::channels_last;
    if (i < expected.size()) results.emplace_back(expected[i].shape(), gpu(0), expected[i].dtype());
    addresses.push_back(i < expected.size() ? results[i].mutable_data() : nullptr);
  }

  const Implementation& implementation = node.chosen();
  ASSERT_NE(implementation.name, "host");
  const auto kernel = implementation.build(node.view());
  Device& device = Device::get(gpu(0));
  Storage scratch(device, std::max<size_t>(kernel->scratch_bytes, 1)),
      cached(device, std::max<size_t>(kernel->cached_bytes, 1));
  Args args{addresses.data(), addresses.data() + on_gpu.size(), scratch.mutable_data(), cached.mutable_data()};
  args.stream = Target::get(gpu(0)).stream(device);
  if (kernel->cached_bytes > 0) kernel->prepare(args);
  kernel->run(args);

  const Tolerance tolerance = tolerance_for(tried, expected[0].dtype());
  for (size_t i = 0; i < results.size(); ++i) {
    const NDArray actual = results[i].as_copy_in(cpu());
    EXPECT_TRUE(all_close(holds(outputs, i) ? permuted(actual, false) : actual, expected[i], tolerance))
        << "output " << i;
  }
  const std::vector<bool> updated = node.op.updated_inputs(node.params.get(), on_cpu.size());
  for (size_t i = 0; i < on_cpu.size(); ++i)
    if (updated[i]) {
      EXPECT_TRUE(all_close(on_gpu[i].as_copy_in(cpu()), on_cpu[i], tolerance)) << "input " << i << " afterwards";
    }
}

}  // namespace symbind::testing
