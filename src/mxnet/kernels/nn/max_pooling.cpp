// Maximum pooling over the two spatial axes of contiguous planes.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <omp.h>

#include "runtime/parameters.h"
#include "runtime/vectors.h"

namespace {

// The rows of the data in the windows of output row y.
int64_t top(const MaxPoolingParams& w, int64_t y) { return std::max<int64_t>(y * w.stride_h - w.pad_h, 0); }
int64_t bottom(const MaxPoolingParams& w, int64_t y) { return std::min(y * w.stride_h - w.pad_h + w.kernel_h, w.h); }

// A NaN is larger than any number, as in torch.
inline float larger(float a, float b) { return b > a || b != b ? b : a; }

// The windows whose column number k lies in the data: for these, one after another, it is the same step in memory.
struct Columns {
  int64_t begin, end, start;
  Columns(const MaxPoolingParams& w, int64_t k) {
    begin = k < w.pad_w ? (w.pad_w - k + w.stride_w - 1) / w.stride_w : 0;
    end = std::min(w.q, w.w - 1 + w.pad_w - k < 0 ? 0 : (w.w - 1 + w.pad_w - k) / w.stride_w + 1);
    start = k - w.pad_w;
  }
};

// Returns the length of a line that contains the columns of all windows, padding included.
int64_t padded(const MaxPoolingParams& w) { return std::max(w.pad_w + w.w, (w.q - 1) * w.stride_w + w.kernel_w); }

typedef int32_t ivec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline vec larger(vec a, vec b) { return ((b > a) | (b != b)) ? b : a; }

// Of a vector, and of another that overlaps its last number.
struct EverySecond {
  static constexpr int of(int lane) { return 2 * lane + (lane >= kLanes / 2); }
};

// The first `count` of a vector of numbers that lie so far apart in memory, none behind the last of which is read.
template <int64_t stride>
vec load_strided(const float* p, int64_t count) {
  if (stride == 1) return kMasks ? load(p, count) : load(p);
  constexpr lane_numbers chosen = kLanesOf<EverySecond>;
  if (!kMasks || count == kLanes) return __builtin_shuffle(load(p), load(p + kLanes - 1), chosen);
  const int64_t last = 2 * count - 1;  // numbers up to the last
  return __builtin_shuffle(load(p, std::min<int64_t>(last, kLanes)), load(p + kLanes - 1, std::max<int64_t>(last - kLanes + 1, 0)), chosen);
}

// Lines shorter than this are not computed in vectors.
constexpr int64_t kShortest = kMasks ? 2 : kLanes;

// Calls work(begin, count) for vectors that cover all of a line, of which the last two may overlap; a line shorter than a vector is a part of one. A
// scalar remainder would be slow: the branch on the larger of two numbers is not predictable.
template <class Work>
void for_each_vector(int64_t count, const Work& work) {
  if (kMasks && count < kLanes) return work(0, count);
  for (int64_t x = 0; x < count; x += kLanes) work(std::min<int64_t>(x, count - kLanes), int64_t(kLanes));
}

inline void store_part(float* p, vec v, int64_t count) { kMasks ? store(p, v, count) : store(p, v); }

// `row` has the length of `padded`, with minus infinity in the padding. A `stride` of 0 means any.
template <int64_t stride>
void pool(const float* __restrict in, float* __restrict out, float* __restrict row, const MaxPoolingParams& w) {
  float* __restrict middle = row + w.pad_w;
  for (int64_t y = 0; y < w.p; ++y) {
    const int64_t top = ::top(w, y), bottom = ::bottom(w, y);
    if (top < bottom && w.w >= kShortest) {
      for_each_vector(w.w, [&](int64_t x, int64_t count) __attribute__((always_inline)) {
        vec best = load_strided<1>(in + top * w.w + x, count);
        for (int64_t h = top + 1; h < bottom; ++h) best = larger(best, load_strided<1>(in + h * w.w + x, count));
        store_part(middle + x, best, count);
      });
    } else {
      std::fill(middle, middle + w.w, -std::numeric_limits<float>::infinity());
      for (int64_t h = top; h < bottom; ++h)
        for (int64_t x = 0; x < w.w; ++x) middle[x] = larger(middle[x], in[h * w.w + x]);
    }
    float* __restrict result = out + y * w.q;
    if (stride && w.q >= kShortest) {
      for_each_vector(w.q, [&](int64_t x, int64_t count) __attribute__((always_inline)) {
        vec best = load_strided<stride ? stride : 1>(row + x * stride, count);
        for (int64_t k = 1; k < w.kernel_w; ++k) best = larger(best, load_strided<stride ? stride : 1>(row + x * stride + k, count));
        store_part(result + x, best, count);
      });
      continue;
    }
    for (int64_t x = 0; x < w.q; ++x) result[x] = row[x * w.stride_w];
    for (int64_t k = 1; k < w.kernel_w; ++k)
#pragma omp simd
      for (int64_t x = 0; x < w.q; ++x) result[x] = larger(result[x], row[x * w.stride_w + k]);
  }
}

// Takes another element of a window if it is larger than the current maximum: the first of equals, the last of NaNs, as in torch.
inline void keep_larger(float value, int32_t place, float& found, int32_t& found_at) {
  const bool exceeds = (value > found) | (value != value);
  found = exceeds ? value : found;
  found_at = exceeds ? place : found_at;
}

// The same as `pool`, and the place of each window's largest element. `columns` are those of the window, one after another.
template <int64_t stride>
void pool_and_mark(const float* __restrict in, float* __restrict out, uint8_t* __restrict where, int32_t* __restrict mark, const MaxPoolingParams& w,
                   const Columns* columns) {
  const int64_t first = std::min(columns[0].begin, w.q), last = std::max(columns[w.kernel_w - 1].end, first);
  const bool vectors = stride && last - first >= kShortest;  // of windows that lie inside
  for (int64_t y = 0; y < w.p; ++y) {
    float* __restrict result = out + y * w.q;
    const int64_t top = ::top(w, y), bottom = ::bottom(w, y), corner = y * w.stride_h - w.pad_h;
    std::fill(result, result + w.q, -std::numeric_limits<float>::infinity());
    for (int64_t x = 0; x < w.q; ++x) mark[x] = int32_t((top - corner) * w.kernel_w + std::max<int64_t>(w.pad_w - x * w.stride_w, 0));
    for (int64_t h = top; h < bottom; ++h)
      for (int64_t k = 0; k < w.kernel_w; ++k) {
        const Columns& c = columns[k];
        const float* __restrict line = in + h * w.w + c.start;
        const int32_t here = int32_t((h - corner) * w.kernel_w + k);
        const int64_t left = vectors ? std::min(first, c.end) : c.end;
#pragma omp simd
        for (int64_t x = c.begin; x < left; ++x) keep_larger(line[x * w.stride_w], here, result[x], mark[x]);
        if (vectors)
          for (int64_t x = std::max(last, c.begin); x < c.end; ++x) keep_larger(line[x * w.stride_w], here, result[x], mark[x]);
      }
    if (vectors)
      for_each_vector(last - first, [&](int64_t begin, int64_t count) __attribute__((always_inline)) {
        const int64_t x = first + begin;
        const float* window = in + top * w.w + x * stride - w.pad_w;
        vec found = vec{} - std::numeric_limits<float>::infinity();
        ivec place = ivec{} + int32_t((top - corner) * w.kernel_w), at = place;
        for (int64_t h = top; h < bottom; ++h, window += w.w)
          for (int64_t k = 0; k < w.kernel_w; ++k, place += 1) {
            const vec value = load_strided<stride ? stride : 1>(window + k, count);
            const auto exceeds = (value > found) | (value != value);
            found = exceeds ? value : found;
            at = exceeds ? place : at;
          }
        store_part(result + x, found, count);
        store_part(reinterpret_cast<float*>(mark + x), (vec)at, count);
      });
    std::copy(mark, mark + w.q, where + y * w.q);
  }
}

// Adds each window's gradient to its first largest value. Invalid marks are ignored.
void spread(const uint8_t* __restrict where, const float* __restrict dout, float* __restrict din, const MaxPoolingParams& w) {
  std::vector<int64_t> offsets(256, -w.h * w.w - w.pad_h * w.w - w.pad_w);
  for (int64_t k = 0; k < w.kernel_h * w.kernel_w; ++k) offsets[k] = k / w.kernel_w * w.w + k % w.kernel_w;
  for (int64_t y = 0; y < w.p; ++y) {
    const int64_t corner = (y * w.stride_h - w.pad_h) * w.w - w.pad_w;
    for (int64_t x = 0; x < w.q; ++x) {
      const int64_t i = y * w.q + x, at = corner + x * w.stride_w + offsets[where[i]];
      if (uint64_t(at) < uint64_t(w.h * w.w)) din[at] += dout[i];
    }
  }
}

}  // namespace

extern "C" {

void forward(const float* in, float* out, const MaxPoolingParams* params, int threads) {
  const MaxPoolingParams w = *params;
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> row(padded(w), -std::numeric_limits<float>::infinity());
    auto run = w.stride_w == 1 ? pool<1> : w.stride_w == 2 ? pool<2> : pool<0>;
#pragma omp for
    for (int64_t i = 0; i < w.planes; ++i) run(in + i * w.h * w.w, out + i * w.p * w.q, row.data(), w);
  }
}

void forward_marked(const float* in, float* out, uint8_t* where, const MaxPoolingParams* params, int threads) {
  const MaxPoolingParams w = *params;
  auto run = w.stride_w == 1 ? pool_and_mark<1> : w.stride_w == 2 ? pool_and_mark<2> : pool_and_mark<0>;
#pragma omp parallel num_threads(threads)
  {
    std::vector<int32_t> mark(w.q);
    std::vector<Columns> columns;
    for (int64_t k = 0; k < w.kernel_w; ++k) columns.emplace_back(w, k);
#pragma omp for
    for (int64_t i = 0; i < w.planes; ++i) run(in + i * w.h * w.w, out + i * w.p * w.q, where + i * w.p * w.q, mark.data(), w, columns.data());
  }
}

// `din` holds zeros.
void backward(const uint8_t* where, const float* dout, float* din, const MaxPoolingParams* params, int threads) {
  const MaxPoolingParams w = *params;
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < w.planes; ++i) spread(where + i * w.p * w.q, dout + i * w.p * w.q, din + i * w.h * w.w, w);
}
}
