// Maximum pooling over the two spatial axes of contiguous planes.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <omp.h>

#include "runtime/vectors.h"

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

// Returns the length of a line that contains the columns of all windows, padding included.
int64_t padded(const Window& w) { return std::max(w.pad_x + w.width, (w.out_width - 1) * w.stride_x + w.kernel_x); }

typedef int32_t places __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline vec larger(vec a, vec b) { return ((b > a) | (b != b)) ? b : a; }

// A vector of numbers that lie so far apart in memory, none behind the last of which is read.
template <int64_t stride>
vec take(const float* p) {
  if (stride == 1) return load(p);
  places chosen;
  for (int i = 0; i < kLanes / 2; ++i) {
    chosen[i] = 2 * i;
    chosen[kLanes / 2 + i] = kLanes + 1 + 2 * i;
  }
  return __builtin_shuffle(load(p), load(p + kLanes - 1), chosen);
}

// Calls work(begin) for vectors that cover all of a line, of which the last two may overlap; no line is shorter than a vector. A scalar
// remainder would be slow: the branch on the larger of two numbers is not predictable.
template <class Work>
void by_vectors(int64_t count, const Work& work) {
  for (int64_t x = 0; x < count; x += kLanes) work(std::min<int64_t>(x, count - kLanes));
}

// `row` has the length of `padded`, with minus infinity in the padding. A `stride` of 0 means any.
template <int64_t stride>
void pool(const float* __restrict in, float* __restrict out, float* __restrict row, const Window& w) {
  float* __restrict middle = row + w.pad_x;
  for (int64_t y = 0; y < w.out_height; ++y) {
    const int64_t top = w.top(y), bottom = w.bottom(y);
    if (top < bottom && w.width >= kLanes) {
      by_vectors(w.width, [&](int64_t x) {
        vec best = load(in + top * w.width + x);
        for (int64_t h = top + 1; h < bottom; ++h) best = larger(best, load(in + h * w.width + x));
        store(middle + x, best);
      });
    } else {
      std::fill(middle, middle + w.width, -std::numeric_limits<float>::infinity());
      for (int64_t h = top; h < bottom; ++h)
        for (int64_t x = 0; x < w.width; ++x) middle[x] = larger(middle[x], in[h * w.width + x]);
    }
    float* __restrict result = out + y * w.out_width;
    if (stride && w.out_width >= kLanes) {
      by_vectors(w.out_width, [&](int64_t x) {
        vec best = take<stride ? stride : 1>(row + x * stride);
        for (int64_t k = 1; k < w.kernel_x; ++k) best = larger(best, take<stride ? stride : 1>(row + x * stride + k));
        store(result + x, best);
      });
      continue;
    }
    for (int64_t x = 0; x < w.out_width; ++x) result[x] = row[x * w.stride_x];
    for (int64_t k = 1; k < w.kernel_x; ++k)
#pragma omp simd
      for (int64_t x = 0; x < w.out_width; ++x) result[x] = larger(result[x], row[x * w.stride_x + k]);
  }
}

// Takes another element of a window if it is larger than the current maximum: the first of equals, the last of NaNs, as in torch.
inline void compare(float value, int32_t place, float& found, int32_t& found_at) {
  const bool exceeds = (value > found) | (value != value);
  found = exceeds ? value : found;
  found_at = exceeds ? place : found_at;
}

// The same as `pool`, and the place of each window's largest element. `columns` are those of the window, one after another.
template <int64_t stride>
void pool_and_mark(const float* __restrict in, float* __restrict out, uint8_t* __restrict where, int32_t* __restrict mark, const Window& w,
                   const Columns* columns) {
  const int64_t first = std::min(columns[0].begin, w.out_width), last = std::max(columns[w.kernel_x - 1].end, first);
  const bool vectors = stride && last - first >= kLanes;  // of windows that lie inside
  for (int64_t y = 0; y < w.out_height; ++y) {
    float* __restrict result = out + y * w.out_width;
    const int64_t top = w.top(y), bottom = w.bottom(y), corner = y * w.stride_y - w.pad_y;
    std::fill(result, result + w.out_width, -std::numeric_limits<float>::infinity());
    for (int64_t x = 0; x < w.out_width; ++x) mark[x] = int32_t((top - corner) * w.kernel_x + std::max<int64_t>(w.pad_x - x * w.stride_x, 0));
    for (int64_t h = top; h < bottom; ++h)
      for (int64_t k = 0; k < w.kernel_x; ++k) {
        const Columns& c = columns[k];
        const float* __restrict line = in + h * w.width + c.start;
        const int32_t here = int32_t((h - corner) * w.kernel_x + k);
        const int64_t left = vectors ? std::min(first, c.end) : c.end;
#pragma omp simd
        for (int64_t x = c.begin; x < left; ++x) compare(line[x * w.stride_x], here, result[x], mark[x]);
        if (vectors)
          for (int64_t x = std::max(last, c.begin); x < c.end; ++x) compare(line[x * w.stride_x], here, result[x], mark[x]);
      }
    if (vectors)
      by_vectors(last - first, [&](int64_t begin) {
        const int64_t x = first + begin;
        const float* window = in + top * w.width + x * stride - w.pad_x;
        vec found = vec{} - std::numeric_limits<float>::infinity();
        places place = places{} + int32_t((top - corner) * w.kernel_x), at = place;
        for (int64_t h = top; h < bottom; ++h, window += w.width)
          for (int64_t k = 0; k < w.kernel_x; ++k, place += 1) {
            const vec value = take<stride ? stride : 1>(window + k);
            const auto exceeds = (value > found) | (value != value);
            found = exceeds ? value : found;
            at = exceeds ? place : at;
          }
        store(result + x, found);
        *reinterpret_cast<places*>(mark + x) = at;
      });
    std::copy(mark, mark + w.out_width, where + y * w.out_width);
  }
}

// Adds each window's gradient to its first largest value. Invalid marks are ignored.
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
    std::vector<float> row(padded(w), -std::numeric_limits<float>::infinity());
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
    std::vector<Columns> columns;
    for (int64_t k = 0; k < kernel_x; ++k) columns.emplace_back(w, k);
#pragma omp for
    for (int64_t p = 0; p < planes; ++p)
      run(in + p * height * width, out + p * out_height * out_width, where + p * out_height * out_width, mark.data(), w, columns.data());
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
