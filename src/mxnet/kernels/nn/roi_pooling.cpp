// Pooling of regions of feature maps (images, channels, height, width): the largest value, or a weighted sum, in each bin of each region.
//
// What is done is the same for every channel. So a block of channels of one image is copied to the order (pixel, channel), where neighbours in
// memory are worked on at once. No two blocks share an element of a gradient, so that they can be done in parallel.
// A region whose image there is not is left alone: its numbers may come from anywhere.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <omp.h>

#include "runtime/parameters.h"

namespace {

constexpr int64_t kBlock = 32;  // channels

int64_t area(const RoiPoolingParams& z) { return z.h * z.w; }
int64_t bins(const RoiPoolingParams& z) { return z.p * z.q; }
int64_t blocks(const RoiPoolingParams& z) { return (z.c + kBlock - 1) / kBlock; }

// Some channels of one image.
struct Block {
  int64_t image, first, count, plane;  // `plane` is the number of the first channel's plane
  Block(const RoiPoolingParams& z, int64_t number)
      : image(number / blocks(z)), first(number % blocks(z) * kBlock), count(std::min(kBlock, z.c - first)), plane(image * z.c + first) {}
};

void interleave(const float* __restrict data, float* __restrict pixels, const Block& b, int64_t area) {
  for (int64_t c = 0; c < b.count; ++c)
    for (int64_t i = 0; i < area; ++i) pixels[i * kBlock + c] = data[(b.plane + c) * area + i];
}

// The begins and ends of a region's bins along one axis, clamped to the map for any input.
struct Range {
  int64_t begin, end;
  Range(const int64_t* first, const int64_t* last, int64_t i, int64_t size)
      : begin(std::clamp<int64_t>(first[i], 0, size)), end(std::clamp<int64_t>(last[i], 0, size)) {}
};

// Where a row of weights differs from zero; most of it doesn't.
std::vector<Range> ranges(const float* weights, int64_t rows, int64_t size) {
  std::vector<Range> found;
  found.reserve(rows);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = weights + r * size;
    int64_t begin = 0, end = size;
    while (begin < end && row[begin] == 0) ++begin;
    while (begin < end && row[end - 1] == 0) --end;
    found.emplace_back(&begin, &end, 0, size);
  }
  return found;
}

// A NaN is larger than any number, as in torch; of equals the first in reading order counts.
template <bool marked>
void pool_largest(const float* __restrict pixels, float* __restrict best, int32_t* __restrict mark, const Range& y, const Range& x, int64_t width) {
  for (int64_t c = 0; c < kBlock; ++c) best[c] = std::numeric_limits<float>::lowest(), mark[c] = -1;
  for (int64_t h = y.begin; h < y.end; ++h)
    for (int64_t w = x.begin; w < x.end; ++w) {
      const int32_t here = int32_t(h * width + w);
      const float* __restrict pixel = pixels + (h * width + w) * kBlock;
#pragma omp simd
      for (int64_t c = 0; c < kBlock; ++c) {
        const float value = pixel[c], so_far = best[c];
        const bool exceeds = (value > so_far) | ((value != value) & (so_far == so_far));
        best[c] = exceeds ? value : so_far;
        if (marked) mark[c] = exceeds ? here : mark[c];
      }
    }
}

// The weights of all regions' bins along both axes, and where they differ from zero.
struct BinWeights {
  const int64_t* images;
  const float *rows, *columns;
  std::vector<Range> y, x;
  BinWeights(const int64_t* images, const float* rows, const float* columns, const RoiPoolingParams& z)
      : images(images), rows(rows), columns(columns), y(ranges(rows, z.r * z.p, z.h)), x(ranges(columns, z.r * z.q, z.w)) {}
};

// The weights of one bin.
struct Bin {
  const float *row, *column;
  const Range &y, &x;
};

// Calls ``work(weight, pixel)`` for each pixel that counts in a bin.
template <typename Work>
inline void each_pixel(const Bin& bin, int64_t width, Work work) {
  for (int64_t h = bin.y.begin; h < bin.y.end; ++h)
    for (int64_t w = bin.x.begin; w < bin.x.end; ++w) {
      const float weight = bin.row[h] * bin.column[w];
      if (weight != 0) work(weight, h * width + w);
    }
}

// Calls ``work(region, number of the bin, bin)`` for the bins of one image's regions.
template <typename Work>
void each_bin(const BinWeights& weights, int64_t image, const RoiPoolingParams& z, Work work) {
  for (int64_t r = 0; r < z.r; ++r) {
    if (weights.images[r] != image) continue;
    for (int64_t p = r * z.p; p < (r + 1) * z.p; ++p)
      for (int64_t q = r * z.q; q < (r + 1) * z.q; ++q)
        work(r, (p - r * z.p) * z.q + q - r * z.q, Bin{weights.rows + p * z.h, weights.columns + q * z.w, weights.y[p], weights.x[q]});
  }
}

// The same where each bin reads the group of channels that belongs to it: C = depth * down * right. Here too little is common to channels.
// use(plane, result, bin): the places of the channel's first pixel and of the bin's result, and the bin's weights.
template <typename Use>
void each_sensitive_bin(const BinWeights& weights, const RoiPoolingParams& z, int threads, Use use) {
  const int64_t depth = z.c / (z.down * z.right);
#pragma omp parallel for num_threads(threads)
  for (int64_t d = 0; d < depth; ++d)
    for (int64_t image = 0; image < z.n; ++image)
      each_bin(weights, image, z, [&](int64_t r, int64_t number, const Bin& bin) {
        const int64_t group = number / z.q * z.down / z.p * z.right + number % z.q * z.right / z.q;
        use((image * z.c + d * z.down * z.right + group) * area(z), (r * depth + d) * bins(z) + number, bin);
      });
}

}  // namespace

extern "C" {

// The largest value of each bin, and 0 for an empty one. `where` may be null; it gets the pixel that was the largest, or -1.
// `out` holds zeros.
void largest(const float* data, const int64_t* images, const int64_t* top, const int64_t* bottom, const int64_t* left, const int64_t* right,
             float* out, int32_t* where, const RoiPoolingParams* params, int threads) {
  const RoiPoolingParams z = *params;
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> pixels(area(z) * kBlock);
    alignas(64) float best[kBlock];
    alignas(64) int32_t mark[kBlock];
#pragma omp for
    for (int64_t number = 0; number < z.n * blocks(z); ++number) {
      const Block b(z, number);
      interleave(data, pixels.data(), b, area(z));
      for (int64_t r = 0; r < z.r; ++r) {
        if (images[r] != b.image) continue;
        for (int64_t bin = 0; bin < bins(z); ++bin) {
          const Range y(top, bottom, r * z.p + bin / z.q, z.h), x(left, right, r * z.q + bin % z.q, z.w);
          if (y.begin >= y.end || x.begin >= x.end) continue;
          (where ? pool_largest<true> : pool_largest<false>)(pixels.data(), best, mark, y, x, z.w);
          const int64_t start = (r * z.c + b.first) * bins(z) + bin;
          for (int64_t c = 0; c < b.count; ++c) out[start + c * bins(z)] = best[c];
          if (where)
            for (int64_t c = 0; c < b.count; ++c) where[start + c * bins(z)] = mark[c];
        }
      }
    }
  }
}

// `din` holds zeros.
void largest_backward(const int32_t* where, const int64_t* images, const float* dout, float* din, const RoiPoolingParams* params, int threads) {
  const RoiPoolingParams z = *params;
#pragma omp parallel for num_threads(threads)
  for (int64_t c = 0; c < z.c; ++c)
    for (int64_t r = 0; r < z.r; ++r) {
      if (images[r] < 0 || images[r] >= z.n) continue;
      float* plane = din + (images[r] * z.c + c) * area(z);
      const int64_t start = (r * z.c + c) * bins(z);
      for (int64_t i = start; i < start + bins(z); ++i)
        if (where[i] >= 0 && where[i] < area(z)) plane[where[i]] += dout[i];
    }
}

// ``sum_hw rows[r, p, h] * columns[r, q, w] * data[image of r, c, h, w]``. `out` holds zeros.
void weighted(const float* data, const int64_t* images, const float* row_weights, const float* column_weights, float* out,
              const RoiPoolingParams* params, int threads) {
  const RoiPoolingParams z = *params;
  const BinWeights weights(images, row_weights, column_weights, z);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> pixels(area(z) * kBlock);
    alignas(64) float sum[kBlock];
#pragma omp for
    for (int64_t number = 0; number < z.n * blocks(z); ++number) {
      const Block b(z, number);
      interleave(data, pixels.data(), b, area(z));
      each_bin(weights, b.image, z, [&](int64_t r, int64_t at, const Bin& bin) {
        std::fill(sum, sum + kBlock, 0.0f);
        each_pixel(bin, z.w, [&](float weight, int64_t i) {
          const float* __restrict pixel = pixels.data() + i * kBlock;
#pragma omp simd
          for (int64_t c = 0; c < kBlock; ++c) sum[c] += weight * pixel[c];
        });
        float* result = out + (r * z.c + b.first) * bins(z) + at;
        for (int64_t c = 0; c < b.count; ++c) result[c * bins(z)] = sum[c];
      });
    }
  }
}

void weighted_backward(const int64_t* images, const float* row_weights, const float* column_weights, const float* dout, float* din,
                       const RoiPoolingParams* params, int threads) {
  const RoiPoolingParams z = *params;
  const BinWeights weights(images, row_weights, column_weights, z);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> pixels(area(z) * kBlock);
    alignas(64) float gradient[kBlock] = {};
#pragma omp for
    for (int64_t number = 0; number < z.n * blocks(z); ++number) {
      const Block b(z, number);
      std::fill(pixels.begin(), pixels.end(), 0.0f);
      each_bin(weights, b.image, z, [&](int64_t r, int64_t at, const Bin& bin) {
        const float* from = dout + (r * z.c + b.first) * bins(z) + at;
        for (int64_t c = 0; c < b.count; ++c) gradient[c] = from[c * bins(z)];
        each_pixel(bin, z.w, [&](float weight, int64_t i) {
          float* __restrict pixel = pixels.data() + i * kBlock;
#pragma omp simd
          for (int64_t c = 0; c < kBlock; ++c) pixel[c] += weight * gradient[c];
        });
      });
      for (int64_t c = 0; c < b.count; ++c)
        for (int64_t i = 0; i < area(z); ++i) din[(b.plane + c) * area(z) + i] = pixels[i * kBlock + c];
    }
  }
}

void sensitive(const float* data, const int64_t* images, const float* row_weights, const float* column_weights, float* out,
               const RoiPoolingParams* params, int threads) {
  const RoiPoolingParams z = *params;
  each_sensitive_bin({images, row_weights, column_weights, z}, z, threads, [=](int64_t plane, int64_t result, const Bin& bin) {
    float sum = 0;
    for (int64_t h = bin.y.begin; h < bin.y.end; ++h) {
      float line = 0;
      for (int64_t w = bin.x.begin; w < bin.x.end; ++w) line += bin.column[w] * data[plane + h * z.w + w];
      sum += bin.row[h] * line;
    }
    out[result] = sum;
  });
}

// `din` holds zeros.
void sensitive_backward(const int64_t* images, const float* row_weights, const float* column_weights, const float* dout, float* din,
                        const RoiPoolingParams* params, int threads) {
  const RoiPoolingParams z = *params;
  each_sensitive_bin({images, row_weights, column_weights, z}, z, threads, [=](int64_t plane, int64_t result, const Bin& bin) {
    each_pixel(bin, z.w, [&](float weight, int64_t i) { din[plane + i] += weight * dout[result]; });
  });
}
}
