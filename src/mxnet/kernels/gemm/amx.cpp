// Float32 convolutions on bfloat16 tiles (AMX), whose multiplication rate is sixteen times that of floats.
//
// A float is the sum of three numbers of bfloat16: its first eight bits, the next eight and the last eight, without a rounding. Of the nine products
// of two such sums the six largest are added, in single precision; the others are below 2^-23 of the product, as the rounding of each sum is.
// Results are closer to those of double precision than those of the direct kernel, since a tile adds up in shorter chains. Infinite numbers give NaN;
// below 2^-110 the last parts are not normal, and count as zero.
//
// A convolution is a product of matrices: rows are outputs, whose inputs are split while they are copied into tiles, tap by tap; the weights lie in
// tiles already. Arrays: x (N, H, W, C), weights (K, R, S, C), y (N, P, Q, K), channels last in memory.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <omp.h>

#if defined(__AMX_BF16__) && defined(__AVX512BW__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/parameters.h"
#include "runtime/vectors.h"

namespace {

typedef uint16_t half;  // the bits of a bfloat16

template <typename T>
constexpr int kParts = sizeof(T) == sizeof(float) ? 3 : 1;

constexpr int64_t kSide = 32;               // rows, columns and depth of a product in registers: two tiles each
constexpr int64_t kTile = 512;              // numbers of a tile: 16 lines of 32
constexpr int64_t kStep = 6 * kTile;        // of 32 lines of 32 numbers: three parts, two tiles each
constexpr int64_t kBlock = kSide * kSide;   // results
constexpr int64_t kCut = 4;                 // steps along the depth whose inputs the L1 cache holds
constexpr int64_t kResultBytes = 768 << 10;  // bytes of results that the L2 cache holds until their sums are complete
constexpr int64_t kLong = 16;               // steps along the outputs whose products are added to the gradient of the weights together
constexpr int64_t kFewWeights = 1 << 18;    // whose gradients each thread sums up for itself
constexpr int64_t kGradients = 1 << 20;     // bytes of transposed output gradients that stay in the L2 cache
constexpr int64_t kFewestBlocks = 8;        // blocks of rows that go through the weights together, at least, if there are so many; and at most
constexpr int64_t kMostBlocks = 16;
constexpr int64_t kFewFetch = 8;            // blocks that fetch the weights of the next panel: more of them hide that they come late
constexpr int64_t kFewBlocks = 4;           // for each thread: fewer rows are not shared, but the columns

constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA of Linux

struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The tiles of this thread, as long as it is in a block.
struct Tiles {
  Tiles() {
    const TileConfig config;
    __asm__ volatile("" : : "r"(&config) : "memory");  // the intrinsic declares the first eight bytes only
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
};

// The next eight bits of 16 numbers, which go.
inline __m512i part(__m512& x) {
  const __m512i bits = _mm512_castps_si512(x);
  x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(int(0xffff0000)))));
  return bits;
}

// The three parts of 32 numbers, of which only those are read that are there; the others are zeros.
inline void split(const float* from, uint32_t there, __m512i (&parts)[3]) {
  alignas(64) static const half upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                             33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  __m512 low = _mm512_maskz_loadu_ps(__mmask16(there), from), high = _mm512_maskz_loadu_ps(__mmask16(there >> 16), from + 16);
#pragma GCC unroll 3
  for (int p = 0; p < 3; ++p) {
    const __m512i first = part(low), second = part(high);
    parts[p] = _mm512_permutex2var_epi16(first, _mm512_load_si512(upper), second);
  }
}

constexpr int64_t pieces(int64_t count) { return (count + kSide - 1) / kSide; }
// Of 32 numbers from `first` on, those below `count`, as bits.
constexpr uint32_t those(int64_t first, int64_t count) { return count - first >= kSide ? ~0u : (1u << (count - first)) - 1; }

// The inputs of the outputs.
class Inputs {
 public:
  Inputs(const float* x, const StridedConvParams& z) : x_(x), z_(z), across_(pieces(z.c)) {}

  // Splits the inputs of `rows` outputs from `row` on, in the steps from `begin` to `end`, into tiles of 16 outputs each; missing outputs read zeros.
  void tiles(int64_t row, int64_t rows, int64_t begin, int64_t end, half* to) const {
    int64_t j = row % z_.q, i = row / z_.q % z_.p, image = row / z_.q / z_.p;
    for (int64_t r = 0; r < (rows > 16 ? kSide : 16); ++r) {
      half* line = to + r / 16 * kTile + r % 16 * kSide;
      for (int64_t step = begin; step < end;) {
        const int64_t tap = step / across_, last = std::min(end, (tap + 1) * across_);
        const int64_t h = i * z_.stride_h - z_.pad_h + tap / z_.s * z_.dilate_h, w = j * z_.stride_w - z_.pad_w + tap % z_.s * z_.dilate_w;
        const bool inside = r < rows && h >= 0 && h < z_.h && w >= 0 && w < z_.w;
        const float* from = x_ + ((image * z_.h + h) * z_.w + w) * z_.c;
        for (int64_t c = step % across_ * kSide; step < last; ++step, c += kSide) {
          half* place = line + (step - begin) * kStep;
          __m512i parts[3] = {};
          if (inside) split(from + c, those(c, z_.c), parts);
#pragma GCC unroll 3
          for (int p = 0; p < 3; ++p) _mm512_store_si512(place + p * 2 * kTile, parts[p]);
        }
      }
      if (++j == z_.q) {
        j = 0;
        if (++i == z_.p) i = 0, ++image;
      }
    }
  }

 private:
  const float* x_;
  const StridedConvParams& z_;
  int64_t across_;  // steps of a tap
};

// sums (+)= a times b over some steps, the smallest products first. Lines of sums are `pitch` numbers apart; where there are only 16 of them, or of
// columns, the other tiles are left alone. Meanwhile `lines` lines of the caches are fetched from `next` on for each step.
template <int kParts, bool kRows, bool kColumns>
void multiply(const half* a, const half* b, int64_t steps, float* sums, int64_t pitch, bool add, const half* next, int64_t lines) {
  const int64_t line = pitch * 4;
// The compiler has tiles as assembly only, and takes their numbers from the text.
#define REMEX_SUMS(move)                                                    \
  {                                                                         \
    move(0, sums, line);                                                    \
    if constexpr (kColumns) move(1, sums + 16, line);                       \
    if constexpr (kRows) move(2, sums + 16 * pitch, line);                  \
    if constexpr (kRows && kColumns) move(3, sums + 16 * pitch + 16, line); \
  }
#define REMEX_LEFT(part)                                                 \
  {                                                                      \
    _tile_loadd(4, a + part * 2 * kTile, 64);                            \
    if constexpr (kRows) _tile_loadd(5, a + (part * 2 + 1) * kTile, 64); \
  }
#define REMEX_RIGHT(part)                                                   \
  {                                                                         \
    _tile_loadd(6, b + part * 2 * kTile, 64);                               \
    if constexpr (kColumns) _tile_loadd(7, b + (part * 2 + 1) * kTile, 64); \
  }
#define REMEX_PRODUCTS()                                      \
  {                                                           \
    _tile_dpbf16ps(0, 4, 6);                                  \
    if constexpr (kColumns) _tile_dpbf16ps(1, 4, 7);          \
    if constexpr (kRows) _tile_dpbf16ps(2, 5, 6);             \
    if constexpr (kRows && kColumns) _tile_dpbf16ps(3, 5, 7); \
  }
  if (add) {
    REMEX_SUMS(_tile_loadd)
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step, a += 2 * kParts * kTile, b += 2 * kParts * kTile) {
    for (int64_t i = 0; i < lines; ++i, next += kSide) __builtin_prefetch(next, 0, 2);
    if constexpr (kParts == 3) {
      REMEX_LEFT(2) REMEX_RIGHT(0) REMEX_PRODUCTS()
      REMEX_LEFT(1) REMEX_PRODUCTS()
      REMEX_RIGHT(1) REMEX_PRODUCTS()
      REMEX_LEFT(0) REMEX_PRODUCTS()
      REMEX_RIGHT(2) REMEX_PRODUCTS()
      REMEX_RIGHT(0) REMEX_PRODUCTS()
    } else {
      REMEX_LEFT(0) REMEX_RIGHT(0) REMEX_PRODUCTS()
    }
  }
  REMEX_SUMS(_tile_stored)
#undef REMEX_SUMS
#undef REMEX_LEFT
#undef REMEX_RIGHT
#undef REMEX_PRODUCTS
}

using Multiply = void (*)(const half*, const half*, int64_t, float*, int64_t, bool, const half*, int64_t);
template <int kParts>
constexpr Multiply kMultiply[2][2] = {{multiply<kParts, false, false>, multiply<kParts, false, true>},
                                      {multiply<kParts, true, false>, multiply<kParts, true, true>}};

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
  Range part(int64_t number, int64_t parts) const { return {begin + size() * number / parts, begin + size() * (number + 1) / parts}; }
};

struct Epilogue {
  const float *bias, *residual;
  float* y;
  float ceiling;
  int64_t* odd;  // set where a result is no number; may be null
};

// The epilogue of the sums: `rows` outputs from `row` on, the filters from `column` on.
void finish(const float* sums, int64_t row, int64_t rows, int64_t column, const StridedConvParams& z, const Epilogue& epilogue) {
  const int64_t filters = std::min(kSide, z.k - column);
  __mmask16 odd = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t f = 0; f < filters; f += kLanes) {
      const __mmask16 there = __mmask16(those(f, filters));
      vec v = load(sums + r * kSide + f);
      if (epilogue.bias) v += (vec)_mm512_maskz_loadu_ps(there, epilogue.bias + column + f);
      if (epilogue.residual) v += (vec)_mm512_maskz_loadu_ps(there, epilogue.residual + (row + r) * z.k + column + f);
      odd |= _mm512_mask_cmp_ps_mask(there, (__m512)v, (__m512)v, _CMP_UNORD_Q);
      _mm512_mask_storeu_ps(epilogue.y + (row + r) * z.total + z.first + column + f, there, (__m512)relu(v, epilogue.ceiling));
    }
  if (odd && epilogue.odd) __atomic_store_n(epilogue.odd, 1, __ATOMIC_RELAXED);
}

// Some rows, in blocks of 32, through some columns, in panels of 32: as many blocks together as leave their sums room.
void multiply_blocks(const Inputs& inputs, const half* packed, Range blocks_of_rows, Range panels, const StridedConvParams& z,
                     const Epilogue& epilogue) {
  const int64_t rows = z.n * z.p * z.q, steps = z.r * z.s * pieces(z.c), first = panels.begin, last = panels.end;
  const int64_t together = std::clamp<int64_t>(kResultBytes / (panels.size() * kBlock * 4), 1, std::min(kMostBlocks, blocks_of_rows.size()));
  const bool complete = steps <= kCut;  // sums are complete at once
  const Tiles tiles;
  Aligned left(together * kCut * kStep / 2), sums(complete ? kBlock : panels.size() * together * kBlock);
  half* a = reinterpret_cast<half*>(left.data);
  for (int64_t from = blocks_of_rows.begin; from < blocks_of_rows.end; from += together) {
    const int64_t blocks = std::min(together, blocks_of_rows.end - from);
    const bool fetches = blocks <= kFewFetch;
    for (int64_t step = 0; step < steps; step += kCut) {
      const int64_t deep = std::min(kCut, steps - step);
      for (int64_t b = 0; b < blocks; ++b)
        inputs.tiles((from + b) * kSide, std::min(kSide, rows - (from + b) * kSide), step, step + deep, a + b * kCut * kStep);
      for (int64_t panel = first; panel < last; ++panel)
        for (int64_t b = 0; b < blocks; ++b) {
          float* to = sums.data + (complete ? 0 : ((panel - first) * together + b) * kBlock);
          const int64_t row = (from + b) * kSide, high = std::min(kSide, rows - row);
          const half* next = panel + 1 < last ? packed + ((panel + 1) * steps + step) * kStep : packed + (first * steps + step + deep) * kStep;
          const int64_t lines = fetches && (panel + 1 < last || step + deep < steps) ? kStep / kSide / blocks : 0;
          kMultiply<3>[high > 16][z.k - panel * kSide > 16](a + b * kCut * kStep, packed + (panel * steps + step) * kStep, deep, to, kSide, step > 0,
                                                            next + b * deep * lines * kSide, lines);
          if (step + deep == steps) finish(to, row, high, panel * kSide, z, epilogue);
        }
    }
  }
}

// A thread's rows and columns: so many columns at a time that several blocks of rows read the weights together, once for all of them.
void multiply_share(const Inputs& inputs, const half* packed, Range blocks, Range panels, const StridedConvParams& z, const Epilogue& epilogue) {
  if (blocks.size() <= 0 || panels.size() <= 0) return;
  const int64_t most = std::max<int64_t>(kResultBytes / (std::min(kFewestBlocks, blocks.size()) * kBlock * 4), 1);
  const int64_t groups = (panels.size() + most - 1) / most;
  for (int64_t g = 0; g < groups; ++g) multiply_blocks(inputs, packed, blocks, panels.part(g, groups), z, epilogue);
}

// The tiles of one step and panel, of the filters and inputs that are there. Filters lie `apart` numbers from each other.
void pack(const float* weight, int64_t apart, int64_t filters, uint32_t there, half* to) {
  for (int side = 0; side < 2; ++side) {
    vec lines[3][kLanes];
    for (int f = 0; f < kLanes; ++f) {
      __m512i parts[3] = {};
      if (side * kLanes + f < filters) split(weight + (side * kLanes + f) * apart, there, parts);
      for (int p = 0; p < 3; ++p) lines[p][f] = (vec)_mm512_castsi512_ps(parts[p]);
    }
    for (int p = 0; p < 3; ++p) {  // pairs along the depth of 16 filters
      transpose_square(lines[p]);
      for (int i = 0; i < kLanes; ++i) store(reinterpret_cast<float*>(to + (p * 2 + side) * kTile + i * kSide), lines[p][i]);
    }
  }
}

// The bits of two numbers of bfloat16 that are neighbours along the depth, 16 times.
inline __m512i pair(__m512i first, __m512i second) {
  return _mm512_or_si512(_mm512_srli_epi32(first, 16), _mm512_and_si512(second, _mm512_set1_epi32(int(0xffff0000))));
}

// Two rows of up to 32 numbers, null for zeros, as a line of each of the right operand's tiles; or of the left one's, before its transposition.
template <typename Store>
inline void pairs(const float* first, const float* second, uint32_t there, Store to) {
  for (int side = 0; side < 2; ++side) {
    const __mmask16 mask = __mmask16(there >> 16 * side);
    __m512 x = first ? _mm512_maskz_loadu_ps(mask, first + 16 * side) : _mm512_setzero_ps();
    __m512 y = second ? _mm512_maskz_loadu_ps(mask, second + 16 * side) : _mm512_setzero_ps();
    for (int p = 0; p < 3; ++p) {
      const __m512i low = part(x), high = part(y);
      to(p * 2 + side, pair(low, high));
    }
  }
}
template <typename Store>
inline void pairs(const half* first, const half* second, uint32_t there, Store to) {
  alignas(64) static const half turns[2][32] = {{0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
                                                {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                                 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
  const __m512i x = first ? _mm512_maskz_loadu_epi16(there, first) : __m512i{}, y = second ? _mm512_maskz_loadu_epi16(there, second) : __m512i{};
  for (int side = 0; side < 2; ++side) to(side, _mm512_permutex2var_epi16(x, _mm512_load_si512(turns[side]), y));
}

// The tiles of one step and panel of weights that gradients go back through: depth and columns have changed places. Rows lie `apart` numbers.
void pack_turned(const float* weight, int64_t apart, int64_t rows, uint32_t there, half* to) {
  for (int i = 0; i < 16; ++i) {
    auto row = [=](int64_t r) { return r < rows ? weight + r * apart : nullptr; };
    pairs(row(2 * i), row(2 * i + 1), there, [=](int tile, __m512i line) { _mm512_storeu_si512(to + tile * kTile + i * kSide, line); });
  }
}

// Prefetches the numbers behind 32 numbers of two rows, for the next panel; for a first panel, rows that are further away.
constexpr int64_t kAhead = 16;  // rows
template <typename T>
inline void ahead(const T* first, const T* second, int64_t further) {
  constexpr int64_t line = 64 / sizeof(T);
  for (const T* row : {first, second})
    for (int64_t i = 0; row && i < kSide; i += line) {
      __builtin_prefetch(row + kSide + i, 0, 2);
      if (further) __builtin_prefetch(row + further + i, 0, 2);
    }
}

// The transposed gradients of up to kLong * kSide outputs, from m on, for the filters of one panel, in tiles. With `first` they are the first panel.
template <typename T>
void pack_gradients(const T* dy, const StridedConvParams& z, int64_t m, int64_t count, int64_t k, bool first_panel, half* to) {
  constexpr int kParallelTiles = 2 * kParts<T>;
  for (int64_t step = 0; step < pieces(count); ++step, to += kParallelTiles * kTile) {
    vec lines[kParallelTiles][kLanes];
    for (int64_t i = 0; i < 16; ++i) {
      auto row = [=](int64_t r) { return r < count ? dy + (m + r) * z.k + k * kSide : nullptr; };
      const T *first = row(step * kSide + 2 * i), *second = row(step * kSide + 2 * i + 1);
      ahead(first, second, first_panel ? kAhead * z.k : 0);
      pairs(first, second, those(k * kSide, z.k), [&](int tile, __m512i line) { lines[tile][i] = (vec)_mm512_castsi512_ps(line); });
    }
    for (int tile = 0; tile < kParallelTiles; ++tile) {
      transpose_square(lines[tile]);
      for (int i = 0; i < kLanes; ++i) store(reinterpret_cast<float*>(to + tile * kTile + i * kSide), lines[tile][i]);
    }
  }
}

// The inputs of these outputs through one tap; null in the padding, and behind the last.
template <typename T>
void find_inputs(const T* x, const StridedConvParams& z, int64_t m, int64_t count, int64_t tap, const T** from) {
  int64_t j = m % z.q, i = m / z.q % z.p, image = m / z.q / z.p;
  for (int64_t r = 0; r < pieces(count) * kSide; ++r) {
    const int64_t h = i * z.stride_h - z.pad_h + tap / z.s * z.dilate_h, w = j * z.stride_w - z.pad_w + tap % z.s * z.dilate_w;
    const bool inside = r < count && h >= 0 && h < z.h && w >= 0 && w < z.w;
    from[r] = inside ? x + ((image * z.h + h) * z.w + w) * z.c : nullptr;
    if (++j == z.q) {
      j = 0;
      if (++i == z.p) i = 0, ++image;
    }
  }
}

// The weight gradient is a product over all outputs, of their transposed gradients with their inputs. This is the part of some outputs, filters and
// channels, in panels of 32, accumulated in the result.
template <typename T>
void gradients(const T* dy, const T* x, float* dweight, const StridedConvParams& z, Range outputs, Range filters, Range channels) {
  constexpr int64_t step_size = 2 * kParts<T> * kTile;
  const int64_t taps = z.r * z.s;
  const Tiles tiles;
  Aligned left_memory(filters.size() * kLong * step_size / 2), right_memory(kLong * step_size / 2);
  half *left = reinterpret_cast<half*>(left_memory.data), *right = reinterpret_cast<half*>(right_memory.data);
  const T* from[kLong * kSide];
  for (int64_t m = outputs.begin; m < outputs.end; m += kLong * kSide) {
    const int64_t count = std::min(kLong * kSide, outputs.end - m), deep = pieces(count);
    for (int64_t k = filters.begin; k < filters.end; ++k)
      pack_gradients(dy, z, m, count, k, k == filters.begin, left + (k - filters.begin) * kLong * step_size);
    for (int64_t tap = 0; tap < taps; ++tap) {
      find_inputs(x, z, m, count, tap, from);
      for (int64_t c = channels.begin; c < channels.end; ++c) {
        for (int64_t r = 0; r < deep * kSide; r += 2) {
          auto row = [&](int64_t at) { return from[at] ? from[at] + c * kSide : nullptr; };
          const T *first = row(r), *second = row(r + 1);
          half* to = right + r / kSide * step_size + r % kSide / 2 * kSide;
          ahead(first, second, c == channels.begin ? kAhead * z.c : 0);
          pairs(first, second, those(c * kSide, z.c), [=](int tile, __m512i line) { _mm512_store_si512(to + tile * kTile, line); });
        }
        for (int64_t k = filters.begin; k < filters.end; ++k)
          kMultiply<kParts<T>>[z.k - k * kSide > 16][z.c - c * kSide > 16](left + (k - filters.begin)* kLong* step_size, right, deep,
                                                                           dweight + (k* kSide* taps + tap)* z.c + c* kSide, taps* z.c,
                                                                           m > outputs.begin, nullptr, 0);
      }
    }
  }
}

// All filters and channels of some panels: so many filters at a time as leave their gradients room.
template <typename T>
void in_groups(const T* dy, const T* x, float* dweight, const StridedConvParams& z, Range outputs, Range filters, Range channels) {
  constexpr int64_t most = kGradients / (kLong * 2 * kParts<T> * kTile * 2);
  const int64_t groups = (filters.size() + most - 1) / most;
  for (int64_t g = 0; g < groups && channels.size() > 0; ++g) gradients(dy, x, dweight, z, outputs, filters.part(g, groups), channels);
}

// Threads share the outputs, with sums of their own, where weights are few; else the filters, or the channels where filters are too few.
template <typename T>
void backward_weight(const T* dy, const T* x, float* dweight, const StridedConvParams& z, int threads) {
  const int64_t outputs = z.n * z.p * z.q, weights = z.k * z.r * z.s * z.c;
  const Range filters{0, pieces(z.k)}, channels{0, pieces(z.c)};
  const bool along = weights <= kFewWeights && outputs >= threads * kLong * kSide;
  Aligned sums(along ? weights * (threads - 1) : 0);
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    if (along) {
      const Range blocks = Range{0, pieces(outputs)}.part(thread, team);
      in_groups(dy, x, thread ? sums.data + (thread - 1) * weights : dweight, z, {blocks.begin * kSide, std::min(blocks.end * kSide, outputs)},
                filters, channels);
#pragma omp barrier
#pragma omp for schedule(static)
      for (int64_t i = 0; i < weights; i += kLanes)
        for (int64_t other = 0; other < team - 1; ++other) store(dweight + i, load(dweight + i) + load(sums.data + other * weights + i));
    } else if (filters.size() >= team) {
      in_groups(dy, x, dweight, z, {0, outputs}, filters.part(thread, team), channels);
    } else {
      in_groups(dy, x, dweight, z, {0, outputs}, filters, channels.part(thread, team));
    }
  }
}

void forward(const float* x, const float* packed, const Epilogue& epilogue, const StridedConvParams& z, int threads) {
  const Inputs inputs(x, z);
  const half* weights = reinterpret_cast<const half*>(packed);
  const Range blocks{0, pieces(z.n * z.p * z.q)}, panels{0, pieces(z.k)};
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    if (blocks.size() >= kFewBlocks * team)
      multiply_share(inputs, weights, blocks.part(thread, team), panels, z, epilogue);
    else
      multiply_share(inputs, weights, blocks, panels.part(thread, team), z, epilogue);
  }
}

// A matrix product as a convolution: each row is a pixel of one line.
StridedConvParams as_pixels(int64_t n, int64_t c, int64_t k) {
  StridedConvParams z{};
  z.n = z.h = z.p = z.r = z.s = z.stride_h = z.stride_w = z.dilate_h = z.dilate_w = 1;
  z.w = z.q = n, z.c = c, z.k = z.total = k;
  return z;
}

}  // namespace

extern "C" {

// Requests permission for tiles from the operating system, which is needed once; returns 1 if granted.
int64_t allow() { return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0; }

// Weights (K, taps, C) in tiles; filters and channels that are not there are zeros.
void pack_float32(const float* weight, float* packed, int64_t filters, int64_t taps, int64_t channels, int threads) {
  const int64_t across = pieces(channels), steps = taps * across;
  half* to = reinterpret_cast<half*>(packed);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < pieces(filters) * steps; ++i) {
    const int64_t column = i / steps * kSide, tap = i % steps / across, c = i % across * kSide;
    pack(weight + (column * taps + tap) * channels + c, taps * channels, std::min(kSide, filters - column), those(c, channels), to + i * kStep);
  }
}

// The same weights for the convolution back to their C channels, with the taps in the opposite order.
void pack_turned_float32(const float* weight, float* packed, int64_t filters, int64_t taps, int64_t channels, int threads) {
  const int64_t across = pieces(filters), steps = taps * across;
  half* to = reinterpret_cast<half*>(packed);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < pieces(channels) * steps; ++i) {
    const int64_t c = i / steps * kSide, tap = taps - 1 - i % steps / across, k = i % across * kSide;
    pack_turned(weight + (k * taps + tap) * channels + c, taps * channels, filters - k, those(c, channels), to + i * kStep);
  }
}

// y are K of the `total` channels of an array, from `first` on.
void forward_float32(const float* x, const float* packed, const float* bias, const float* residual, float* y, const StridedConvParams* params,
                     float ceiling, int threads) {
  forward(x, packed, {bias, residual, y, ceiling, nullptr}, *params, threads);
}

// C and K are multiples of 16.
void backward_weight_float32(const float* dy, const float* x, float* dweight, const StridedConvParams* params, int threads) {
  backward_weight(dy, x, dweight, *params, threads);
}

// The same of numbers of bfloat16, which are one part each.
void backward_weight_bfloat16(const half* dy, const half* x, float* dweight, const StridedConvParams* params, int threads) {
  backward_weight(dy, x, dweight, *params, threads);
}

// out (N, K) = rows (N, C) times the weight (K, C), transposed where it is (C, K). `odd` is set where a result is NaN, as for infinite inputs.
void product_float32(const float* rows, const float* weight, const float* bias, float* out, float* packed, int64_t* odd, int64_t n, int64_t c,
                     int64_t k, int64_t turned, int threads) {
  turned ? pack_turned_float32(weight, packed, c, 1, k, threads) : pack_float32(weight, packed, k, 1, c, threads);
  forward(rows, packed, {bias, nullptr, out, kNoRelu, odd}, as_pixels(n, c, k), threads);
}

// dweight (K, C) = dout (N, K), transposed, times rows (N, C); C and K are multiples of 16.
void outer_float32(const float* dout, const float* rows, float* dweight, int64_t* odd, int64_t n, int64_t c, int64_t k, int threads) {
  backward_weight(dout, rows, dweight, as_pixels(n, c, k), threads);
  int64_t found = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(| : found)
  for (int64_t i = 0; i < k * c; i += kLanes) found |= _mm512_cmp_ps_mask(_mm512_loadu_ps(dweight + i), _mm512_loadu_ps(dweight + i), _CMP_UNORD_Q);
  *odd = found != 0;
}

}  // extern "C"
#endif
