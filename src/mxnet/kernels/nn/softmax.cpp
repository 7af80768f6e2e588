// Softmax along lines of memory, in three passes over a line that the first level of the caches holds.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/streaming_stores.h"
#include "runtime/vector_math.h"

namespace {

// The first numbers of a vector, of which there are `count`; the others are `rest`.
inline vec load_or(const float* p, int64_t count, float rest) {
  return kLanesOf<OwnLane> < int32_t(count) ? load(p, count) : vec{} + rest;
}

// With `Log` the logarithm, which is exact where softmax itself would be 0.
template <bool Log>
void line(const float* in, float* out, int64_t width) {
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
    if (!Log) store(out + at, e);
  };
  for (int64_t i = 0; i < fast; i += kLanes * kAtOnce)
#pragma GCC unroll 4
    for (int j = 0; j < kAtOnce; ++j) add(j, i + j * kLanes);
  for (int64_t i = fast; i < whole; i += kLanes) add(0, i);
  vec last = whole < width ? exp_nonpositive(tail - largest) : vec{};
  const float all_of_it = reduce_add(last + sum[0] + sum[1] + sum[2] + sum[3]), scale = 1 / all_of_it, less = std::log(all_of_it);
#pragma GCC unroll 4
  for (int64_t i = 0; i < whole; i += kLanes) store(out + i, Log ? load(in + i) - largest - less : load(out + i) * scale);
  last = Log ? tail - largest - less : last * scale;
  if (whole < width) store(out + whole, last, width - whole);
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

}  // namespace

extern "C" {

void lines(const float* in, float* out, int64_t n, int64_t width, int threads) { run<false>(in, out, n, width, threads); }
void logarithms(const float* in, float* out, int64_t n, int64_t width, int threads) { run<true>(in, out, n, width, threads); }

}  // extern "C"
