// Functions of single numbers for which torch's operators go over memory several times, or number by number.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// Results are those of operators one after another, each rounded.
#pragma GCC optimize("fp-contract=off")

#include "runtime/vector_math.h"  // behind the pragma: functions with other options would not be inlined

namespace {

constexpr int kBlock = 64;  // numbers that are worked on together

// Calls work(begin, count) for blocks of numbers.
template <typename Work>
void in_blocks(int64_t n, int threads, Work work) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t begin = 0; begin < n; begin += kBlock) work(begin, int(std::min<int64_t>(kBlock, n - begin)));
}

// Gamma at 2 + f for f from 0 to 1, by interpolation at Chebyshev's points: 1e-13 of it at most.
inline double gamma_from_two(double f) {
  constexpr double c[] = {0.9999999999999007,     0.4227843351328246,    0.41184032845865265,    0.08157696371268287,   0.07424848576664854,
                          -0.0002632646442810487, 0.011136963094752272,  -0.002799187895954067,  0.0019865403316762795, -0.0007352371930377672,
                          0.0002805765677446589,  -6.47902783864416e-05, 8.286946856950505e-06};
  double sum = c[12];
#pragma GCC unroll 12
  for (int i = 11; i >= 0; --i) sum = sum * f + c[i];
  return sum;
}

void gamma_block(const float* in, float* out, int count) {
  constexpr double kHigh = 40, kLow = -60;  // above it is infinite in single precision, below 0
  double values[kBlock], floors[kBlock], over[kBlock], under[kBlock];
  double least = 2, most = 2;
#pragma omp simd reduction(min : least) reduction(max : most)
  for (int i = 0; i < count; ++i) {
    const double x = std::min<double>(std::max<double>(in[i], kLow - 1), kHigh);
    const double floored = x == x ? std::floor(x) : 2;
    values[i] = x, floors[i] = floored, over[i] = gamma_from_two(x - floored), under[i] = 1;
    least = std::min(least, floored), most = std::max(most, floored);
  }
  for (double k = 2; k < most; ++k) {
#pragma omp simd
    for (int i = 0; i < count; ++i) over[i] *= k < floors[i] ? values[i] - floors[i] + k : 1;
  }
  for (double k = least; k < 2; ++k) {  // a number near 0 is its own factor to the last bit
#pragma omp simd
    for (int i = 0; i < count; ++i) under[i] *= k >= floors[i] ? values[i] + (k - floors[i]) : 1;
  }
  int32_t special = 0;
#pragma omp simd reduction(| : special)
  for (int i = 0; i < count; ++i) {
    out[i] = float(over[i] / under[i]);
    special |= (in[i] <= 0) & ((in[i] == std::floor(in[i])) | (in[i] < float(kLow)));
  }
  if (!special) return;
  for (int i = 0; i < count; ++i) {
    const float x = in[i];
    if (x == 0)
      out[i] = std::copysign(std::numeric_limits<float>::infinity(), x);
    else if (x < 0 && x == std::floor(x))  // the poles
      out[i] = std::numeric_limits<float>::quiet_NaN();
    else if (x < kLow)
      out[i] = std::fmod(std::floor(x), 2.0f) != 0 ? -0.0f : 0.0f;
  }
}

// The remainder of a / b with the sign of b, 0 for a divisor of 0. Torch's result to the last bit.
inline float remainder_by(float a, float b) {
  float r = std::fmod(a, b);
  if (r != 0 && (b < 0) != (r < 0)) r += b;
  return b == 0 ? 0 : r;
}

// Of numbers(i) divided by in[i].
template <typename Numbers>
void remainder_block(Numbers numbers, const float* in, float* out, int count) {
  int32_t hard = 0;
#pragma omp simd reduction(| : hard)
  for (int i = 0; i < count; ++i) {
    const float a = numbers(i), size = std::fabs(a), b = in[i], magnitude = std::fabs(b), quotient = std::floor(size / magnitude);
    // The quotient is rounded, so that it may be 1 too large; what is left is exact in either case.
    const float left = std::fma(-quotient, magnitude, size), least = left < 0 ? left + magnitude : left;
    const float rest = std::copysign(quotient == 0 ? size : least, a);
    out[i] = (rest != 0) & ((b < 0) != (rest < 0)) ? rest + b : rest;
    hard |= !((quotient < 8388608.0f) & (magnitude <= std::numeric_limits<float>::max()));
  }
  if (hard)
    for (int i = 0; i < count; ++i) out[i] = remainder_by(numbers(i), in[i]);
}

// The cube root, in double precision from a guess at 1 / root by a third of the exponent, 3.5 % off at most. With the error e of its third power
// a step multiplies it by 1 + e / 3 + 2 e^2 / 9, which leaves 14 e^3 / 81: 2e-4 of the root, then 3e-11.
inline float cube_root(float x) {
  const float size = std::fabs(x), normal = size < std::numeric_limits<float>::min() ? size * 0x1p24f : size;
  int32_t bits;
  std::memcpy(&bits, &normal, 4);
  const int32_t guess = 0x54a23200 - int32_t(float(bits) * (1 / 3.0f));
  float first;
  std::memcpy(&first, &guess, 4);
  const double a = normal;
  double r = first;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const double e = 1 - a * r * r * r;
    r *= 1 + e * (1 / 3.0 + e * (2 / 9.0));
  }
  const double root = a * r * r * (size == normal ? 1 : 0x1p-8);
  return size > 0 && size <= std::numeric_limits<float>::max() ? std::copysign(float(root), x) : x;
}

inline float arcsinh(float x) {
  const double size = std::fabs(x), square = size * size, root = size < 1e-3 ? size - size * square / 6 : log_normal(size + std::sqrt(square + 1));
  return size <= std::numeric_limits<float>::max() ? std::copysign(float(root), x) : x;
}

inline float arccosh(float x) {
  const double above = std::max(x, 1.f);
  const float root = float(log_normal(above + std::sqrt((above - 1) * (above + 1))));
  return x >= 1 ? x <= std::numeric_limits<float>::max() ? root : x : std::numeric_limits<float>::quiet_NaN();
}

// Calls work(i) for each number; the calls must be independent.
template <typename Work>
void each(int64_t n, int threads, Work work) {
  in_blocks(n, threads, [=](int64_t begin, int count) {
#pragma omp simd
    for (int i = 0; i < count; ++i) work(begin + i);
  });
}

// Numbers of x where the condition is not 0, of y elsewhere.
template <typename T>
void choose(const T* condition, const float* x, const float* y, float* out, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) {
    const float one = x[i], other = y[i];
    out[i] = condition[i] != 0 ? one : other;
  });
}

template <typename T>
void choose_back(const T* condition, const float* dout, float* dx, float* dy, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i];
    const bool first = condition[i] != 0;
    dx[i] = first ? d : 0;
    dy[i] = first ? 0 : d;
  });
}

}  // namespace

extern "C" {

void gamma_of(const float* in, float* out, int64_t n, int threads) {
  in_blocks(n, threads, [=](int64_t begin, int count) { gamma_block(in + begin, out + begin, count); });
}

void softsign(const float* in, float* out, int64_t n, int threads) {
  in_blocks(n, threads, [=](int64_t begin, int count) {
#pragma omp simd
    for (int i = 0; i < count; ++i) out[begin + i] = in[begin + i] / (1 + std::fabs(in[begin + i]));
  });
}

void softsign_back(const float* in, const float* dout, float* din, int64_t n, int threads) {
  in_blocks(n, threads, [=](int64_t begin, int count) {
#pragma omp simd
    for (int i = 0; i < count; ++i) {
      const float below = 1 + std::fabs(in[begin + i]);
      din[begin + i] = dout[begin + i] / (below * below);
    }
  });
}

// The remainder of a number divided by each.
void rest_by(const float* in, float* out, int64_t n, float scalar, int threads) {
  in_blocks(n, threads, [=](int64_t begin, int count) { remainder_block([=](int) { return scalar; }, in + begin, out + begin, count); });
}

void rest_by_back(const float* in, const float* dout, float* din, int64_t n, float scalar, int threads) {
  in_blocks(n, threads, [=](int64_t begin, int count) {
#pragma omp simd
    for (int i = 0; i < count; ++i) din[begin + i] = -std::floor(scalar / in[begin + i]) * dout[begin + i];
  });
}

// The remainder of each number of a divided by that of b, and its gradient on the way to b.
void rest_of(const float* a, const float* b, float* out, int64_t n, int threads) {
  in_blocks(n, threads, [=](int64_t begin, int count) {
    remainder_block([from = a + begin](int i) { return from[i]; }, b + begin, out + begin, count);
  });
}

void rest_of_back(const float* a, const float* b, const float* dout, float* db, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) { db[i] = -dout[i] * std::floor(a[i] / b[i]); });
}

void add_three(const float* a, const float* b, const float* c, float* out, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) { out[i] = a[i] + b[i] + c[i]; });
}

void square_back(const float* in, const float* dout, float* din, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) { din[i] = dout[i] * (in[i] * 2); });
}

void quadratic(const float* in, float* out, int64_t n, float a, float b, float c, int threads) {
  each(n, threads, [=](int64_t i) { out[i] = (in[i] * a + b) * in[i] + c; });
}

void quadratic_back(const float* in, const float* dout, float* din, int64_t n, float twice, float b, int threads) {
  each(n, threads, [=](int64_t i) { din[i] = (in[i] * twice + b) * dout[i]; });
}

// Rounds to the nearest integer: halves down, or away from zero.
void round_down(const float* in, float* out, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) {
    const float x = in[i], below = std::floor(x), above = std::ceil(x);
    out[i] = x - below <= above - x ? below : above;
  });
}

void round_away(const float* in, float* out, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) { out[i] = std::trunc(in[i] + std::copysign(0x1.fffffep-2f, in[i])); });
}

void cube_roots(const float* in, float* out, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) { out[i] = cube_root(in[i]); });
}

void cube_roots_back(const float* out, const float* dout, float* din, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) { din[i] = dout[i] / (3 * out[i] * out[i]); });
}

#define REMEX_INVERSE(name, slope)                                                              \
  void name##_of(const float* in, float* out, int64_t n, int threads) {                         \
    each(n, threads, [=](int64_t i) { out[i] = name(in[i]); });                                 \
  }                                                                                             \
  void name##_back(const float* in, const float* dout, float* din, int64_t n, int threads) {    \
    each(n, threads, [=](int64_t i) {                                                           \
      const double x = in[i];                                                                   \
      din[i] = float(dout[i] / (slope));                                                        \
    });                                                                                         \
  }

REMEX_INVERSE(arcsinh, std::sqrt(x* x + 1))
REMEX_INVERSE(arccosh, std::sqrt(x* x - 1))

void hard_sigmoid(const float* in, float* out, int64_t n, float alpha, float beta, int threads) {
  each(n, threads, [=](int64_t i) {
    const float x = in[i] * alpha + beta, most = x > 1 ? 1 : x;
    out[i] = most < 0 ? 0 : most;
  });
}

void hard_sigmoid_back(const float* out, const float* dout, float* din, int64_t n, float alpha, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i] * alpha;
    din[i] = (out[i] > 0) & (out[i] < 1) ? d : 0;
  });
}

// Gradients stay between the borders and on them, and where there is no number.
void clip_back(const float* in, const float* dout, float* din, int64_t n, float low, float high, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i];
    din[i] = (in[i] > high) | (in[i] < low) ? 0 : d;
  });
}

// Gradients of the maximum or minimum of a number and a bound: at a tie the number gets it, NaN gets 0.
void not_below_back(const float* in, const float* dout, float* din, int64_t n, float border, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i];
    din[i] = in[i] >= border ? d : 0;
  });
}

void not_above_back(const float* in, const float* dout, float* din, int64_t n, float border, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i];
    din[i] = in[i] <= border ? d : 0;
  });
}

void inverse_back(const float* in, const float* dout, float* din, int64_t n, float scalar, int threads) {
  each(n, threads, [=](int64_t i) { din[i] = dout[i] * (-scalar / (in[i] * in[i])); });
}

// At a tie `a` gets the gradient, for NaN neither does.
void larger_back(const float* a, const float* b, const float* dout, float* da, float* db, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i], one = a[i], other = b[i];
    da[i] = one >= other ? d : 0;
    db[i] = one < other ? d : 0;
  });
}

void smaller_back(const float* a, const float* b, const float* dout, float* da, float* db, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i], one = a[i], other = b[i];
    da[i] = one <= other ? d : 0;
    db[i] = one > other ? d : 0;
  });
}

void quotient_back(const float* a, const float* b, const float* dout, float* da, float* db, int64_t n, int threads) {
  each(n, threads, [=](int64_t i) {
    const float d = dout[i], below = b[i];
    da[i] = d / below;
    db[i] = -d * (a[i] / below / below);
  });
}

// Learning rates by the norms of weights and gradients, whose squares come.
void adapted_rates(const float* rates, const float* weights, const float* gradients, const float* wds, float* out, int64_t n, float eta,
                   float rescale, float epsilon, int threads) {
  each(n, threads, [=](int64_t i) {
    const float weight = std::sqrt(weights[i]), gradient = std::sqrt(gradients[i]), rate = rates[i];
    const float adapted = rate * eta * weight / (gradient * rescale + wds[i] * weight + epsilon);
    out[i] = (weight > 0) & (gradients[i] > 0) ? adapted : rate;
  });
}

#define REMEX_CHOICES(name, type)                                                                                                   \
  void choose_##name(const type* condition, const float* x, const float* y, float* out, int64_t n, int threads) {                  \
    choose(condition, x, y, out, n, threads);                                                                                       \
  }                                                                                                                                 \
  void choose_back_##name(const type* condition, const float* dout, float* dx, float* dy, int64_t n, int threads) {                \
    choose_back(condition, dout, dx, dy, n, threads);                                                                               \
  }

REMEX_CHOICES(float32, float)
REMEX_CHOICES(bool, uint8_t)
REMEX_CHOICES(int32, int32_t)

}  // extern "C"
