// Changes the colours of images (height, width, 1 or 3), and mirrors them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/streaming_stores.h"

// Results are those of operators one after another, each rounded.
#pragma GCC optimize("fp-contract=off")

namespace {

constexpr int kBlock = 64;  // pixels that are worked on together

inline void put(float* out, float value) { *out = value; }
// A NaN is 0.
inline void put(uint8_t* out, float value) { *out = uint8_t(int32_t(std::min(std::max(0.0f, value), 255.0f))); }

// A triple of numbers, repeated for a block.
struct Triples {
  float at[kBlock * 3];
  explicit Triples(const float* triple) {
    for (int i = 0; i < kBlock * 3; ++i) at[i] = triple[i % 3];
  }
};

inline void move(float* out, const float* values, int count, bool streaming) { put(out, values, count, streaming); }
inline void move(uint8_t* out, const uint8_t* values, int count, bool) { std::copy(values, values + count, out); }

// For bytes most shifts are equal to integer shifts, which run on vectors of bytes. Returns these integers, or false where the sum of some byte and a
// shift is rounded up to the next integer.
bool whole(const float* shifts, int* numbers) {
  for (int c = 0; c < 3; ++c) {
    if (!(std::fabs(shifts[c]) < 256)) return false;
    numbers[c] = int(std::floor(shifts[c]));
    for (int v = 0; v < 256; ++v) {
      uint8_t found;
      put(&found, float(v) + shifts[c]);
      if (found != std::min(std::max(v + numbers[c], 0), 255)) return false;
    }
  }
  return true;
}

void shift_bytes(const uint8_t* in, const int* numbers, uint8_t* out, int64_t n, int threads) {
  uint8_t up[kBlock * 3], down[kBlock * 3];
  for (int i = 0; i < kBlock * 3; ++i) {
    up[i] = uint8_t(std::min(std::max(numbers[i % 3], 0), 255));
    down[i] = uint8_t(std::min(std::max(-numbers[i % 3], 0), 255));
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t begin = 0; begin < n; begin += kBlock * 3) {
    const int count = int(std::min<int64_t>(kBlock * 3, n - begin));
#pragma omp simd
    for (int i = 0; i < count; ++i) {
      const uint8_t value = in[begin + i], more = uint8_t(value + std::min(up[i], uint8_t(255 - value)));
      out[begin + i] = uint8_t(more - std::min(more, down[i]));
    }
  }
}

// factor * value + shift of its channel.
template <typename T>
void shift(const T* in, const float* shifts, T* out, int64_t n, float factor, int threads) {
  if constexpr (std::is_same<T, uint8_t>::value)
    if (int numbers[3]; factor == 1 && whole(shifts, numbers)) return shift_bytes(in, numbers, out, n, threads);
  const Triples more(shifts);
  const bool streaming = is_large(n);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (int64_t begin = 0; begin < n; begin += kBlock * 3) {
      const int count = int(std::min<int64_t>(kBlock * 3, n - begin));
      T found[kBlock * 3];
#pragma omp simd
      for (int i = 0; i < count; ++i) put(found + i, float(in[begin + i]) * factor + more.at[i]);
      move(out + begin, found, count, streaming);
    }
    store_fence(streaming);
  }
}

// The sum of each channel.
template <typename T>
void sum(const T* in, double* sums, int64_t pixels) {
  double all[3] = {};
  for (int64_t begin = 0; begin < pixels; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, pixels);
    float some[3] = {};
    for (int64_t i = begin; i < end; ++i)
      for (int c = 0; c < 3; ++c) some[c] += float(in[3 * i + c]);
    for (int c = 0; c < 3; ++c) all[c] += some[c];
  }
  std::copy(all, all + 3, sums);
}

// factor * value + share * the last channel.
template <typename T>
void fade(const T* in, T* out, int64_t pixels, float factor, float share, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < pixels; ++i) {
    const float gray = share * float(in[3 * i + 2]);
    for (int c = 0; c < 3; ++c) put(out + 3 * i + c, float(in[3 * i + c]) * factor + gray);
  }
}

// Rotates the hue of pixels by a part of the circle, by conversion to hue, lightness and saturation.
template <typename T>
void turn(const T* in, T* out, int64_t pixels, float part, int threads) {
  const float sixths = part * 6;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t begin = 0; begin < pixels; begin += kBlock) {
    const int count = int(std::min<int64_t>(kBlock, pixels - begin));
    float red[kBlock], green[kBlock], blue[kBlock];
    for (int i = 0; i < count; ++i) {
      const T* pixel = in + 3 * (begin + i);
      red[i] = float(pixel[0]) / 255.0f, green[i] = float(pixel[1]) / 255.0f, blue[i] = float(pixel[2]) / 255.0f;
    }
#pragma omp simd
    for (int i = 0; i < count; ++i) {
      const float r = red[i], g = green[i], b = blue[i];
      const float high = std::max(std::max(r, g), b), low = std::min(std::min(r, g), b);
      const float spread = high - low, total = high + low, light = total / 2;
      const bool gray = spread <= std::numeric_limits<float>::epsilon();
      const float safe = gray ? 1 : spread;
      const float saturation = gray ? 0 : spread / std::min(total, 2 - total);
      const float sector = high == r ? (g - b) / safe : high == g ? (b - r) / safe + 2 : (r - g) / safe + 4;
      const float hue = (gray ? 0 : sector) + sixths;
      const float top = light <= 0.5f ? light * (1 + saturation) : light + saturation - light * saturation;
      const float bottom = 2 * light - top;
      // Each channel rises, stays, falls and stays over the six sectors of the circle.
      const auto channel = [&](float start) {
        const float position = hue + start, within = position - std::floor(position / 6) * 6;
        return (bottom + (top - bottom) * std::min(std::max(std::min(within, 4 - within), 0.0f), 1.0f)) * 255;
      };
      red[i] = channel(2), green[i] = channel(0), blue[i] = channel(4);
    }
    for (int i = 0; i < count; ++i) {
      T* pixel = out + 3 * (begin + i);
      put(pixel, red[i]), put(pixel + 1, green[i]), put(pixel + 2, blue[i]);
    }
  }
}

template <typename T, int channels>
void mirror_line(const T* in, T* out, int64_t width) {
  for (int64_t x = 0; x < width; ++x)
    for (int c = 0; c < channels; ++c) out[x * channels + c] = in[(width - 1 - x) * channels + c];
}

template <typename T>
void mirror(const T* in, T* out, int64_t height, int64_t width, int64_t channels, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t y = 0; y < height; ++y) {
    const int64_t at = y * width * channels;
    channels == 1 ? mirror_line<T, 1>(in + at, out + at, width) : mirror_line<T, 3>(in + at, out + at, width);
  }
}

}  // namespace

extern "C" {

#define ENTRIES(name, type)                                                                                                       \
  void shift_##name(const type* in, const float* shifts, type* out, int64_t n, float factor, int threads) {                       \
    shift(in, shifts, out, n, factor, threads);                                                                                   \
  }                                                                                                                               \
  void fade_##name(const type* in, type* out, int64_t pixels, float factor, float share, int threads) {                           \
    fade(in, out, pixels, factor, share, threads);                                                                                \
  }                                                                                                                               \
  void turn_##name(const type* in, type* out, int64_t pixels, float part, int threads) { turn(in, out, pixels, part, threads); }  \
  void sum_##name(const type* in, double* sums, int64_t pixels) { sum(in, sums, pixels); }                                         \
  void mirror_##name(const type* in, type* out, int64_t height, int64_t width, int64_t channels, int threads) {                   \
    mirror(in, out, height, width, channels, threads);                                                                            \
  }

ENTRIES(float32, float)
ENTRIES(uint8, uint8_t)

}  // extern "C"
