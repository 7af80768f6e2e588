// Shared by the forward and the backward pass of recurrent layers: the rows of each step, tiles of products, and the partitioning of units among
// threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <omp.h>

#include "gemm/microkernels.h"
#include "runtime/vector_math.h"

namespace {

enum Mode { kLstm, kGru, kTanh, kRelu };

template <Mode M>
constexpr int kGates = M == kLstm ? 4 : M == kGru ? 3 : 1;
// Gates whose products a tile makes at once, and rows of a tile: as many as there are registers for, beside a vector of each of those gates. With
// half as many registers LSTM's four gates take two passes, since fewer rows would fetch the weights too often.
#if defined(__AVX512F__)
template <Mode M>
constexpr int kGatesPerPass = kGates<M>;
template <Mode M>
constexpr int kForwardRows = M == kLstm ? 6 : M == kGru ? 8 : 12;
constexpr int kBackwardRows = 12;
#else
template <Mode M>
constexpr int kGatesPerPass = M == kLstm ? 2 : kGates<M>;
template <Mode M>
constexpr int kForwardRows = M == kLstm ? 6 : M == kGru ? 4 : 8;
constexpr int kBackwardRows = 6;
#endif
constexpr int kMaxUnpackedRows = 3;  // rows up to which packing the weights would take longer than it helps; a projection's are always packed
constexpr int kPanelVectors = 2;     // vectors in a packed panel of the backward pass
constexpr int kUnitBlock = kPanelVectors * kLanes;  // units that a thread takes at a time
constexpr int kColumnCells = 8;                     // cells of the weights' columns at a time, where rows are few

typedef float cell __attribute__((aligned(2), may_alias));  // or two bfloat16, wherever these stand

// The lanes of a vector of units that exist: all, or the first ones of the last vector where the units are no whole number of vectors (float32 only).
struct AllLanes {
  template <typename T>
  vec get(const T* p) const { return load(p); }
  template <typename T>
  void put(T* p, vec v) const { store(p, v); }
};
struct SomeLanes {
  int64_t count;
  vec get(const float* p) const { return load(p, count); }
  void put(float* p, vec v) const { store(p, v, count); }
};

// Calls f with the lanes of a vector that has `count` numbers left.
template <typename T, typename Call>
inline __attribute__((always_inline)) void with_lanes(int64_t count, Call call) {
  if constexpr (sizeof(T) == sizeof(float))
    if (count < kLanes) return call(SomeLanes{count});
  call(AllLanes{});
}

// True where the units are no whole number of the vectors that unpacked weights are read in.
template <typename T>
inline bool is_ragged(int64_t units) { return units % (kLanes * Cells<T>::kEach) != 0; }

inline int64_t blocks_of(int64_t units, int64_t size) { return (units + size - 1) / size; }

template <typename T>
inline const cell* cells(const T* p) { return reinterpret_cast<const cell*>(p); }

// sum + left * right, lane by lane.
template <typename T>
inline vec dot(vec sum, vec left, vec right) {
#if defined(__AVX512BF16__)
  if constexpr (sizeof(T) == 2) return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)left, (__m512bh)right);
#endif
  return sum + left * right;
}

// -- rows and products --------------------------------------------------------------------------------------------------------

// The rows of each step, in the layer's order of steps.
struct Steps {
  int64_t steps, rows;
  bool reverse;
  std::vector<int64_t> starts;  // of the rows at each time

  // `total` rows in all; without `counts` there are `rows` at each time. Invalid counts are clamped, so that all rows are in range and their number
  // never grows.
  Steps(int64_t steps, int64_t rows, int64_t total, const int64_t* counts, bool reverse)
      : steps(steps), rows(rows), reverse(reverse), starts(steps + 1) {
    int64_t count = rows;
    for (int64_t t = 0; t < steps; ++t) {
      if (counts) count = std::min({count, std::max<int64_t>(counts[t], 0), total - starts[t]});
      starts[t + 1] = starts[t] + count;
    }
  }
  int64_t time(int64_t s) const { return reverse ? steps - 1 - s : s; }
  int64_t at(int64_t s, int64_t row) const { return starts[time(s)] + row; }
  int64_t count(int64_t s) const { return starts[time(s) + 1] - starts[time(s)]; }
  // Those that the step before had too: going backwards, sequences begin one after another.
  int64_t known(int64_t s) const { return s ? std::min(count(s), count(s - 1)) : 0; }
};

// sum[i][v] += row i of `left`, `depth` cells, times vector v of each cell of a packed panel. Where `next` is not null, a vector of each cell of
// the panel that comes next is fetched meanwhile.
template <typename W, int R, int V>
inline __attribute__((always_inline)) void products(vec (&sum)[R][V], const cell* const (&left)[R], int64_t depth, const float* panel,
                                                    const float* next) {
  const int64_t ahead = next ? next - panel : 0;
  for (int64_t k = 0; k < depth; ++k, panel += V * kLanes) {
    __builtin_prefetch(panel + ahead, 0, 2);
    vec right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) right[v] = load(panel + v * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const float value = left[i][k];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = Cells<W>::multiply_add(sum[i][v], value, right[v]);
    }
  }
}

// As `products`, for so few rows that reading the panel is the bottleneck: several partial sums of each, as one is bound by its latency. The hardware
// prefetcher handles such a stream; on a Zen 4 prefetch instructions made it slower.
template <typename W, int R, int V>
inline __attribute__((always_inline)) void streaming_products(vec (&sum)[R][V], const cell* const (&left)[R], int64_t depth, const float* panel) {
  constexpr int kSums = R * V >= 6 ? 1 : R * V >= 3 ? 2 : R * V == 2 ? 4 : 8;
  vec part[kSums][R][V] = {};
  int64_t k = 0;
  for (; k + kSums <= depth; k += kSums)
#pragma GCC unroll 8
    for (int n = 0; n < kSums; ++n, panel += V * kLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const vec right = load(panel + v * kLanes);
#pragma GCC unroll 3
        for (int i = 0; i < R; ++i) part[n][i][v] = Cells<W>::multiply_add(part[n][i][v], left[i][k + n], right);
      }
    }
  for (; k < depth; ++k, panel += V * kLanes)
    for (int v = 0; v < V; ++v)
      for (int i = 0; i < R; ++i) part[0][i][v] = Cells<W>::multiply_add(part[0][i][v], left[i][k], load(panel + v * kLanes));
  for (int n = 0; n < kSums; ++n)
    for (int i = 0; i < R; ++i)
      for (int v = 0; v < V; ++v) sum[i][v] += part[n][i][v];
}

// Calls f(first, count, tile) for rows in tiles of at most `most`, as equal as can be.
template <typename Call>
void tiles(int64_t rows, int64_t most, Call call) {
  const int64_t count = (rows + most - 1) / most;
  for (int64_t i = 0, row = 0; i < count; ++i) {
    const int64_t size = rows / count + (i < rows % count);
    call(row, size, i);
    row += size;
  }
}

// The part of a thread in `blocks` blocks of units.
struct Share {
  int64_t from, to;
  explicit Share(int64_t blocks) {
    const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    from = blocks * thread / threads;
    to = blocks * (thread + 1) / threads;
  }
  // The block that is the i-th in step s.
  int64_t at(int64_t i, int64_t s) const { return s % 2 ? from + to - 1 - i : i; }
};

}  // namespace
