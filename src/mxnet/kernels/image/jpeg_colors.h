// From planes of Y, Cb and Cr to pixels, with libjpeg-turbo's rounding: chroma at the image's size, and BGR.
#pragma once
#include <algorithm>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "image/jpeg_headers.h"

namespace {

// A row of a chroma component at the image's size, from the column `left` on: where it has half as many columns or rows as the image, its neighbours
// are interpolated. `sums` has two numbers more than half of the columns, rounded up; `out` as many as the columns and two more.
inline const uint8_t* upsampled_row(const Component& component, int64_t sampling_h, int64_t sampling_v, int64_t y, int64_t left, int64_t columns,
                                    int16_t* sums, uint8_t* out) {
  if (sampling_h == 1) return component.plane + y * component.stride + left;
  const int64_t first = left / 2, count = (left + columns + 1) / 2 - first;
  const int64_t at = sampling_v == 2 ? y / 2 : y;
  const int64_t beside = sampling_v == 2 ? std::min(std::max<int64_t>(at + (y & 1 ? 1 : -1), 0), component.height - 1) : at;
  const uint8_t *near = component.plane + at * component.stride, *far = component.plane + beside * component.stride;
  ++sums;  // one before the first
  for (int64_t i = 0; i < count; ++i) sums[i] = int16_t(3 * near[first + i] + far[first + i]);
  const int64_t before = std::max<int64_t>(first - 1, 0), after = std::min(first + count, component.width - 1);
  sums[-1] = int16_t(3 * near[before] + far[before]), sums[count] = int16_t(3 * near[after] + far[after]);
  // Both are 4 times as large where rows are not interpolated: so are the numbers that round.
  const int up = sampling_v == 2 ? 8 : 4, down = sampling_v == 2 ? 7 : 8;
  for (int64_t i = 0; i < count; ++i) {
    out[2 * i] = uint8_t((3 * sums[i] + sums[i - 1] + up) >> 4);
    out[2 * i + 1] = uint8_t((3 * sums[i] + sums[i + 1] + down) >> 4);
  }
  return out + (left & 1);
}

// YCbCr to BGR, in 16 bits behind the point.
inline void ycc_to_bgr(const uint8_t* luma, const uint8_t* cb, const uint8_t* cr, uint8_t* to, int64_t count) {
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + 16 < count; i += 16, to += 48) {
    const auto words = [&](const uint8_t* p) { return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i))); };
    const __m256i middle = _mm256_set1_epi16(128), one = _mm256_set1_epi16(1), round = _mm256_set1_epi32(32768);
    const __m256i y = words(luma), u = _mm256_sub_epi16(words(cb), middle), v = _mm256_sub_epi16(words(cr), middle);
    // (x * factor + 32768) >> 16 of words: the highest of twice the product, then half of that, rounded.
    const auto scaled = [&](__m256i x, int factor) {
      return _mm256_srai_epi16(_mm256_add_epi16(_mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16(int16_t(factor))), one), 1);
    };
    const auto both = [&](__m256i uv) {
      const __m256i factors = _mm256_set1_epi32(int32_t(uint32_t(65536 - 46802) << 16 | (uint32_t(-22554) & 0xffff)));
      return _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(uv, factors), round), 16);
    };
    const __m256i green = _mm256_packs_epi32(both(_mm256_unpacklo_epi16(u, v)), both(_mm256_unpackhi_epi16(u, v)));
    const auto bytes = [](__m256i x) { return _mm_packus_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)); };
    const __m128i first = bytes(_mm256_add_epi16(y, _mm256_add_epi16(_mm256_add_epi16(u, u), scaled(u, 116130 - 2 * 65536))));
    const __m128i second = bytes(_mm256_add_epi16(_mm256_sub_epi16(y, v), green));
    const __m128i third = bytes(_mm256_add_epi16(_mm256_add_epi16(y, v), scaled(v, 91881 - 65536)));
    const auto part = [&](__m128i x, __m128i y, __m128i z) {
      return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(first, x), _mm_shuffle_epi8(second, y)), _mm_shuffle_epi8(third, z));
    };
    __m128i* row = reinterpret_cast<__m128i*>(to);
    _mm_storeu_si128(row, part(_mm_setr_epi8(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5),
                               _mm_setr_epi8(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1),
                               _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1)));
    _mm_storeu_si128(row + 1, part(_mm_setr_epi8(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1),
                                   _mm_setr_epi8(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10),
                                   _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1)));
    _mm_storeu_si128(row + 2, part(_mm_setr_epi8(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1),
                                   _mm_setr_epi8(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1),
                                   _mm_setr_epi8(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15)));
  }
#endif
  const auto byte = [](int x) { return uint8_t(std::min(std::max(x, 0), 255)); };
  for (; i < count; ++i, to += 3) {
    const int y = luma[i], u = cb[i] - 128, v = cr[i] - 128;
    to[0] = byte(y + ((u * 116130 + 32768) >> 16));
    to[1] = byte(y + ((u * -22554 + v * -46802 + 32768) >> 16));
    to[2] = byte(y + ((v * 91881 + 32768) >> 16));
  }
}

}  // namespace
