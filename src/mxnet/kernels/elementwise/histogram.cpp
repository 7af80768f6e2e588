// Counts values by equal bins.
#include <cstdint>
#include <vector>

namespace {

template <class T>
void count(const T* values, const T* edges, int64_t* counts, int64_t n, int64_t bins, double low, double high, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<int64_t> own(bins);
#pragma omp for nowait
    for (int64_t i = 0; i < n; ++i) {
      const T value = values[i];
      if (!(value >= low && value <= high)) continue;
      // The place between the limits, then one further where an edge, rounded to the type, lies on the other side.
      const double place = (value - low) * bins / (high - low);
      int64_t at = place > 0 ? place < bins ? int64_t(place) : bins - 1 : 0;  // NaN, from limits without sense, is 0
      if (value < edges[at])
        --at;
      else if (at + 1 < bins && value >= edges[at + 1])
        ++at;
      if (at >= 0) ++own[at];
    }
#pragma omp critical
    for (int64_t b = 0; b < bins; ++b) counts[b] += own[b];
  }
}

}  // namespace

extern "C" {

void count_float32(const float* values, const float* edges, int64_t* counts, int64_t n, int64_t bins, double low, double high, int threads) {
  count(values, edges, counts, n, bins, low, high, threads);
}
void count_float64(const double* values, const double* edges, int64_t* counts, int64_t n, int64_t bins, double low, double high, int threads) {
  count(values, edges, counts, n, bins, low, high, threads);
}

}  // extern "C"
