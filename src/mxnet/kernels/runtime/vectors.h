// Shared by the kernels: vectors of the processor's width, and transposition of matrices in them.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

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

// True where a part of a vector is read and written in one instruction.
#if defined(__AVX512F__)
constexpr bool kMasks = true;
#else
constexpr bool kMasks = false;
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

// Vectors of lane numbers: `Number::of` maps each lane to one. Made of a list they are constants. A vector that a loop fills is built lane by lane each
// time, which took longer than a line of 64 numbers in softmax.
typedef int32_t lane_numbers __attribute__((vector_size(kLanes * 4)));
template <typename Number, int... I>
constexpr lane_numbers lanes_listed(std::integer_sequence<int, I...>) { return lane_numbers{Number::of(I)...}; }
template <typename Number>
constexpr lane_numbers kLanesOf = lanes_listed<Number>(std::make_integer_sequence<int, kLanes>());

struct OwnLane {
  static constexpr int of(int lane) { return lane; }
};
template <int width>
struct Opposite {
  static constexpr int of(int lane) { return lane ^ width; }
};

// The sum of a vector's numbers.
template <int width = kLanes / 2>
inline float reduce_add(vec v) {
  v += __builtin_shuffle(v, kLanesOf<Opposite<width>>);
  if constexpr (width == 1) return v[0];
  else return reduce_add<width / 2>(v);
}

// The largest of a vector's numbers; a NaN may be passed over.
template <int width = kLanes / 2>
inline float reduce_max(vec v) {
  const vec other = __builtin_shuffle(v, kLanesOf<Opposite<width>>);
  v = other > v ? other : v;
  if constexpr (width == 1) return v[0];
  else return reduce_max<width / 2>(v);
}

struct Aligned {  // uninitialized memory on a cache line
  std::unique_ptr<float[]> memory;
  float* data;
  explicit Aligned(int64_t n) : memory(new float[size_t(n) + 16]) {
    data = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) & ~uintptr_t(63));
  }
};

// Lanes of two vectors by turns, from one on.
template <int first>
struct Alternating {
  static constexpr int of(int lane) { return first + lane / 2 + lane % 2 * kLanes; }
};

// Transposes a square of numbers: each round takes the first and the second half of the rows apart, lane by lane.
inline void transpose_square(vec (&rows)[kLanes]) {
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    vec next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], kLanesOf<Alternating<0>>);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], kLanesOf<Alternating<kLanes / 2>>);
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
