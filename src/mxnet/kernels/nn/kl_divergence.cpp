// Kullback-Leibler divergences of a histogram from its clipped and quantized version, for every threshold.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr float kLeast = 1e-4f;  // replaces the zero bins, subtracted from the others

// Returns the amount subtracted from each nonzero bin, for so many zeros among n; negative where impossible.
inline float taken(int64_t zeros, int64_t n) {
  if (zeros == n) return -1;
  const float each = kLeast * float(zeros) / float(n - zeros);
  return each < 1 ? each : -1;
}

// The natural logarithm of a positive number, to single precision: a loop over it becomes vectors, as one over std::log does not.
inline float logarithm(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const uint32_t from_root = bits - 0x3f3504f3;  // of 1/2, so that the fraction lies around 1
  const int32_t exponent = int32_t(from_root) >> 23;
  bits -= uint32_t(exponent) << 23;
  float fraction;
  std::memcpy(&fraction, &bits, 4);
  const float t = (fraction - 1) / (fraction + 1), square = t * t;
  return float(exponent) * 0.69314718f + 2 * t * (1 + square * (1.0f / 3 + square * (0.2f + square * (1.0f / 7 + square * (1.0f / 9)))));
}

// The loss if the bins outside of [first, last) are clipped, and the others become `bins` levels. before[i] is the sum of the first i bins;
// `counts` and `logarithms` are room for all bins.
double loss(const float* hist, const double* before, int64_t n, int64_t first, int64_t last, int64_t bins, float* counts, float* logarithms,
            float* means) {
  const int64_t size = last - first, width = size / bins;
  auto from = [&](int64_t level) { return level * width; };
  auto to = [&](int64_t level) { return level + 1 < bins ? (level + 1) * width : size; };
  std::copy(hist + first, hist + last, counts);
  counts[0] = 0;  // levels are made of the inner bins
  int64_t p_zeros = 0, q_zeros = 0;
  for (int64_t l = 0; l < bins; ++l) {
    double sum = 0;
    int64_t filled = 0;
    for (int64_t j = from(l); j < to(l); ++j) {
      sum += counts[j];
      filled += counts[j] != 0;
    }
    means[l] = filled ? float(sum / filled) : 0;
    if (!filled) q_zeros += to(l) - from(l);
  }
  counts[0] = float(before[first + 1]);
  counts[size - 1] += float(before[n] - before[last]);
  for (int64_t l = 0; l < bins; ++l)
    for (int64_t j = from(l); j < to(l); ++j) {
      p_zeros += counts[j] == 0;
      q_zeros += counts[j] == 0 && means[l] != 0;
    }
  const float p_taken = taken(p_zeros, size), q_taken = taken(q_zeros, size);
  if (p_taken < 0 || q_taken < 0) return std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < size; ++j) {
    counts[j] = counts[j] == 0 ? kLeast : counts[j] - p_taken;
    logarithms[j] = logarithm(counts[j]);
  }
  double p_sum = 0, q_sum = 0, total = 0;
  for (int64_t l = 0; l < bins; ++l) {
    const float q = means[l] != 0 ? means[l] - q_taken : kLeast, own = logarithm(q), least = logarithm(kLeast);
    double q_part = 0, p_part = 0, part = 0;
    for (int64_t j = from(l); j < to(l); ++j) {
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

}  // namespace

extern "C" {

// One loss for each threshold, from the one that leaves `bins` bins around the middle to the one that leaves all. n is at least `bins`.
void divergences(const float* hist, double* losses, int64_t n, int64_t bins, int threads) {
  std::vector<double> before(n + 1);
  for (int64_t i = 0; i < n; ++i) before[i + 1] = before[i] + hist[i];
  const int64_t middle = n / 2, half = bins / 2;
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> counts(n), logarithms(n), means(bins);
#pragma omp for schedule(dynamic, 16)
    for (int64_t i = half; i <= middle; ++i)
      losses[i - half] = loss(hist, before.data(), n, middle - i, std::min(middle + i + 1, n), bins, counts.data(), logarithms.data(), means.data());
  }
}

}  // extern "C"
