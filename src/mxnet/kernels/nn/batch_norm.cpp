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

#include "runtime/parameters.h"
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
inline halves in_halves(vec v) {
#if defined(__AVX512BF16__)
  return (halves)_mm512_cvtneps_pbh((__m512)v);
#else
  const words wide = (words)v, rounded = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
  return __builtin_convertvector(v != v ? words{} + 0x7fc0 : rounded, halves);
#endif
}
inline void store(bfloat16* p, vec v) { *reinterpret_cast<halves*>(p) = in_halves(v); }

// A vector of numbers, or the first `count` of one.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline vec load(const bfloat16* p, int64_t count) {
  return (vec)(__builtin_convertvector((halves)_mm256_maskz_loadu_epi16(lane_mask(count), p), words) << 16);
}
inline void store(bfloat16* p, vec v, int64_t count) { _mm256_mask_storeu_epi16(p, lane_mask(count), (__m256i)in_halves(v)); }
#else
inline vec load(const bfloat16* p, int64_t count) {
  if (count >= kLanes) return load(p);
  bfloat16 part[kLanes] = {};
  std::copy_n(p, count, part);
  return load(part);
}
inline void store(bfloat16* p, vec v, int64_t count) {
  if (count >= kLanes) return store(p, v);
  bfloat16 part[kLanes];
  store(part, v);
  std::copy_n(part, count, p);
}
#endif

// Returns true if results can use streaming stores: whole vectors, aligned to the unit of a store. With AVX2 a vector of bfloat16 has half of that
// many bytes.
template <typename T>
bool streams(const T* p, int64_t channels) {
#if defined(__SSE2__)
  return channels % kLanes == 0 && kLanes * sizeof(T) % sizeof(StreamUnit) == 0 && reinterpret_cast<uintptr_t>(p) % 64 == 0;
#else
  return false;
#endif
}

template <typename T>
void store_streaming(T* p, vec v) {
#if defined(__SSE2__)
  alignas(64) T part[kLanes];
  store(part, v);
  float* to = reinterpret_cast<float*>(p);
  for (int64_t i = 0; i < int64_t(kLanes * sizeof(T) / sizeof(float)); i += kUnitFloats)
    stream(to + i, load_unit(reinterpret_cast<const float*>(part) + i));
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

// The sums of a block of rows, of `width` vectors of channels from c on, or of the first `count` channels of one. They stay in registers; several rows
// have sums of their own, as the next addition to one must wait for the last.
template <int width, typename Add>
inline __attribute__((always_inline)) void sum_block(int64_t from, int64_t to, int64_t c, int64_t count, double* first, double* second, Add add) {
  constexpr int together = 4 / width;
  vec a[4] = {}, b[4] = {};
  int64_t row = from;
  for (; row + together <= to; row += together)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) add(row + i / width, c + i % width * kLanes, count, a[i], b[i]);
  for (; row < to; ++row)
#pragma GCC unroll 4
    for (int i = 0; i < width; ++i) add(row, c + i * kLanes, count, a[i], b[i]);
  for (int i = 0; i < width; ++i) {
    for (int other = i + width; other < 4; other += width) a[i] += a[other], b[i] += b[other];
    for (int64_t lane = 0; lane < count; ++lane) first[c + i * kLanes + lane] += a[i][lane], second[c + i * kLanes + lane] += b[i][lane];
  }
}

// Computes two sums for each channel over all rows, block by block; `add` adds a vector of a row to two sums.
template <typename Add>
void reduce(int64_t rows, int64_t channels, int threads, std::vector<double>& first, std::vector<double>& second, Add add) {
  std::vector<double> parts(size_t(threads) * 2 * channels, 0.0);
#pragma omp parallel num_threads(threads)
  {
    Share share(rows);
    double *mine = parts.data() + size_t(share.thread) * 2 * channels, *others = mine + channels;
    for (int64_t from = share.begin; from < share.end; from += kBlock) {
      const int64_t to = std::min(share.end, from + kBlock);
      int64_t c = 0;
      for (; c + 4 * kLanes <= channels; c += 4 * kLanes) sum_block<4>(from, to, c, kLanes, mine, others, add);
      for (; c + 2 * kLanes <= channels; c += 2 * kLanes) sum_block<2>(from, to, c, kLanes, mine, others, add);
      for (; c + kLanes <= channels; c += kLanes) sum_block<1>(from, to, c, kLanes, mine, others, add);
      if (c < channels) sum_block<1>(from, to, c, channels - c, mine, others, add);
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

// The arrays of a forward pass: x, the residual (or null) and out are (rows, channels), the others (channels); gamma may be null.
template <typename T>
struct Forward {
  const T *x, *residual;
  const float *gamma, *beta;
  float *moving_mean, *moving_var;
  T* out;
  float *mean, *deviation;
  int64_t rows, channels;
};

// Those of a backward pass; `out` and `masked`, the residual's gradient, are null where there was no residual.
template <typename T>
struct Backward {
  const T *dout, *x, *out;
  const float *gamma, *beta, *mean, *deviation;
  T *dx, *masked;
  float *dgamma, *dbeta;
  int64_t rows, channels;
};

template <typename T, bool relu, bool residual>
void normalize(const Forward<T>& a, const float* scale, const float* offset, bool streaming, int threads) {
  streaming = streaming && streams(a.out, a.channels);
#pragma omp parallel num_threads(threads)
  {
    const Share share(a.rows);
    const T *x = a.x, *added = a.residual;
    T* out = a.out;
    const int64_t channels = a.channels;
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t first = row * channels;
      over(channels, [=](int64_t c, int64_t count) __attribute__((always_inline)) {
        vec value = load(x + first + c, count) * load(scale + c, count) + load(offset + c, count);
        if (residual) value += load(added + first + c, count);
        if (relu) value = value > 0 ? value : 0.f * value;  // a NaN stays one
        streaming ? store_streaming(out + first + c, value) : store(out + first + c, value, count);
      });
    }
    store_fence(streaming);
  }
}

template <typename T>
void forward(const Forward<T>& a, const BatchNormForwardParams& params, int threads) {
  const int64_t channels = a.channels;
  const T* x = a.x;
  std::vector<double> sums, squares;
  std::vector<float> shift(channels), scale(channels), offset(channels);
  for (int64_t c = 0; c < channels; ++c) shift[c] = load(x + c, 1)[0];  // near the mean, so that the squares stay small
  const float* around = shift.data();
  reduce(a.rows, channels, threads, sums, squares, [=](int64_t row, int64_t c, int64_t count, vec& sum, vec& square) __attribute__((always_inline)) {
    const vec value = load(x + row * channels + c, count) - load(around + c, count);
    sum += value;
    square += value * value;
  });
  const float momentum = params.momentum;
  for (int64_t c = 0; c < channels; ++c) {
    const double m = sums[c] / a.rows, v = std::max(squares[c] / a.rows - m * m, 0.0);
    a.mean[c] = float(m + shift[c]);
    a.deviation[c] = float(1.0 / std::sqrt(v + params.eps));
    a.moving_mean[c] = momentum * a.moving_mean[c] + (1 - momentum) * a.mean[c];
    a.moving_var[c] = momentum * a.moving_var[c] + (1 - momentum) * float(v);
    scale[c] = (a.gamma ? a.gamma[c] : 1.f) * a.deviation[c];
    offset[c] = a.beta[c] - a.mean[c] * scale[c];
  }
  const auto with_relu = a.residual ? normalize<T, true, true> : normalize<T, true, false>;
  const auto without = a.residual ? normalize<T, false, true> : normalize<T, false, false>;
  (params.relu ? with_relu : without)(a, scale.data(), offset.data(), params.streaming, threads);
}

// The incoming gradient where the ReLU was on, else 0.
template <bool relu>
inline __attribute__((always_inline)) vec masked(vec value, vec before) {
  return !relu ? value : before > 0 ? value : vec{};
}

// dx = scale * gradient + b * x + d, where the gradient is masked; (channels) each. `scale` and `offset` are those of the forward pass.
struct Coefficients {
  std::vector<float> scale, offset, b, d;
  explicit Coefficients(int64_t channels) : scale(channels), offset(channels), b(channels), d(channels) {}
};

template <typename T, bool relu, bool residual>
void write_dx(const Backward<T>& a, const Coefficients& of, bool streaming, int threads) {
  streaming = streaming && streams(a.dx, a.channels);
#pragma omp parallel num_threads(threads)
  {
    const Share share(a.rows);
    const T *x = a.x, *gradient = residual ? a.masked : a.dout;
    T* dx = a.dx;
    const float *scale = of.scale.data(), *offset = of.offset.data(), *b = of.b.data(), *d = of.d.data();
    const int64_t channels = a.channels;
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t first = row * channels;
      over(channels, [=](int64_t c, int64_t count) __attribute__((always_inline)) {
        const vec in = load(x + first + c, count), by = load(scale + c, count);
        vec value = load(gradient + first + c, count);
        if (!residual) value = masked<relu>(value, in * by + load(offset + c, count));
        value = by * value + load(b + c, count) * in + load(d + c, count);
        streaming ? store_streaming(dx + first + c, value) : store(dx + first + c, value, count);
      });
    }
    store_fence(streaming);
  }
}

// Masks the incoming gradient where the ReLU's result was 0: by `out` with a residual, else recomputed from x, which is read anyway. With a residual
// the masked gradient is written, as the residual's gradient.
template <typename T, bool relu, bool residual>
void backward_as(const Backward<T>& a, bool streaming, int threads) {
  const int64_t channels = a.channels;
  std::vector<double> sums, products;
  Coefficients of(channels);
  for (int64_t c = 0; c < channels; ++c) {
    of.scale[c] = (a.gamma ? a.gamma[c] : 1.f) * a.deviation[c];
    of.offset[c] = a.beta[c] - a.mean[c] * of.scale[c];
  }
  const float *scale = of.scale.data(), *offset = of.offset.data();
  reduce(a.rows, channels, threads, sums, products,
         [=, dout = a.dout, x = a.x, out = a.out, kept = a.masked, mean = a.mean](int64_t row, int64_t c, int64_t count, vec& sum, vec& product)
             __attribute__((always_inline)) {
               const int64_t at = row * channels + c;
               const vec in = load(x + at, count);
               const vec before = residual && relu ? load(out + at, count) : in * load(scale + c, count) + load(offset + c, count);
               const vec value = masked<relu>(load(dout + at, count), before);
               if (residual) store(kept + at, value, count);
               sum += value;
               product += value * (in - load(mean + c, count));
             });
  for (int64_t c = 0; c < channels; ++c) {
    a.dbeta[c] = float(sums[c]);
    a.dgamma[c] = float(products[c] * a.deviation[c]);
    of.b[c] = float(-scale[c] * products[c] * a.deviation[c] * a.deviation[c] / a.rows);
    of.d[c] = float(-scale[c] * sums[c] / a.rows - double(of.b[c]) * a.mean[c]);
  }
  write_dx<T, relu, residual>(a, of, streaming, threads);
}

template <typename T>
void backward(const Backward<T>& a, const BatchNormBackwardParams& params, int threads) {
  const auto with_relu = a.masked ? backward_as<T, true, true> : backward_as<T, true, false>;
  const auto without = a.masked ? backward_as<T, false, true> : backward_as<T, false, false>;
  (params.relu ? with_relu : without)(a, params.streaming, threads);
}

}  // namespace

extern "C" {

#define REMEX_BATCH_NORM(suffix, T)                                                                                                                 \
  void forward_##suffix(const T* x, const T* residual, const float* gamma, const float* beta, float* moving_mean, float* moving_var, T* out,        \
                        float* mean, float* deviation, int64_t rows, int64_t channels, const BatchNormForwardParams* params, int threads) {         \
    forward<T>({x, residual, gamma, beta, moving_mean, moving_var, out, mean, deviation, rows, channels}, *params, threads);                        \
  }                                                                                                                                                 \
  void backward_##suffix(const T* dout, const T* x, const T* out, const float* gamma, const float* beta, const float* mean, const float* deviation, \
                         T* dx, T* masked, float* dgamma, float* dbeta, int64_t rows, int64_t channels, const BatchNormBackwardParams* params,      \
                         int threads) {                                                                                                             \
    backward<T>({dout, x, out, gamma, beta, mean, deviation, dx, masked, dgamma, dbeta, rows, channels}, *params, threads);                         \
  }

REMEX_BATCH_NORM(float32, float)
REMEX_BATCH_NORM(bfloat16, bfloat16)

}  // extern "C"
