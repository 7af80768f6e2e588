// Shared by the kernels: vectors of the processor's width, and transposition of matrices in them.
#pragma once
#include <cstdint>
#include <memory>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif

typedef float vec __attribute__((vector_size(kLanes * 4), aligned(2), may_alias));  // aligned as bfloat16 is, of which it may hold pairs

inline vec load(const float* p) { return *reinterpret_cast<const vec*>(p); }
inline void store(float* p, vec v) { *reinterpret_cast<vec*>(p) = v; }

// The first numbers of a vector, as many as there are, at most kLanes.
#if defined(__AVX512F__)
inline __mmask16 lane_mask(int64_t count) { return __mmask16((1u << count) - 1); }
inline vec load(const float* p, int64_t count) { return (vec)_mm512_maskz_loadu_ps(lane_mask(count), p); }
inline void store(float* p, vec v, int64_t count) { _mm512_mask_storeu_ps(p, lane_mask(count), (__m512)v); }
#else
inline vec load(const float* p, int64_t count) {
  if (count == kLanes) return load(p);
  vec v{};
  for (int64_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
inline void store(float* p, vec v, int64_t count) {
  if (count == kLanes) return store(p, v);
  for (int64_t i = 0; i < count; ++i) p[i] = v[i];
}
#endif

// Numbers between 0 and the ceiling, NaN as it is; all numbers where the ceiling is below 0.
constexpr float kNoRelu = -1;
inline vec relu(vec v, float ceiling) {
  if (ceiling < 0) return v;
  const vec most = vec{} + ceiling;
// One instruction each: of two numbers that cannot be compared they choose the second.
#if defined(__AVX512F__)
  return (vec)_mm512_min_ps((__m512)most, _mm512_max_ps(_mm512_setzero_ps(), (__m512)v));
#elif defined(__AVX__)
  return (vec)_mm256_min_ps((__m256)most, _mm256_max_ps(_mm256_setzero_ps(), (__m256)v));
#else
  v = v < 0 ? vec{} : v;
  return v > most ? most : v;
#endif
}
inline float relu(float v, float ceiling) { return ceiling < 0 ? v : v < 0 ? 0 : v > ceiling ? ceiling : v; }

// The sum of a vector's numbers.
inline float reduce_add(vec v) {
  typedef int lanes __attribute__((vector_size(kLanes * 4)));
  lanes other;
#pragma GCC unroll 4
  for (int width = kLanes / 2; width; width /= 2) {
    for (int i = 0; i < kLanes; ++i) other[i] = i ^ width;
    v += __builtin_shuffle(v, other);
  }
  return v[0];
}

struct Aligned {  // uninitialized memory on a cache line
  std::unique_ptr<float[]> memory;
  float* data;
  explicit Aligned(int64_t n) : memory(new float[size_t(n) + 16]) {
    data = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) & ~uintptr_t(63));
  }
};

// Transposes a square of numbers: each round takes the first and the second half of the rows apart, lane by lane.
inline void transpose_square(vec (&rows)[kLanes]) {
  typedef int lanes __attribute__((vector_size(kLanes * 4)));
  lanes low, high;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = i / 2 + i % 2 * kLanes;
    high[i] = low[i] + kLanes / 2;
  }
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    vec next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], low);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

// Transposes a matrix, square by square: take(rows, j, k) has what load(j, k), ... gave with lane k + i in rows[i]. Both sizes are whole
// numbers of squares.
template <typename Load, typename Take>
void transpose(int64_t columns, int64_t depth, Load read, Take take) {
  for (int64_t j = 0; j < columns; j += kLanes)
    for (int64_t k = 0; k < depth; k += kLanes) {
      vec rows[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) rows[i] = read(j + i, k);
      transpose_square(rows);
      take(rows, j, k);
    }
}

}  // namespace
