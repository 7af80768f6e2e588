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

namespace {

constexpr int64_t kBlock = 32;  // channels

struct Sizes {
  int64_t images, channels, height, width, regions, rows, columns;
  int64_t area() const { return height * width; }
  int64_t bins() const { return rows * columns; }
  int64_t blocks() const { return (channels + kBlock - 1) / kBlock; }
};

// Some channels of one image.
struct Block {
  int64_t image, first, count, plane;  // `plane` is the number of the first channel's plane
  Block(const Sizes& s, int64_t number)
      : image(number / s.blocks()), first(number % s.blocks() * kBlock), count(std::min(kBlock, s.channels - first)),
        plane(image * s.channels + first) {}
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

// Calls ``work(weight, pixel)`` for each pixel that counts in a bin.
template <typename Work>
inline void each_pixel(const float* row, const float* column, const Range& y, const Range& x, int64_t width, Work work) {
  for (int64_t h = y.begin; h < y.end; ++h)
    for (int64_t w = x.begin; w < x.end; ++w) {
      const float weight = row[h] * column[w];
      if (weight != 0) work(weight, h * width + w);
    }
}

// Calls ``work(region, number of the bin, row of weights, column of weights, their ranges)`` for the bins of one image's regions.
template <typename Work>
void each_bin(const int64_t* images, const float* rows, const float* columns, const std::vector<Range>& y, const std::vector<Range>& x,
              int64_t image, const Sizes& s, Work work) {
  for (int64_t r = 0; r < s.regions; ++r) {
    if (images[r] != image) continue;
    for (int64_t p = r * s.rows; p < (r + 1) * s.rows; ++p)
      for (int64_t q = r * s.columns; q < (r + 1) * s.columns; ++q)
        work(r, (p - r * s.rows) * s.columns + q - r * s.columns, rows + p * s.height, columns + q * s.width, y[p], x[q]);
  }
}

// The same where each bin reads the group of channels that belongs to it: C = depth * down * right. Here too little is common to channels.
// use(plane, result, row, column, high, wide): the places of the channel's first pixel and of the bin's result, and the bin's weights.
template <typename Use>
void each_sensitive_bin(const int64_t* images, const float* row_weights, const float* column_weights, const Sizes& s, int64_t down, int64_t right,
                        int threads, Use use) {
  const auto y = ranges(row_weights, s.regions * s.rows, s.height), x = ranges(column_weights, s.regions * s.columns, s.width);
  const int64_t depth = s.channels / (down * right);
#pragma omp parallel for num_threads(threads)
  for (int64_t d = 0; d < depth; ++d)
    for (int64_t image = 0; image < s.images; ++image)
      each_bin(images, row_weights, column_weights, y, x, image, s,
               [&](int64_t r, int64_t bin, const float* row, const float* column, const Range& high, const Range& wide) {
                 const int64_t group = bin / s.columns * down / s.rows * right + bin % s.columns * right / s.columns;
                 use((image * s.channels + d * down * right + group) * s.area(), (r * depth + d) * s.bins() + bin, row, column, high, wide);
               });
}

}  // namespace

extern "C" {

// The largest value of each bin, and 0 for an empty one. `where` may be null; it gets the pixel that was the largest, or -1.
// `out` holds zeros.
void largest(const float* data, const int64_t* images, const int64_t* top, const int64_t* bottom, const int64_t* left, const int64_t* right,
             float* out, int32_t* where, int64_t n, int64_t channels, int64_t height, int64_t width, int64_t regions, int64_t rows,
             int64_t columns, int threads) {
  const Sizes s{n, channels, height, width, regions, rows, columns};
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> pixels(s.area() * kBlock);
    alignas(64) float best[kBlock];
    alignas(64) int32_t mark[kBlock];
#pragma omp for
    for (int64_t number = 0; number < n * s.blocks(); ++number) {
      const Block b(s, number);
      interleave(data, pixels.data(), b, s.area());
      for (int64_t r = 0; r < regions; ++r) {
        if (images[r] != b.image) continue;
        for (int64_t bin = 0; bin < s.bins(); ++bin) {
          const Range y(top, bottom, r * rows + bin / columns, height), x(left, right, r * columns + bin % columns, width);
          if (y.begin >= y.end || x.begin >= x.end) continue;
          (where ? pool_largest<true> : pool_largest<false>)(pixels.data(), best, mark, y, x, width);
          const int64_t start = (r * channels + b.first) * s.bins() + bin;
          for (int64_t c = 0; c < b.count; ++c) out[start + c * s.bins()] = best[c];
          if (where)
            for (int64_t c = 0; c < b.count; ++c) where[start + c * s.bins()] = mark[c];
        }
      }
    }
  }
}

// `din` holds zeros.
void largest_backward(const int32_t* where, const int64_t* images, const float* dout, float* din, int64_t n, int64_t channels, int64_t height,
                      int64_t width, int64_t regions, int64_t rows, int64_t columns, int threads) {
  const Sizes s{n, channels, height, width, regions, rows, columns};
#pragma omp parallel for num_threads(threads)
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t r = 0; r < regions; ++r) {
      if (images[r] < 0 || images[r] >= n) continue;
      float* plane = din + (images[r] * channels + c) * s.area();
      const int64_t start = (r * channels + c) * s.bins();
      for (int64_t i = start; i < start + s.bins(); ++i)
        if (where[i] >= 0 && where[i] < s.area()) plane[where[i]] += dout[i];
    }
}

// ``sum_hw rows[r, p, h] * columns[r, q, w] * data[image of r, c, h, w]``. `out` holds zeros.
void weighted(const float* data, const int64_t* images, const float* row_weights, const float* column_weights, float* out, int64_t n,
              int64_t channels, int64_t height, int64_t width, int64_t regions, int64_t rows, int64_t columns, int threads) {
  const Sizes s{n, channels, height, width, regions, rows, columns};
  const auto y = ranges(row_weights, regions * rows, height), x = ranges(column_weights, regions * columns, width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> pixels(s.area() * kBlock);
    alignas(64) float sum[kBlock];
#pragma omp for
    for (int64_t number = 0; number < n * s.blocks(); ++number) {
      const Block b(s, number);
      interleave(data, pixels.data(), b, s.area());
      each_bin(images, row_weights, column_weights, y, x, b.image, s,
               [&](int64_t r, int64_t bin, const float* row, const float* column, const Range& high, const Range& wide) {
                 std::fill(sum, sum + kBlock, 0.0f);
                 each_pixel(row, column, high, wide, width, [&](float weight, int64_t i) {
                   const float* __restrict pixel = pixels.data() + i * kBlock;
#pragma omp simd
                   for (int64_t c = 0; c < kBlock; ++c) sum[c] += weight * pixel[c];
                 });
                 float* result = out + (r * channels + b.first) * s.bins() + bin;
                 for (int64_t c = 0; c < b.count; ++c) result[c * s.bins()] = sum[c];
               });
    }
  }
}

void weighted_backward(const int64_t* images, const float* row_weights, const float* column_weights, const float* dout, float* din, int64_t n,
                       int64_t channels, int64_t height, int64_t width, int64_t regions, int64_t rows, int64_t columns, int threads) {
  const Sizes s{n, channels, height, width, regions, rows, columns};
  const auto y = ranges(row_weights, regions * rows, height), x = ranges(column_weights, regions * columns, width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> pixels(s.area() * kBlock);
    alignas(64) float gradient[kBlock] = {};
#pragma omp for
    for (int64_t number = 0; number < n * s.blocks(); ++number) {
      const Block b(s, number);
      std::fill(pixels.begin(), pixels.end(), 0.0f);
      each_bin(images, row_weights, column_weights, y, x, b.image, s,
               [&](int64_t r, int64_t bin, const float* row, const float* column, const Range& high, const Range& wide) {
                 const float* from = dout + (r * channels + b.first) * s.bins() + bin;
                 for (int64_t c = 0; c < b.count; ++c) gradient[c] = from[c * s.bins()];
                 each_pixel(row, column, high, wide, width, [&](float weight, int64_t i) {
                   float* __restrict pixel = pixels.data() + i * kBlock;
#pragma omp simd
                   for (int64_t c = 0; c < kBlock; ++c) pixel[c] += weight * gradient[c];
                 });
               });
      for (int64_t c = 0; c < b.count; ++c)
        for (int64_t i = 0; i < s.area(); ++i) din[(b.plane + c) * s.area() + i] = pixels[i * kBlock + c];
    }
  }
}

void sensitive(const float* data, const int64_t* images, const float* row_weights, const float* column_weights, float* out, int64_t n,
               int64_t channels, int64_t height, int64_t width, int64_t regions, int64_t rows, int64_t columns, int64_t down, int64_t right,
               int threads) {
  each_sensitive_bin(images, row_weights, column_weights, {n, channels, height, width, regions, rows, columns}, down, right, threads,
                     [=](int64_t plane, int64_t result, const float* row, const float* column, const Range& high, const Range& wide) {
                       float sum = 0;
                       for (int64_t h = high.begin; h < high.end; ++h) {
                         float line = 0;
                         for (int64_t w = wide.begin; w < wide.end; ++w) line += column[w] * data[plane + h * width + w];
                         sum += row[h] * line;
                       }
                       out[result] = sum;
                     });
}

// `din` holds zeros.
void sensitive_backward(const int64_t* images, const float* row_weights, const float* column_weights, const float* dout, float* din, int64_t n,
                        int64_t channels, int64_t height, int64_t width, int64_t regions, int64_t rows, int64_t columns, int64_t down,
                        int64_t right, int threads) {
  each_sensitive_bin(images, row_weights, column_weights, {n, channels, height, width, regions, rows, columns}, down, right, threads,
                     [=](int64_t plane, int64_t result, const float* row, const float* column, const Range& high, const Range& wide) {
                       each_pixel(row, column, high, wide, width, [&](float weight, int64_t i) { din[plane + i] += weight * dout[result]; });
                     });
}
}
