// Elementary functions, each written once: exp, sigmoid and tanh on vectors of floats, and the logarithm of floats and doubles in loops that the
// compiler vectorizes.
#pragma once
#include <cstdint>
#include <cstring>

#include "runtime/vectors.h"

namespace {

typedef int32_t ivec __attribute__((vector_size(kLanes * 4)));

inline vec broadcast(float x) { return x - vec{}; }

// e^x = 2^exponent * (1 + fraction), where the fraction is exact to the last bits where x is small, which e^x itself is not. A NaN gives a NaN.
struct Exponential {
  ivec exponent;
  vec fraction;
};

// For |x| below 2^22: x = exponent * log(2) + r, and a polynomial (Cephes, Moshier 1984) for e^r - 1, |r| <= log(2) / 2.
inline __attribute__((always_inline)) Exponential exp_parts(vec x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  constexpr int32_t kRoundBits = 0x4B400000;
  constexpr float kLog2e = 1.44269504f, kLog2High = 0.693145751953125f, kLog2Low = 1.42860677e-6f;
  const vec shifted = x * kLog2e + kRound;
  const vec n = shifted - kRound;
  const vec r = x - n * kLog2High - n * kLog2Low;
  vec p = broadcast(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {(ivec)shifted - kRoundBits, r + r * r * p};
}

// 2^n for n from -126 to 127.
inline vec power_of_two(ivec n) { return (vec)((n + 127) << 23); }

// e^x for x <= 0, within 2 units in the last place. 2^n is multiplied in two steps, for numbers below the normal ones.
inline vec exp_nonpositive(vec x) {
  constexpr float kLeast = -104.0f;  // e^x rounds to 0
  const vec least = broadcast(kLeast);
  const Exponential e = exp_parts(x < least ? least : x);
  const ivec half = e.exponent >> 1;
  return (1.0f + e.fraction) * power_of_two(half) * power_of_two(e.exponent - half);
}

// Of numbers whose e^x is normal; larger ones of either sign count as the largest.
inline Exponential exp_parts_clamped(vec x) {
  constexpr float kMost = 87.0f;
  const vec most = broadcast(kMost);
  x = x > most ? most : x;
  return exp_parts(x < -most ? -most : x);
}

inline vec sigmoid(vec x) {
  const Exponential e = exp_parts_clamped(-x);
  const vec scale = power_of_two(e.exponent);
  return 1.0f / (1.0f + (scale + scale * e.fraction));
}

// By e^2x - 1, for small numbers without cancellation.
inline vec tanh(vec x) {
  const Exponential e = exp_parts_clamped(2.0f * x);
  const vec scale = power_of_two(e.exponent);
  const vec less = scale * e.fraction + (scale - 1.0f);
  return less / (less + 2.0f);
}

// The natural logarithm of positive normal numbers: the exponent, and 2 atanh((m - 1) / (m + 1)) of a mantissa between the roots of 1/2 and 2. A
// loop over it becomes vectors, as one over std::log does not.
inline float log_normal(float x) {
  constexpr uint32_t kRootOfHalf = 0x3f3504f3;
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const int32_t exponent = int32_t(bits - kRootOfHalf) >> 23;
  bits -= uint32_t(exponent) << 23;
  float mantissa;
  std::memcpy(&mantissa, &bits, 4);
  const float s = (mantissa - 1) / (mantissa + 1), q = s * s;
  return float(exponent) * 0.69314718f + 2 * s * (1 + q * (1.0f / 3 + q * (0.2f + q * (1.0f / 7 + q * (1.0f / 9)))));
}

inline double log_normal(double x) {
  constexpr int64_t kRootOfHalf = 0x3fe6a09e667f3bcd, kMantissa = 0xfffffffffffff;
  constexpr double kRound = 0x1.8p52;  // a small whole number behind it is that much more
  constexpr int64_t kRoundBits = 0x4338000000000000;
  int64_t bits;
  std::memcpy(&bits, &x, 8);
  const int64_t above = bits - kRootOfHalf;
  const int64_t mantissa = bits - (above & ~kMantissa), shifted = (above >> 52) + kRoundBits;
  double m, exponent;
  std::memcpy(&m, &mantissa, 8);
  std::memcpy(&exponent, &shifted, 8);
  const double s = (m - 1) / (m + 1), q = s * s;
  double sum = 1 / 17.0;
#pragma GCC unroll 8
  for (int i = 15; i >= 1; i -= 2) sum = sum * q + 1.0 / i;
  return (exponent - kRound) * 0.6931471805599453 + 2 * s * sum;
}

}  // namespace
