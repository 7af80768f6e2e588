// Softmax along lines of memory, in three passes over a line that the first level of the caches holds, and the cross entropy with one class for each.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <omp.h>

#include "runtime/streaming_stores.h"
#include "runtime/vector_math.h"

namespace {

// The first numbers of a vector, of which there are `count`; the others are `rest`.
inline vec load_or(const float* p, int64_t count, float rest) {
  return kLanesOf<OwnLane> < int32_t(count) ? load(p, count) : vec{} + rest;
}

// The largest number of a line, the exponentials of the differences to it, summed up, and those of the numbers after the last whole vector.
struct Exponentials {
  float largest, sum;
  vec last;
};

// With `Store` the exponentials go to `out`.
template <bool Store>
Exponentials exponentials(const float* in, float* out, int64_t width) {
  constexpr int kAtOnce = 4;  // vectors, that one need not wait for another
  const float lowest = -std::numeric_limits<float>::infinity();
  const int64_t whole = width / kLanes * kLanes, fast = width / (kLanes * kAtOnce) * (kLanes * kAtOnce);
  const vec tail = whole < width ? load_or(in + whole, width - whole, lowest) : vec{} + lowest;
  vec most[kAtOnce] = {tail, tail, tail, tail}, sum[kAtOnce] = {};
  const auto raise = [&](int j, int64_t at) {
    const vec x = load(in + at);
    most[j] = x > most[j] ? x : most[j];
  };
  for (int64_t i = 0; i < fast; i += kLanes * kAtOnce)
#pragma GCC unroll 4
    for (int j = 0; j < kAtOnce; ++j) raise(j, i + j * kLanes);
  for (int64_t i = fast; i < whole; i += kLanes) raise(0, i);
  for (int j = 1; j < kAtOnce; ++j) most[0] = most[j] > most[0] ? most[j] : most[0];
  const float largest = reduce_max(most[0]);
  // A NaN that is not found here comes out of the differences, as where there is nothing but -inf.
  const auto add = [&](int j, int64_t at) {
    const vec e = exp_nonpositive(load(in + at) - largest);
    sum[j] += e;
    if (Store) store(out + at, e);
  };
  for (int64_t i = 0; i < fast; i += kLanes * kAtOnce)
#pragma GCC unroll 4
    for (int j = 0; j < kAtOnce; ++j) add(j, i + j * kLanes);
  for (int64_t i = fast; i < whole; i += kLanes) add(0, i);
  const vec last = whole < width ? exp_nonpositive(tail - largest) : vec{};
  return {largest, reduce_add(last + sum[0] + sum[1] + sum[2] + sum[3]), last};
}

// With `Log` the logarithm, which is exact where softmax itself would be 0.
template <bool Log>
void line(const float* in, float* out, int64_t width) {
  const Exponentials e = exponentials<!Log>(in, out, width);
  const int64_t whole = width / kLanes * kLanes;
  const float scale = 1 / e.sum, less = std::log(e.sum);
#pragma GCC unroll 4
  for (int64_t i = 0; i < whole; i += kLanes) store(out + i, Log ? load(in + i) - e.largest - less : load(out + i) * scale);
  if (whole < width) store(out + whole, Log ? load(in + whole, width - whole) - e.largest - less : e.last * scale, width - whole);
}

template <bool Log>
void run(const float* in, float* out, int64_t n, int64_t width, int threads) {
  const bool streaming = is_large(n * width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> found(streaming ? width : 0);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      line<Log>(in + i * width, streaming ? found.data() : out + i * width, width);
      if (streaming) put(out + i * width, found.data(), width, streaming);
    }
    store_fence(streaming);
  }
}

constexpr int64_t kShare = 1 << 15;  // numbers for each thread: 30 us, to begin and to end a parallel region takes 3 to 20

int team_for(int64_t n, int64_t width, int threads) { return int(std::max<int64_t>(1, std::min<int64_t>({threads, n, n * width / kShare}))); }

// A class as a place in the line: outside of it the nearest one. A NaN is the first.
template <typename Class>
int64_t place_of(Class number, int64_t width) {
  return number > Class(0) ? number < Class(width - 1) ? int64_t(number) : width - 1 : 0;
}

// `scale` times the logarithm of the softmax for one class of each line; `sums` gets two numbers of each, whose difference to the line is that of all classes.
template <typename Class>
void log_likelihoods(const float* in, const Class* classes, float* out, float* sums, int64_t n, int64_t width, float scale, int threads) {
#pragma omp parallel for num_threads(team_for(n, width, threads)) schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const Exponentials e = exponentials<false>(in + i * width, nullptr, width);
    const float less = std::log(e.sum);
    sums[2 * i] = e.largest, sums[2 * i + 1] = less;
    out[i] = (in[i * width + place_of(classes[i], width)] - e.largest - less) * scale;
  }
}

template <typename Class>
void log_likelihood_gradients(const float* in, const Class* classes, const float* sums, const float* dout, float* dx, int64_t n, int64_t width,
                              float scale, int threads) {
  const bool streaming = is_large(n * width);
#pragma omp parallel num_threads(team_for(n, width, threads))
  {
    std::vector<float> memory(streaming ? width : 0);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      const float *from = in + i * width, largest = sums[2 * i], less = sums[2 * i + 1], factor = dout[i] * scale;
      float* to = streaming ? memory.data() : dx + i * width;
      for (int64_t at = 0; at < width; at += kLanes) {
        const int64_t count = std::min<int64_t>(kLanes, width - at);
        store(to + at, exp_nonpositive(load(from + at, count) - largest - less) * -factor, count);
      }
      to[place_of(classes[i], width)] += factor;
      if (streaming) put(dx + i * width, to, width, streaming);
    }
    store_fence(streaming);
  }
}

// (in - one_hot) * scale, for one class of each line, or none where the number is no place in it.
template <typename Class>
void minus_one_hot(const float* in, const Class* classes, float* out, int64_t n, int64_t width, float scale, int threads) {
#pragma omp parallel for num_threads(team_for(n, width, threads)) schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const float* from = in + i * width;
    float* to = out + i * width;
    for (int64_t at = 0; at < width; ++at) to[at] = from[at] * scale;
    if (classes[i] > Class(-1) && classes[i] < Class(width)) to[int64_t(classes[i])] = (from[int64_t(classes[i])] - 1) * scale;
  }
}

}  // namespace

extern "C" {

void lines(const float* in, float* out, int64_t n, int64_t width, int threads) { run<false>(in, out, n, width, threads); }
void log_likelihoods_float32(const float* in, const float* classes, float* out, float* sums, int64_t n, int64_t width, float scale, int threads) {
  log_likelihoods(in, classes, out, sums, n, width, scale, threads);
}
void log_likelihoods_int64(const float* in, const int64_t* classes, float* out, float* sums, int64_t n, int64_t width, float scale, int threads) {
  log_likelihoods(in, classes, out, sums, n, width, scale, threads);
}
void log_likelihood_gradients_float32(const float* in, const float* classes, const float* sums, const float* dout, float* dx, int64_t n, int64_t width,
                                      float scale, int threads) {
  log_likelihood_gradients(in, classes, sums, dout, dx, n, width, scale, threads);
}
void log_likelihood_gradients_int64(const float* in, const int64_t* classes, const float* sums, const float* dout, float* dx, int64_t n, int64_t width,
                                    float scale, int threads) {
  log_likelihood_gradients(in, classes, sums, dout, dx, n, width, scale, threads);
}
void minus_one_hot_float32(const float* in, const float* classes, float* out, int64_t n, int64_t width, float scale, int threads) {
  minus_one_hot(in, classes, out, n, width, scale, threads);
}
void minus_one_hot_int64(const float* in, const int64_t* classes, float* out, int64_t n, int64_t width, float scale, int threads) {
  minus_one_hot(in, classes, out, n, width, scale, threads);
}
void logarithms(const float* in, float* out, int64_t n, int64_t width, int threads) { run<true>(in, out, n, width, threads); }

}  // extern "C"
