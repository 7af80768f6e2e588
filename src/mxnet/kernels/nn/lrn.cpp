// Local response normalization over the channels of contiguous images, and its gradient.
#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/vectors.h"

namespace {

constexpr int64_t kBackwardPixels = 256;  // at most so many are taken together, so that all channels of them stay in the cache
constexpr int64_t kForwardPixels = 2048;  // likewise, of the channels that one sees
constexpr int64_t kPixelsAtOnce = 64;     // pixels whose sums fit into registers

int64_t padded(int64_t pixels) { return (pixels + kPixelsAtOnce - 1) / kPixelsAtOnce * kPixelsAtOnce; }

struct Rule {
  float alpha, beta, knorm;  // alpha is divided by the number of channels already
  int64_t reach;
};

// Roots by division take most of the time, so base ** -0.75 is the cube of base ** -0.25: a guess from the exponent (3 % off), and three
// steps of Newton's method for r ** -4 = base. It is for bases that are neither tiny, nor huge, nor NaN.
inline float pow_minus_three_quarters(float base) {
  union {
    float value;
    int32_t bits;
  } r{base};
  r.bits = 0x4f584000 - (r.bits >> 2);
  const float quarter = -0.25f * base;
  for (int step = 0; step < 3; ++step) {
    const float square = r.value * r.value;
    r.value *= 1.25f + quarter * (square * square);
  }
  return r.value * r.value * r.value;
}

// Makes base ** -beta of each number of a line.
void pow_negative(const float* __restrict base, float* __restrict out, int64_t pixels, float beta) {
  int32_t unusual = beta != 0.75f;
  for (int64_t i = 0; i < pixels; ++i) unusual |= !(base[i] > 1e-30f) | !(base[i] < 1e30f);
  if (!unusual)
    for (int64_t i = 0; i < pixels; ++i) out[i] = pow_minus_three_quarters(base[i]);
  else
    for (int64_t i = 0; i < pixels; ++i) out[i] = std::pow(base[i], -beta);
}

// knorm + alpha * (the sum over the channels that a channel sees) of a block (channels, pixels).
void window(float* __restrict out, const float* block, int64_t channels, int64_t channel, int64_t pixels, const Rule& rule) {
  std::fill(out, out + pixels, 0.0f);
  for (int64_t c = std::max<int64_t>(channel - rule.reach, 0); c <= std::min(channel + rule.reach, channels - 1); ++c) {
    const float* __restrict line = block + c * pixels;
    for (int64_t i = 0; i < pixels; ++i) out[i] += line[i];
  }
  for (int64_t i = 0; i < pixels; ++i) out[i] = rule.knorm + rule.alpha * out[i];
}

void squares(const float* __restrict in, float* __restrict out, int64_t channels, int64_t area, int64_t pixels) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < pixels; ++i) out[c * pixels + i] = in[c * area + i] * in[c * area + i];
}

// A ring buffer of lines holds the squares of the channels within reach, so that data are read once and sequentially.
void forward(const float* __restrict in, float* __restrict out, float* ring, int64_t channels, int64_t area, int64_t pixels, const Rule& rule) {
  const int64_t width = 2 * rule.reach + 1, length = padded(pixels);
  std::fill(ring, ring + width * length, 0.0f);
  for (int64_t c = -rule.reach; c < channels; ++c) {
    float* __restrict entering = ring + (c + rule.reach) % width * length;
    if (c + rule.reach < channels) {
      const float* __restrict line = in + (c + rule.reach) * area;
      for (int64_t i = 0; i < pixels; ++i) entering[i] = line[i] * line[i];
    } else {
      std::fill(entering, entering + pixels, 0.0f);
    }
    if (c < 0) continue;
    for (int64_t i = 0; i < pixels; i += kPixelsAtOnce) {
      float base[kPixelsAtOnce] = {}, factor[kPixelsAtOnce];
      for (int64_t k = 0; k < width; ++k)
        for (int64_t j = 0; j < kPixelsAtOnce; ++j) base[j] += ring[k * length + i + j];
      for (int64_t j = 0; j < kPixelsAtOnce; ++j) base[j] = rule.knorm + rule.alpha * base[j];
      pow_negative(base, factor, kPixelsAtOnce, rule.beta);
      const int64_t count = std::min(kPixelsAtOnce, pixels - i);
      for (int64_t j = 0; j < count; ++j) out[c * area + i + j] = in[c * area + i + j] * factor[j];
    }
  }
}

// With s = knorm + alpha * (the sum of squares): dx = dy * s ** -beta - 2 * alpha * beta * x * (the sum of dy * x * s ** (-beta - 1)).
void backward(const float* __restrict in, const float* __restrict dout, float* __restrict din, float* block, int64_t channels, int64_t area,
              int64_t pixels, const Rule& rule) {
  float base[kBackwardPixels], factor[kBackwardPixels];
  float* products = block + channels * pixels;
  squares(in, block, channels, area, pixels);
  for (int64_t c = 0; c < channels; ++c) {
    window(base, block, channels, c, pixels, rule);
    pow_negative(base, factor, pixels, rule.beta);
    for (int64_t i = 0; i < pixels; ++i) {
      const float scaled = dout[c * area + i] * factor[i];
      din[c * area + i] = scaled;
      products[c * pixels + i] = scaled * in[c * area + i] / base[i];
    }
  }
  const Rule sum{-2 * rule.alpha * rule.beta, 0, 0, rule.reach};
  for (int64_t c = 0; c < channels; ++c) {
    window(base, products, channels, c, pixels, sum);
    for (int64_t i = 0; i < pixels; ++i) din[c * area + i] += in[c * area + i] * base[i];
  }
}

// Calls work(offset, pixels, block) for all portions of all images, of at most `most` pixels; a block holds `lines` lines.
template <class Work>
void portions(int64_t images, int64_t channels, int64_t area, int64_t most, int64_t lines, int threads, const Work& work) {
  const int64_t each = (area + most - 1) / most;
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> block(lines * padded(std::min(most, area)));
#pragma omp for
    for (int64_t i = 0; i < images * each; ++i) {
      const int64_t first = i % each * most;
      work(i / each * channels * area + first, std::min(most, area - first), block.data());
    }
  }
}

}  // namespace

extern "C" {

void respond(const float* in, float* out, int64_t images, int64_t channels, int64_t area, int64_t reach, float alpha, float beta, float knorm,
             int threads) {
  const Rule rule{alpha, beta, knorm, reach};
  portions(images, channels, area, kForwardPixels, 2 * reach + 1, threads,
           [&](int64_t at, int64_t pixels, float* block) { forward(in + at, out + at, block, channels, area, pixels, rule); });
}

void respond_back(const float* in, const float* dout, float* din, int64_t images, int64_t channels, int64_t area, int64_t reach, float alpha,
                  float beta, float knorm, int threads) {
  const Rule rule{alpha, beta, knorm, reach};
  portions(images, channels, area, kBackwardPixels, 2 * channels, threads,
           [&](int64_t at, int64_t pixels, float* block) { backward(in + at, dout + at, din + at, block, channels, area, pixels, rule); });
}

}  // extern "C"
