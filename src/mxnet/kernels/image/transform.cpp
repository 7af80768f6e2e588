// Preprocessing of an image for a batch: a part of it is resized, cropped, mirrored, mapped through a table and laid out as NCHW or NHWC. Each needed
// pixel is read once, and intermediate values stay in the L1 cache. Resizing is linear, in OpenCV's integer arithmetic: 11 bits for a weight.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "runtime/parameters.h"

namespace {

constexpr int kOne = 2048;      // a weight of 1
constexpr int64_t kMost = 1 << 15;  // pixels of a side

// Returns true if all addresses lie in the image.
bool holds(const ImageCutParams& cut, int64_t bytes, int64_t channels, int64_t out_rows, int64_t out_columns) {
  return 0 < cut.height && cut.height <= kMost && 0 < cut.width && cut.width <= kMost && cut.height * cut.width * channels <= bytes && 0 <= cut.top &&
         0 <= cut.left && 0 < cut.rows && cut.rows <= cut.height - std::min(cut.top, cut.height) && 0 < cut.columns &&
         cut.columns <= cut.width - std::min(cut.left, cut.width) && 0 < cut.resized_rows && cut.resized_rows <= kMost && 0 < cut.resized_columns &&
         cut.resized_columns <= kMost && 0 <= cut.crop_top && cut.crop_top <= cut.resized_rows - out_rows && 0 <= cut.crop_left &&
         cut.crop_left <= cut.resized_columns - out_columns;
}

// Where a resized coordinate lies: between `first` and `second`, whose weights are kOne - weight and weight.
struct Place {
  int64_t first, second;
  int weight;

  Place(int64_t at, int64_t from, int64_t to) {
    const double scale = 1.0 / (double(to) / double(from));
    const float exact = float((at + 0.5) * scale - 0.5);
    first = int64_t(std::floor(exact)), second = first + 1;
    weight = int(std::lrintf((exact - float(first)) * kOne));
    // At an edge both are its pixels; the weights stay, since each product is rounded.
    first = std::min(std::max<int64_t>(first, 0), from - 1), second = std::min(std::max<int64_t>(second, 0), from - 1);
  }
};

template <int C>
struct Columns {  // for each column of the result where its pixels begin in a row, in bytes, and their weights
  std::unique_ptr<int32_t[]> at;
  std::unique_ptr<int16_t[]> weights;
  int64_t count, padded;

  Columns(const ImageCutParams& cut, int64_t out_columns) : count(out_columns), padded((out_columns + 7) & ~int64_t(7)) {
    at.reset(new int32_t[padded]);
    weights.reset(new int16_t[padded * 2]);
    for (int64_t j = 0; j < padded; ++j) {
      const int64_t column = std::min(j, count - 1);
      Place place(cut.crop_left + (cut.mirrored ? count - 1 - column : column), cut.columns, cut.resized_columns);
      if (place.first == place.second) {  // one pixel counts; another has to follow where it begins, if there is one
        const bool last = place.first > 0;
        place.first -= last, place.weight = last ? kOne : 0;
      }
      at[j] = int32_t(place.first * C);
      weights[2 * j] = int16_t(kOne - place.weight), weights[2 * j + 1] = int16_t(place.weight);
    }
  }
};

// A row of the part, resized: 4 numbers of 15 bits for each pixel, of which C count.
template <int C>
void across(const uint8_t* in, const Columns<C>& columns, int16_t* out) {
#if defined(__AVX2__)
  if (C > 1) {
    const __m128i pairs = C == 3 ? _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1)
                                 : _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
    const __m256i both = _mm256_broadcastsi128_si256(pairs);
    const auto pixel = [&](int64_t j) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + columns.at[j])); };
    const auto weight = [&](int64_t j) {
      int32_t two;
      std::memcpy(&two, columns.weights.get() + 2 * j, 4);
      return _mm_set1_epi32(two);
    };
    const auto sums = [&](int64_t i, int64_t j) {
      const __m256i pixels = _mm256_shuffle_epi8(_mm256_set_m128i(pixel(j), pixel(i)), both);
      return _mm256_srli_epi32(_mm256_madd_epi16(pixels, _mm256_set_m128i(weight(j), weight(i))), 4);
    };
    for (int64_t j = 0; j < columns.padded; j += 4)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 4 * j), _mm256_packs_epi32(sums(j, j + 2), sums(j + 1, j + 3)));
    return;
  }
#endif
  for (int64_t j = 0; j < columns.padded; ++j)
    for (int c = 0; c < C; ++c) {
      const uint8_t* pixel = in + columns.at[j] + c;
      out[4 * j + c] = int16_t((pixel[0] * columns.weights[2 * j] + pixel[C] * columns.weights[2 * j + 1]) >> 4);
    }
}

// Two such rows to one of bytes.
inline void down(const int16_t* __restrict upper, const int16_t* __restrict lower, int weight, uint8_t* __restrict out, int64_t count) {
  const int first = kOne - weight;
  int64_t i = 0;
#if defined(__AVX2__)
  const __m256i weights[2] = {_mm256_set1_epi16(int16_t(first)), _mm256_set1_epi16(int16_t(weight))};
  const auto sums = [&](int64_t at) {
    const auto rows = [&](const int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + at)); };
    const __m256i sum = _mm256_add_epi16(_mm256_mulhi_epi16(rows(upper), weights[0]), _mm256_mulhi_epi16(rows(lower), weights[1]));
    return _mm256_srai_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(2)), 2);
  };
  for (; i + 32 <= count; i += 32) {
    const __m256i bytes = _mm256_packus_epi16(sums(i), sums(i + 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permute4x64_epi64(bytes, 0xd8));
  }
#endif
  for (; i < count; ++i) {
    const int sum = (((first * upper[i]) >> 16) + ((weight * lower[i]) >> 16) + 2) >> 2;
    out[i] = uint8_t(sum > 255 ? 255 : sum);
  }
}

// One channel of a row of such bytes, each mapped through the table.
template <typename T, int kStep>
inline void look_up(const uint8_t* pixels, int channel, const T* table, T* to, int64_t count) {
  int64_t j = 0;
#if defined(__AVX2__)
  if (sizeof(T) == 4 && kStep == 1) {
    const __m256i byte = _mm256_set1_epi32(255);
    const __m128i shift = _mm_cvtsi32_si128(8 * channel);
    for (; j + 8 <= count; j += 8) {
      const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pixels + 4 * j));
      const __m256i values = _mm256_and_si256(_mm256_srl_epi32(four, shift), byte);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + j), _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), values, 4));
    }
  }
#endif
  for (; j < count; ++j) to[j * kStep] = table[pixels[4 * j + channel]];
}

template <typename T, int C, bool kPlanes>
void finish(const uint8_t* image, const ImageCutParams& cut, const T* table, T* out, int64_t out_rows, int64_t out_columns) {
  const Columns<C> columns(cut, out_columns);
  const int64_t length = 4 * columns.padded, stride = cut.width * C, used = cut.columns * C;
  std::unique_ptr<int16_t[]> kept(new int16_t[2 * length]());
  std::unique_ptr<uint8_t[]> pixels(new uint8_t[length]), padded(new uint8_t[used + 16]());
  int64_t held[2] = {-1, -1};
  // Reads go up to 8 bytes beyond the last pixel: of the last row they would leave the image.
  const auto row = [&](int64_t y) -> const int16_t* {
    const int slot = int(y & 1);
    if (held[slot] != y) {
      const uint8_t* in = image + (cut.top + y) * stride + cut.left * C;
      if (cut.top + y + 1 == cut.height || stride < 8) {
        std::memcpy(padded.get(), in, size_t(used));
        in = padded.get();
      }
      across<C>(in, columns, kept.get() + slot * length);
      held[slot] = y;
    }
    return kept.get() + slot * length;
  };
  for (int64_t y = 0; y < out_rows; ++y) {
    const Place place(cut.crop_top + y, cut.rows, cut.resized_rows);
    const int16_t* upper = row(place.first);
    const int16_t* lower = row(place.second);
    down(upper, lower, place.weight, pixels.get(), length);
    for (int c = 0; c < C; ++c) {
      T* to = kPlanes ? out + (c * out_rows + y) * out_columns : out + y * out_columns * C + c;
      look_up<T, kPlanes ? 1 : C>(pixels.get(), cut.reversed && c < 3 && C > 1 ? 2 - c : c, table + 256 * c, to, out_columns);
    }
  }
}

template <typename T, bool kPlanes>
void run(const uint8_t* image, const ImageCutParams cut, const T* table, T* out, int64_t bytes, int64_t channels, int64_t rows, int64_t columns) {
  if (rows <= 0 || columns <= 0 || !holds(cut, bytes, channels, rows, columns)) return;
  if (channels == 1) finish<T, 1, kPlanes>(image, cut, table, out, rows, columns);
  if (channels == 3) finish<T, 3, kPlanes>(image, cut, table, out, rows, columns);
  if (channels == 4) finish<T, 4, kPlanes>(image, cut, table, out, rows, columns);
}

}  // namespace

#define ENTRIES(name, T)                                                                                                                     \
  void planes_##name(const uint8_t* image, const ImageCutParams* cut, const T* table, T* out, int64_t bytes, int64_t channels, int64_t rows, \
                     int64_t columns) {                                                                                                      \
    run<T, true>(image, *cut, table, out, bytes, channels, rows, columns);                                                                   \
  }                                                                                                                                          \
  void pixels_##name(const uint8_t* image, const ImageCutParams* cut, const T* table, T* out, int64_t bytes, int64_t channels, int64_t rows, \
                     int64_t columns) {                                                                                                      \
    run<T, false>(image, *cut, table, out, bytes, channels, rows, columns);                                                                  \
  }

extern "C" {

ENTRIES(uint8, uint8_t)
ENTRIES(int8, uint8_t)     // bytes are bytes,
ENTRIES(float16, uint16_t)  // table values are copied without arithmetic
ENTRIES(float32, uint32_t)

}  // extern "C"
