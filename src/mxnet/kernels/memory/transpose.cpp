// Transposes the matrices of a batch in tiles that fit the processor's registers. The numbers are only moved, so any 4-byte type works.
#include <algorithm>

#include "runtime/vectors.h"

namespace {

struct Strides {
  int64_t batch, row;  // from matrix to matrix, and from row to row
};

constexpr int64_t kBlock = 64;  // rows and columns that are worked on together, so that each line of memory is read and written once

void square(const float* in, float* out, int64_t in_row, int64_t out_row) {
  vec rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) rows[i] = load(in + i * in_row);
  transpose_square(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store(out + i * out_row, rows[i]);
}

void block(const float* in, float* out, int64_t rows, int64_t columns, int64_t in_row, int64_t out_row) {
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (int64_t c = 0; c < whole_columns; c += kLanes)
    for (int64_t r = 0; r < whole_rows; r += kLanes) square(in + r * in_row + c, out + c * out_row + r, in_row, out_row);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r) out[c * out_row + r] = in[r * in_row + c];
}

void transpose(const float* in, float* out, int64_t batch, int64_t rows, int64_t columns, Strides from, Strides to, int threads) {
  const int64_t down = (rows + kBlock - 1) / kBlock, right = (columns + kBlock - 1) / kBlock;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < batch * down * right; ++i) {
    const int64_t b = i / (down * right), r = i / right % down * kBlock, c = i % right * kBlock;
    block(in + b * from.batch + r * from.row + c, out + b * to.batch + c * to.row + r, std::min(kBlock, rows - r),
          std::min(kBlock, columns - c), from.row, to.row);
  }
}

}  // namespace

extern "C" {

// (n, h, w) to (n, w, h)
void last_two(const float* in, float* out, int64_t n, int64_t h, int64_t w, int threads) {
  transpose(in, out, n, h, w, {h * w, w}, {h * w, h}, threads);
}

// (n, h, w) to (w, h, n)
void reversed(const float* in, float* out, int64_t n, int64_t h, int64_t w, int threads) {
  transpose(in, out, h, n, w, {w, h * w}, {n, h * n}, threads);
}

}  // extern "C"
