// Functions of single numbers for which torch's operators go over memory several times, or number by number.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

// Results are those of operators one after another, each rounded.
#pragma GCC optimize("fp-contract=off")

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

void remainder_block(float scalar, const float* in, float* out, int count) {
  const float size = std::fabs(scalar);
  int32_t hard = 0;
#pragma omp simd reduction(| : hard)
  for (int i = 0; i < count; ++i) {
    const float b = in[i], magnitude = std::fabs(b), quotient = std::floor(size / magnitude);
    // The quotient is rounded, so that it may be 1 too large; what is left is exact in either case.
    const float left = std::fma(-quotient, magnitude, size), least = left < 0 ? left + magnitude : left;
    const float rest = std::copysign(quotient == 0 ? size : least, scalar);
    out[i] = (rest != 0) & ((b < 0) != (rest < 0)) ? rest + b : rest;
    hard |= !((quotient < 8388608.0f) & (magnitude <= std::numeric_limits<float>::max()));
  }
  if (hard)
    for (int i = 0; i < count; ++i) out[i] = remainder_by(scalar, in[i]);
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
  in_blocks(n, threads, [=](int64_t begin, int count) { remainder_block(scalar, in + begin, out + begin, count); });
}

void rest_by_back(const float* in, const float* dout, float* din, int64_t n, float scalar, int threads) {
  in_blocks(n, threads, [=](int64_t begin, int count) {
#pragma omp simd
    for (int i = 0; i < count; ++i) din[begin + i] = -std::floor(scalar / in[begin + i]) * dout[begin + i];
  });
}

}  // extern "C"
