// Products of few rows with a constant matrix, bound by reading it. So it is packed in the order in which each thread reads it, as floats or as
// bfloat16 (half the bytes, converted to floats in registers): panels of 32 columns of the result, each row by row.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include <omp.h>

#include "runtime/parameters.h"
#include "runtime/vectors.h"

namespace {

typedef uint32_t words __attribute__((vector_size(kLanes * 4)));
struct bits {  // of a bfloat16
  uint16_t value;
};

constexpr int64_t kColumns = 32;
constexpr int kVectors = kColumns / kLanes;
#if defined(__AVX512F__)
constexpr int kMaxRows = 12;          // rows at a time, as many as there are registers for
constexpr int kMaxStreamingRows = 6;  // rows up to which the hardware prefetcher is faster than prefetch instructions
#else
constexpr int kMaxRows = 3;
constexpr int kMaxStreamingRows = 3;
#endif
constexpr int kMaxPanels = kLanes == 16 ? 4 : 2;  // at once, at most
constexpr int64_t kRowsAtOnce = 12;               // rows that go through a panel, which comes from the memory, once
constexpr int64_t kPanelPieceRows = 128;          // of a panel's rows
constexpr int64_t kPrefetchBytes = 8192;          // bytes
constexpr int64_t kCacheLineBytes = 64;

// The number of panels read at once: the hardware prefetcher stops at a page's end, and several streams hide the latency of one.
constexpr int at_once(int64_t rows) { return kLanes == 16 ? (rows <= 3 ? 4 : rows <= kMaxStreamingRows ? 2 : 1) : rows == 1 ? 2 : 1; }

inline void columns(const float* panel, vec (&found)[kVectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) found[v] = load(panel + v * kLanes);
}
// Words of two columns, 16 apart: the bits of a bfloat16 are the upper ones of a float.
inline void columns(const bits* panel, vec (&found)[kVectors]) {
#pragma GCC unroll 2
  for (int v = 0; v < kVectors / 2; ++v) {
    words both;
    std::memcpy(&both, panel + v * 2 * kLanes, sizeof both);
    found[v] = (vec)(both << 16);
    found[v + kVectors / 2] = (vec)(both & 0xffff0000u);
  }
}

// Adds to R sums for each column of P panels, or of pieces of them, the products with R rows, which lie `pitch` apart; panels lie `next` numbers
// apart. With `Fetches` it prefetches from `ahead` on, in steps of so many bytes, or, where all rows are processed at once, kPrefetchBytes bytes
// later.
template <typename W, int R, int P, bool Fetches>
void few(const float* rows, int64_t pitch, int64_t depth, const W* panel, int64_t next, const char* ahead, int64_t step, float* sums) {
  if constexpr (kMaxRows >= kRowsAtOnce) depth = pitch;  // there are no pieces: one register less
  constexpr int kEach = R * P * kVectors;
  constexpr int kSums = kEach >= 8 ? 1 : kEach >= 4 ? 2 : 4;  // of each, since one would wait for itself
  vec sum[kSums][R][P][kVectors] = {};
  int64_t k = 0;
  const auto add = [&](int n) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      vec right[kVectors];
      columns(panel + p * next, right);
      if constexpr (Fetches && kMaxRows < kRowsAtOnce) {
        __builtin_prefetch(ahead), ahead += step;
      } else if constexpr (Fetches) {
#pragma GCC unroll 2
        for (int64_t line = 0; line < int64_t(kColumns * sizeof(W)); line += kCacheLineBytes)
          __builtin_prefetch(reinterpret_cast<const char*>(panel) + kPrefetchBytes + line, 0, 2);
      }
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        const float left = rows[i * pitch + k];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[n][i][p][v] += left * right[v];
      }
    }
    ++k;
    panel += kColumns;
  };
  while (k + kSums <= depth)
#pragma GCC unroll 4
    for (int n = 0; n < kSums; ++n) add(n);
  while (k < depth) add(0);
  for (int i = 0; i < R; ++i)
    for (int p = 0; p < P; ++p)
      for (int v = 0; v < kVectors; ++v) {
        float* to = sums + i * kMaxPanels * kColumns + p * kColumns + v * kLanes;
        vec total = load(to);
        for (int n = 0; n < kSums; ++n) total += sum[n][i][p][v];
        store(to, total);
      }
}

template <typename W>
using Few = void (*)(const float*, int64_t, int64_t, const W*, int64_t, const char*, int64_t, float*);

template <typename W, int... I, int... J>
Few<W> few_of(int64_t rows, bool fetches, bool several, std::integer_sequence<int, I...>, std::integer_sequence<int, J...>) {
  static constexpr Few<W> fetching[] = {few<W, I + 1, 1, true>...};
  static constexpr Few<W> plain[][2] = {{few<W, J + 1, 1, false>, few<W, J + 1, at_once(J + 1), false>}...};
  return fetches ? fetching[rows - 1] : plain[rows - 1][several];
}
template <typename W>
Few<W> few_of(int64_t rows, bool fetches, bool several) {
  return few_of<W>(rows, fetches, several, std::make_integer_sequence<int, kMaxRows>(), std::make_integer_sequence<int, kMaxStreamingRows>());
}

// out (n, width) = rows (n, depth) times the packed matrix, with a bias that may be null, and a ReLU up to the ceiling.
template <typename W>
struct Product {
  const float* rows;
  const W* panels;
  const float* bias;
  float* out;
  int64_t n, depth, width;
  float ceiling;
};

// Multiplies some of the panels. With more rows than registers, groups of rows process a piece of a panel in the L1 cache in turn, and each
// prefetches its share of the next piece.
template <typename W>
void multiply(const Product<W>& p, int64_t begin, int64_t end) {
  constexpr int64_t kRow = kColumns * sizeof(W);  // bytes
  const int64_t n = p.n, depth = p.depth, width = p.width;
  const bool fetches = n > kMaxStreamingRows;
  const int64_t piece = fetches && kMaxRows < kRowsAtOnce ? kPanelPieceRows : depth;
  for (int64_t b = begin, beside; b < end; b += beside) {
    beside = fetches || end - b < at_once(n) ? 1 : at_once(n);
    const int64_t count = std::min(beside * kColumns, width - b * kColumns);
    const W* panel = p.panels + b * depth * kColumns;
    float offset[kMaxPanels * kColumns] = {};
    if (p.bias) std::memcpy(offset, p.bias + b * kColumns, size_t(count) * sizeof(float));
    for (int64_t first = 0; first < n; first += kRowsAtOnce) {
      const int64_t together = std::min<int64_t>(kRowsAtOnce, n - first);
      alignas(64) float sums[kRowsAtOnce][kMaxPanels * kColumns];
      for (int64_t i = 0; i < together; ++i) std::memcpy(sums[i], offset, size_t(beside * kColumns) * sizeof(float));
      const int64_t groups = (together + kMaxRows - 1) / kMaxRows;
      for (int64_t k = 0; k < depth; k += piece)
        for (int64_t i = 0, group = 0; i < together; i += kMaxRows, ++group) {
          const W* from = panel + k * kColumns;
          few_of<W>(std::min<int64_t>(kMaxRows, together - i), fetches, beside > 1)(
              p.rows + (first + i) * depth + k, depth, std::min(piece, depth - k), from, depth * kColumns,
              reinterpret_cast<const char*>(from) + piece * (groups + group) * kRow / groups, kRow / groups, sums[i]);
        }
      for (int64_t i = 0; i < together; ++i) {
        for (int64_t j = 0; j < beside * kColumns; j += kLanes) store(sums[i] + j, relu(load(sums[i] + j), p.ceiling));
        std::memcpy(p.out + (first + i) * width + b * kColumns, sums[i], size_t(count) * sizeof(float));
      }
    }
  }
}

template <typename W>
void multiply(const Product<W>& p, int threads) {
  const int64_t blocks = (p.width + kColumns - 1) / kColumns;
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), all = omp_get_num_threads();
    multiply(p, blocks * thread / all, blocks * (thread + 1) / all);
  }
}

constexpr int64_t kLayers = sizeof(FusedMlpParams::widths) / sizeof(int64_t) - 1;  // of a chain, at most
constexpr int64_t kNumbers = 1 << 14;  // between two layers of a chain, at most
constexpr int64_t kShared = 1 << 18;   // multiplications for each thread, from which on a layer is shared: to begin and to end that takes 2 us

// One layer after another.
void chain(const float* rows, const float* panels, const float* bias, float* out, const FusedMlpParams& params, int threads) {
  alignas(64) float between[2][kNumbers];
  const int64_t n = params.n, *width = params.widths;
  for (int64_t i = 0; i < kLayers && width[i + 1]; ++i) {
    const int64_t depth = width[i], columns = width[i + 1], blocks = (columns + kColumns - 1) / kColumns;
    float* to = i + 1 < kLayers && width[i + 2] ? between[i % 2] : out;
    const float ceiling = params.relu_mask >> i & 1 ? __builtin_inff() : kNoRelu;
    const int64_t share = std::min<int64_t>({threads, blocks, n * depth * columns / kShared});
    const Product<float> product{rows, panels, bias, to, n, depth, columns, ceiling};
    if (share > 1)
      multiply(product, int(share));
    else
      multiply(product, 0, blocks);
    panels += blocks * kColumns * depth;
    bias += blocks * kColumns;
    rows = to;
  }
}

// The position of column j in a panel: in bfloat16 its first and its second half alternate.
template <typename W>
int64_t place(int64_t j) {
  return sizeof(W) == 4 ? j : j % 16 * 2 + j / 16;
}

template <typename W>
void pack(const W* weight, W* panels, int64_t depth, int64_t width, int threads) {
#pragma omp parallel for num_threads(threads)
  for (int64_t b = 0; b < (width + kColumns - 1) / kColumns; ++b) {
    W* panel = panels + b * depth * kColumns;
    const int64_t count = std::min(kColumns, width - b * kColumns);
    if (count < kColumns) std::memset(panel, 0, size_t(depth * kColumns) * sizeof(W));
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < count; ++j) panel[k * kColumns + place<W>(j)] = weight[(b * kColumns + j) * depth + k];
  }
}

}  // namespace

extern "C" {

void multiply_float32(const float* rows, const float* panels, const float* bias, float* out, int64_t n, int64_t depth, int64_t width, float ceiling,
                      int threads) {
  multiply<float>({rows, panels, bias, out, n, depth, width, ceiling}, threads);
}
void multiply_bfloat16(const float* rows, const bits* panels, const float* bias, float* out, int64_t n, int64_t depth, int64_t width, float ceiling,
                       int threads) {
  multiply<bits>({rows, panels, bias, out, n, depth, width, ceiling}, threads);
}
void chain_float32(const float* rows, const float* panels, const float* bias, float* out, const FusedMlpParams* params, int threads) {
  chain(rows, panels, bias, out, *params, threads);
}
void pack_float32(const float* weight, float* panels, int64_t depth, int64_t width, int threads) { pack(weight, panels, depth, width, threads); }
void pack_bfloat16(const bits* weight, bits* panels, int64_t depth, int64_t width, int threads) { pack(weight, panels, depth, width, threads); }

}  // extern "C"
