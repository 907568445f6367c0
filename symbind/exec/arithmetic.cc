#include "symbind/exec/arithmetic.h"

#include "symbind/exec/invoke.h"

namespace symbind {
namespace {

NDArray binary(const char* op, const NDArray& a, const NDArray& b) { return invoke(op, {a, b})[0]; }
NDArray scalar(const char* op, const NDArray& a, double b) { return invoke(op, {a}, {{"scalar", print(b)}})[0]; }

NDArray& binary_into(const char* op, NDArray& a, const NDArray& b) {
  invoke(op, {a, b}, {}, {.out = {a}});
  return a;
}
NDArray& scalar_into(const char* op, NDArray& a, double b) {
  invoke(op, {a}, {{"scalar", print(b)}}, {.out = {a}});
  return a;
}

}  // namespace

NDArray operator-(const NDArray& a) { return invoke("negative", {a})[0]; }
NDArray operator+(const NDArray& a, const NDArray& b) { return binary("broadcast_add", a, b); }
NDArray operator-(const NDArray& a, const NDArray& b) { return binary("broadcast_sub", a, b); }
NDArray operator*(const NDArray& a, const NDArray& b) { return binary("broadcast_mul", a, b); }
NDArray operator/(const NDArray& a, const NDArray& b) { return binary("broadcast_div", a, b); }
NDArray operator+(const NDArray& a, double b) { return scalar("_plus_scalar", a, b); }
NDArray operator-(const NDArray& a, double b) { return scalar("_minus_scalar", a, b); }
NDArray operator*(const NDArray& a, double b) { return scalar("_mul_scalar", a, b); }
NDArray operator/(const NDArray& a, double b) { return scalar("_div_scalar", a, b); }
NDArray operator+(double a, const NDArray& b) { return b + a; }
NDArray operator-(double a, const NDArray& b) { return scalar("_rminus_scalar", b, a); }
NDArray operator*(double a, const NDArray& b) { return b * a; }
NDArray operator/(double a, const NDArray& b) { return scalar("_rdiv_scalar", b, a); }
NDArray pow(const NDArray& base, const NDArray& exponent) { return binary("broadcast_power", base, exponent); }
NDArray pow(const NDArray& base, double exponent) { return scalar("_power_scalar", base, exponent); }
NDArray pow(double base, const NDArray& exponent) { return scalar("_rpower_scalar", exponent, base); }

NDArray& operator+=(NDArray& a, const NDArray& b) { return binary_into("broadcast_add", a, b); }
NDArray& operator-=(NDArray& a, const NDArray& b) { return binary_into("broadcast_sub", a, b); }
NDArray& operator*=(NDArray& a, const NDArray& b) { return binary_into("broadcast_mul", a, b); }
NDArray& operator/=(NDArray& a, const NDArray& b) { return binary_into("broadcast_div", a, b); }
NDArray& operator+=(NDArray& a, double b) { return scalar_into("_plus_scalar", a, b); }
NDArray& operator-=(NDArray& a, double b) { return scalar_into("_minus_scalar", a, b); }
NDArray& operator*=(NDArray& a, double b) { return scalar_into("_mul_scalar", a, b); }
NDArray& operator/=(NDArray& a, double b) { return scalar_into("_div_scalar", a, b); }

NDArray operator==(const NDArray& a, const NDArray& b) { return binary("broadcast_equal", a, b); }
NDArray operator!=(const NDArray& a, const NDArray& b) { return binary("broadcast_not_equal", a, b); }
NDArray operator<(const NDArray& a, const NDArray& b) { return binary("broadcast_lesser", a, b); }
NDArray operator<=(const NDArray& a, const NDArray& b) { return binary("broadcast_lesser_equal", a, b); }
NDArray operator>(const NDArray& a, const NDArray& b) { return binary("broadcast_greater", a, b); }
NDArray operator>=(const NDArray& a, const NDArray& b) { return binary("broadcast_greater_equal", a, b); }
NDArray operator==(const NDArray& a, double b) { return scalar("_equal_scalar", a, b); }
NDArray operator!=(const NDArray& a, double b) { return scalar("_not_equal_scalar", a, b); }
NDArray operator<(const NDArray& a, double b) { return scalar("_lesser_scalar", a, b); }
NDArray operator<=(const NDArray& a, double b) { return scalar("_lesser_equal_scalar", a, b); }
NDArray operator>(const NDArray& a, double b) { return scalar("_greater_scalar", a, b); }
NDArray operator>=(const NDArray& a, double b) { return scalar("_greater_equal_scalar", a, b); }

}  // namespace symbind
