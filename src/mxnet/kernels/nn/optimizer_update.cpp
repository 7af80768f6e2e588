// Steps of optimizers that keep two numbers for each weight: one pass over weight, gradient and both, all written in place.
//
// Rows are those of the weight that `index` names, or all, if there is none. A number that names no row is passed over. The weight's new values go to
// `copy`, too, if there is one, while they are in the caches.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <omp.h>

#include "runtime/streaming_stores.h"

namespace {

constexpr int64_t kBlock = 1 << 14;  // elements that a thread takes at a time

struct Prepared {  // the preprocessed gradient: clip(rescale * gradient + wd * weight); no clipping below zero
  float rescale, wd, clip;
  float operator()(float gradient, float weight) const {
    // Without decay a weight that is not finite leaves its gradient alone.
    float g = wd != 0 ? gradient * rescale + wd * weight : gradient * rescale;
    return clip >= 0 ? (g > clip ? clip : g < -clip ? -clip : g) : g;
  }
};

struct Adam {
  Prepared prepared;
  float lr, beta1, beta2, epsilon, rest1, rest2;
  void operator()(float* __restrict weight, const float* __restrict gradient, float* __restrict mean, float* __restrict square, int64_t n) const {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      float g = prepared(gradient[i], weight[i]);
      mean[i] = beta1 * mean[i] + rest1 * g;
      square[i] = beta2 * square[i] + rest2 * g * g;
      weight[i] -= lr * mean[i] / (std::sqrt(square[i]) + epsilon);
    }
  }
};

struct Adamax {
  Prepared prepared;
  float lr, beta1, beta2, epsilon, rest1;
  void operator()(float* __restrict weight, const float* __restrict gradient, float* __restrict mean, float* __restrict largest, int64_t n) const {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      float g = prepared(gradient[i], weight[i]);
      mean[i] = beta1 * mean[i] + rest1 * g;
      float size = std::fabs(g) + epsilon, faded = beta2 * largest[i];
      largest[i] = faded > size || faded != faded ? faded : size;  // NaN stays
      weight[i] -= lr * mean[i] / largest[i];
    }
  }
};

template <class Step>
void run(const Step& step, float* weight, const float* gradient, float* first, float* second, const int64_t* index, float* copy, int64_t rows,
         int64_t count, int64_t width, int threads) {
  const int64_t blocks = (width + kBlock - 1) / kBlock;
  const bool past = is_large(rows * width);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (int64_t b = 0; b < count * blocks; ++b) {
      int64_t row = index ? index[b / blocks] : b / blocks, from = b % blocks * kBlock;
      if (row < 0 || row >= rows) continue;
      const int64_t at = row * width + from, n = std::min(kBlock, width - from);
      step(weight + at, gradient + b / blocks * width + from, first + at, second + at, n);
      if (copy) put(copy + at, weight + at, n, past);
    }
    if (copy) finish(past);
  }
}

}  // namespace

extern "C" {

void adam(float* weight, const float* gradient, float* mean, float* square, const int64_t* index, float* copy, int64_t rows, int64_t count, int64_t width,
          float lr, float beta1, float beta2, float rest1, float rest2, float epsilon, float wd, float rescale, float clip, int threads) {
  run(Adam{{rescale, wd, clip}, lr, beta1, beta2, epsilon, rest1, rest2}, weight, gradient, mean, square, index, copy, rows, count, width,
      threads);
}

void adamax(float* weight, const float* gradient, float* mean, float* largest, const int64_t* index, float* copy, int64_t rows, int64_t count,
            int64_t width, float lr, float beta1, float beta2, float rest1, float epsilon, float wd, float rescale, float clip, int threads) {
  run(Adamax{{rescale, wd, clip}, lr, beta1, beta2, epsilon, rest1}, weight, gradient, mean, largest, index, copy, rows, count, width, threads);
}

}
