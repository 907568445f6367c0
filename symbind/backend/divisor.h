// Division by a number that is known before a loop over elements begins: a multiplication and a shift instead of a
// division, which takes tens of instructions on a GPU.
#pragma once

#include <cstdint>

namespace symbind {

struct Divided {
  int64_t quotient, rest;
};

class Divisor {
 public:
  constexpr Divisor() = default;
  // A positive number; zero (an empty axis) is allowed but cannot divide. Conversions are implicit both ways, since it
  // is still a number.
  constexpr Divisor(int64_t number) : number_(number) {
    if (number <= 0 || number >= limit) return;
    while (int64_t{1} << shift_ < number) ++shift_;
    const auto by = static_cast<uint64_t>(number);
    multiplier_ = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - by)) / by + 1);
  }

  constexpr operator int64_t() const { return number_; }

  // Of a number that is not negative.
  constexpr Divided divide(int64_t dividend) const {
    if (dividend >= limit || number_ >= limit) {
      const int64_t quotient = dividend / number_;
      return {quotient, dividend - quotient * number_};
    }
    // The quotient by 2^32 / number, rounded up; exact for 31 bits, and the sum does not exceed 32.
    const auto small = static_cast<uint32_t>(dividend);
    const auto high = static_cast<uint32_t>((uint64_t{small} * multiplier_) >> 32);
    const uint32_t quotient = (high + small) >> shift_;
    return {quotient, small - quotient * static_cast<uint32_t>(number_)};
  }

 private:
  static constexpr int64_t limit = int64_t{1} << 31;
  int64_t number_ = 1;
  uint32_t multiplier_ = 1;
  int shift_ = 0;
};

}  // namespace symbind
