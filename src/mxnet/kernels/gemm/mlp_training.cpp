// Consecutive small fully connected layers with their activations in training, forward and backward: one parallel region for all layers.
//
// Arrays: rows (n, c), weights (k, c), biases (k), results (n, k) of each layer after its activation, in order. Every number is summed up in the same
// order for any number of threads.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <omp.h>

#include "gemm/row_counts.h"
#include "runtime/parameters.h"
#include "runtime/vector_math.h"
#include "runtime/vectors.h"

namespace {

constexpr int kLayers = sizeof(MlpTrainingParams::widths) / sizeof(int64_t) - 1;
constexpr int kDots = kLanes == 16 ? 4 : 2;  // rows of numbers, of which each is multiplied by kLanes / kDots rows of a weight in registers
constexpr int kFilters = kLanes / kDots;
constexpr int64_t kFilterBlock = 2 * kFilters;        // rows of a weight that stay in the L1 cache for all rows of numbers
constexpr int kSumRows = kLanes == 16 ? 12 : 6;       // rows of a gradient of data in registers, with kSumVectors vectors of each
constexpr int kSumVectors = 2;
constexpr int kOuterRows = kLanes == 16 ? 6 : 3;      // rows of a gradient of a weight in registers, with kOuterVectors vectors of each
constexpr int kOuterVectors = kLanes == 16 ? 4 : 4;
constexpr int64_t kShared = 1 << 20;  // multiplications for each thread, from which on a pass is shared: 20 us, to begin and to end that takes 3 to 20

enum Activation { kNone, kRelu, kSigmoid, kTanh };

inline Activation activation_of(const MlpTrainingParams& p, int layer) { return Activation(p.activations >> 2 * layer & 3); }

inline vec activated(vec v, Activation kind) {
  switch (kind) {
    case kRelu: return v < 0 ? vec{} : v;
    case kSigmoid: return sigmoid(v);
    case kTanh: return tanh(v);
    default: return v;
  }
}

// The gradient before an activation whose result is y.
inline vec gradient_before(vec gradient, vec y, Activation kind) {
  switch (kind) {
    case kRelu: return y <= 0 ? vec{} : gradient;
    case kSigmoid: return gradient * (1 - y) * y;
    case kTanh: return gradient * (1 - y * y);
    default: return gradient;
  }
}

// Lane i of the result is the sum of v[i]: each round halves the vectors, and doubles the sums in each.
template <int count = kLanes>
inline __attribute__((always_inline)) vec sums_of(vec (&v)[kLanes]) {
  constexpr int half = count / 2;
#pragma GCC unroll 8
  for (int i = 0; i < half; ++i)
    v[i] = __builtin_shuffle(v[i], v[i + half], kLanesOf<Alternating<0>>) + __builtin_shuffle(v[i], v[i + half], kLanesOf<Alternating<kLanes / 2>>);
  if constexpr (half > 1) return sums_of<half>(v);
  return v[0];
}

// out[i][j] = activated(bias[j] + sum over c of rows[i][c] * weight[j][c]) for `count` rows and `filters` of the weight.
inline void dots(const float* rows, const float* weight, const float* bias, float* out, int64_t count, int64_t filters, int64_t c, int64_t k,
                 Activation kind) {
  const float *left[kDots], *right[kFilters];
#pragma GCC unroll 4
  for (int i = 0; i < kDots; ++i) left[i] = rows + std::min<int64_t>(i, count - 1) * c;
#pragma GCC unroll 4
  for (int j = 0; j < kFilters; ++j) right[j] = weight + std::min<int64_t>(j, filters - 1) * c;
  vec sum[kLanes] = {};
  auto step = [&](auto read) __attribute__((always_inline)) {
    vec w[kFilters];
#pragma GCC unroll 4
    for (int j = 0; j < kFilters; ++j) w[j] = read(right[j]);
#pragma GCC unroll 4
    for (int i = 0; i < kDots; ++i) {
      const vec x = read(left[i]);
#pragma GCC unroll 4
      for (int j = 0; j < kFilters; ++j) sum[i * kFilters + j] += x * w[j];
    }
  };
  int64_t at = 0;
  for (; at + kLanes <= c; at += kLanes) step([=](const float* p) { return load(p + at); });
  if (at < c) step([=](const float* p) { return load(p + at, c - at); });
  vec offset{};
  if (bias) {
    for (int j = 0; j < filters; ++j)
      for (int i = 0; i < kDots; ++i) offset[i * kFilters + j] = bias[j];
  }
  const vec found = activated(sums_of(sum) + offset, kind);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < filters; ++j) out[i * k + j] = found[i * kFilters + j];
}

// The columns of a layer's result from `begin` to `end`.
void layer_forward(const float* rows, const float* weight, const float* bias, float* out, int64_t begin, int64_t end, int64_t n, int64_t c, int64_t k,
                   Activation kind) {
  for (int64_t block = begin; block < end; block += kFilterBlock)
    for (int64_t i = 0; i < n; i += kDots)
      for (int64_t j = block; j < std::min(block + kFilterBlock, end); j += kFilters)
        dots(rows + i * c, weight + j * c, bias ? bias + j : nullptr, out + i * k + j, std::min<int64_t>(kDots, n - i),
             std::min<int64_t>(kFilters, end - j), c, k, kind);
}

// dx[i][0...] = sum over d of dout[i][d] * weight[d][0...], before an activation with the result y, for R rows and V vectors, of which the last one
// has `last` numbers.
template <int R, int V>
inline __attribute__((always_inline)) void accumulate(const float* dout, const float* weight, const float* y, float* dx, int64_t c, int64_t k,
                                                      int64_t last, Activation kind) {
  vec sum[R][V] = {};
  for (int64_t d = 0; d < k; ++d) {
    vec right[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) right[v] = V > 1 ? load(weight + d * c + v * kLanes) : load(weight + d * c, last);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const float left = dout[i * k + d];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] += left * right[v];
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const int64_t at = i * c + v * kLanes, count = V > 1 ? kLanes : last;
      store(dx + at, y ? gradient_before(sum[i][v], load(y + at, count), kind) : sum[i][v], count);
    }
}

template <int R>
struct Sums {
  static void run(const float* dout, const float* weight, const float* y, float* dx, int64_t c, int64_t k, Activation kind) {
    int64_t at = 0;
    for (; at + kSumVectors * kLanes <= c; at += kSumVectors * kLanes)
      accumulate<R, kSumVectors>(dout, weight + at, y ? y + at : nullptr, dx + at, c, k, kLanes, kind);
    for (; at < c; at += kLanes)
      accumulate<R, 1>(dout, weight + at, y ? y + at : nullptr, dx + at, c, k, std::min<int64_t>(kLanes, c - at), kind);
  }
};

// The gradient of a layer's data for the rows from `begin` to `end`; with y that before the activation which made the data.
void backward_data(const float* dout, const float* weight, const float* y, float* dx, int64_t begin, int64_t end, int64_t c, int64_t k,
                   Activation kind) {
  if (begin == end) return;
  const int64_t height = piece(end - begin, kSumRows);
  for (int64_t i = begin; i < end; i += height)
    chosen<Sums>(std::min(height, end - i), std::make_integer_sequence<int, kSumRows>())(dout + i * k, weight, y ? y + i * c : nullptr, dx + i * c,
                                                                                         c, k, kind);
}

// dweight[j][0...] = sum over i of dout[i][j] * rows[i][0...] for F rows of the weight and V vectors, of which the last one has `last` numbers.
template <int F, int V>
inline __attribute__((always_inline)) void outer_product(const float* dout, const float* rows, float* dweight, int64_t n, int64_t c, int64_t k,
                                                         int64_t last) {
  vec sum[F][V] = {};
  for (int64_t i = 0; i < n; ++i) {
    vec right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) right[v] = V > 1 ? load(rows + i * c + v * kLanes) : load(rows + i * c, last);
#pragma GCC unroll 6
    for (int j = 0; j < F; ++j) {
      const float left = dout[i * k + j];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[j][v] += left * right[v];
    }
  }
#pragma GCC unroll 6
  for (int j = 0; j < F; ++j)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(dweight + j * c + v * kLanes, sum[j][v], V > 1 ? kLanes : last);
}

template <int F>
struct OuterProducts {
  static void run(const float* dout, const float* rows, float* dweight, int64_t n, int64_t c, int64_t k, int64_t begin, int64_t end) {
    int64_t at = begin;
    for (; at + kOuterVectors * kLanes <= end; at += kOuterVectors * kLanes)
      outer_product<F, kOuterVectors>(dout, rows + at, dweight + at, n, c, k, kLanes);
    for (; at < end; at += kLanes) outer_product<F, 1>(dout, rows + at, dweight + at, n, c, k, std::min<int64_t>(kLanes, end - at));
  }
};

// The gradient of a weight's rows from `begin` to `end`. Columns of the rows stay in the L1 cache meanwhile.
void backward_weight(const float* dout, const float* rows, float* dweight, int64_t begin, int64_t end, int64_t n, int64_t c, int64_t k) {
  if (begin == end) return;
  constexpr int64_t line = kOuterVectors * kLanes, cached = (24 << 10) / sizeof(float);
  const int64_t step = std::max(cached / n / line * line, line), height = piece(end - begin, kOuterRows);
  for (int64_t at = 0; at < c; at += step)
    for (int64_t j = begin; j < end; j += height)
      chosen<OuterProducts>(std::min(height, end - j), std::make_integer_sequence<int, kOuterRows>())(dout + j, rows, dweight + j * c, n, c, k, at,
                                                                                                      std::min(at + step, c));
}

void backward_bias(const float* dout, float* dbias, int64_t begin, int64_t end, int64_t n, int64_t k) {
  for (int64_t j = begin; j < end; j += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, end - j);
    vec sum{};
    for (int64_t i = 0; i < n; ++i) sum += load(dout + i * k + j, count);
    store(dbias + j, sum, count);
  }
}

int layers_of(const MlpTrainingParams& p) {
  int count = 0;
  while (count < kLayers && p.widths[count + 1]) ++count;
  return count;
}

int team_for(const MlpTrainingParams& p, int threads) {
  int64_t work = 0;
  for (int i = 0; i < layers_of(p); ++i) work += p.n * p.widths[i] * p.widths[i + 1];
  return int(std::max<int64_t>(1, std::min<int64_t>(threads, work / kShared)));
}

struct Range {
  int64_t begin, end;
};

// A thread's share of so many pieces of numbers.
inline Range share_of(int64_t all, int64_t size) {
  const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads(), pieces = (all + size - 1) / size;
  return {std::min(pieces * thread / team * size, all), std::min(pieces * (thread + 1) / team * size, all)};
}

// Threads share a weight's rows, as they share them in the gradient of the weight and in its update: the caches of each keep its own.
void forward(const float* rows, const float* const* weights, const float* const* biases, float* const* out, const MlpTrainingParams& p, int threads) {
#pragma omp parallel num_threads(team_for(p, threads))
  {
    const float* from = rows;
    for (int i = 0; i < layers_of(p); ++i) {
      const Range own = share_of(p.widths[i + 1], kFilters);
      layer_forward(from, weights[i], biases[i], out[i], own.begin, own.end, p.n, p.widths[i], p.widths[i + 1], activation_of(p, i));
      from = out[i];
#pragma omp barrier
    }
  }
}

// The gradients of weights, biases and data; a null one is not wanted.
void backward(const float* dout, const float* rows, const float* const* results, const float* const* weights, float* const* dweights,
              float* const* dbiases, float* dx, const MlpTrainingParams& p, int threads) {
  const int layers = layers_of(p);
  int first = 0;  // the first layer with a gradient that is wanted
  while (first < layers && !dweights[first] && !dbiases[first]) ++first;
  if (dx) first = 0;
  const int64_t widest = *std::max_element(p.widths + 1, p.widths + 1 + layers);
  std::vector<float> memory(size_t(2 * p.n * widest));
  float* gradients[] = {memory.data(), memory.data() + p.n * widest};
#pragma omp parallel num_threads(team_for(p, threads))
  {
    const Range own = share_of(p.n, kSumRows);
    const float* gradient = dout;
    const Activation top = activation_of(p, layers - 1);
    if (top != kNone) {  // before the last activation
      const float* y = results[layers - 1];
      float* before = gradients[layers % 2];
      const int64_t end = own.end * p.widths[layers];
      for (int64_t at = own.begin * p.widths[layers]; at < end; at += kLanes) {
        const int64_t count = std::min<int64_t>(kLanes, end - at);
        store(before + at, gradient_before(load(dout + at, count), load(y + at, count), top), count);
      }
      gradient = before;
#pragma omp barrier
    }
    for (int i = layers - 1; i >= first; --i) {
      const int64_t c = p.widths[i], k = p.widths[i + 1];
      const float* data = i ? results[i - 1] : rows;
      float* next = i ? gradients[i % 2] : dx;
      if (i > first || (!i && dx))
        backward_data(gradient, weights[i], i ? data : nullptr, next, own.begin, own.end, c, k, i ? activation_of(p, i - 1) : kNone);
      const Range filters = share_of(k, kOuterRows);
      if (dweights[i]) backward_weight(gradient, data, dweights[i], filters.begin, filters.end, p.n, c, k);
      if (dbiases[i]) backward_bias(gradient, dbiases[i], filters.begin, filters.end, p.n, k);
      gradient = next;
#pragma omp barrier
    }
  }
}

}  // namespace

extern "C" {

void forward_float32(const float* rows, const float* w1, const float* w2, const float* w3, const float* w4, const float* b1, const float* b2,
                     const float* b3, const float* b4, float* y1, float* y2, float* y3, float* y4, const MlpTrainingParams* params, int threads) {
  const float *weights[] = {w1, w2, w3, w4}, *biases[] = {b1, b2, b3, b4};
  float* out[] = {y1, y2, y3, y4};
  static_assert(sizeof(weights) == kLayers * sizeof(*weights), "a pointer for each layer");
  forward(rows, weights, biases, out, *params, threads);
}

void backward_float32(const float* dout, const float* rows, const float* y1, const float* y2, const float* y3, const float* y4, const float* w1,
                      const float* w2, const float* w3, const float* w4, float* dw1, float* dw2, float* dw3, float* dw4, float* db1, float* db2,
                      float* db3, float* db4, float* dx, const MlpTrainingParams* params, int threads) {
  const float *results[] = {y1, y2, y3, y4}, *weights[] = {w1, w2, w3, w4};
  float *dweights[] = {dw1, dw2, dw3, dw4}, *dbiases[] = {db1, db2, db3, db4};
  backward(dout, rows, results, weights, dweights, dbiases, dx, *params, threads);
}

}  // extern "C"
