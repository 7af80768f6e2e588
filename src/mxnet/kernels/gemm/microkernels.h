// Small products of matrices in registers, which convolutions are made of.
//
// Operands are arrays of cells of four bytes: a float, or two bfloat16 that are neighbours along the depth, whose products the processor adds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "runtime/vectors.h"

namespace {

#if defined(__AVX512F__)
constexpr int kMaxVectors = 4;
constexpr int kRows[] = {0, 12, 12, 8, 6};  // by the width of a panel in vectors: as many accumulators as there are registers for
#else
constexpr int kMaxVectors = 2;
constexpr int kRows[] = {0, 8, 6};
#endif
constexpr int kMaxRows = 12;
constexpr int64_t kCacheLineCells = 16;  // cells of a line of the caches

// The columns of a matrix, cut into panels of at most kMaxVectors vectors: `wide` of them, and then some that are one vector narrower.
struct Panels {
  int64_t count, narrow, wide;
  explicit Panels(int64_t columns)
      : count((columns / kLanes + kMaxVectors - 1) / kMaxVectors), narrow(columns / kLanes / count), wide(columns / kLanes % count) {}
  int width(int64_t i) const { return int(narrow + (i < wide)); }  // in vectors
  int64_t column(int64_t i) const { return (i * narrow + std::min(i, wide)) * kLanes; }
  int64_t alike(int64_t i) const { return i < wide ? wide : count; }  // the end of the panels that are as wide as this one
};

struct bfloat16 {
  uint16_t bits;
};

#if defined(__AVX512BF16__)
inline void store(bfloat16* p, vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)v)); }
inline vec load(const bfloat16* p) {
  return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16);
}
#endif

// The operations that differ between the two types.
template <typename T>
struct Cells;

template <>
struct Cells<float> {
  static constexpr int64_t kEach = 1;  // numbers in a cell
  static vec multiply_add(vec sum, float left, vec right) { return sum + left * right; }
  static float reduce_add(float cell) { return cell; }
  // One cell for each column, out of the first row (of kEach), or two of them; null is a row of zeros.
  template <typename Source>
  static vec join(const Source* first, const Source*) {
    return first ? load(first) : vec{};
  }
  // Converts float32 rows to rows of cells; returns the number of cells.
  static int from_float(vec (&)[kLanes]) { return kLanes; }
  static vec from_float(const float* first, const float*) { return load(first); }
};

#if defined(__AVX512BF16__)
template <>
struct Cells<bfloat16> {
  static constexpr int64_t kEach = 2;
  static vec multiply_add(vec sum, float left, vec right) {
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(left), (__m512bh)right);
  }
  static float reduce_add(float cell) {
    uint32_t bits;
    std::memcpy(&bits, &cell, 4);
    const uint32_t halves[] = {bits << 16, bits & 0xffff0000};
    float values[2];
    std::memcpy(values, halves, 8);
    return values[0] + values[1];
  }
  static vec join(const bfloat16* first, const bfloat16* second) {
    auto wide = [](const bfloat16* p) {
      return p ? _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))) : _mm512_setzero_si512();
    };
    return (vec)_mm512_or_si512(wide(first), _mm512_slli_epi32(wide(second), 16));
  }
  static vec from_float(vec first, vec second) {
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)first));
    return (vec)_mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)second)), 16));
  }
  static int from_float(vec (&rows)[kLanes]) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) rows[i] = from_float(rows[2 * i], rows[2 * i + 1]);
    return kLanes / 2;
  }
  static vec from_float(const float* first, const float* second) { return from_float(load(first), load(second)); }
};
#endif

// Weights that are read next, of which a micro-kernel prefetches a part into the L2 cache: a line of the caches for each k, `step` numbers apart.
struct Prefetch {
  const float* first;
  int64_t step;
};

// out[i][j] (+)= sum over taps t and depth k (in cells) of rows[t * MR + i][k] * weights[t][k, j], for MR rows and NV vectors.
// end(i, j, sum) gets each.
template <typename T, typename Out, int MR, int NV, bool Prefetches, typename End>
inline __attribute__((always_inline)) void microkernel_to(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth,
                                                          Out* const* out, const float* bias, bool add, Prefetch next, End end) {
  vec sum[MR][NV];
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) sum[i][j] = add ? load(out[i] + j * kLanes) : bias ? load(bias + j * kLanes) : vec{};
  for (int64_t t = 0; t < taps; ++t, rows += MR) {
    const float* a[MR];
#pragma GCC unroll 12
    for (int i = 0; i < MR; ++i) a[i] = rows[i];
    const float* b = weights[t];
    for (int64_t k = 0; k < depth; ++k, b += NV * kLanes) {
      vec right[NV];
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) right[j] = load(b + j * kLanes);
      if constexpr (Prefetches) {
        __builtin_prefetch(next.first, 0, 2);
        next.first += next.step;
      }
#pragma GCC unroll 12
      for (int i = 0; i < MR; ++i) {
        const float left = a[i][k];
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j) sum[i][j] = Cells<T>::multiply_add(sum[i][j], left, right[j]);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) end(i, j, sum[i][j]);
}

template <typename T, typename Out, int MR, int NV>
void microkernel(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth, Out* const* out, const float* bias, bool add) {
  microkernel_to<T, Out, MR, NV, false>(rows, weights, taps, depth, out, bias, add, {},
                                        [=](int i, int j, vec v) __attribute__((always_inline)) { store(out[i] + j * kLanes, v); });
}

template <typename T, typename Out, int MR, int NV>
void prefetching_microkernel(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth, Out* const* out, const float* bias,
                             bool add, Prefetch next) {
  microkernel_to<T, Out, MR, NV, true>(rows, weights, taps, depth, out, bias, add, next,
                                       [=](int i, int j, vec v) __attribute__((always_inline)) { store(out[i] + j * kLanes, v); });
}

template <typename Out>
using Microkernel = void (*)(const float* const*, const float* const*, int64_t, int64_t, Out* const*, const float*, bool);

// The table of micro-kernels, by the width in vectors and half the number of rows.
#if defined(__AVX512F__)
#define REMEX_MICROKERNELS(kernel)                                                                        \
  {{},                                                                                                    \
   {nullptr, kernel(2, 1), kernel(4, 1), kernel(6, 1), kernel(8, 1), kernel(10, 1), kernel(12, 1)},       \
   {nullptr, kernel(2, 2), kernel(4, 2), kernel(6, 2), kernel(8, 2), kernel(10, 2), kernel(12, 2)},       \
   {nullptr, kernel(2, 3), kernel(4, 3), kernel(6, 3), kernel(8, 3)},                                     \
   {nullptr, kernel(2, 4), kernel(4, 4), kernel(6, 4)}}
#else
#define REMEX_MICROKERNELS(kernel)                                          \
  {{},                                                                      \
   {nullptr, kernel(2, 1), kernel(4, 1), kernel(6, 1), kernel(8, 1)},       \
   {nullptr, kernel(2, 2), kernel(4, 2), kernel(6, 2)}}
#endif

// Those that prefetch: lower ones have no register left for the address.
#if defined(__AVX512F__)
#define REMEX_PREFETCHING_MICROKERNELS(kernel) \
  {{nullptr, kernel(2, 3), kernel(4, 3), kernel(6, 3), kernel(8, 3)}, {nullptr, kernel(2, 4), kernel(4, 4), kernel(6, 4)}}
constexpr int kPrefetchingVectors = 3;  // at least
#else
#define REMEX_PREFETCHING_MICROKERNELS(kernel) {}
constexpr int kPrefetchingVectors = kMaxVectors + 1;  // none: with short vectors it gained nothing
#endif
constexpr bool kPrefetchesBefore = kPrefetchingVectors > kMaxVectors;  // true: the next weights are prefetched before a tile, not within
constexpr int64_t kFewTiles = 16;  // that go through the same weights: with more, reading them the first time takes little of the time

// Where the tile of that number prefetches, of `tiles` that go through weights of `depth` cells: at the speed at which tiles read them the first time
// neither the L3 cache nor the memory brings them, so that all tiles before take their share.
inline Prefetch share_of(const float* next, int64_t number, int64_t tiles, int nv, int64_t depth) {
  const int64_t step = std::min<int64_t>(kLanes, (kLanes * nv + tiles - 1) / tiles);
  return {next + std::min<int64_t>(number * step, (nv - 1) * kLanes) * depth, step};
}

// The same share of so many cells, in one go.
inline void fetch_share(const float* next, int64_t number, int64_t tiles, int64_t cells) {
  for (int64_t i = cells * number / tiles / kCacheLineCells * kCacheLineCells; i < cells * (number + 1) / tiles; i += kCacheLineCells)
    __builtin_prefetch(next + i, 0, 2);
}

#define REMEX_MICROKERNEL(MR, NV) microkernel<T, Out, MR, NV>
template <typename T, typename Out>
constexpr Microkernel<Out> kMicrokernels[][kMaxRows / 2 + 1] = REMEX_MICROKERNELS(REMEX_MICROKERNEL);
#undef REMEX_MICROKERNEL

template <typename Out>
using PrefetchingMicrokernel = void (*)(const float* const*, const float* const*, int64_t, int64_t, Out* const*, const float*, bool, Prefetch);
#define REMEX_MICROKERNEL(MR, NV) prefetching_microkernel<T, Out, MR, NV>
template <typename T, typename Out>
constexpr PrefetchingMicrokernel<Out> kPrefetchingMicrokernels[2][kMaxRows / 2 + 1] = REMEX_PREFETCHING_MICROKERNELS(REMEX_MICROKERNEL);
#undef REMEX_MICROKERNEL

// As `microkernel`, for MR adjacent outputs that read three adjacent inputs each: an input is loaded once for the three. With few filters the loads
// of inputs dominate, which `microkernel` repeats for each tap. left[l] is the first input of line l, with `apart` cells to the next; weights: three
// for each line.
template <typename T, typename Out, int MR, int NV>
void three_tap_microkernel(const float* const* left, int64_t apart, const float* const* weights, int64_t lines, int64_t depth, Out* out,
                           int64_t out_apart, const float* bias, bool add) {
  vec sum[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) sum[i][j] = add ? load(out + i * out_apart + j * kLanes) : bias ? load(bias + j * kLanes) : vec{};
  for (int64_t l = 0; l < lines; ++l, weights += 3) {
    const float *a = left[l], *b[] = {weights[0], weights[1], weights[2]};
    for (int64_t k = 0; k < depth; ++k) {
      vec right[3][NV];
#pragma GCC unroll 3
      for (int s = 0; s < 3; ++s)
#pragma GCC unroll 2
        for (int j = 0; j < NV; ++j) right[s][j] = load(b[s] + (k * NV + j) * kLanes);
#pragma GCC unroll 18
      for (int i = 0; i < MR + 2; ++i) {
        const float input = a[i * apart + k];
#pragma GCC unroll 3
        for (int s = 0; s < 3; ++s)
#pragma GCC unroll 2
          for (int j = 0; j < NV; ++j)
            if (i >= s && i - s < MR) sum[i - s][j] = Cells<T>::multiply_add(sum[i - s][j], input, right[s][j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) store(out + i * out_apart + j * kLanes, sum[i][j]);
}

template <typename Out>
using ThreeTapMicrokernel = void (*)(const float* const*, int64_t, const float* const*, int64_t, int64_t, Out*, int64_t, const float*, bool);

// By the width in vectors and half the number of outputs; where registers are fewer, or filters more, `microkernel` is as fast.
#if defined(__AVX512F__)
constexpr int kMaxThreeTapVectors = 2, kMaxThreeTapOutputs[] = {0, 16, 10};
template <typename T, typename Out>
constexpr ThreeTapMicrokernel<Out> kThreeTapMicrokernels[][9] = {
    {},
    {nullptr, three_tap_microkernel<T, Out, 2, 1>, three_tap_microkernel<T, Out, 4, 1>, three_tap_microkernel<T, Out, 6, 1>,
     three_tap_microkernel<T, Out, 8, 1>, three_tap_microkernel<T, Out, 10, 1>, three_tap_microkernel<T, Out, 12, 1>,
     three_tap_microkernel<T, Out, 14, 1>, three_tap_microkernel<T, Out, 16, 1>},
    {nullptr, three_tap_microkernel<T, Out, 2, 2>, three_tap_microkernel<T, Out, 4, 2>, three_tap_microkernel<T, Out, 6, 2>,
     three_tap_microkernel<T, Out, 8, 2>, three_tap_microkernel<T, Out, 10, 2>},
};
#else
constexpr int kMaxThreeTapVectors = 0, kMaxThreeTapOutputs[kMaxVectors + 1] = {};
template <typename T, typename Out>
constexpr ThreeTapMicrokernel<Out> kThreeTapMicrokernels[kMaxVectors + 1][1] = {};
#endif

}  // namespace
