// Writing past the caches: a result that is larger than they are has to be read into them first, otherwise, and drives out what they hold.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <unistd.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

// Whether a result of so many numbers is written so: from half of the last cache on, which on some systems is unknown.
bool is_large(int64_t numbers) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  static const int64_t least = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE) / 2 / sizeof(float), 1 << 18);
#else
  constexpr int64_t least = 1 << 18;
#endif
  return numbers >= least;
}

int64_t to_alignment(const float* p, int64_t n) {
  return std::min<int64_t>(n, (16 - (reinterpret_cast<uintptr_t>(p) & 15)) % 16 / sizeof(float));
}

void fill(float* out, float value, int64_t n, bool past) {
#if defined(__SSE2__)
  if (past) {
    for (const float* aligned = out + to_alignment(out, n); out < aligned; --n) *out++ = value;
    for (const __m128 values = _mm_set1_ps(value); n >= 4; n -= 4, out += 4) _mm_stream_ps(out, values);
  }
#endif
  std::fill(out, out + n, value);
}

void put(float* out, const float* row, int64_t n, bool past) {
#if defined(__SSE2__)
  if (past) {
    for (const float* aligned = out + to_alignment(out, n); out < aligned; --n) *out++ = *row++;
    for (; n >= 4; n -= 4, out += 4, row += 4) _mm_stream_ps(out, _mm_loadu_ps(row));
  }
#endif
  std::memcpy(out, row, size_t(n) * sizeof(float));
}

// What was written past the caches comes before what follows.
void finish(bool past) {
#if defined(__SSE2__)
  if (past) _mm_sfence();
#endif
}

}  // namespace
