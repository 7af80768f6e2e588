// The inverse DCT of a block of 8 x 8 coefficients, with libjpeg-turbo's rounding.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

// The integer inverse DCT of Loeffler, Ligtenberg and Moschytz, with 13 bits for a constant, written as the equivalent matrix products for the even
// and the odd ones of eight numbers.
constexpr int kEven[2][2] = {{10703, 4433}, {4433, -10704}};
constexpr int kOdd[4][4] = {{11363, 9633, 6437, 2260}, {9633, -2259, -11362, -6436}, {6437, -11362, 2261, 9633}, {2260, -6436, 9633, -11363}};
constexpr int kLargestCoefficient = 8192;         // larger coefficients do not occur in photographs, and libraries decode them differently
constexpr int kColumnShift = 11, kRowShift = 18;  // bits that are dropped after the columns, and after the rows

#if defined(__AVX2__)
inline __m256i pairs(__m128i x, __m128i y) { return _mm256_set_m128i(_mm_unpackhi_epi16(x, y), _mm_unpacklo_epi16(x, y)); }

inline __m256i product(__m256i xy, int x, int y) {
  return _mm256_madd_epi16(xy, _mm256_set1_epi32(int32_t(uint32_t(y) << 16 | (uint32_t(x) & 0xffff))));
}

// One pass of the inverse DCT over eight columns; in words, as they are again in the end.
template <int kShift>
inline void transform(__m128i (&x)[8]) {
  const __m256i outer = pairs(x[0], x[4]), inner = pairs(x[2], x[6]), low = pairs(x[1], x[3]), high = pairs(x[5], x[7]);
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  const __m256i sum = _mm256_add_epi32(product(outer, 8192, 8192), half), difference = _mm256_add_epi32(product(outer, 8192, -8192), half);
  const __m256i one = product(inner, kEven[0][0], kEven[0][1]), other = product(inner, kEven[1][0], kEven[1][1]);
  const __m256i even[4] = {_mm256_add_epi32(sum, one), _mm256_add_epi32(difference, other), _mm256_sub_epi32(difference, other),
                           _mm256_sub_epi32(sum, one)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256i odd = _mm256_add_epi32(product(low, kOdd[i][0], kOdd[i][1]), product(high, kOdd[i][2], kOdd[i][3]));
    const __m256i both = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(even[i], odd), kShift),
                                            _mm256_srai_epi32(_mm256_sub_epi32(even[i], odd), kShift));
    const __m256i apart = _mm256_permute4x64_epi64(both, 0xd8);
    x[i] = _mm256_castsi256_si128(apart), x[7 - i] = _mm256_extracti128_si256(apart, 1);
  }
}

inline void transpose(__m128i (&x)[8]) {
#pragma GCC unroll 3
  for (int round = 0; round < 3; ++round) {
    __m128i next[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) next[2 * i] = _mm_unpacklo_epi16(x[i], x[i + 4]), next[2 * i + 1] = _mm_unpackhi_epi16(x[i], x[i + 4]);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = next[i];
  }
}

// Returns true if all lie between -most and most, a power of two.
inline bool within(const __m128i (&x)[8], int most) {
  __m128i sums = _mm_setzero_si128();
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sums = _mm_or_si128(sums, _mm_add_epi16(x[i], _mm_set1_epi16(int16_t(most))));
  return _mm_testz_si128(sums, _mm_set1_epi16(int16_t(~(2 * most - 1))));
}

bool inverse_dct(const int16_t* block, const int16_t* steps, uint8_t* to, int64_t stride) {
  __m128i x[8];
  const auto row = [](const int16_t* from, int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i); };
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = _mm_mullo_epi16(row(block, i), row(steps, i));
  if (!within(x, kLargestCoefficient)) return false;
  transform<kColumnShift>(x);
  if (!within(x, 2 * kLargestCoefficient)) return false;
  transpose(x);
  transform<kRowShift>(x);
  transpose(x);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    const __m128i bytes = _mm_xor_si128(_mm_packs_epi16(x[i], x[i + 1]), _mm_set1_epi8(-128));  // 128 more
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i * stride), bytes);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + (i + 1) * stride), _mm_srli_si128(bytes, 8));
  }
  return true;
}
#else
template <int kShift, int kStep>
inline void transform(int32_t* x) {  // of one column or row, whose numbers stand kStep apart
  int32_t even[4];
  const int32_t sum = (x[0] + x[4 * kStep]) * 8192 + (1 << (kShift - 1)), difference = (x[0] - x[4 * kStep]) * 8192 + (1 << (kShift - 1));
  for (int i = 0; i < 2; ++i) {
    const int32_t part = x[2 * kStep] * kEven[i][0] + x[6 * kStep] * kEven[i][1], whole = i ? difference : sum;
    even[i] = whole + part, even[3 - i] = whole - part;
  }
  const int32_t in[4] = {x[kStep], x[3 * kStep], x[5 * kStep], x[7 * kStep]};
  for (int i = 0; i < 4; ++i) {
    const int32_t odd = in[0] * kOdd[i][0] + in[1] * kOdd[i][1] + in[2] * kOdd[i][2] + in[3] * kOdd[i][3];
    x[i * kStep] = (even[i] + odd) >> kShift, x[(7 - i) * kStep] = (even[i] - odd) >> kShift;
  }
}

bool inverse_dct(const int16_t* block, const int16_t* steps, uint8_t* to, int64_t stride) {
  int32_t x[64];
  for (int i = 0; i < 64; ++i) x[i] = int16_t(block[i] * steps[i]);
  const auto within = [&](int most) { return std::all_of(x, x + 64, [&](int32_t one) { return -most <= one && one < most; }); };
  if (!within(kLargestCoefficient)) return false;
  for (int i = 0; i < 8; ++i) transform<kColumnShift, 8>(x + i);
  if (!within(2 * kLargestCoefficient)) return false;
  for (int i = 0; i < 8; ++i) {
    transform<kRowShift, 1>(x + 8 * i);
    for (int j = 0; j < 8; ++j) to[i * stride + j] = uint8_t(std::min(std::max(x[8 * i + j] + 128, 0), 255));
  }
  return true;
}
#endif

// The same of a block whose first number is all that it has.
bool inverse_dct_of_dc(int16_t value, uint8_t* to, int64_t stride) {
  const int sample = std::min(std::max(((value + 4) >> 3) + 128, 0), 255);
  for (int i = 0; i < 8; ++i) std::memset(to + i * stride, sample, 8);
  return -kLargestCoefficient <= value && value < kLargestCoefficient;
}

}  // namespace
