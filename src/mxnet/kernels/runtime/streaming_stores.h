// Streaming (non-temporal) stores: ordinary stores of a result larger than the caches first read it into them, and evict their contents.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <unistd.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

// The unit of a streaming store: on Zen 4, 32 bytes at a time are three times as fast as 16.
#if defined(__AVX__)
typedef __m256 StreamUnit;
inline void stream(float* out, StreamUnit unit) { _mm256_stream_ps(out, unit); }
inline StreamUnit load_unit(const float* in) { return _mm256_loadu_ps(in); }
inline StreamUnit broadcast_unit(float value) { return _mm256_set1_ps(value); }
#elif defined(__SSE2__)
typedef __m128 StreamUnit;
inline void stream(float* out, StreamUnit unit) { _mm_stream_ps(out, unit); }
inline StreamUnit load_unit(const float* in) { return _mm_loadu_ps(in); }
inline StreamUnit broadcast_unit(float value) { return _mm_set1_ps(value); }
#endif

// Returns true if a result of so many floats is written by streaming stores: from half of the last-level cache on (a fixed size where that is
// unknown). One processor gets less of a shared cache: with 480 MB, a streaming copy broke even at 50 MB and took half the time at 64.
bool is_large(int64_t numbers) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  static const int64_t least = std::clamp<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE) / 2 / sizeof(float), 1 << 18, 1 << 24);
#else
  constexpr int64_t least = 1 << 18;
#endif
  return numbers >= least;
}

#if defined(__SSE2__)
constexpr int64_t kUnitFloats = sizeof(StreamUnit) / sizeof(float);

int64_t to_alignment(const float* p, int64_t n) {
  return std::min<int64_t>(n, (sizeof(StreamUnit) - reinterpret_cast<uintptr_t>(p) % sizeof(StreamUnit)) % sizeof(StreamUnit) / sizeof(float));
}
#endif

void fill(float* out, float value, int64_t n, bool streaming) {
#if defined(__SSE2__)
  if (streaming) {
    for (const float* aligned = out + to_alignment(out, n); out < aligned; --n) *out++ = value;
    for (const StreamUnit values = broadcast_unit(value); n >= kUnitFloats; n -= kUnitFloats, out += kUnitFloats) stream(out, values);
  }
#endif
  std::fill(out, out + n, value);
}

void put(float* out, const float* row, int64_t n, bool streaming) {
#if defined(__SSE2__)
  if (streaming) {
    for (const float* aligned = out + to_alignment(out, n); out < aligned; --n) *out++ = *row++;
    for (; n >= kUnitFloats; n -= kUnitFloats, out += kUnitFloats, row += kUnitFloats) stream(out, load_unit(row));
  }
#endif
  std::memcpy(out, row, size_t(n) * sizeof(float));
}

// Orders streaming stores before all later stores.
void store_fence(bool streaming) {
#if defined(__SSE2__)
  if (streaming) _mm_sfence();
#endif
}

}  // namespace
