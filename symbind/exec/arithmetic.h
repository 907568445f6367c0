// Arithmetic on arrays: with arrays (broadcasting) and with numbers. Results are new arrays in the operands' type; the
// compound assignments write into the left operand.
#pragma once

#include "symbind/core/ndarray.h"

namespace SYMBIND_API symbind {

enum class OpReq : uint8_t;
// A custom operator's result (see ops/custom.h): replaces what dst holds, is added to it, or is ignored.
void assign(const NDArray& dst, OpReq req, const NDArray& src);
void assign(const NDArray& dst, OpReq req, double src);

NDArray operator-(const NDArray& a);
NDArray operator+(const NDArray& a, const NDArray& b);
NDArray operator-(const NDArray& a, const NDArray& b);
NDArray operator*(const NDArray& a, const NDArray& b);
NDArray operator/(const NDArray& a, const NDArray& b);
NDArray operator+(const NDArray& a, double b);
NDArray operator-(const NDArray& a, double b);
NDArray operator*(const NDArray& a, double b);
NDArray operator/(const NDArray& a, double b);
NDArray operator+(double a, const NDArray& b);
NDArray operator-(double a, const NDArray& b);
NDArray operator*(double a, const NDArray& b);
NDArray operator/(double a, const NDArray& b);
NDArray pow(const NDArray& base, const NDArray& exponent);
NDArray pow(const NDArray& base, double exponent);
NDArray pow(double base, const NDArray& exponent);

NDArray& operator+=(NDArray& a, const NDArray& b);
NDArray& operator-=(NDArray& a, const NDArray& b);
NDArray& operator*=(NDArray& a, const NDArray& b);
NDArray& operator/=(NDArray& a, const NDArray& b);
NDArray& operator+=(NDArray& a, double b);
NDArray& operator-=(NDArray& a, double b);
NDArray& operator*=(NDArray& a, double b);
NDArray& operator/=(NDArray& a, double b);

// 1 where the comparison holds, 0 elsewhere.
NDArray operator==(const NDArray& a, const NDArray& b);
NDArray operator!=(const NDArray& a, const NDArray& b);
NDArray operator<(const NDArray& a, const NDArray& b);
NDArray operator<=(const NDArray& a, const NDArray& b);
NDArray operator>(const NDArray& a, const NDArray& b);
NDArray operator>=(const NDArray& a, const NDArray& b);
NDArray operator==(const NDArray& a, double b);
NDArray operator!=(const NDArray& a, double b);
NDArray operator<(const NDArray& a, double b);
NDArray operator<=(const NDArray& a, double b);
NDArray operator>(const NDArray& a, double b);
NDArray operator>=(const NDArray& a, double b);

}  // namespace symbind
