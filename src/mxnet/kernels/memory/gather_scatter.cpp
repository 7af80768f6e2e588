// Copies and adds whole rows of matrices, and fills the untouched rows, writing each line of memory once.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/streaming_stores.h"

namespace {

constexpr int64_t kAhead = 32;  // rows that are prefetched
constexpr int64_t kAtHand = 1 << 14;  // numbers that are still in a near cache when the next are written

// Fills each row of a result with the row of the same width at source(i). Filled rows point to a row of `value`s: a selection of pointers is cheap,
// while a branch for each row is often mispredicted.
template <typename Source>
void each_row(float* out, int64_t n, int64_t width, float value, int threads, Source source) {
  const bool streaming = is_large(n * width);
  const std::vector<float> empty(width, value);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      __builtin_prefetch(source(std::min(i + kAhead, n - 1), empty.data()));
      put(out + i * width, source(i, empty.data()), width, streaming);
    }
    store_fence(streaming);
  }
}

// Clamps an index to [0, width); NaN counts as 0, and fractions are truncated.
template <typename T>
int64_t nearest(T index, int64_t width) {
  return !(index > 0) ? 0 : index < T(width) ? std::min(int64_t(index), width - 1) : width - 1;
}

template <typename T>
void pick(const float* in, const T* index, float* out, int64_t n, int64_t width, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < n; ++i) out[i] = in[i * width + nearest(index[i], width)];
}

// Rows at `index`, clamped to the valid range.
template <typename T>
void gather(const float* in, const T* index, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  std::vector<const float*> from(count);
  for (int64_t i = 0; i < count; ++i) from[i] = in + nearest(index[i], n) * width;
  each_row(out, count, width, 0, threads, [rows = from.data()](int64_t i, const float*) { return rows[i]; });
}

// Rows of `off` with `on` at the index, if it lies in range.
template <typename T>
void mark(const T* index, float* out, int64_t n, int64_t width, float on, float off, int threads) {
  const bool streaming = is_large(n * width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> row(streaming ? width : 0, off);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = index[i] > T(-1) && index[i] < T(width) ? int64_t(index[i]) : -1;
      if (!streaming) fill(out + i * width, off, width, streaming);
      float* numbers = streaming ? row.data() : out + i * width;
      if (at >= 0) numbers[at] = on;
      if (!streaming) continue;
      put(out + i * width, numbers, width, streaming);
      if (at >= 0) numbers[at] = off;
    }
    store_fence(streaming);
  }
}

// The way back: one number in each row, zeros beside it. Some rows at a time, so that they are at hand when the numbers come.
template <typename T>
void place(const float* values, const T* index, float* out, int64_t n, int64_t width, int threads) {
  const bool streaming = is_large(n * width);
  const int64_t together = std::max<int64_t>(1, kAtHand / width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> row(streaming ? width : 0);
#pragma omp for schedule(static)
    for (int64_t first = 0; first < n; first += together) {
      const int64_t last = std::min(first + together, n);
      if (!streaming) std::memset(out + first * width, 0, size_t((last - first) * width) * sizeof(float));
      for (int64_t i = first; i < last; ++i) {
        const int64_t at = nearest(index[i], width);
        float* numbers = streaming ? row.data() : out + i * width;
        numbers[at] = values[i];
        if (!streaming) continue;
        put(out + i * width, numbers, width, streaming);  // whole lines: a partly written one would be read again
        numbers[at] = 0;
      }
    }
    store_fence(streaming);
  }
}

}  // namespace

extern "C" {

// Keeps each sequence up to its end. Rows are ordered by time and sequence, or with `first` by sequence and time.
void mask(const float* in, const int64_t* lengths, float* out, int64_t times, int64_t sequences, int64_t width, int64_t first, float value,
          int threads) {
  each_row(out, times * sequences, width, value, threads, [=](int64_t i, const float* empty) {
    const int64_t time = first ? i % times : i / sequences, sequence = first ? i / times : i % sequences;
    return time < lengths[sequence] ? in + i * width : empty;
  });
}

// The marked rows one after another, at most `count` of them; zeros behind them.
void collect(const float* in, const uint8_t* marks, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  std::vector<int64_t> held(count + 1);
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    held[found] = i;
    found += (marks[i] != 0) & (found < count);
  }
  each_row(out, count, width, 0, threads, [=, from = held.data()](int64_t i, const float* empty) {
    return i < found ? in + from[i] * width : empty;
  });
}

// The rows one after another where there is a mark, zeros elsewhere.
void spread(const float* rows, const uint8_t* marks, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  std::vector<int64_t> before(n);
  for (int64_t i = 0, next = 0; i < n; ++i) {
    before[i] = next;
    next += marks[i] != 0;
  }
  each_row(out, n, width, 0, threads, [=, from = before.data()](int64_t i, const float* empty) {
    return (marks[i] != 0) & (from[i] < count) ? rows + from[i] * width : empty;
  });
}

// A copy with the rows at `index` replaced by `others`; the last of equal indices counts. Null `old` or `others` count as zeros. Indices out of range
// are ignored.
void replace(const float* old, const int64_t* index, const float* others, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  std::vector<int64_t> held(n, -1);
  for (int64_t i = 0; i < count; ++i)
    if (uint64_t(index[i]) < uint64_t(n)) held[index[i]] = i;
  each_row(out, n, width, 0, threads, [=, from = held.data()](int64_t i, const float* empty) {
    const float* given = from[i] < 0 ? old : others;
    return given ? given + (from[i] < 0 ? i : from[i]) * width : empty;
  });
}

// The sums of rows with equal indices, zeros where there is none. Indices out of range are ignored.
void add(const float* rows, const int64_t* index, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  // Linked lists of rows with equal indices, in order, so that a large result is written sequentially.
  std::vector<int64_t> first(n, -1), next(count);
  for (int64_t i = count; i-- > 0;)
    if (uint64_t(index[i]) < uint64_t(n)) {
      next[i] = first[index[i]];
      first[index[i]] = i;
    }
  const bool streaming = is_large(n * width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> sum(width);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = first[i];
      if (at < 0) {
        fill(out + i * width, 0, width, streaming);
      } else if (next[at] < 0) {
        put(out + i * width, rows + at * width, width, streaming);
      } else {
        std::copy(rows + at * width, rows + (at + 1) * width, sum.begin());
        while ((at = next[at]) >= 0) {
          const float* row = rows + at * width;
#pragma omp simd
          for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
        }
        put(out + i * width, sum.data(), width, streaming);
      }
    }
    store_fence(streaming);
  }
}

// Sums of each row and all before it in its matrix (length, width), or all behind it. They are added up in double precision.
void sum_up(const float* in, float* out, int64_t n, int64_t length, int64_t width, int64_t backwards, int threads) {
  constexpr int64_t kColumnsAtOnce = 64;  // columns
  const int64_t pieces = (width + kColumnsAtOnce - 1) / kColumnsAtOnce, step = backwards ? -width : width;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < n * pieces; ++i) {
    const int64_t column = i % pieces * kColumnsAtOnce, at = i / pieces * length * width + (backwards ? (length - 1) * width : 0) + column;
    const int64_t count = std::min(kColumnsAtOnce, width - column);
    double sums[kColumnsAtOnce] = {};
    for (int64_t k = 0; k < length; ++k) {
      const float* row = in + at + k * step;
      float* sum = out + at + k * step;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) sum[j] = float(sums[j] += row[j]);
    }
  }
}

// One number of each row at `index`, clamped to the valid range.
#define REMEX_PICKS(name, type)                                                                                                     \
  void pick_##name(const float* in, const type* index, float* out, int64_t n, int64_t width, int threads) {                        \
    pick(in, index, out, n, width, threads);                                                                                        \
  }                                                                                                                                 \
  void place_##name(const float* values, const type* index, float* out, int64_t n, int64_t width, int threads) {                   \
    place(values, index, out, n, width, threads);                                                                                   \
  }                                                                                                                                 \
  void gather_##name(const float* in, const type* index, float* out, int64_t n, int64_t count, int64_t width, int threads) {       \
    gather(in, index, out, n, count, width, threads);                                                                               \
  }                                                                                                                                 \
  void mark_##name(const type* index, float* out, int64_t n, int64_t width, float on, float off, int threads) {                    \
    mark(index, out, n, width, on, off, threads);                                                                                   \
  }

REMEX_PICKS(float32, float)
REMEX_PICKS(int32, int32_t)
REMEX_PICKS(int64, int64_t)

}  // extern "C"
