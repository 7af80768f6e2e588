// Maximum pooling over the two spatial axes of contiguous planes.
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

// The same, and for each window which of its elements was the largest: the first of equals, the last of NaNs, as torch chooses.
template <int64_t fixed_stride>
void pool_and_mark(const float* __restrict in, float* __restrict out, uint8_t* __restrict where, int32_t* __restrict mark, const Window& w) {
  const int64_t stride = fixed_stride ? fixed_stride : w.stride_x;
  for (int64_t y = 0; y < w.out_height; ++y) {
    float* __restrict result = out + y * w.out_width;
    const int64_t corner = y * w.stride_y - w.pad_y;
    std::fill(result, result + w.out_width, -std::numeric_limits<float>::infinity());
    for (int64_t x = 0; x < w.out_width; ++x)
      mark[x] = int32_t((w.top(y) - corner) * w.kernel_x + std::max<int64_t>(w.pad_x - x * stride, 0));
    for (int64_t h = w.top(y); h < w.bottom(y); ++h)
      for (int64_t k = 0; k < w.kernel_x; ++k) {
        const Columns c(w, k);
        const float* __restrict line = in + h * w.width + c.start;
        const int32_t here = int32_t((h - corner) * w.kernel_x + k);
#pragma omp simd
        for (int64_t x = c.begin; x < c.end; ++x) {
          const float value = line[x * stride], so_far = result[x];
          const int32_t chosen = mark[x];
          const bool exceeds = (value > so_far) | (value != value);
          result[x] = exceeds ? value : so_far;
          mark[x] = exceeds ? here : chosen;
        }
      }
    std::copy(mark, mark + w.out_width, where + y * w.out_width);
  }
}

// The whole gradient goes to the first largest value of each window. A mark that no forward pass makes leads nowhere.
void spread(const uint8_t* __restrict where, const float* __restrict dout, float* __restrict din, const Window& w) {
  std::vector<int64_t> offsets(256, -w.height * w.width - w.pad_y * w.width - w.pad_x);
  for (int64_t k = 0; k < w.kernel_y * w.kernel_x; ++k) offsets[k] = k / w.kernel_x * w.width + k % w.kernel_x;
  for (int64_t y = 0; y < w.out_height; ++y) {
    const int64_t corner = (y * w.stride_y - w.pad_y) * w.width - w.pad_x;
    for (int64_t x = 0; x < w.out_width; ++x) {
      const int64_t i = y * w.out_width + x, at = corner + x * w.stride_x + offsets[where[i]];
      if (uint64_t(at) < uint64_t(w.height * w.width)) din[at] += dout[i];
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

void forward_marked(const float* in, float* out, uint8_t* where, int64_t planes, int64_t height, int64_t width, int64_t out_height,
                    int64_t out_width, int64_t kernel_y, int64_t kernel_x, int64_t stride_y, int64_t stride_x, int64_t pad_y, int64_t pad_x,
                    int threads) {
  const Window w{height, width, out_height, out_width, kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x};
  auto run = stride_x == 1 ? pool_and_mark<1> : stride_x == 2 ? pool_and_mark<2> : pool_and_mark<0>;
#pragma omp parallel num_threads(threads)
  {
    std::vector<int32_t> mark(out_width);
#pragma omp for
    for (int64_t p = 0; p < planes; ++p)
      run(in + p * height * width, out + p * out_height * out_width, where + p * out_height * out_width, mark.data(), w);
  }
}

// `din` holds zeros.
void backward(const uint8_t* where, const float* dout, float* din, int64_t planes, int64_t height, int64_t width, int64_t out_height,
              int64_t out_width, int64_t kernel_y, int64_t kernel_x, int64_t stride_y, int64_t stride_x, int64_t pad_y, int64_t pad_x, int threads) {
  const Window w{height, width, out_height, out_width, kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x};
#pragma omp parallel for num_threads(threads)
  for (int64_t p = 0; p < planes; ++p)
    spread(where + p * out_height * out_width, dout + p * out_height * out_width, din + p * height * width, w);
}
}
