// Tiles of bfloat16 (AMX): matrices of floats split into three of them, transposed or not, and the product of two such matrices in registers.
//
// Include this only where the processor has AMX and AVX-512.
#pragma once
#include <algorithm>
#include <cstdint>

#include <immintrin.h>

#include "runtime/vectors.h"

namespace {

typedef uint16_t half;  // the bits of a bfloat16

template <typename T>
constexpr int kParts = sizeof(T) == sizeof(float) ? 3 : 1;

constexpr int64_t kSide = 32;         // rows, columns and depth of a product in registers: two tiles each
constexpr int64_t kTile = 512;        // numbers of a tile: 16 lines of 32
constexpr int64_t kStep = 6 * kTile;  // of 32 lines of 32 numbers: three parts, two tiles each

struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The tiles of this thread, as long as it is in a block. Those of the left operand and of sums have `lines` lines.
struct Tiles {
  explicit Tiles(int64_t lines = 16) {
    TileConfig config;
    std::fill_n(config.lines, 6, uint8_t(lines));
    __asm__ volatile("" : : "r"(&config) : "memory");  // the intrinsic declares the first eight bytes only
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
};

// The next eight bits of 16 numbers, which go.
inline __m512i part(__m512& x) {
  const __m512i bits = _mm512_castps_si512(x);
  x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(int(0xffff0000)))));
  return bits;
}

// The three parts of 32 numbers, of which only those are read that are there; the others are zeros.
inline void split(const float* from, uint32_t there, __m512i (&parts)[3]) {
  alignas(64) static const half upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                             33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  __m512 low = _mm512_maskz_loadu_ps(__mmask16(there), from), high = _mm512_maskz_loadu_ps(__mmask16(there >> 16), from + 16);
#pragma GCC unroll 3
  for (int p = 0; p < 3; ++p) {
    const __m512i first = part(low), second = part(high);
    parts[p] = _mm512_permutex2var_epi16(first, _mm512_load_si512(upper), second);
  }
}

constexpr int64_t pieces(int64_t count) { return (count + kSide - 1) / kSide; }
// Of 32 numbers from `first` on, those below `count`, as bits.
constexpr uint32_t those(int64_t first, int64_t count) { return count - first >= kSide ? ~0u : (1u << (count - first)) - 1; }

// Work of the vector units between products on tiles, which take 64 cycles after each call and leave these units idle: none.
struct NoSideWork {
  void operator()() const {}
};
constexpr int64_t kCallsOfSideWork = 6;  // in each step of three parts

// sums (+)= a times b over some steps, the smallest products first. Lines of sums are `pitch` numbers apart; where only the first tile of their lines is
// wanted, or of columns, the other tiles are left alone.
template <int kParts, bool kRows, bool kColumns, typename SideWork>
void multiply(const half* a, const half* b, int64_t steps, float* sums, int64_t pitch, bool add, SideWork& side_work) {
  const int64_t line = pitch * 4;
// The compiler has tiles as assembly only, and takes their numbers from the text.
#define REMEX_SUMS(move)                                                    \
  {                                                                         \
    move(0, sums, line);                                                    \
    if constexpr (kColumns) move(1, sums + 16, line);                       \
    if constexpr (kRows) move(2, sums + 16 * pitch, line);                  \
    if constexpr (kRows && kColumns) move(3, sums + 16 * pitch + 16, line); \
  }
#define REMEX_LEFT(part)                                                 \
  {                                                                      \
    _tile_loadd(4, a + part * 2 * kTile, 64);                            \
    if constexpr (kRows) _tile_loadd(5, a + (part * 2 + 1) * kTile, 64); \
  }
#define REMEX_RIGHT(part)                                                   \
  {                                                                         \
    _tile_loadd(6, b + part * 2 * kTile, 64);                               \
    if constexpr (kColumns) _tile_loadd(7, b + (part * 2 + 1) * kTile, 64); \
  }
#define REMEX_PRODUCTS()                                      \
  {                                                           \
    _tile_dpbf16ps(0, 4, 6);                                  \
    if constexpr (kColumns) _tile_dpbf16ps(1, 4, 7);          \
    if constexpr (kRows) _tile_dpbf16ps(2, 5, 6);             \
    if constexpr (kRows && kColumns) _tile_dpbf16ps(3, 5, 7); \
    side_work();                                              \
  }
  if (add) {
    REMEX_SUMS(_tile_loadd)
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step, a += 2 * kParts * kTile, b += 2 * kParts * kTile) {
    if constexpr (kParts == 3) {
      REMEX_LEFT(2) REMEX_RIGHT(0) REMEX_PRODUCTS()
      REMEX_LEFT(1) REMEX_PRODUCTS()
      REMEX_RIGHT(1) REMEX_PRODUCTS()
      REMEX_LEFT(0) REMEX_PRODUCTS()
      REMEX_RIGHT(2) REMEX_PRODUCTS()
      REMEX_RIGHT(0) REMEX_PRODUCTS()
    } else {
      REMEX_LEFT(0) REMEX_RIGHT(0) REMEX_PRODUCTS()
    }
  }
  REMEX_SUMS(_tile_stored)
#undef REMEX_SUMS
#undef REMEX_LEFT
#undef REMEX_RIGHT
#undef REMEX_PRODUCTS
}

// By whether there is a second tile of rows, and of columns.
template <typename SideWork>
using Multiply = void (*)(const half*, const half*, int64_t, float*, int64_t, bool, SideWork&);
template <int kParts, typename SideWork>
constexpr Multiply<SideWork> kMultiply[2][2] = {{multiply<kParts, false, false, SideWork>, multiply<kParts, false, true, SideWork>},
                                                {multiply<kParts, true, false, SideWork>, multiply<kParts, true, true, SideWork>}};

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
  Range part(int64_t number, int64_t parts) const { return {begin + size() * number / parts, begin + size() * (number + 1) / parts}; }
};

// The tiles of one step and panel, of the filters and inputs that are there. Filters lie `apart` numbers from each other.
void pack(const float* weight, int64_t apart, int64_t filters, uint32_t there, half* to) {
  for (int side = 0; side < 2; ++side) {
    vec lines[3][kLanes];
    for (int f = 0; f < kLanes; ++f) {
      __m512i parts[3] = {};
      if (side * kLanes + f < filters) split(weight + (side * kLanes + f) * apart, there, parts);
      for (int p = 0; p < 3; ++p) lines[p][f] = (vec)_mm512_castsi512_ps(parts[p]);
    }
    for (int p = 0; p < 3; ++p) {  // pairs along the depth of 16 filters
      transpose_square(lines[p]);
      for (int i = 0; i < kLanes; ++i) store(reinterpret_cast<float*>(to + (p * 2 + side) * kTile + i * kSide), lines[p][i]);
    }
  }
}

// The bits of two numbers of bfloat16 that are neighbours along the depth, 16 times.
inline __m512i pair(__m512i first, __m512i second) {
  return _mm512_or_si512(_mm512_srli_epi32(first, 16), _mm512_and_si512(second, _mm512_set1_epi32(int(0xffff0000))));
}

// Two rows of up to 32 numbers, null for zeros, as a line of each of the right operand's tiles; or of the left one's, before its transposition.
template <typename Store>
inline void pairs(const float* first, const float* second, uint32_t there, Store to) {
  for (int side = 0; side < 2; ++side) {
    const __mmask16 mask = __mmask16(there >> 16 * side);
    __m512 x = first ? _mm512_maskz_loadu_ps(mask, first + 16 * side) : _mm512_setzero_ps();
    __m512 y = second ? _mm512_maskz_loadu_ps(mask, second + 16 * side) : _mm512_setzero_ps();
    for (int p = 0; p < 3; ++p) {
      const __m512i low = part(x), high = part(y);
      to(p * 2 + side, pair(low, high));
    }
  }
}
template <typename Store>
inline void pairs(const half* first, const half* second, uint32_t there, Store to) {
  alignas(64) static const half turns[2][32] = {{0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
                                                {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                                 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
  const __m512i x = first ? _mm512_maskz_loadu_epi16(there, first) : __m512i{}, y = second ? _mm512_maskz_loadu_epi16(there, second) : __m512i{};
  for (int side = 0; side < 2; ++side) to(side, _mm512_permutex2var_epi16(x, _mm512_load_si512(turns[side]), y));
}

// The tiles of one step and panel of weights that gradients go back through: depth and columns have changed places. Rows lie `apart` numbers. Of 16
// pairs of rows this packs one.
inline void pack_turned_pair(const float* weight, int64_t apart, int64_t rows, uint32_t there, int64_t i, half* to) {
  auto row = [=](int64_t r) { return r < rows ? weight + r * apart : nullptr; };
  pairs(row(2 * i), row(2 * i + 1), there, [=](int tile, __m512i line) { _mm512_storeu_si512(to + tile * kTile + i * kSide, line); });
}
void pack_turned(const float* weight, int64_t apart, int64_t rows, uint32_t there, half* to) {
  for (int i = 0; i < 16; ++i) pack_turned_pair(weight, apart, rows, there, i, to);
}

}  // namespace
