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
typedef __m256 Piece;
inline void stream(float* out, Piece piece) { _mm256_stream_ps(out, piece); }
inline Piece piece(const float* in) { return _mm256_loadu_ps(in); }
inline Piece pieces_of(float value) { return _mm256_set1_ps(value); }
#elif defined(__SSE2__)
typedef __m128 Piece;
inline void stream(float* out, Piece piece) { _mm_stream_ps(out, piece); }
inline Piece piece(const float* in) { return _mm_loadu_ps(in); }
inline Piece pieces_of(float value) { return _mm_set1_ps(value); }
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
constexpr int64_t kPiece = sizeof(Piece) / sizeof(float);

int64_t to_alignment(const float* p, int64_t n) {
  return std::min<int64_t>(n, (sizeof(Piece) - reinterpret_cast<uintptr_t>(p) % sizeof(Piece)) % sizeof(Piece) / sizeof(float));
}
#endif

void fill(float* out, float value, int64_t n, bool past) {
#if defined(__SSE2__)
  if (past) {
    for (const float* aligned = out + to_alignment(out, n); out < aligned; --n) *out++ = value;
    for (const Piece values = pieces_of(value); n >= kPiece; n -= kPiece, out += kPiece) stream(out, values);
  }
#endif
  std::fill(out, out + n, value);
}

void put(float* out, const float* row, int64_t n, bool past) {
#if defined(__SSE2__)
  if (past) {
    for (const float* aligned = out + to_alignment(out, n); out < aligned; --n) *out++ = *row++;
    for (; n >= kPiece; n -= kPiece, out += kPiece, row += kPiece) stream(out, piece(row));
  }
#endif
  std::memcpy(out, row, size_t(n) * sizeof(float));
}

// Orders streaming stores before all later stores.
void finish(bool past) {
#if defined(__SSE2__)
  if (past) _mm_sfence();
#endif
}

}  // namespace
