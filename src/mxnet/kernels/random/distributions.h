// Numbers of a distribution, drawn from a Mersenne Twister. The algorithms of std's distributions are written out here, since later versions of the
// standard library use others.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "random/mersenne_twister.h"

namespace {

// A normal number by the polar method. MXNet's samplers forget the second one of a pair.
template <typename T> T normal(Twister& t) {
  T x, y, square;
  do {
    x = T(2) * unit<T>(t) - T(1);
    y = T(2) * unit<T>(t) - T(1);
    square = x * x + y * y;
  } while (!(square <= 1 && square != 0));
  return y * std::sqrt(-2 * std::log(square) / square);
}

// Returns true if a point with this squared distance is inside the unit circle and not its center.
template <typename T> inline bool inside(T square) { return square <= 1 && square != 0; }

#ifdef __AVX512F__
// Draws sixteen points at a time, within a block and while so many are needed; returns the number of accepted points.
int many_points(Twister& t, float* x, float* y, float* square, int needed) {
  typedef uint32_t word __attribute__((vector_size(64), aligned(4), may_alias));
  typedef float number __attribute__((vector_size(64)));
  const word even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, odd = even + 1;
  const auto coordinate = [](word w) {
    w ^= w >> 11, w ^= (w << 7) & 0x9d2c5680u, w ^= (w << 15) & 0xefc60000u, w ^= w >> 18;
    number u = __builtin_convertvector(w, number) * 0x1p-32f;
    return 2 * (u < 0x1.fffffep-1f ? u : (number)_mm512_set1_ps(0x1.fffffep-1f)) - 1;
  };
  int kept = 0;
  while (kept < needed && kWords - t.at >= 32) {
    const word low = *(const word*)(t.words + t.at), high = *(const word*)(t.words + t.at + 16);
    const number a = coordinate(__builtin_shuffle(low, high, even)), b = coordinate(__builtin_shuffle(low, high, odd)), s = a * a + b * b;
    unsigned good = _mm512_cmp_ps_mask((__m512)s, _mm512_set1_ps(1), _CMP_LE_OQ) & _mm512_test_epi32_mask((__m512i)s, (__m512i)s);
    int found = __builtin_popcount(good), seen = 16;
    if (found >= needed - kept) {
      for (; found > needed - kept; --found) good &= ~(0x80000000u >> __builtin_clz(good));
      seen = 32 - __builtin_clz(good);
    }
    _mm512_storeu_ps(x + kept, _mm512_maskz_compress_ps(good, (__m512)a));
    _mm512_storeu_ps(y + kept, _mm512_maskz_compress_ps(good, (__m512)b));
    _mm512_storeu_ps(square + kept, _mm512_maskz_compress_ps(good, (__m512)s));
    kept += found, t.at += 2 * seen;
  }
  return kept;
}
#endif

// Finds `needed` points inside the unit circle as the polar method does, with the squares of their distances from the center. Thirty-two words
// are looked at together, but none is taken that comes after the last point. Behind each result 16 more places are written to.
template <typename T> void points(Twister& t, T* x, T* y, T* square, int needed) {
  constexpr int kWordsAtOnce = 32, kWordsPerPoint = 2 * Unit<T>::words, kPointsAtOnce = kWordsAtOnce / kWordsPerPoint;
  uint32_t w[kWordsAtOnce];
  T a[kPointsAtOnce], b[kPointsAtOnce], s[kPointsAtOnce];
  for (int kept = 0; kept < needed;) {
#ifdef __AVX512F__
    if constexpr (sizeof(T) == 4) {
      kept += many_points(t, x + kept, y + kept, square + kept, needed - kept);
      if (kept == needed) break;
    }
#endif
    const bool whole = kWords - t.at >= kWordsAtOnce;  // the end of a block is not near
    if (whole)
      for (int i = 0; i < kWordsAtOnce; ++i) w[i] = tempered(t.words[t.at + i]);
    else
      for (int i = 0; i < kWordsPerPoint; ++i) w[i] = next(t);
    for (int i = 0; i < (whole ? kPointsAtOnce : 1); ++i) {
      a[i] = T(2) * Unit<T>::of(w + kWordsPerPoint * i) - T(1);
      b[i] = T(2) * Unit<T>::of(w + kWordsPerPoint * i + kWordsPerPoint / 2) - T(1);
      s[i] = a[i] * a[i] + b[i] * b[i];
    }
    int seen = 0;
    for (; seen < (whole ? kPointsAtOnce : 1) && kept < needed; ++seen) {
      x[kept] = a[seen], y[kept] = b[seen], square[kept] = s[seen];
      kept += inside(s[seen]);
    }
    if (whole) t.at += seen * kWordsPerPoint;
  }
}

// `n` normal numbers, of each point that from its second coordinate, then, if `both`, that from the first.
template <typename T, bool both> void normals(Twister& t, T* out, int64_t n) {
  T x[kChunk + 16], y[kChunk + 16], square[kChunk + 16], factor[kChunk];
  while (n > 0) {
    const int found = int(std::min<int64_t>(kChunk, both ? (n + 1) / 2 : n));
    points(t, x, y, square, found);
    for (int i = 0; i < found; ++i) factor[i] = std::log(square[i]);
    for (int i = 0; i < found; ++i) factor[i] = std::sqrt(-2 * factor[i] / square[i]);
    if (!both) {
      for (int i = 0; i < found; ++i) out[i] = y[i] * factor[i];
      out += found, n -= found;
    } else {
      for (int i = 0; i < found; ++i, out += 2, n -= 2) {
        out[0] = y[i] * factor[i];
        if (n > 1) out[1] = x[i] * factor[i];
      }
    }
  }
}

// Numbers for one set of parameters: `n` of them to `out`. P is the type of the parameters, W the one that is computed with.
template <typename W, typename P> W gamma_number(Twister& t, P alpha, P beta) {
  if (!(alpha > 0) || !std::isfinite(W(alpha))) return std::numeric_limits<W>::quiet_NaN();  // no number would ever be accepted
  W d = alpha < 1 ? alpha + 2.0 / 3.0 : alpha - 1.0 / 3.0;
  W k = std::sqrt(9.0 * d);
  W c = 1.0 / k;
  for (;;) {
    W z = normal<W>(t);
    if (!(z > -k)) continue;
    W x = 1.0 + c * z;
    W v = x * x * x;
    if (std::log(1.0 - unit<W>(t)) < 0.5 * z * z + d * (1.0 - v + std::log(double(v)))) {
      W found = d * v * beta;
      return alpha < 1 ? W(found * std::pow(double(unit<W>(t)), double(W(1.0 / alpha)))) : found;
    }
  }
}

int poisson_number(Twister& t, float lambda) {
  if (!(lambda < 2147480000.0f)) return lambda > 0 ? std::numeric_limits<int>::max() : 0;  // the latter for NaN
  if (lambda < 12.0) {
    float limit = std::exp(-lambda);
    int count = 0;
    for (float product = unit<float>(t); product > limit; product *= unit<float>(t)) ++count;
    return count;
  }
  const float spread = std::sqrt(2.0 * lambda), logarithm = std::log(double(lambda));
  const float g = lambda * logarithm - lgammaf(lambda + 1.0);
  float count, slope, chance;
  do {
    do {
      slope = tanf(3.1415926f * unit<float>(t));
      count = spread * slope + lambda;
    } while (count < 0.0);
    count = std::floor(count);
    chance = 0.9 * (1.0 + slope * slope) * std::exp(count * logarithm - lgammaf(count + 1.0) - g);
  } while (unit<float>(t) > chance);
  return int(count);
}

enum Kind { kUniform, kNormal, kExponential, kGamma, kPoisson, kNegativeBinomial, kGeneralizedNegativeBinomial };

template <typename W, typename P> void numbers(Twister& t, int kind, P a, P b, W* out, int64_t n) {
  switch (kind) {
    case kUniform:
      units(t, out, n);
      for (int64_t i = 0; i < n; ++i) out[i] = a + (b - a) * out[i];
      break;
    case kNormal:
      normals<W, false>(t, out, n);
      for (int64_t i = 0; i < n; ++i) out[i] = out[i] * b + a;
      break;
    case kExponential:
      units(t, out, n);
      for (int64_t i = 0; i < n; ++i) out[i] = -std::log(1.0 - out[i]) / a;
      break;
    case kGamma:
      for (int64_t i = 0; i < n; ++i) out[i] = gamma_number<W>(t, a, b);
      break;
    case kPoisson:
      for (int64_t i = 0; i < n; ++i) out[i] = poisson_number(t, a);
      break;
    case kNegativeBinomial: {
      float chance = b, scale = (1.0 - chance) / chance;
      for (int64_t i = 0; i < n; ++i) out[i] = poisson_number(t, gamma_number<float, P>(t, float(a), scale));
      break;
    }
    case kGeneralizedNegativeBinomial:
      for (int64_t i = 0; i < n; ++i) out[i] = poisson_number(t, b == 0 ? float(a) : gamma_number<float, P>(t, P(1) / b, b * a));
      break;
    default:
      std::fill_n(out, n, std::numeric_limits<W>::quiet_NaN());
  }
}

}  // namespace
