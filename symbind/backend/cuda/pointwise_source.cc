#include "symbind/backend/cuda/pointwise_source.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <unordered_map>

#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

// What arrays hold, and how it becomes a float and back. Each value in between is rounded as an array would round it,
// so that a program gives what its operators give one by one.
const char* elements_of(DType dtype) {
  if (dtype == DType::float16)
    return R"(
typedef unsigned short element;
__device__ float load(element bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ element store(float x) {
  element bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
)";
  if (dtype == DType::bfloat16)
    return R"(
typedef unsigned short element;
__device__ float load(element bits) { return __uint_as_float((unsigned)bits << 16); }
__device__ element store(float x) {
  const unsigned bits = __float_as_uint(x);
  return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
)";
  return R"(
typedef float element;
__device__ float load(float x) { return x; }
__device__ float store(float x) { return x; }
)";
}

// Functions that are more than an expression; as backend/pointwise.h, pointwise_math.h and activation.h have them.
constexpr const char* functions = R"(
__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ float softrelu(float x) {
  return x > 20.0f ? x : x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x));
}
__device__ float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f; }
__device__ float halves_down(float x) {
  return x - floorf(x) <= ceilf(x) - x ? floorf(x) : x == x ? ceilf(x) : x;
}
__device__ float modulo(float a, float b) {
  if (b == 0.0f) return 0.0f;
  const float rest = fmodf(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}
__device__ float elu(float x, float scale, float slope) { return scale * (x > 0.0f ? x : slope * expm1f(x)); }
__device__ float elu_grad(float dy, float x, float scale, float slope) {
  return dy * scale * (x > 0.0f ? 1.0f : slope * expf(x));
}
__device__ float below(float x) { return 0.5f * (1.0f + erff(x * 0.70710678f)); }
__device__ float gelu_grad(float dy, float x) { return dy * (below(x) + x * (0.39894228f * expf(-0.5f * x * x))); }
__device__ float hard_sigmoid(float x, float alpha, float beta) {
  const float y = alpha * x + beta;
  return y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y;
}
__device__ float hard_sigmoid_grad(float dy, float x, float alpha, float beta) {
  const float y = alpha * x + beta;
  return y > 0.0f && y < 1.0f ? dy * alpha : 0.0f;
}
__device__ float smooth_l1(float x, float sigma) {
  const float square = sigma * sigma;
  if (x > 1.0f / square) return x - 0.5f / square;
  if (x < -1.0f / square) return -x - 0.5f / square;
  return 0.5f * x * x * square;
}
__device__ float smooth_l1_grad(float dy, float x, float sigma) {
  const float square = sigma * sigma;
  if (x > 1.0f / square) return dy;
  if (x < -1.0f / square) return -dy;
  return dy * (x * square);
}
)";

// By operator, with the act_type of those that have one. The operands are a, b and c; $name is a parameter.
const std::unordered_map<std::string_view, const char*>& expressions() {
  static const std::unordered_map<std::string_view, const char*> table = {
      // Functions of one number.
      {"negative", "-a"},
      {"relu", "a < 0.0f ? 0.0f : a"},
      {"sigmoid", "sigmoid(a)"},
      {"tanh", "tanhf(a)"},
      {"exp", "expf(a)"},
      {"log", "logf(a)"},
      {"square", "a * a"},
      {"sqrt", "sqrtf(a)"},
      {"abs", "fabsf(a)"},
      {"sign", "sign(a)"},
      {"round", "roundf(a)"},
      {"rint", "halves_down(a)"},
      {"ceil", "ceilf(a)"},
      {"floor", "floorf(a)"},
      {"fix", "truncf(a)"},
      {"trunc", "truncf(a)"},
      {"rsqrt", "1.0f / sqrtf(a)"},
      {"cbrt", "cbrtf(a)"},
      {"rcbrt", "1.0f / cbrtf(a)"},
      {"log2", "log2f(a)"},
      {"log10", "log10f(a)"},
      {"log1p", "log1pf(a)"},
      {"expm1", "expm1f(a)"},
      {"sin", "sinf(a)"},
      {"cos", "cosf(a)"},
      {"tan", "tanf(a)"},
      {"arcsin", "asinf(a)"},
      {"arccos", "acosf(a)"},
      {"arctan", "atanf(a)"},
      {"sinh", "sinhf(a)"},
      {"cosh", "coshf(a)"},
      {"arcsinh", "asinhf(a)"},
      {"arccosh", "acoshf(a)"},
      {"arctanh", "atanhf(a)"},
      {"degrees", "a * 57.2957795f"},
      {"radians", "a * 0.0174532925f"},
      {"erf", "erff(a)"},
      {"erfinv", "erfinvf(a)"},
      {"gamma", "tgammaf(a)"},
      {"gammaln", "lgammaf(a)"},
      {"reciprocal", "1.0f / a"},
      {"softsign", "a / (1.0f + fabsf(a))"},
      {"logical_not", "a == 0.0f ? 1.0f : 0.0f"},
      {"Activation relu", "a < 0.0f ? 0.0f : a"},
      {"Activation sigmoid", "sigmoid(a)"},
      {"Activation tanh", "tanhf(a)"},
      {"Activation softrelu", "softrelu(a)"},
      {"Activation softsign", "a / (1.0f + fabsf(a))"},
      {"LeakyReLU leaky", "a > 0.0f ? a : $slope * a"},
      {"LeakyReLU elu", "elu(a, 1.0f, $slope)"},
      {"LeakyReLU selu", "elu(a, 1.05070099f, 1.67326324f)"},
      {"LeakyReLU gelu", "a * below(a)"},
      {"clip", "a > $a_max ? $a_max : a < $a_min ? $a_min : a"},
      {"hard_sigmoid", "hard_sigmoid(a, $alpha, $beta)"},
      {"smooth_l1", "smooth_l1(a, $scalar)"},
      // Of two.
      {"elemwise_add", "a + b"},
      {"elemwise_sub", "a - b"},
      {"elemwise_mul", "a * b"},
      {"elemwise_div", "a / b"},
      {"_power", "powf(a, b)"},
      {"_equal", "a == b ? 1.0f : 0.0f"},
      {"_not_equal", "a != b ? 1.0f : 0.0f"},
      {"_greater", "a > b ? 1.0f : 0.0f"},
      {"_greater_equal", "a >= b ? 1.0f : 0.0f"},
      {"_lesser", "a < b ? 1.0f : 0.0f"},
      {"_lesser_equal", "a <= b ? 1.0f : 0.0f"},
      {"_maximum", "a > b || a != a ? a : b"},
      {"_minimum", "a < b || a != a ? a : b"},
      {"_hypot", "hypotf(a, b)"},
      {"_mod", "modulo(a, b)"},
      {"_logical_and", "a != 0.0f && b != 0.0f ? 1.0f : 0.0f"},
      {"_logical_or", "a != 0.0f || b != 0.0f ? 1.0f : 0.0f"},
      {"_logical_xor", "(a != 0.0f) != (b != 0.0f) ? 1.0f : 0.0f"},
      // Of a number and a scalar.
      {"_plus_scalar", "a + $scalar"},
      {"_minus_scalar", "a - $scalar"},
      {"_rminus_scalar", "$scalar - a"},
      {"_mul_scalar", "a * $scalar"},
      {"_div_scalar", "a / $scalar"},
      {"_rdiv_scalar", "$scalar / a"},
      {"_power_scalar", "$scalar == 2.0f ? a * a : powf(a, $scalar)"},
      {"_rpower_scalar", "powf($scalar, a)"},
      {"_equal_scalar", "a == $scalar ? 1.0f : 0.0f"},
      {"_not_equal_scalar", "a != $scalar ? 1.0f : 0.0f"},
      {"_greater_scalar", "a > $scalar ? 1.0f : 0.0f"},
      {"_greater_equal_scalar", "a >= $scalar ? 1.0f : 0.0f"},
      {"_lesser_scalar", "a < $scalar ? 1.0f : 0.0f"},
      {"_lesser_equal_scalar", "a <= $scalar ? 1.0f : 0.0f"},
      {"_maximum_scalar", "a > $scalar || a != a ? a : $scalar"},
      {"_minimum_scalar", "a < $scalar || a != a ? a : $scalar"},
      {"_hypot_scalar", "hypotf(a, $scalar)"},
      {"_mod_scalar", "modulo(a, $scalar)"},
      {"_rmod_scalar", "modulo($scalar, a)"},
      {"_logical_and_scalar", "a != 0.0f && $scalar != 0.0f ? 1.0f : 0.0f"},
      {"_logical_or_scalar", "a != 0.0f || $scalar != 0.0f ? 1.0f : 0.0f"},
      {"_logical_xor_scalar", "(a != 0.0f) != ($scalar != 0.0f) ? 1.0f : 0.0f"},
      // Gradients, of out_grad and the output.
      {"_backward_relu", "b > 0.0f ? a : b * a"},
      {"_backward_sigmoid", "a * (b * (1.0f - b))"},
      {"_backward_tanh", "a * (1.0f - b * b)"},
      {"_backward_sqrt", "a * (0.5f / b)"},
      {"_backward_rpower_scalar", "a * (b * logf($scalar))"},
      {"_backward_Activation relu", "b > 0.0f ? a : b * a"},
      {"_backward_Activation sigmoid", "a * (b * (1.0f - b))"},
      {"_backward_Activation tanh", "a * (1.0f - b * b)"},
      {"_backward_Activation softrelu", "a * -expm1f(-b)"},
      // Of out_grad and the input.
      {"_backward_Activation softsign", "a / ((1.0f + fabsf(b)) * (1.0f + fabsf(b)))"},
      {"_backward_LeakyReLU leaky", "b > 0.0f ? a : $slope * a"},
      {"_backward_LeakyReLU elu", "elu_grad(a, b, 1.0f, $slope)"},
      {"_backward_LeakyReLU selu", "elu_grad(a, b, 1.05070099f, 1.67326324f)"},
      {"_backward_LeakyReLU gelu", "gelu_grad(a, b)"},
      {"_backward_log", "a / b"},
      {"_backward_square", "a * (2.0f * b)"},
      {"_backward_abs", "a * sign(b)"},
      {"_backward_rsqrt", "a * (-0.5f / (b * sqrtf(b)))"},
      {"_backward_cbrt", "a * (1.0f / (3.0f * cbrtf(b) * cbrtf(b)))"},
      {"_backward_rcbrt", "a * (-1.0f / (3.0f * b * cbrtf(b)))"},
      {"_backward_log2", "a * (1.0f / (b * 0.693147181f))"},
      {"_backward_log10", "a * (1.0f / (b * 2.30258509f))"},
      {"_backward_log1p", "a * (1.0f / (1.0f + b))"},
      {"_backward_expm1", "a * expf(b)"},
      {"_backward_sin", "a * cosf(b)"},
      {"_backward_cos", "a * -sinf(b)"},
      {"_backward_tan", "a * (1.0f + tanf(b) * tanf(b))"},
      {"_backward_arcsin", "a * (1.0f / sqrtf(1.0f - b * b))"},
      {"_backward_arccos", "a * (-1.0f / sqrtf(1.0f - b * b))"},
      {"_backward_arctan", "a * (1.0f / (b * b + 1.0f))"},
      {"_backward_sinh", "a * coshf(b)"},
      {"_backward_cosh", "a * sinhf(b)"},
      {"_backward_arcsinh", "a * (1.0f / sqrtf(b * b + 1.0f))"},
      {"_backward_arccosh", "a * (1.0f / sqrtf(b * b - 1.0f))"},
      {"_backward_arctanh", "a * (1.0f / (1.0f - b * b))"},
      {"_backward_degrees", "a * 57.2957795f"},
      {"_backward_radians", "a * 0.0174532925f"},
      {"_backward_erf", "a * (1.12837917f * expf(-b * b))"},
      {"_backward_reciprocal", "a * (-1.0f / (b * b))"},
      {"_backward_softsign", "a * (1.0f / ((1.0f + fabsf(b)) * (1.0f + fabsf(b))))"},
      {"_backward_clip", "b > $a_max || b < $a_min ? 0.0f : a"},
      {"_backward_hard_sigmoid", "hard_sigmoid_grad(a, b, $alpha, $beta)"},
      {"_backward_smooth_l1", "smooth_l1_grad(a, b, $scalar)"},
      {"_backward_rdiv_scalar", "a * (-$scalar / (b * b))"},
      {"_backward_power_scalar", "a * ($scalar * powf(b, $scalar - 1.0f))"},
      {"_backward_maximum_scalar", "b >= $scalar ? a : 0.0f"},
      {"_backward_minimum_scalar", "b <= $scalar ? a : 0.0f"},
      {"_backward_hypot_scalar", "a * (b / hypotf(b, $scalar))"},
      {"_backward_mod_scalar", "a"},
      {"_backward_rmod_scalar", "a * -floorf($scalar / b)"},
      // Of out_grad and the operands, or of those that are read.
      {"_backward_div_lhs", "a / b"},
      {"_backward_div_rhs", "a * (-b / (c * c))"},
      {"_backward_power_lhs", "a * (c * powf(b, c - 1.0f))"},
      {"_backward_power_rhs", "a * (powf(b, c) * logf(b))"},
      {"_backward_maximum_lhs", "b >= c ? a : 0.0f"},
      {"_backward_maximum_rhs", "b < c ? a : 0.0f"},
      {"_backward_minimum_lhs", "b <= c ? a : 0.0f"},
      {"_backward_minimum_rhs", "b > c ? a : 0.0f"},
      {"_backward_hypot_lhs", "a * (b / hypotf(b, c))"},
      {"_backward_hypot_rhs", "a * (c / hypotf(c, b))"},
      {"_backward_mod_lhs", "a"},
      {"_backward_mod_rhs", "a * -floorf(b / c)"},
      {"_backward_LeakyReLU rrelu", "b > 0.0f ? a : a * c"},
  };
  return table;
}

std::string key_of(const PointwiseInstruction& instruction) {
  for (const ParamField& field : instruction.op->fields)
    if (field.name == "act_type") return instruction.op->name + " " + field.print(instruction.params.get());
  return instruction.op->name;
}

// A float to the bit, infinities and NaN among them.
std::string literal(const std::string& number) {
  double value = 0;
  std::from_chars(number.data(), number.data() + number.size(), value);
  char text[32];
  std::snprintf(text, sizeof text, "__int_as_float(0x%08x)", std::bit_cast<uint32_t>(static_cast<float>(value)));
  return text;
}

std::string with_parameters(std::string expression, const PointwiseInstruction& instruction) {
  for (const ParamField& field : instruction.op->fields) {
    const std::string name = "$" + field.name;
    for (size_t at = expression.find(name); at != std::string::npos; at = expression.find(name, at))
      expression.replace(at, name.size(), literal(field.print(instruction.params.get())));
  }
  return expression;
}

}  // namespace

bool has_expression(const PointwiseInstruction& instruction) {
  return expressions().contains(key_of(instruction)) && instruction.operands.size() <= 3;
}

bool may_have_expression(const OpDef& op) {
  return std::any_of(expressions().begin(), expressions().end(), [&](const auto& entry) {
    const std::string_view key = entry.first;  // the name, and an act_type behind a space
    return key.substr(0, key.find(' ')) == op.name;
  });
}

std::string pointwise_source(const Pointwise& program, DType dtype) {
  std::string source = join(elements_of(dtype), functions);
  source += "extern \"C\" __global__ void pointwise(";
  for (int64_t k = 0; k < program.num_args; ++k) source += join("const element* in", k, ", ");
  source += "element* out, long long count) {\n";
  source += "  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count;\n";
  source += "       i += gridDim.x * (long long)blockDim.x) {\n";
  for (int64_t k = 0; k < program.num_args; ++k) source += join("    const float r", k, " = load(in", k, "[i]);\n");
  int64_t next = program.num_args;
  for (const PointwiseInstruction& instruction : program.instructions) {
    source += join("    float r", next, ";\n    { const float ");
    for (size_t k = 0; k < instruction.operands.size(); ++k)
      source += join(k ? ", " : "", "abc"[k], " = r", instruction.operands[k]);
    source += join("; r", next, " = load(store(", with_parameters(expressions().at(key_of(instruction)), instruction),
                   ")); }\n");
    ++next;
  }
  return source + join("    out[i] = store(r", next - 1, ");\n  }\n}\n");
}

}  // namespace symbind::cuda_backend
