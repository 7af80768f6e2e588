// Batch normalization with an optional addition and ReLU, over rows of channels (N * H * W rows, channels last).
//
// forward:  out = activation((x - mean) / sqrt(var + eps) * gamma + beta [+ residual])
// backward: the gradients of x, gamma, beta and the residual, from that of out.
//
// Such a layer is bound by memory traffic, so every value is read as few times as the mathematics allows. Sums are float within short blocks of rows,
// and double over the blocks.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <omp.h>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "runtime/streaming_stores.h"
#include "runtime/vectors.h"

namespace {

struct bfloat16 {
  uint16_t bits;
};

typedef uint32_t words __attribute__((vector_size(kLanes * 4)));
typedef uint16_t halves __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

inline vec load(const bfloat16* p) { return (vec)(__builtin_convertvector(*reinterpret_cast<const halves*>(p), words) << 16); }

// To the nearest, halves to even; a NaN stays one.
inline void store(bfloat16* p, vec v) {
#if defined(__AVX512BF16__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)v));
#else
  const words wide = (words)v, rounded = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
  *reinterpret_cast<halves*>(p) = __builtin_convertvector(v != v ? words{} + 0x7fc0 : rounded, halves);
#endif
}

// A vector of numbers, or the first `count` of one.
template <typename T>
vec load(const T* p, int64_t count) {
  if (count >= kLanes) return load(p);
  T part[kLanes] = {};
  std::copy_n(p, count, part);
  return load(part);
}

template <typename T>
void store(T* p, vec v, int64_t count) {
  if (count >= kLanes) return store(p, v);
  T part[kLanes];
  store(part, v);
  std::copy_n(part, count, p);
}

// Returns true if results can use streaming stores: whole vectors, aligned to the unit of a store. With AVX2 a vector of bfloat16 has half of that
// many bytes.
template <typename T>
bool streams(const T* p, int64_t channels) {
#if defined(__SSE2__)
  return channels % kLanes == 0 && kLanes * sizeof(T) % sizeof(Piece) == 0 && reinterpret_cast<uintptr_t>(p) % 64 == 0;
#else
  return false;
#endif
}

template <typename T>
void store_past(T* p, vec v) {
#if defined(__SSE2__)
  alignas(64) T part[kLanes];
  store(part, v);
  float* to = reinterpret_cast<float*>(p);
  for (int64_t i = 0; i < int64_t(sizeof part / sizeof(float)); i += kPiece) stream(to + i, piece(reinterpret_cast<const float*>(part) + i));
#endif
}

// Calls body(c, count) for the channels c to c + count, vector by vector.
template <typename Body>
inline __attribute__((always_inline)) void over(int64_t channels, Body body) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) body(c, int64_t(kLanes));
  if (c < channels) body(c, channels - c);
}

constexpr int64_t kBlock = 64;  // rows summed in single precision

struct Share {  // the rows of one thread
  int64_t begin, end;
  int thread;
  explicit Share(int64_t rows) : thread(omp_get_thread_num()) {
    int64_t n = omp_get_num_threads();
    begin = rows * thread / n;
    end = rows * (thread + 1) / n;
  }
};

// Computes two sums for each channel over all rows, block by block; `add` adds a row.
template <typename Add>
void reduce(int64_t rows, int64_t channels, int threads, std::vector<double>& first, std::vector<double>& second, Add add) {
  std::vector<double> parts(size_t(threads) * 2 * channels, 0.0);
#pragma omp parallel num_threads(threads)
  {
    Share share(rows);
    std::vector<float> block(2 * channels);
    double* mine = parts.data() + size_t(share.thread) * 2 * channels;
    for (int64_t from = share.begin; from < share.end; from += kBlock) {
      std::fill(block.begin(), block.end(), 0.f);
      for (int64_t row = from; row < std::min(share.end, from + kBlock); ++row) add(row, block.data(), block.data() + channels);
      for (int64_t c = 0; c < 2 * channels; ++c) mine[c] += block[c];
    }
  }
  first.assign(channels, 0.0);
  second.assign(channels, 0.0);
  for (int t = 0; t < threads; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      first[c] += parts[size_t(t) * 2 * channels + c];
      second[c] += parts[(size_t(t) * 2 + 1) * channels + c];
    }
}

template <typename T, bool relu, bool residual>
void normalize(const T* x, const T* added, T* out, const float* scale, const float* offset, int64_t rows, int64_t channels, bool past, int threads) {
  past = past && streams(out, channels);
#pragma omp parallel num_threads(threads)
  {
    Share share(rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t first = row * channels;
      over(channels, [=](int64_t c, int64_t count) __attribute__((always_inline)) {
        vec value = load(x + first + c, count) * load(scale + c, count) + load(offset + c, count);
        if (residual) value += load(added + first + c, count);
        if (relu) value = value > 0 ? value : 0.f * value;  // a NaN stays one
        past ? store_past(out + first + c, value) : store(out + first + c, value, count);
      });
    }
    finish(past);
  }
}

template <typename T>
void forward(const T* x, const T* added, const float* gamma, const float* beta, float* moving_mean, float* moving_var, T* out, float* mean,
             float* deviation, int64_t rows, int64_t channels, float eps, float momentum, int relu, int past, int threads) {
  std::vector<double> sums, squares;
  std::vector<float> shift(channels), scale(channels), offset(channels);
  for (int64_t c = 0; c < channels; ++c) shift[c] = load(x + c, 1)[0];  // near the mean, so that the squares stay small
  const float* around = shift.data();
  reduce(rows, channels, threads, sums, squares, [=](int64_t row, float* sum, float* square) {
    over(channels, [=](int64_t c, int64_t count) __attribute__((always_inline)) {
      const vec value = load(x + row * channels + c, count) - load(around + c, count);
      store(sum + c, load(sum + c, count) + value, count);
      store(square + c, load(square + c, count) + value * value, count);
    });
  });
  for (int64_t c = 0; c < channels; ++c) {
    double m = sums[c] / rows, v = std::max(squares[c] / rows - m * m, 0.0);
    mean[c] = float(m + shift[c]);
    deviation[c] = float(1.0 / std::sqrt(v + eps));
    moving_mean[c] = momentum * moving_mean[c] + (1 - momentum) * mean[c];
    moving_var[c] = momentum * moving_var[c] + (1 - momentum) * float(v);
    scale[c] = (gamma ? gamma[c] : 1.f) * deviation[c];
    offset[c] = beta[c] - mean[c] * scale[c];
  }
  auto run = relu ? (added ? normalize<T, true, true> : normalize<T, true, false>) : (added ? normalize<T, false, true> : normalize<T, false, false>);
  run(x, added, out, scale.data(), offset.data(), rows, channels, past, threads);
}

// Masks the incoming gradient where the ReLU's result was 0: by `out` with a residual, else recomputed from x, which is read anyway. With a residual
// the masked gradient is written to `kept`, as the residual's gradient.
template <typename T, bool relu, bool residual>
void backward_as(const T* dout, const T* x, const T* out, const float* gamma, const float* beta, const float* mean, const float* deviation, T* dx,
                 T* kept, float* dgamma, float* dbeta, int64_t rows, int64_t channels, bool past, int threads) {
  std::vector<double> sums, products;
  std::vector<float> scales(channels), offsets(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scales[c] = (gamma ? gamma[c] : 1.f) * deviation[c];
    offsets[c] = beta[c] - mean[c] * scales[c];
  }
  const float *scale = scales.data(), *offset = offsets.data();
  // Where the ReLU was on.
  auto masked = [=](vec value, vec before) __attribute__((always_inline)) { return !relu ? value : before > 0 ? value : vec{}; };
  reduce(rows, channels, threads, sums, products, [=](int64_t row, float* sum, float* product) {
    const int64_t first = row * channels;
    over(channels, [=](int64_t c, int64_t count) __attribute__((always_inline)) {
      const vec in = load(x + first + c, count);
      const vec before = residual && relu ? load(out + first + c, count) : in * load(scale + c, count) + load(offset + c, count);
      const vec value = masked(load(dout + first + c, count), before);
      if (residual) store(kept + first + c, value, count);
      store(sum + c, load(sum + c, count) + value, count);
      store(product + c, load(product + c, count) + value * (in - load(mean + c, count)), count);
    });
  });
  // dx = scale * dout + b * x + d
  std::vector<float> b(channels), d(channels);
  for (int64_t c = 0; c < channels; ++c) {
    dbeta[c] = float(sums[c]);
    dgamma[c] = float(products[c] * deviation[c]);
    b[c] = float(-scale[c] * products[c] * deviation[c] * deviation[c] / rows);
    d[c] = float(-scale[c] * sums[c] / rows - double(b[c]) * mean[c]);
  }
  const float *pb = b.data(), *pd = d.data();
  past = past && streams(dx, channels);
#pragma omp parallel num_threads(threads)
  {
    Share share(rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t first = row * channels;
      const T* g = residual ? kept : dout;
      over(channels, [=](int64_t c, int64_t count) __attribute__((always_inline)) {
        const vec in = load(x + first + c, count), by = load(scale + c, count);
        vec value = load(g + first + c, count);
        if (!residual) value = masked(value, in * by + load(offset + c, count));
        value = by * value + load(pb + c, count) * in + load(pd + c, count);
        past ? store_past(dx + first + c, value) : store(dx + first + c, value, count);
      });
    }
    finish(past);
  }
}

template <typename T>
void backward(const T* dout, const T* x, const T* out, const float* gamma, const float* beta, const float* mean, const float* deviation, T* dx,
              T* kept, float* dgamma, float* dbeta, int64_t rows, int64_t channels, int relu, int past, int threads) {
  auto run = relu ? (kept ? backward_as<T, true, true> : backward_as<T, true, false>) : (kept ? backward_as<T, false, true> : backward_as<T, false, false>);
  run(dout, x, out, gamma, beta, mean, deviation, dx, kept, dgamma, dbeta, rows, channels, past, threads);
}

}  // namespace

extern "C" {

// With `past`, results are written past the caches.
#define REMEX_BATCH_NORM(suffix, T)                                                                                                               \
  void forward_##suffix(const T* x, const T* added, const float* gamma, const float* beta, float* moving_mean, float* moving_var, T* out,         \
                        float* mean, float* deviation, int64_t rows, int64_t channels, float eps, float momentum, int relu, int past,             \
                        int threads) {                                                                                                            \
    forward<T>(x, added, gamma, beta, moving_mean, moving_var, out, mean, deviation, rows, channels, eps, momentum, relu, past, threads);         \
  }                                                                                                                                               \
  void backward_##suffix(const T* dout, const T* x, const T* out, const float* gamma, const float* beta, const float* mean,                       \
                         const float* deviation, T* dx, T* kept, float* dgamma, float* dbeta, int64_t rows, int64_t channels, int relu, int past, \
                         int threads) {                                                                                                           \
    backward<T>(dout, x, out, gamma, beta, mean, deviation, dx, kept, dgamma, dbeta, rows, channels, relu, past, threads);                        \
  }

REMEX_BATCH_NORM(float32, float)
REMEX_BATCH_NORM(bfloat16, bfloat16)
}
