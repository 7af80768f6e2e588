// Batch normalization with what usually follows it, over rows of channels (N * H * W rows, channels last).
//
// forward:  out = activation((x - mean) / sqrt(var + eps) * gamma + beta [+ residual])
// backward: the gradients of x, gamma, beta and the residual, from that of out.
//
// Every value is read as few times as the mathematics allows: that is what such a layer costs. Sums run in float over short blocks of
// rows, and in double over the blocks.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <omp.h>

namespace {

struct bfloat16 {
  uint16_t bits;
  operator float() const {
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  bfloat16& operator=(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    // To the nearest, halves to even; a NaN stays one.
    bits = value != value ? 0x7fc0 : uint16_t((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
    return *this;
  }
};

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

// Two sums for each channel over all rows: what `add` adds for a row, block by block.
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
void normalize(const T* x, const T* added, T* out, const float* scale, const float* offset, int64_t rows, int64_t channels, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Share share(rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const T* __restrict in = x + row * channels;
      const T* __restrict more = residual ? added + row * channels : nullptr;
      T* __restrict result = out + row * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        float value = float(in[c]) * scale[c] + offset[c];
        if (residual) value += float(more[c]);
        result[c] = relu ? (value > 0.f ? value : 0.f * value) : value;  // 0 * value: a NaN stays one
      }
    }
  }
}

template <typename T>
void forward(const T* x, const T* added, const float* gamma, const float* beta, float* moving_mean, float* moving_var, T* out, float* mean,
             float* deviation, int64_t rows, int64_t channels, float eps, float momentum, int relu, int threads) {
  std::vector<double> sums, squares;
  std::vector<float> shift(channels), scale(channels), offset(channels);
  for (int64_t c = 0; c < channels; ++c) shift[c] = float(x[c]);  // near the mean, so that the squares stay small
  const float* __restrict around = shift.data();
  reduce(rows, channels, threads, sums, squares, [=](int64_t row, float* __restrict sum, float* __restrict square) {
    const T* __restrict in = x + row * channels;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      float value = float(in[c]) - around[c];
      sum[c] += value;
      square[c] += value * value;
    }
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
  run(x, added, out, scale.data(), offset.data(), rows, channels, threads);
}

// The incoming gradient is masked where the ReLU was off: that tells `out` where something was added, else x itself, which is read
// anyway. With a residual it is kept in `kept`, its gradient.
template <typename T, bool relu, bool residual>
void backward_as(const T* dout, const T* x, const T* out, const float* gamma, const float* beta, const float* mean, const float* deviation, T* dx,
                 T* kept, float* dgamma, float* dbeta, int64_t rows, int64_t channels, int threads) {
  std::vector<double> sums, products;
  std::vector<float> scales(channels), offsets(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scales[c] = (gamma ? gamma[c] : 1.f) * deviation[c];
    offsets[c] = beta[c] - mean[c] * scales[c];
  }
  const float *scale = scales.data(), *offset = offsets.data();
  reduce(rows, channels, threads, sums, products, [=](int64_t row, float* __restrict sum, float* __restrict product) {
    const T* __restrict g = dout + row * channels;
    const T* __restrict in = x + row * channels;
    const T* __restrict result = relu && residual ? out + row * channels : nullptr;
    T* __restrict keep = residual ? kept + row * channels : nullptr;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      float before = residual && relu ? float(result[c]) : float(in[c]) * scale[c] + offset[c];
      float value = !relu || before > 0.f ? float(g[c]) : 0.f;
      if (residual) keep[c] = value;
      sum[c] += value;
      product[c] += value * (float(in[c]) - mean[c]);
    }
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
#pragma omp parallel num_threads(threads)
  {
    Share share(rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const T* __restrict g = (residual ? kept : dout) + row * channels;
      const T* __restrict in = x + row * channels;
      T* __restrict to = dx + row * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        float value = relu && !residual && !(float(in[c]) * scale[c] + offset[c] > 0.f) ? 0.f : float(g[c]);
        to[c] = scale[c] * value + pb[c] * float(in[c]) + pd[c];
      }
    }
  }
}

template <typename T>
void backward(const T* dout, const T* x, const T* out, const float* gamma, const float* beta, const float* mean, const float* deviation, T* dx,
              T* kept, float* dgamma, float* dbeta, int64_t rows, int64_t channels, int relu, int threads) {
  auto run = relu ? (kept ? backward_as<T, true, true> : backward_as<T, true, false>) : (kept ? backward_as<T, false, true> : backward_as<T, false, false>);
  run(dout, x, out, gamma, beta, mean, deviation, dx, kept, dgamma, dbeta, rows, channels, threads);
}

}  // namespace

extern "C" {

#define REMEX_BATCH_NORM(suffix, T)                                                                                                          \
  void forward_##suffix(const T* x, const T* added, const float* gamma, const float* beta, float* moving_mean, float* moving_var, T* out,    \
                        float* mean, float* deviation, int64_t rows, int64_t channels, float eps, float momentum, int relu, int threads) {   \
    forward<T>(x, added, gamma, beta, moving_mean, moving_var, out, mean, deviation, rows, channels, eps, momentum, relu, threads);          \
  }                                                                                                                                          \
  void backward_##suffix(const T* dout, const T* x, const T* out, const float* gamma, const float* beta, const float* mean,                  \
                         const float* deviation, T* dx, T* kept, float* dgamma, float* dbeta, int64_t rows, int64_t channels, int relu,      \
                         int threads) {                                                                                                      \
    backward<T>(dout, x, out, gamma, beta, mean, deviation, dx, kept, dgamma, dbeta, rows, channels, relu, threads);                         \
  }

REMEX_BATCH_NORM(float32, float)
REMEX_BATCH_NORM(bfloat16, bfloat16)
}
