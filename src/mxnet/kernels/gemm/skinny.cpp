// Products of a matrix with few rows of numbers, forward and backward, for fully connected layers in training. They are bound by reading the
// matrix, or by writing its gradient, so each is passed over once, in the order of memory, without packing.
//
// Arrays: rows (N, C), weight (K, C), out and dout (N, K), in order. C is a whole number of vectors.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <omp.h>

#include "gemm/row_counts.h"
#include "runtime/streaming_stores.h"
#include "runtime/vectors.h"

namespace {

#if defined(__AVX512F__)
constexpr int kMatrixRows = 4;  // rows of the matrix that are read, or written, side by side
constexpr int kDotRows = 6;     // rows of numbers whose products with them are in registers
constexpr int kSumRows = 12;    // and with two vectors of one of them
constexpr int kVectors = 4;   // of a row that is written, at a time
#else
constexpr int kMatrixRows = 2;
constexpr int kDotRows = 5;
constexpr int kSumRows = 6;
constexpr int kVectors = 4;
#endif
constexpr int64_t kDepthBlock = 16;                            // rows of the matrix that are summed up before the sums go to memory
constexpr int64_t kCachedFloats = (24 << 10) / sizeof(float);  // numbers that the L1 cache holds beside others

// out[i][j] = bias[j] + sum over c of rows[i][c] * weight[j][c] for R rows and F of the matrix.
template <int F, int R>
void dot(const float* rows, const float* weight, const float* bias, float* out, int64_t c, int64_t k) {
  vec sum[F][R] = {};
  for (int64_t at = 0; at < c; at += kLanes) {
    vec right[F];
#pragma GCC unroll 4
    for (int j = 0; j < F; ++j) right[j] = load(weight + j * c + at);
#pragma GCC unroll 6
    for (int i = 0; i < R; ++i) {
      const vec left = load(rows + i * c + at);
#pragma GCC unroll 4
      for (int j = 0; j < F; ++j) sum[j][i] += left * right[j];
    }
  }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < F; ++j) out[i * k + j] = reduce_add(sum[j][i]) + (bias ? bias[j] : 0);
}

template <int R>
struct Dots {
  static void run(const float* rows, const float* weight, const float* bias, float* out, int64_t c, int64_t k, int64_t filters) {
    for (int64_t j = 0; j < filters;) {
      const float* from = weight + j * c;
      const float* offset = bias ? bias + j : nullptr;
      if (filters - j >= kMatrixRows)
        dot<kMatrixRows, R>(rows, from, offset, out + j, c, k), j += kMatrixRows;
      else
        dot<1, R>(rows, from, offset, out + j, c, k), ++j;
    }
  }
};

void forward(const float* rows, const float* weight, const float* bias, float* out, int64_t n, int64_t c, int64_t k, int threads) {
  const int64_t height = piece(n, kDotRows), tiles = (k + kMatrixRows - 1) / kMatrixRows;
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    for (int64_t tile = tiles * thread / team; tile < tiles * (thread + 1) / team; ++tile) {  // the caches have it for the rows that come after
      const int64_t j = tile * kMatrixRows, filters = std::min<int64_t>(kMatrixRows, k - j);
      for (int64_t i = 0; i < n; i += height)
        chosen<Dots>(std::min(height, n - i), std::make_integer_sequence<int, kDotRows>())(rows + i * c, weight + j * c, bias ? bias + j : nullptr,
                                                                                           out + i * k + j, c, k, filters);
    }
  }
}

// dx[i][at...] (+)= sum over d of left[d][i] * weight[d][at...] for R rows and V vectors.
template <int R, int V>
inline __attribute__((always_inline)) void accumulate(const float* left, const float* weight, float* dx, int64_t depth, int64_t c, bool add) {
  vec sum[R][V];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = add ? load(dx + i * c + v * kLanes) : vec{};
  for (int64_t d = 0; d < depth; ++d) {
    vec right[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) right[v] = load(weight + d * c + v * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] += left[d * R + i] * right[v];
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store(dx + i * c + v * kLanes, sum[i][v]);
}

template <int R>
struct Sums {
  static void run(const float* left, const float* weight, float* dx, int64_t depth, int64_t c, int64_t begin, int64_t end, bool add) {
    int64_t at = begin;
    for (; at + 2 * kLanes <= end; at += 2 * kLanes) accumulate<R, 2>(left, weight + at, dx + at, depth, c, add);
    for (; at < end; at += kLanes) accumulate<R, 1>(left, weight + at, dx + at, depth, c, add);
  }
};

void backward_data(const float* dout, const float* weight, float* dx, int64_t n, int64_t c, int64_t k, int threads) {
  const int64_t height = piece(n, kSumRows), columns = std::max<int64_t>(kCachedFloats / kDepthBlock / kLanes * kLanes, 2 * kLanes),
                vectors = c / kLanes;
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    const int64_t begin = vectors * thread / team * kLanes, end = vectors * (thread + 1) / team * kLanes;
    std::vector<float> left(n * kDepthBlock);
    for (int64_t from = 0; from < k; from += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, k - from);
      for (int64_t i = 0; i < n; i += height) {
        const int64_t high = std::min(height, n - i);
        for (int64_t d = 0; d < depth; ++d)
          for (int64_t l = 0; l < high; ++l) left[i * kDepthBlock + d * high + l] = dout[(i + l) * k + from + d];
      }
      // With several blocks of rows, the later ones read the matrix from the cache.
      const int64_t step = n > height ? columns : end - begin;
      for (int64_t at = begin; at < end; at += step)
        for (int64_t i = 0; i < n; i += height)
          chosen<Sums>(std::min(height, n - i), std::make_integer_sequence<int, kSumRows>())(
              left.data() + i * kDepthBlock, weight + from * c, dx + i * c, depth, c, at, std::min(at + step, end), from > 0);
    }
  }
}

inline void put(float* to, vec v, bool streaming) {
#if defined(__AVX512F__)
  if (streaming) return _mm512_stream_ps(to, (__m512)v);
#elif defined(__AVX__)
  if (streaming) return _mm256_stream_ps(to, (__m256)v);
#endif
  store(to, v);
}

// dweight[j][at...] = sum over i of dout[i][j] * rows[i][at...] for F rows of the matrix and V vectors.
template <int F, int V>
inline __attribute__((always_inline)) void outer_product(const float* dout, const float* rows, float* dweight, int64_t n, int64_t c, int64_t k,
                                                         bool streaming) {
  vec sum[F][V] = {};
  for (int64_t i = 0; i < n; ++i) {
    vec right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) right[v] = load(rows + i * c + v * kLanes);
#pragma GCC unroll 4
    for (int j = 0; j < F; ++j) {
      const float left = dout[i * k + j];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[j][v] += left * right[v];
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < F; ++j)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) put(dweight + j * c + v * kLanes, sum[j][v], streaming);
}

template <int F>
void outer_product(const float* dout, const float* rows, float* dweight, int64_t n, int64_t c, int64_t k, int64_t begin, int64_t end,
                   bool streaming) {
  int64_t at = begin;
  for (; at + kVectors * kLanes <= end; at += kVectors * kLanes) outer_product<F, kVectors>(dout, rows + at, dweight + at, n, c, k, streaming);
  for (; at < end; at += kLanes) outer_product<F, 1>(dout, rows + at, dweight + at, n, c, k, streaming);
}

void backward_weight(const float* dout, const float* rows, float* dweight, int64_t n, int64_t c, int64_t k, int threads) {
  constexpr int64_t line = kVectors * kLanes;
  const int64_t step = std::max(kCachedFloats / n / line * line, line);  // columns of the rows that stay in the L1 cache meanwhile
  const bool streaming = is_large(c * k) && reinterpret_cast<uintptr_t>(dweight) % 64 == 0;
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads(), begin = k * thread / team, end = k * (thread + 1) / team;
    for (int64_t at = 0; at < c; at += step)
      for (int64_t j = begin; j < end;) {
        const int64_t last = std::min(at + step, c);
        if (end - j >= kMatrixRows)
          outer_product<kMatrixRows>(dout + j, rows, dweight + j * c, n, c, k, at, last, streaming), j += kMatrixRows;
        else
          outer_product<1>(dout + j, rows, dweight + j * c, n, c, k, at, last, streaming), ++j;
      }
    store_fence(streaming);
  }
}

}  // namespace

extern "C" {

void forward_float32(const float* rows, const float* weight, const float* bias, float* out, int64_t n, int64_t c, int64_t k, int threads) {
  forward(rows, weight, bias, out, n, c, k, threads);
}
void backward_data_float32(const float* dout, const float* weight, float* dx, int64_t n, int64_t c, int64_t k, int threads) {
  backward_data(dout, weight, dx, n, c, k, threads);
}
void backward_weight_float32(const float* dout, const float* rows, float* dweight, int64_t n, int64_t c, int64_t k, int threads) {
  backward_weight(dout, rows, dweight, n, c, k, threads);
}

}  // extern "C"
