// Steps of optimizers that keep two numbers for each weight: one pass over weight, gradient and both, all written in place.
//
// Rows are those of the weight that `index` names, or all, if there is none. A number that names no row is passed over.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <omp.h>

#include "runtime/parameters.h"

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

// The arrays of a call: a weight (rows, width) with two states, its gradient (count, width), and the rows' numbers (count), or null.
struct Arrays {
  float* weight;
  const float* gradient;
  float *first, *second;
  const int64_t* index;
  int64_t rows, count, width;
};

template <typename Params>
void run(const Params& params, const Arrays& a, int threads) {
  const int64_t blocks = (a.width + kBlock - 1) / kBlock;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t b = 0; b < a.count * blocks; ++b) {
    const int64_t row = a.index ? a.index[b / blocks] : b / blocks, from = b % blocks * kBlock;
    if (row < 0 || row >= a.rows) continue;
    const int64_t at = row * a.width + from, n = std::min(kBlock, a.width - from);
    update(params, a.weight + at, a.gradient + b / blocks * a.width + from, a.first + at, a.second + at, n);
  }
}

constexpr int kTogether = sizeof(UpdatedTogetherParams::sizes) / sizeof(int64_t);
constexpr int64_t kShare = 1 << 15;  // elements for each thread, from which on to begin and to end a parallel region takes less than it saves
constexpr int64_t kLine = 16;        // elements of a line of the caches

// Several small weights in one parallel region: each thread updates a part of each.
template <typename Params>
void run_together(const Params& params, float* const* weights, const float* const* gradients, float* const* first, float* const* second,
                  const UpdatedTogetherParams& sizes, int threads) {
  int64_t all = 0;
  for (int64_t size : sizes.sizes) all += size;
#pragma omp parallel num_threads(int(std::max<int64_t>(1, std::min<int64_t>(threads, all / kShare))))
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    for (int i = 0; i < kTogether && sizes.sizes[i]; ++i) {
      const int64_t size = sizes.sizes[i], lines = (size + kLine - 1) / kLine;
      const int64_t from = lines * thread / team * kLine, end = std::min(lines * (thread + 1) / team * kLine, size);
      if (from < end) update(params, weights[i] + from, gradients[i] + from, first[i] + from, second[i] + from, end - from);
    }
  }
}

}  // namespace

extern "C" {

void adam(float* weight, const float* gradient, float* mean, float* square, const int64_t* index, int64_t rows, int64_t count, int64_t width,
          const AdamParams* params, int threads) {
  run(*params, {weight, gradient, mean, square, index, rows, count, width}, threads);
}

void adam_together(float* w1, float* w2, float* w3, float* w4, float* w5, float* w6, float* w7, float* w8, const float* g1, const float* g2,
                   const float* g3, const float* g4, const float* g5, const float* g6, const float* g7, const float* g8, float* m1, float* m2, float* m3,
                   float* m4, float* m5, float* m6, float* m7, float* m8, float* s1, float* s2, float* s3, float* s4, float* s5, float* s6, float* s7,
                   float* s8, const UpdatedTogetherParams* sizes, const AdamParams* params, int threads) {
  float *weights[] = {w1, w2, w3, w4, w5, w6, w7, w8}, *means[] = {m1, m2, m3, m4, m5, m6, m7, m8}, *squares[] = {s1, s2, s3, s4, s5, s6, s7, s8};
  const float* gradients[] = {g1, g2, g3, g4, g5, g6, g7, g8};
  static_assert(sizeof(weights) == kTogether * sizeof(*weights), "a pointer for each weight");
  run_together(*params, weights, gradients, means, squares, *sizes, threads);
}

void adamax(float* weight, const float* gradient, float* mean, float* largest, const int64_t* index, int64_t rows, int64_t count, int64_t width,
            const AdamaxParams* params, int threads) {
  run(*params, {weight, gradient, mean, largest, index, rows, count, width}, threads);
}

}  // extern "C"
