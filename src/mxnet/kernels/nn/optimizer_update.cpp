// Steps of optimizers that keep two numbers for each weight: one pass over weight, gradient and both, all written in place.
//
// Rows are those of the weight that `index` names, or all, if there is none. A number that names no row is passed over. The weight's new values go to
// `copy`, too, if there is one, while they are in the caches.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <omp.h>

#include "runtime/parameters.h"
#include "runtime/streaming_stores.h"

namespace {

constexpr int64_t kBlock = 1 << 14;  // elements that a thread takes at a time

// The preprocessed gradient: clip(rescale * gradient + wd * weight); no clipping below zero.
template <typename Params>
inline float prepared(const Params& params, float gradient, float weight) {
  // Without decay a weight that is not finite leaves its gradient alone.
  const float g = params.wd != 0 ? gradient * params.rescale + params.wd * weight : gradient * params.rescale;
  return params.clip >= 0 ? (g > params.clip ? params.clip : g < -params.clip ? -params.clip : g) : g;
}

void update(const AdamParams a, float* __restrict weight, const float* __restrict gradient, float* __restrict mean, float* __restrict square,
            int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = prepared(a, gradient[i], weight[i]);
    mean[i] = a.beta1 * mean[i] + a.rest1 * g;
    square[i] = a.beta2 * square[i] + a.rest2 * g * g;
    weight[i] -= a.lr * mean[i] / (std::sqrt(square[i]) + a.epsilon);
  }
}

void update(const AdamaxParams a, float* __restrict weight, const float* __restrict gradient, float* __restrict mean, float* __restrict largest,
            int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = prepared(a, gradient[i], weight[i]);
    mean[i] = a.beta1 * mean[i] + a.rest1 * g;
    const float size = std::fabs(g) + a.epsilon, faded = a.beta2 * largest[i];
    largest[i] = faded > size || faded != faded ? faded : size;  // NaN stays
    weight[i] -= a.lr * mean[i] / largest[i];
  }
}

// The arrays of a call: a weight (rows, width) with two states, its gradient (count, width), the rows' numbers (count) and the copy, or null.
struct Arrays {
  float* weight;
  const float* gradient;
  float *first, *second;
  const int64_t* index;
  float* copy;
  int64_t rows, count, width;
};

template <typename Params>
void run(const Params& params, const Arrays& a, int threads) {
  const int64_t blocks = (a.width + kBlock - 1) / kBlock;
  const bool streaming = is_large(a.rows * a.width);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (int64_t b = 0; b < a.count * blocks; ++b) {
      const int64_t row = a.index ? a.index[b / blocks] : b / blocks, from = b % blocks * kBlock;
      if (row < 0 || row >= a.rows) continue;
      const int64_t at = row * a.width + from, n = std::min(kBlock, a.width - from);
      update(params, a.weight + at, a.gradient + b / blocks * a.width + from, a.first + at, a.second + at, n);
      if (a.copy) put(a.copy + at, a.weight + at, n, streaming);
    }
    if (a.copy) store_fence(streaming);
  }
}

}  // namespace

extern "C" {

void adam(float* weight, const float* gradient, float* mean, float* square, const int64_t* index, float* copy, int64_t rows, int64_t count,
          int64_t width, const AdamParams* params, int threads) {
  run(*params, {weight, gradient, mean, square, index, copy, rows, count, width}, threads);
}

void adamax(float* weight, const float* gradient, float* mean, float* largest, const int64_t* index, float* copy, int64_t rows, int64_t count,
            int64_t width, const AdamaxParams* params, int threads) {
  run(*params, {weight, gradient, mean, largest, index, copy, rows, count, width}, threads);
}

}  // extern "C"
