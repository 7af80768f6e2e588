// Systems of linear equations, many of them: of triangular matrices, whose products are here, too, and inverses. Libraries for large matrices take
// long to begin with small ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/vectors.h"

namespace {

constexpr int kRowsAtOnce = kLanes == 16 ? 6 : 4;     // rows that are solved together: as many as there are registers for
constexpr int kColumnVectors = kLanes == 16 ? 4 : 2;  // vectors of columns

// A triangular matrix as if it were lower: of an upper one rows and columns are counted from the end.
struct Triangle {
  const float* a;
  int64_t n;
  bool upper;
  int64_t row(int64_t i) const { return upper ? n - 1 - i : i; }
  float at(int64_t i, int64_t j) const { return a[row(i) * n + row(j)]; }
};

// x (n, columns) holds kVectors vectors of columns, in the triangle's order. Computes some rows of the solution in place of the columns, or of the
// product, for which they are the last rows that remain.
template <bool solves, int kVectors, int kRows>
void next_rows(const Triangle& t, float* x, int64_t first) {
  constexpr int64_t width = kVectors * kLanes;
  vec sum[kRows][kVectors], given[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      given[r][v] = load(x + (first + r) * width + v * kLanes);
      sum[r][v] = solves ? given[r][v] : vec{};
    }
  const float* rows[kRows];
  for (int r = 0; r < kRows; ++r) rows[r] = t.a + t.row(first + r) * t.n + t.row(0);
  const int64_t step = t.upper ? -1 : 1;
  for (int64_t j = 0; j < first; ++j) {
    vec known[kVectors];
    for (int v = 0; v < kVectors; ++v) known[v] = load(x + j * width + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const float factor = rows[r][j * step];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += known[v] * (solves ? -factor : factor);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 6
    for (int before = 0; before < r; ++before) {
      const float factor = t.at(first + r, first + before);
      for (int v = 0; v < kVectors; ++v) sum[r][v] += solves ? sum[before][v] * -factor : given[before][v] * factor;
    }
    const float diagonal = t.at(first + r, first + r);
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = solves ? sum[r][v] / diagonal : sum[r][v] + given[r][v] * diagonal;
      store(x + (first + r) * width + v * kLanes, sum[r][v]);
    }
  }
}

template <bool solves, int kVectors>
void columns_of(const Triangle& t, const float* b, float* out, float* x, int64_t columns, int64_t count) {
  constexpr int64_t width = kVectors * kLanes;
  for (int64_t i = 0; i < t.n; ++i) {
    std::memcpy(x + i * width, b + t.row(i) * columns, size_t(count) * sizeof(float));
    std::fill(x + i * width + count, x + (i + 1) * width, 0.0f);
  }
  const int64_t whole = t.n / kRowsAtOnce * kRowsAtOnce;
  int64_t i;
  if (solves) {
    for (i = 0; i < whole; i += kRowsAtOnce) next_rows<true, kVectors, kRowsAtOnce>(t, x, i);
    for (; i < t.n; ++i) next_rows<true, kVectors, 1>(t, x, i);
  } else {
    for (i = t.n - 1; i >= whole; --i) next_rows<false, kVectors, 1>(t, x, i);
    for (i = whole - kRowsAtOnce; i >= 0; i -= kRowsAtOnce) next_rows<false, kVectors, kRowsAtOnce>(t, x, i);
  }
  for (i = 0; i < t.n; ++i) std::memcpy(out + t.row(i) * columns, x + i * width, size_t(count) * sizeof(float));
}

// Gauss's and Jordan's elimination in place, with the largest pivot of each column; false where there is none. Rows have `stride` numbers.
bool invert_one(float* a, int64_t* order, int64_t n, int64_t stride) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(a[i * stride + k]) > std::fabs(a[best * stride + k])) best = i;
    float* pivot = a + k * stride;
    order[k] = best;
    if (best != k) std::swap_ranges(pivot, pivot + n, a + best * stride);
    if (!(std::fabs(pivot[k]) > 0) || !std::isfinite(pivot[k])) return false;
    const float inverse = 1 / pivot[k];
    pivot[k] = 1;
    for (int64_t j = 0; j < stride; j += kLanes) store(pivot + j, load(pivot + j) * inverse);
    for (int64_t i = 0; i < n; ++i) {
      if (i == k) continue;
      float* row = a + i * stride;
      const float factor = row[k];
      row[k] = 0;
      for (int64_t j = 0; j < stride; j += kLanes) store(row + j, load(row + j) - load(pivot + j) * factor);
    }
  }
  for (int64_t k = n - 1; k >= 0; --k)
    if (order[k] != k)
      for (int64_t i = 0; i < n; ++i) std::swap(a[i * stride + k], a[i * stride + order[k]]);
  return true;
}

template <bool solves>
void all_columns(const float* a, const float* b, float* x, int64_t count, int64_t n, int64_t columns, bool upper, int threads) {
  constexpr int64_t width = kColumnVectors * kLanes;
  const int64_t strips = (columns + width - 1) / width;
#pragma omp parallel num_threads(threads)
  {
    Aligned memory(n * width);
#pragma omp for
    for (int64_t i = 0; i < count * strips; ++i) {
      const Triangle t{a + i / strips * n * n, n, upper};
      const int64_t first = i % strips * width, width_left = std::min(width, columns - first), at = i / strips * n * columns + first;
      if (width_left <= kLanes)
        columns_of<solves, 1>(t, b + at, x + at, memory.data, columns, width_left);
      else
        columns_of<solves, kColumnVectors>(t, b + at, x + at, memory.data, columns, width_left);
    }
  }
}

}  // namespace

extern "C" {

// The x that solve a x = b, for matrices a (count, n, n) of which one triangle counts, and b and x (count, n, columns).
void solve(const float* a, const float* b, float* x, int64_t count, int64_t n, int64_t columns, int64_t upper, int threads) {
  all_columns<true>(a, b, x, count, n, columns, upper != 0, threads);
}

// x = a b, likewise.
void multiply(const float* a, const float* b, float* x, int64_t count, int64_t n, int64_t columns, int64_t upper, int threads) {
  all_columns<false>(a, b, x, count, n, columns, upper != 0, threads);
}

// The inverses of matrices (count, n, n); `done` is 1 for each invertible matrix.
void invert(const float* a, float* out, uint8_t* done, int64_t count, int64_t n, int threads) {
  const int64_t stride = (n + kLanes - 1) / kLanes * kLanes;
#pragma omp parallel num_threads(threads)
  {
    Aligned memory(n * stride);
    std::unique_ptr<int64_t[]> order(new int64_t[size_t(n)]);
#pragma omp for
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t r = 0; r < n; ++r) {
        std::memcpy(memory.data + r * stride, a + (i * n + r) * n, size_t(n) * sizeof(float));
        std::fill(memory.data + r * stride + n, memory.data + (r + 1) * stride, 0.0f);
      }
      done[i] = invert_one(memory.data, order.get(), n, stride);
      for (int64_t r = 0; r < n; ++r) std::memcpy(out + (i * n + r) * n, memory.data + r * stride, size_t(n) * sizeof(float));
    }
  }
}

}  // extern "C"
