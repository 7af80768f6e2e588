// Products of a matrix with few numbers in each row (CSR) and of its transpose with a dense one: whole rows, scaled and added up.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/streaming_stores.h"

namespace {

struct Entry {  // a number of the sparse matrix, and which row of the dense one it scales
  int64_t row;
  float value;
};

// out = the sum of the rows that the entries name, scaled; `sum` is memory for a row, so that the result itself is written once.
void combine(const float* dense, const Entry* entries, int64_t count, float* sum, float* out, int64_t width, bool streaming) {
  if (!count) return fill(out, 0, width, streaming);
  for (int64_t e = 0; e < count; ++e) {
    const float* __restrict row = dense + entries[e].row * width;
    const float value = entries[e].value;
    float* __restrict to = sum;
    if (e == 0) {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) to[j] = value * row[j];
    } else {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) to[j] += value * row[j];
    }
  }
  put(out, sum, width, streaming);
}

// Calls each(row, column, value) for the stored elements; those out of range are skipped.
template <typename Each>
void stored(const int64_t* starts, const int64_t* columns, const float* values, int64_t rows, int64_t width, int64_t count, Each each) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = std::max<int64_t>(starts[i], 0), end = std::min(starts[i + 1], count); k < end; ++k)
      if (uint64_t(columns[k]) < uint64_t(width)) each(i, columns[k], values[k]);
}

// The results' rows from entries in the order of `begins`.
void combine_all(const float* dense, const std::vector<Entry>& entries, const std::vector<int64_t>& begins, float* out, int64_t rows, int64_t width,
                 int threads) {
  const bool streaming = is_large(rows * width);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> sum(width);
#pragma omp for schedule(dynamic, 16)
    for (int64_t i = 0; i < rows; ++i)
      combine(dense, entries.data() + begins[i], begins[i + 1] - begins[i], sum.data(), out + i * width, width, streaming);
    store_fence(streaming);
  }
}

}  // namespace

extern "C" {

// out (m, w) = matrix (m, n) x dense (n, w).
void product(const int64_t* starts, const int64_t* columns, const float* values, const float* dense, float* out, int64_t m, int64_t n, int64_t w,
             int64_t count, int threads) {
  std::vector<int64_t> begins(m + 1);
  std::vector<Entry> entries;
  entries.reserve(count);
  int64_t row = 0;
  stored(starts, columns, values, m, n, count, [&](int64_t i, int64_t column, float value) {
    while (row < i) begins[++row] = entries.size();
    entries.push_back({column, value});
  });
  while (row < m) begins[++row] = entries.size();
  combine_all(dense, entries, begins, out, m, w, threads);
}

// out (n, w) = matrix (m, n) transposed x dense (m, w).
void transposed_product(const int64_t* starts, const int64_t* columns, const float* values, const float* dense, float* out, int64_t m, int64_t n,
                        int64_t w, int64_t count, int threads) {
  std::vector<int64_t> begins(n + 1);
  stored(starts, columns, values, m, n, count, [&](int64_t, int64_t column, float) { ++begins[column + 1]; });
  for (int64_t c = 0; c < n; ++c) begins[c + 1] += begins[c];
  std::vector<Entry> entries(begins[n]);
  std::vector<int64_t> at(begins.begin(), begins.end() - 1);
  stored(starts, columns, values, m, n, count, [&](int64_t i, int64_t column, float value) { entries[at[column]++] = {i, value}; });
  combine_all(dense, entries, begins, out, n, w, threads);
}

}  // extern "C"
