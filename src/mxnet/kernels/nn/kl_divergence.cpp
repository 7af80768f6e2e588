// Kullback-Leibler divergences of a histogram from its clipped and quantized version, for every threshold.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/vector_math.h"

namespace {

constexpr float kLeast = 1e-4f;  // replaces the zero bins, subtracted from the others

// Returns the amount subtracted from each nonzero bin, for so many zeros among n; negative where impossible.
inline float taken(int64_t zeros, int64_t n) {
  if (zeros == n) return -1;
  const float each = kLeast * float(zeros) / float(n - zeros);
  return each < 1 ? each : -1;
}

// A histogram of n bins; before[i] is the sum of the first i of them.
struct Histogram {
  const float* bins;
  const double* before;
  int64_t n;
};

// Memory for the numbers of all bins, and of all levels.
struct Scratch {
  std::vector<float> counts, logarithms, means;
  Scratch(int64_t n, int64_t levels) : counts(n), logarithms(n), means(levels) {}
};

// The bins of the clipped histogram that each of the quantized one's levels stands for.
struct Levels {
  int64_t count, width, size;
  int64_t from(int64_t level) const { return level * width; }
  int64_t to(int64_t level) const { return level + 1 < count ? (level + 1) * width : size; }
};

// The mean of each level's bins that are not empty; returns the number of bins in levels where all are.
int64_t find_means(const float* counts, const Levels& levels, float* means) {
  int64_t empty = 0;
  for (int64_t l = 0; l < levels.count; ++l) {
    double sum = 0;
    int64_t filled = 0;
    for (int64_t j = levels.from(l); j < levels.to(l); ++j) {
      sum += counts[j];
      filled += counts[j] != 0;
    }
    means[l] = filled ? float(sum / filled) : 0;
    if (!filled) empty += levels.to(l) - levels.from(l);
  }
  return empty;
}

// The divergence of smoothed counts, whose logarithms are given, from the levels' means, from which `q_taken` is subtracted.
double divergence(const float* counts, const float* logarithms, const float* means, const Levels& levels, float q_taken) {
  double p_sum = 0, q_sum = 0, total = 0;
  for (int64_t l = 0; l < levels.count; ++l) {
    const float q = means[l] != 0 ? means[l] - q_taken : kLeast, own = log_normal(q), least = log_normal(kLeast);
    double q_part = 0, p_part = 0, part = 0;
    for (int64_t j = levels.from(l); j < levels.to(l); ++j) {
      const bool zero = counts[j] == kLeast;
      p_part += counts[j];
      q_part += zero ? kLeast : q;
      part += counts[j] * (logarithms[j] - (zero ? least : own));
    }
    p_sum += p_part;
    q_sum += q_part;
    total += part;
  }
  return total / p_sum - std::log(p_sum / q_sum);
}

// The loss if the bins outside of [first, last) are clipped, and the others become `bins` levels.
double loss(const Histogram& hist, int64_t first, int64_t last, int64_t bins, Scratch& scratch) {
  const Levels levels{bins, (last - first) / bins, last - first};
  float *counts = scratch.counts.data(), *logarithms = scratch.logarithms.data(), *means = scratch.means.data();
  std::copy(hist.bins + first, hist.bins + last, counts);
  counts[0] = 0;  // levels are made of the inner bins
  int64_t p_zeros = 0, q_zeros = find_means(counts, levels, means);
  counts[0] = float(hist.before[first + 1]);
  counts[levels.size - 1] += float(hist.before[hist.n] - hist.before[last]);
  for (int64_t l = 0; l < bins; ++l)
    for (int64_t j = levels.from(l); j < levels.to(l); ++j) {
      p_zeros += counts[j] == 0;
      q_zeros += counts[j] == 0 && means[l] != 0;
    }
  const float p_taken = taken(p_zeros, levels.size), q_taken = taken(q_zeros, levels.size);
  if (p_taken < 0 || q_taken < 0) return std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < levels.size; ++j) {
    counts[j] = counts[j] == 0 ? kLeast : counts[j] - p_taken;
    logarithms[j] = log_normal(counts[j]);
  }
  return divergence(counts, logarithms, means, levels, q_taken);
}

}  // namespace

extern "C" {

// One loss for each threshold, from the one that leaves `bins` bins around the middle to the one that leaves all. n is at least `bins`.
void divergences(const float* hist, double* losses, int64_t n, int64_t bins, int threads) {
  std::vector<double> before(n + 1);
  for (int64_t i = 0; i < n; ++i) before[i + 1] = before[i] + hist[i];
  const int64_t middle = n / 2, half = bins / 2;
#pragma omp parallel num_threads(threads)
  {
    Scratch scratch(n, bins);
#pragma omp for schedule(dynamic, 16)
    for (int64_t i = half; i <= middle; ++i)
      losses[i - half] = loss({hist, before.data(), n}, middle - i, std::min(middle + i + 1, n), bins, scratch);
  }
}

}  // extern "C"
