// Copies and adds whole rows of matrices, and fills those that nothing comes to, each line of memory once.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "streams.h"

namespace {

// Calls work(row, past) for all rows of a result.
template <typename Work>
void each_row(int64_t n, int64_t width, int threads, Work work) {
  const bool past = is_large(n * width);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) work(i, past);
    finish(past);
  }
}

}  // namespace

extern "C" {

// Keeps of each sequence what comes before its end. Rows lie by time and sequence, or with `first` by sequence and time.
void mask(const float* in, const int64_t* lengths, float* out, int64_t times, int64_t sequences, int64_t width, int64_t first, float value,
          int threads) {
  each_row(times * sequences, width, threads, [=](int64_t i, bool past) {
    const int64_t time = first ? i % times : i / sequences, sequence = first ? i / times : i % sequences;
    if (time < lengths[sequence])
      put(out + i * width, in + i * width, width, past);
    else
      fill(out + i * width, value, width, past);
  });
}

// The marked rows one after another, at most `count` of them; zeros behind them.
void collect(const float* in, const uint8_t* marks, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  std::vector<int64_t> held(count, -1);
  for (int64_t i = 0, next = 0; i < n && next < count; ++i)
    if (marks[i]) held[next++] = i;
  each_row(count, width, threads, [=, from = held.data()](int64_t i, bool past) {
    if (from[i] >= 0)
      put(out + i * width, in + from[i] * width, width, past);
    else
      fill(out + i * width, 0, width, past);
  });
}

// The rows one after another where there is a mark, zeros elsewhere.
void spread(const float* rows, const uint8_t* marks, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  std::vector<int64_t> held(n);
  for (int64_t i = 0, next = 0; i < n; ++i) held[i] = marks[i] && next < count ? next++ : -1;
  each_row(n, width, threads, [=, from = held.data()](int64_t i, bool past) {
    if (from[i] >= 0)
      put(out + i * width, rows + from[i] * width, width, past);
    else
      fill(out + i * width, 0, width, past);
  });
}

// A copy whose rows `index` are others, the last of those that meet; zeros if there are no others. What `index` names beyond the end is left out.
void replace(const float* old, const int64_t* index, const float* others, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  std::vector<int64_t> held(n, -1);
  for (int64_t i = 0; i < count; ++i)
    if (uint64_t(index[i]) < uint64_t(n)) held[index[i]] = i;
  each_row(n, width, threads, [=, from = held.data()](int64_t i, bool past) {
    if (from[i] < 0)
      put(out + i * width, old + i * width, width, past);
    else if (others)
      put(out + i * width, others + from[i] * width, width, past);
    else
      fill(out + i * width, 0, width, past);
  });
}

// The sums of rows that have one index, zeros where there is none. What `index` names beyond the end is left out.
void add(const float* rows, const int64_t* index, float* out, int64_t n, int64_t count, int64_t width, int threads) {
  const bool past = is_large(n * width);
  std::vector<uint8_t> comes(n);
  for (int64_t i = 0; i < count; ++i)
    if (uint64_t(index[i]) < uint64_t(n)) comes[index[i]] = 1;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < threads; ++part) {
    const int64_t begin = n * part / threads, end = n * (part + 1) / threads;
    for (int64_t i = begin, next; i < end; i = next) {
      next = i + 1;
      if (comes[i]) continue;
      while (next < end && !comes[next]) ++next;
      fill(out + i * width, 0, (next - i) * width, past);
    }
    finish(past);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = index[i];
      if (at < begin || at >= end) continue;
      const float* row = rows + i * width;
      float* sum = out + at * width;
      if (comes[at] == 1) {
        comes[at] = 2;
        put(sum, row, width, false);
      } else {
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
      }
    }
  }
}

// One number in each row, zeros beside it. What `index` names beyond the end is left out.
void place(const float* values, const int64_t* index, float* out, int64_t n, int64_t width, int threads) {
  const bool past = is_large(n * width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> row(width);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
      const bool inside = uint64_t(index[i]) < uint64_t(width);
      if (inside) row[index[i]] = values[i];
      put(out + i * width, row.data(), width, past);
      if (inside) row[index[i]] = 0;
    }
    finish(past);
  }
}

}  // extern "C"
