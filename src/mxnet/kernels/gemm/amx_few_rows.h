// Products of few rows with a large weight (K, C) on tiles of bfloat16 (AMX), in one pass over the weight or its gradient.
//
// The matrix of the rows lies in the L2 cache, split into tiles. Blocks of the weight are split where they are needed, and while the block before is
// multiplied: weights packed as a whole would be written and read again, as six bytes each.
#pragma once
#include <algorithm>
#include <cstdint>

#include <omp.h>

#include "gemm/amx_gradients.h"
#include "gemm/amx_tiles.h"
#include "runtime/streaming_stores.h"

namespace {

constexpr int64_t kResults = kSide * kSide;  // of a block
constexpr int64_t kDepth = 4;                // steps along the classes that gradients of rows take at a time
constexpr int64_t kChain = 8;                // such blocks that a tile sums up before the sum is added to that of all: long chains lose digits

struct FewRowsSizes {
  int64_t n, c, k;
  int64_t panels() const { return pieces(n); }
  int64_t columns() const { return pieces(c); }
};

// A loop of `count` rounds that runs between products of tiles: some rounds at each of `calls` calls.
template <typename Round>
class Interleaved {
 public:
  Interleaved(int64_t count, int64_t calls, Round round) : count_(count), each_((count + calls - 1) / calls), round_(round) {}
  void operator()() {
    for (const int64_t end = std::min(count_, at_ + each_); at_ < end; ++at_) round_(at_);
  }
  void finish() {
    for (; at_ < count_; ++at_) round_(at_);
  }

 private:
  int64_t count_, each_, at_ = 0;
  Round round_;
};

// 32 numbers as line `r` of the tiles of one step of a left operand.
inline void pack_line(const float* from, uint32_t there, int64_t r, half* to) {
  __m512i parts[3] = {};
  if (there) split(from, there, parts);
#pragma GCC unroll 3
  for (int p = 0; p < 3; ++p) _mm512_store_si512(to + (p * 2 + r / 16) * kTile + r % 16 * kSide, parts[p]);
}

// Fetches 32 numbers into the L2 cache.
inline void fetch(const float* from) {
  __builtin_prefetch(from, 0, 2);
  __builtin_prefetch(from + kLanes, 0, 2);
}

inline __mmask16 is_nan(vec v) { return _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q); }

// Writes the sums of 32 classes, in a block (classes, rows) for each 32 rows, to the columns of out (N, K) from `column` on, with the bias added.
inline __mmask16 write_transposed(const float* sums, const float* bias, float* out, const FewRowsSizes& z, int64_t column) {
  __mmask16 odd = 0;
  for (int64_t side = 0; side < kSide && column + side < z.k; side += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, z.k - column - side);
    const vec shift = bias ? load(bias + column + side, count) : vec{};
    for (int64_t row = 0; row < z.n; row += kLanes) {
      vec lines[kLanes];
      const float* from = sums + row / kSide * kResults + side * kSide + row % kSide;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) lines[i] = load(from + i * kSide);
      transpose_square(lines);
      const int64_t rows = std::min<int64_t>(kLanes, z.n - row);
      for (int64_t r = 0; r < rows; ++r) {
        const vec v = lines[r] + shift;
        odd |= is_nan(v) & lane_mask(count);
        store(out + (row + r) * z.k + column + side, v, count);
      }
    }
  }
  return odd;
}

// The transposed results of some classes, in blocks of 32. The weight is the left operand, which is split without a transposition.
void few_rows_forward(const half* rows, const float* weight, const float* bias, float* out, const FewRowsSizes& z, Range blocks, int64_t* odd) {
  const int64_t steps = z.columns(), panels = z.panels();
  const Tiles tiles;
  Aligned left(steps * kStep), sums(panels * kResults);
  half* a = reinterpret_cast<half*>(left.data);
  __mmask16 nans = 0;
  const auto packing = [&](int64_t block) {
    const int64_t high = block < blocks.end ? std::min(kSide, z.k - block * kSide) : 0;
    const float* from = weight + block * kSide * z.c;
    half* to = a + block % 2 * steps * kStep;
    return Interleaved(high ? steps * kSide : 0, steps * panels * kCallsOfSideWork, [=, r = int64_t(0), step = int64_t(0)](int64_t) mutable {
      const float* line = from + r * z.c + step * kSide;
      pack_line(line, r < high ? those(step * kSide, z.c) : 0, r, to + step * kStep);
      fetch(line + kSide * z.c);
      if (++step == steps) step = 0, ++r;
    });
  };
  packing(blocks.begin).finish();
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    auto next = packing(block + 1);
    for (int64_t panel = 0; panel < panels; ++panel)
      kMultiply<3, decltype(next)>[z.k - block * kSide > 16][z.n - panel * kSide > 16](
          a + block % 2 * steps * kStep, rows + panel * steps * kStep, steps, sums.data + panel * kResults, kSide, false, next);
    next.finish();
    nans |= write_transposed(sums.data, bias, out, z, block * kSide);
  }
  if (nans) __atomic_store_n(odd, 1, __ATOMIC_RELAXED);
}

// totals (rows, C), zeros in blocks of 32 x 32, += the gradients (N, K) of some classes, in blocks of 128, times the weight's rows of these classes.
void few_rows_backward_data(const float* dout, const float* weight, float* totals, const FewRowsSizes& z, Range blocks) {
  const int64_t columns = z.columns(), panels = z.panels();
  const Tiles tiles;
  Aligned left(panels * kDepth * kStep / 2), right(kDepth * kStep), sums(panels * columns * kResults);
  half *a = reinterpret_cast<half*>(left.data), *b = reinterpret_cast<half*>(right.data);
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    const int64_t from = block * kDepth * kSide, count = std::min(kDepth * kSide, z.k - from), deep = pieces(count);
    for (int64_t r = 0; r < panels * kSide; ++r)
      for (int64_t s = 0; s < deep; ++s)
        pack_line(dout + r * z.k + from + s * kSide, r < z.n ? those(from + s * kSide, z.k) : 0, r % kSide, a + (r / kSide * kDepth + s) * kStep);
    const auto packing = [&](int64_t column) {
      const float* corner = weight + from * z.c + column * kSide;
      half* to = b + column % 2 * kDepth * kStep;
      return Interleaved(column < columns ? deep * kLanes : 0, deep * panels * kCallsOfSideWork, [=](int64_t i) {
        const int64_t s = i / kLanes, pair = i % kLanes;
        const float* first = corner + s * kSide * z.c;
        pack_turned_pair(first, z.c, count - s * kSide, those(column * kSide, z.c), pair, to + s * kStep);
        fetch(first + (kDepth * kSide + 2 * pair) * z.c);
        fetch(first + (kDepth * kSide + 2 * pair + 1) * z.c);
      });
    };
    packing(0).finish();
    const int64_t link = (block - blocks.begin) % kChain;
    const bool complete = link == kChain - 1 || block + 1 == blocks.end;
    for (int64_t column = 0; column < columns; ++column) {
      auto next = packing(column + 1);
      for (int64_t panel = 0; panel < panels; ++panel) {
        const int64_t place = (panel * columns + column) * kResults;
        kMultiply<3, decltype(next)>[z.n - panel * kSide > 16][z.c - column * kSide > 16](
            a + panel * kDepth * kStep, b + column % 2 * kDepth * kStep, deep, sums.data + place, kSide, link > 0, next);
        for (int64_t i = place; complete && i < place + kResults; i += kLanes) store(totals + i, load(totals + i) + load(sums.data + i));
      }
      next.finish();
    }
  }
}

// dx (N, C) = what the threads have summed up, in blocks of 32 x 32. To be called by all threads of a team; returns the NaN of this one.
__mmask16 add_up(const float* sums, int64_t threads, float* dx, const FewRowsSizes& z) {
  const int64_t columns = z.columns(), size = z.panels() * columns * kResults;
  __mmask16 nans = 0;
#pragma omp for schedule(static)
  for (int64_t r = 0; r < z.n; ++r)
    for (int64_t at = 0; at < z.c; at += kLanes) {
      const float* from = sums + (r / kSide * columns + at / kSide) * kResults + r % kSide * kSide + at % kSide;
      vec v = load(from);
      for (int64_t t = 1; t < threads; ++t) v += load(from + t * size);
      const int64_t count = std::min<int64_t>(kLanes, z.c - at);
      nans |= is_nan(v) & lane_mask(count);
      store(dx + r * z.c + at, v, count);
    }
  return nans;
}

// The gradient of some rows of the weight, in blocks of 32: dout, transposed, times the rows. A block is written while the next is computed.
void few_rows_backward_weight(const float* dout, const half* rows, float* dweight, const FewRowsSizes& z, Range blocks, bool streaming,
                              int64_t* odd) {
  const int64_t columns = z.columns(), steps = z.panels();
  StridedConvParams pixels{};
  pixels.k = z.k;
  const Tiles tiles;
  Aligned left(steps * kStep / 2), sums(2 * columns * kResults);
  half* a = reinterpret_cast<half*>(left.data);
  __mmask16 nans = 0;
  const auto writing = [&](int64_t block) {
    const int64_t high = block >= blocks.begin ? std::min(kSide, z.k - block * kSide) : 0;
    const float* from = sums.data + (block & 1) * columns * kResults;
    float* to = dweight + block * kSide * z.c;
    return Interleaved(high * z.c / kLanes, steps * columns * kCallsOfSideWork, [=, &nans, r = int64_t(0), c = int64_t(0)](int64_t i) mutable {
      const vec v = load(from + c / kSide * kResults + r * kSide + c % kSide);
      nans |= is_nan(v);
      streaming ? _mm512_stream_ps(to + i * kLanes, (__m512)v) : _mm512_storeu_ps(to + i * kLanes, (__m512)v);
      if ((c += kLanes) == z.c) c = 0, ++r;
    });
  };
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    auto before = writing(block - 1);
    pack_gradients(dout, pixels, 0, z.n, block, false, a);
    for (int64_t column = 0; column < columns; ++column)
      kMultiply<3, decltype(before)>[z.k - block * kSide > 16][z.c - column * kSide > 16](
          a, rows + column * steps * kStep, steps, sums.data + ((block & 1) * columns + column) * kResults, kSide, false, before);
    before.finish();
  }
  writing(blocks.end - 1).finish();
  store_fence(streaming);
  if (nans) __atomic_store_n(odd, 1, __ATOMIC_RELAXED);
}

}  // namespace
