// Maximum pooling over the two spatial axes of planes in the standard order of memory.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <omp.h>

namespace {

struct Window {
  int64_t height, width, out_height, out_width, kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x;
  int64_t top(int64_t y) const { return std::max<int64_t>(y * stride_y - pad_y, 0); }
  int64_t bottom(int64_t y) const { return std::min(y * stride_y - pad_y + kernel_y, height); }
};

// A NaN is larger than any number, as in torch.
inline float larger(float a, float b) { return b > a || b != b ? b : a; }

// The windows whose column number k lies in the data: for these, one after another, it is the same step in memory.
struct Columns {
  int64_t begin, end, start;
  Columns(const Window& w, int64_t k) {
    begin = k < w.pad_x ? (w.pad_x - k + w.stride_x - 1) / w.stride_x : 0;
    end = std::min(w.out_width, w.width - 1 + w.pad_x - k < 0 ? 0 : (w.width - 1 + w.pad_x - k) / w.stride_x + 1);
    start = k - w.pad_x;
  }
};

template <int64_t fixed_stride>
void pool(const float* __restrict in, float* __restrict out, float* __restrict row, const Window& w) {
  const int64_t stride = fixed_stride ? fixed_stride : w.stride_x;
  for (int64_t y = 0; y < w.out_height; ++y) {
    std::fill(row, row + w.width, -std::numeric_limits<float>::infinity());
    for (int64_t h = w.top(y); h < w.bottom(y); ++h) {
      const float* __restrict line = in + h * w.width;
#pragma omp simd
      for (int64_t x = 0; x < w.width; ++x) row[x] = larger(row[x], line[x]);
    }
    float* __restrict result = out + y * w.out_width;
    std::fill(result, result + w.out_width, -std::numeric_limits<float>::infinity());
    for (int64_t k = 0; k < w.kernel_x; ++k) {
      const Columns c(w, k);
#pragma omp simd
      for (int64_t x = c.begin; x < c.end; ++x) result[x] = larger(result[x], row[x * stride + c.start]);
    }
  }
}

// The whole gradient goes to the first largest value of each window, row by row.
template <int64_t fixed_stride>
void spread(const float* __restrict in, const float* __restrict out, const float* __restrict dout, float* __restrict din, float* __restrict open,
            const Window& w) {
  const int64_t stride = fixed_stride ? fixed_stride : w.stride_x;
  for (int64_t y = 0; y < w.out_height; ++y) {
    const float* __restrict value = out + y * w.out_width;
    std::copy(dout + y * w.out_width, dout + (y + 1) * w.out_width, open);  // what has not found its place yet
    for (int64_t h = w.top(y); h < w.bottom(y); ++h)
      for (int64_t k = 0; k < w.kernel_x; ++k) {
        const Columns c(w, k);
        const float* __restrict line = in + h * w.width;
        float* __restrict to = din + h * w.width;
#pragma omp simd
        for (int64_t x = c.begin; x < c.end; ++x) {
          const float candidate = line[x * stride + c.start];
          const bool found = candidate == value[x] || (value[x] != value[x] && candidate != candidate);
          to[x * stride + c.start] += found ? open[x] : 0.f;
          open[x] = found ? 0.f : open[x];
        }
      }
  }
}

}  // namespace

extern "C" {

void forward(const float* in, float* out, int64_t planes, int64_t height, int64_t width, int64_t out_height, int64_t out_width, int64_t kernel_y,
             int64_t kernel_x, int64_t stride_y, int64_t stride_x, int64_t pad_y, int64_t pad_x, int threads) {
  const Window w{height, width, out_height, out_width, kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x};
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> row(width);
    auto run = stride_x == 1 ? pool<1> : stride_x == 2 ? pool<2> : pool<0>;
#pragma omp for
    for (int64_t p = 0; p < planes; ++p) run(in + p * height * width, out + p * out_height * out_width, row.data(), w);
  }
}

// `din` holds zeros.
void backward(const float* in, const float* out, const float* dout, float* din, int64_t planes, int64_t height, int64_t width, int64_t out_height,
              int64_t out_width, int64_t kernel_y, int64_t kernel_x, int64_t stride_y, int64_t stride_x, int64_t pad_y, int64_t pad_x, int threads) {
  const Window w{height, width, out_height, out_width, kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x};
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> open(out_width);
    auto run = stride_x == 1 ? spread<1> : stride_x == 2 ? spread<2> : spread<0>;
#pragma omp for
    for (int64_t p = 0; p < planes; ++p)
      run(in + p * height * width, out + p * out_height * out_width, dout + p * out_height * out_width, din + p * height * width, open.data(), w);
  }
}
}
