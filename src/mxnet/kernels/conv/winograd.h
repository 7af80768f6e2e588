// Sums of products with fewer multiplications (Toom 1963, Winograd 1980, Lavin 2015), on vectors of channels.
//
// S outputs of R taps each are a product of polynomials. It takes S + R - 1 products, one for each of as many points, of which the last is infinity:
// outputs(inputs(data) * weights(taps)). In two dimensions the points are those of both axes.
#pragma once
#include "runtime/vectors.h"

namespace {

// Points other than 0 and infinity come in pairs, +p and -p. Of many sets these are among those with the smallest errors; the usual 1 and 2 are not.
template <int pairs>
constexpr double kPositive[] = {1};
template <>
constexpr double kPositive<2>[] = {0.75, 1.5};
template <>
constexpr double kPositive<3>[] = {0.5, 1, 2};

// Coefficients, the lowest first, of the product of x - p * p over all pairs but `without`.
template <int pairs>
struct Polynomial {
  double coefficients[pairs + 1] = {1};
  constexpr explicit Polynomial(int without) {
    int degree = 0;
    for (int i = 0; i < pairs; ++i) {
      if (i == without) continue;
      const double square = kPositive<pairs>[i] * kPositive<pairs>[i];
      coefficients[++degree] = 0;
      for (int k = degree; k >= 0; --k) coefficients[k] = (k ? coefficients[k - 1] : 0) - square * coefficients[k];
    }
  }
  constexpr double operator[](int k) const { return coefficients[k]; }
};

constexpr double power(double base, int exponent) { return exponent ? base * power(base, exponent - 1) : 1; }

template <int S, int R>
struct Line {
  static constexpr int kOutputs = S, kTaps = R, kPoints = S + R - 1, kPairs = (kPoints - 2) / 2;
  static_assert(kPoints == 2 * kPairs + 2);

  static inline __attribute__((always_inline)) void inputs(const vec (&d)[kPoints], vec (&v)[kPoints]) {
    constexpr Polynomial<kPairs> all(-1);
    vec first = d[2 * kPairs], last = d[2 * kPairs + 1];
#pragma GCC unroll 4
    for (int k = 0; k < kPairs; ++k) first += float(all[k]) * d[2 * k], last += float(all[k]) * d[2 * k + 1];
    v[0] = first, v[kPoints - 1] = last;
    pairs<0>(d, v);
  }

  static inline __attribute__((always_inline)) void weights(const vec (&g)[R], vec (&u)[kPoints]) {
    constexpr Polynomial<kPairs> all(-1);
    u[0] = g[0] * float(1 / all[0]);
    u[kPoints - 1] = g[R - 1];
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const double p = kPositive<kPairs>[i];
      double scale = 2 * p * p;
      for (int j = 0; j < kPairs; ++j)
        if (j != i) scale *= p * p - kPositive<kPairs>[j] * kPositive<kPairs>[j];
      vec even = g[0] * float(1 / scale), odd = g[1] * float(p / scale);
#pragma GCC unroll 8
      for (int k = 2; k < R; ++k) (k % 2 ? odd : even) += g[k] * float(power(p, k) / scale);
      u[1 + 2 * i] = even + odd;
      u[2 + 2 * i] = even - odd;
    }
  }

  static inline __attribute__((always_inline)) void outputs(const vec (&m)[kPoints], vec (&y)[S]) {
    vec sum[kPairs], apart[kPairs];
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) sum[i] = m[1 + 2 * i] + m[2 + 2 * i], apart[i] = m[1 + 2 * i] - m[2 + 2 * i];
#pragma GCC unroll 8
    for (int k = 0; k < S; ++k) {
      vec found = k == 0 ? m[0] : k == S - 1 ? m[kPoints - 1] : float(power(kPositive<kPairs>[0], k)) * (k % 2 ? apart[0] : sum[0]);
#pragma GCC unroll 4
      for (int i = k == 0 || k == S - 1 ? 0 : 1; i < kPairs; ++i) found += float(power(kPositive<kPairs>[i], k)) * (k % 2 ? apart[i] : sum[i]);
      y[k] = found;
    }
  }

 private:
  template <int i>
  static inline __attribute__((always_inline)) void pairs(const vec (&d)[kPoints], vec (&v)[kPoints]) {
    constexpr Polynomial<kPairs> others(i);
    constexpr float p = kPositive<kPairs>[i];
    vec even = d[2 * kPairs], odd = d[2 * kPairs - 1];
#pragma GCC unroll 4
    for (int k = 0; k < kPairs - 1; ++k) even += float(others[k]) * d[2 * k + 2], odd += float(others[k]) * d[2 * k + 1];
    v[1 + 2 * i] = even + p * odd;
    v[2 + 2 * i] = even - p * odd;
    if constexpr (i + 1 < kPairs) pairs<i + 1>(d, v);
  }
};

// An axis along which there is one tap.
template <>
struct Line<1, 1> {
  static constexpr int kOutputs = 1, kTaps = 1, kPoints = 1;
  static void inputs(const vec (&d)[1], vec (&v)[1]) { v[0] = d[0]; }
  static void weights(const vec (&g)[1], vec (&u)[1]) { u[0] = g[0]; }
  static void outputs(const vec (&m)[1], vec (&y)[1]) { y[0] = m[0]; }
};

// read(r, s) are the data under a tile of outputs; write(r, s, v) receives the transformed data.
template <typename V, typename H, typename Read, typename Write>
inline __attribute__((always_inline)) void inputs(Read read, Write write) {
  vec half[H::kPoints][V::kPoints];
#pragma GCC unroll 8
  for (int s = 0; s < H::kPoints; ++s) {
    vec d[V::kPoints];
#pragma GCC unroll 8
    for (int r = 0; r < V::kPoints; ++r) d[r] = read(r, s);
    V::inputs(d, half[s]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < V::kPoints; ++r) {
    vec d[H::kPoints], v[H::kPoints];
#pragma GCC unroll 8
    for (int s = 0; s < H::kPoints; ++s) d[s] = half[s][r];
    H::inputs(d, v);
#pragma GCC unroll 8
    for (int s = 0; s < H::kPoints; ++s) write(r, s, v[s]);
  }
}

// read(r, s) are the taps.
template <typename V, typename H, typename Read>
inline __attribute__((always_inline)) void weights(Read read, vec (&u)[V::kPoints][H::kPoints]) {
  vec half[H::kTaps][V::kPoints];
#pragma GCC unroll 8
  for (int s = 0; s < H::kTaps; ++s) {
    vec g[V::kTaps];
#pragma GCC unroll 8
    for (int r = 0; r < V::kTaps; ++r) g[r] = read(r, s);
    V::weights(g, half[s]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < V::kPoints; ++r) {
    vec g[H::kTaps];
#pragma GCC unroll 8
    for (int s = 0; s < H::kTaps; ++s) g[s] = half[s][r];
    H::weights(g, u[r]);
  }
}

// read(r, s) are the products, or sums of them.
template <typename V, typename H, typename Read>
inline __attribute__((always_inline)) void outputs(Read read, vec (&y)[V::kOutputs][H::kOutputs]) {
  vec half[H::kPoints][V::kOutputs];
#pragma GCC unroll 8
  for (int s = 0; s < H::kPoints; ++s) {
    vec m[V::kPoints];
#pragma GCC unroll 8
    for (int r = 0; r < V::kPoints; ++r) m[r] = read(r, s);
    V::outputs(m, half[s]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < V::kOutputs; ++r) {
    vec m[H::kPoints];
#pragma GCC unroll 8
    for (int s = 0; s < H::kPoints; ++s) m[s] = half[s][r];
    H::outputs(m, y[r]);
  }
}

using One = Line<1, 1>;
using TwoOfThree = Line<2, 3>;
using FourOfThree = Line<4, 3>;
using TwoOfFive = Line<2, 5>;
using TwoOfSeven = Line<2, 7>;

// The instantiated forms, by outputs and taps.
#define REMEX_FORMS(form)                   \
  form(2x2_3x3, TwoOfThree, TwoOfThree)     \
  form(4x4_3x3, FourOfThree, FourOfThree)   \
  form(2x2_5x5, TwoOfFive, TwoOfFive)       \
  form(1x4_1x3, One, FourOfThree)           \
  form(4x1_3x1, FourOfThree, One)           \
  form(1x2_1x7, One, TwoOfSeven)            \
  form(2x1_7x1, TwoOfSeven, One)

}  // namespace
