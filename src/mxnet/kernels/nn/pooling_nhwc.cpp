// Pooling in two dimensions, over channels-last arrays: x (N, H, W, C), y (N, P, Q, C) as a part of the channels of an array.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <omp.h>

#include "runtime/parameters.h"
#include "runtime/vectors.h"

namespace {

constexpr int kVectorsAtOnce = 4;  // of channels at a time: neighbours in memory

struct Range {
  int64_t begin, end;
};
inline Range window(int64_t i, int64_t stride, int64_t pad, int64_t kernel) { return {i * stride - pad, i * stride - pad + kernel}; }
inline Range within(Range r, int64_t size) { return {std::max<int64_t>(r.begin, 0), std::min(r.end, size)}; }

// One window of NV vectors of channels.
template <bool Average, int NV>
void pool(const PoolingNhwcParams& z, const float* image, Range rows, Range columns, float divisor, float* out) {
  vec result[NV];
  for (int v = 0; v < NV; ++v) result[v] = vec{} + (Average ? 0 : -std::numeric_limits<float>::infinity());
  for (int64_t i = rows.begin; i < rows.end; ++i)
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      const float* from = image + (i * z.w + j) * z.c;
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        const vec value = load(from + v * kLanes);
        if (Average)
          result[v] += value;
        else
          result[v] = (value > result[v]) | (value != value) ? value : result[v];  // NaN stays
      }
    }
  for (int v = 0; v < NV; ++v) store(out + v * kLanes, Average ? result[v] / divisor : result[v]);
}

template <bool Average, int NV>
void line(const PoolingNhwcParams& z, const float* image, int64_t p, float* out) {
  const Range down = window(p, z.stride_h, z.pad_h, z.kernel_h), rows = within(down, z.h);
  for (int64_t q = 0; q < z.q; ++q, out += z.total) {
    const Range across = window(q, z.stride_w, z.pad_w, z.kernel_w), columns = within(across, z.w);
    // Windows that leave the padding, too, end with it.
    const int64_t height = z.padded ? std::min(down.end, z.h + z.pad_h) - down.begin : rows.end - rows.begin;
    const int64_t width = z.padded ? std::min(across.end, z.w + z.pad_w) - across.begin : columns.end - columns.begin;
    pool<Average, NV>(z, image, rows, columns, float(height * width), out);
  }
}

// A number for each lane: the place of an element in its window, which is kept in a byte.
typedef int32_t places __attribute__((vector_size(kLanes * 4), may_alias));

#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline void store_marks(uint8_t* to, places at, int64_t count) {
  _mm_mask_storeu_epi8(to, lane_mask(count), _mm512_cvtepi32_epi8((__m512i)at));
}
// Those of the numbers whose mark is `place`, and zeros.
inline vec where_marked(const uint8_t* marks, int32_t place, const float* numbers, int64_t count) {
  const __mmask16 there = lane_mask(count);
  const __mmask16 hits = _mm_mask_cmpeq_epi8_mask(there, _mm_maskz_loadu_epi8(there, marks), _mm_set1_epi8(char(place)));
  return (vec)_mm512_maskz_loadu_ps(hits, numbers);
}
#else
inline void store_marks(uint8_t* to, places at, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = uint8_t(at[i]);
}
inline vec where_marked(const uint8_t* marks, int32_t place, const float* numbers, int64_t count) {
  places at{};
#if defined(__AVX2__) && !defined(__AVX512F__)
  if (count == kLanes) {
    at = (places)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(marks)));
    return at == place ? load(numbers) : vec{};
  }
#endif
  for (int64_t i = 0; i < count; ++i) at[i] = marks[i];
  return at == place ? load(numbers, count) : vec{};
}
#endif

// The windows of one line of outputs, and the place of the largest element of each: the first of equals, the last of NaNs, as in torch.
void mark_line(const PoolingNhwcParams& z, const float* image, int64_t p, float* out, uint8_t* where) {
  const Range down = window(p, z.stride_h, z.pad_h, z.kernel_h), rows = within(down, z.h);
  for (int64_t q = 0; q < z.q; ++q, out += z.c, where += z.c) {
    const Range across = window(q, z.stride_w, z.pad_w, z.kernel_w), columns = within(across, z.w);
    const int32_t first = int32_t((rows.begin - down.begin) * z.kernel_w + columns.begin - across.begin);
    for (int64_t c = 0; c < z.c; c += kLanes) {
      const int64_t count = std::min<int64_t>(z.c - c, kLanes);
      vec found = vec{} - std::numeric_limits<float>::infinity();
      places at = places{} + first;
      for (int64_t i = rows.begin; i < rows.end; ++i)
        for (int64_t j = columns.begin; j < columns.end; ++j) {
          const vec value = load(image + (i * z.w + j) * z.c + c, count);
          const places exceeds = (value > found) | (value != value);
          found = exceeds ? value : found;
          at = exceeds ? places{} + int32_t((i - down.begin) * z.kernel_w + j - across.begin) : at;
        }
      store(out + c, found, count);
      store_marks(where + c, at, count);
    }
  }
}

// The outputs along one axis whose windows hold an input.
inline Range windows_of(int64_t input, int64_t stride, int64_t pad, int64_t kernel, int64_t outputs) {
  const int64_t last = (input + pad) / stride, beyond = input + pad - kernel;  // the last element of windows that end before the input
  return {beyond < 0 ? 0 : std::min(beyond / stride + 1, outputs), std::min(last + 1, outputs)};
}

// The gradient of one line of inputs, in NV vectors of channels: of each window whose largest element an input is. Nothing is added in memory.
template <int NV>
void gather_line(const PoolingNhwcParams& z, const float* dy, const uint8_t* where, int64_t h, const Range* columns, float* dx, int64_t channels) {
  const Range rows = windows_of(h, z.stride_h, z.pad_h, z.kernel_h, z.p);
  const int64_t last = channels - (NV - 1) * kLanes;  // channels of the last vector
  for (int64_t w = 0; w < z.w; ++w, dx += z.c) {
    vec sum[NV] = {};
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      int64_t place = (h + z.pad_h - p * z.stride_h) * z.kernel_w + w + z.pad_w - columns[w].begin * z.stride_w;
      const int64_t output = (p * z.q + columns[w].begin) * z.c;
      const float* from = dy + output;
      const uint8_t* marks = where + output;
      for (int64_t q = columns[w].begin; q < columns[w].end; ++q, place -= z.stride_w, from += z.c, marks += z.c)
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v)
          sum[v] += where_marked(marks + v * kLanes, int32_t(place), from + v * kLanes, v + 1 < NV ? kLanes : last);
    }
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) store(dx + v * kLanes, sum[v], v + 1 < NV ? kLanes : last);
  }
}

}  // namespace

extern "C" {

// Maximum pooling, with the place of each window's largest element.
void forward_marked(const float* x, float* y, uint8_t* where, const PoolingNhwcParams* sizes, int threads) {
  const PoolingNhwcParams z = *sizes;
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < z.n * z.p; ++i) {
    const int64_t output = i * z.q * z.c;
    mark_line(z, x + i / z.p * z.h * z.w * z.c, i % z.p, y + output, where + output);
  }
}

void backward_marked(const uint8_t* where, const float* dy, float* dx, const PoolingNhwcParams* sizes, int threads) {
  const PoolingNhwcParams z = *sizes;
  std::vector<Range> columns(z.w);
  for (int64_t w = 0; w < z.w; ++w) columns[w] = windows_of(w, z.stride_w, z.pad_w, z.kernel_w, z.q);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < z.n * z.h; ++i) {
    for (int64_t c = 0; c < z.c; c += kVectorsAtOnce * kLanes) {
      const int64_t image = i / z.h * z.p * z.q * z.c + c, channels = std::min<int64_t>(z.c - c, kVectorsAtOnce * kLanes);
      const auto run = [&](auto vectors) {
        gather_line<decltype(vectors)::value>(z, dy + image, where + image, i % z.h, columns.data(), dx + i * z.w * z.c + c, channels);
      };
      switch ((channels + kLanes - 1) / kLanes) {
        case 1: run(std::integral_constant<int, 1>()); break;
        case 2: run(std::integral_constant<int, 2>()); break;
        case 3: run(std::integral_constant<int, 3>()); break;
        default: run(std::integral_constant<int, kVectorsAtOnce>());
      }
    }
  }
}

// There is at least a vector of channels, and each window holds a part of the image.
void forward_float32(const float* x, float* y, const PoolingNhwcParams* sizes, int threads) {
  const PoolingNhwcParams& z = *sizes;
  const int64_t together = kVectorsAtOnce * kLanes, pieces = (z.c + together - 1) / together, lines = z.n * z.p * pieces;
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    for (int64_t i = lines * thread / team; i < lines * (thread + 1) / team; ++i) {
      const int64_t p = i / pieces % z.p, n = i / pieces / z.p;
      const auto run = [&](auto vectors, int64_t c) {
        const float* image = x + n * z.h * z.w * z.c + c;
        float* out = y + (n * z.p + p) * z.q * z.total + z.first + c;
        if (z.average)
          line<true, decltype(vectors)::value>(z, image, p, out);
        else
          line<false, decltype(vectors)::value>(z, image, p, out);
      };
      const int64_t begin = i % pieces * together, end = std::min(begin + together, z.c);
      if (end - begin == together)
        run(std::integral_constant<int, kVectorsAtOnce>(), begin);
      else
        for (int64_t c = begin; c < end; c += kLanes) run(std::integral_constant<int, 1>(), std::min(c, z.c - kLanes));  // the last may overlap
    }
  }
}
}
