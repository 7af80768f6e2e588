// Pooling in two dimensions, over channels-last arrays: x (N, H, W, C), y (N, P, Q, C) as a part of the channels of an array.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

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

}  // namespace

extern "C" {

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
