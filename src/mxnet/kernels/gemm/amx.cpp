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

#include <omp.h>

#if defined(__AMX_BF16__) && defined(__AVX512BW__)
#include <sys/syscall.h>
#include <unistd.h>

#include "gemm/amx_few_rows.h"
#include "gemm/amx_gradients.h"

namespace {

constexpr int64_t kBlock = kSide * kSide;    // results
constexpr int64_t kCut = 4;                  // steps along the depth whose inputs the L1 cache holds
constexpr int64_t kResultBytes = 768 << 10;  // bytes of results that the L2 cache holds until their sums are complete
constexpr int64_t kFewestBlocks = 8;         // blocks of rows that go through the weights together, at least, if there are so many; and at most
constexpr int64_t kMostBlocks = 16;
constexpr int64_t kFewFetch = 8;             // blocks that fetch the weights of the next panel: more of them hide that they come late
constexpr int64_t kFewBlocks = 4;            // for each thread: fewer rows are not shared, but the columns

constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA of Linux

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
          const int64_t lines = fetches && (panel + 1 < last || step + deep < steps) ? (kStep / kSide / 6 + blocks - 1) / blocks : 0;
          next += b * deep * lines * 6 * kSide;
          multiply_tiles<3>(high, z.k - panel * kSide, a + b * kCut * kStep, packed + (panel * steps + step) * kStep, deep, to, kSide, step > 0, [&] {
            for (int64_t i = 0; i < lines; ++i, next += kSide) __builtin_prefetch(next, 0, 2);
          });
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

// The same products of few rows; `packed` has room for the rows in tiles.
void few_rows_forward_float32(const float* rows, const float* weight, const float* bias, float* out, float* packed, int64_t* odd, int64_t n,
                              int64_t c, int64_t k, int threads) {
  pack_float32(rows, packed, n, 1, c, threads);
#pragma omp parallel num_threads(threads)
  few_rows_forward(reinterpret_cast<const half*>(packed), weight, bias, out, {n, c, k},
                   Range{0, pieces(k)}.part(omp_get_thread_num(), omp_get_num_threads()), odd);
}

// dx (N, C) = dout (N, K) times the weight.
void few_rows_backward_data_float32(const float* dout, const float* weight, float* dx, int64_t* odd, int64_t n, int64_t c, int64_t k, int threads) {
  const FewRowsSizes z{n, c, k};
  const int64_t size = z.panels() * z.columns() * kResults, blocks = (pieces(k) + kDepth - 1) / kDepth;
  threads = int(std::min<int64_t>(threads, blocks));
  Aligned totals(size * threads);
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    std::fill_n(totals.data + thread * size, size, 0.f);
    few_rows_backward_data(dout, weight, totals.data + thread * size, z, Range{0, blocks}.part(thread, team));
#pragma omp barrier
    if (add_up(totals.data, team, dx, z)) __atomic_store_n(odd, 1, __ATOMIC_RELAXED);
  }
}

// C is a multiple of 16.
void few_rows_backward_weight_float32(const float* dout, const float* rows, float* dweight, float* packed, int64_t* odd, int64_t n, int64_t c,
                                      int64_t k, int threads) {
  pack_turned_float32(rows, packed, n, 1, c, threads);
  const bool streaming = is_large(k * c) && reinterpret_cast<uintptr_t>(dweight) % 64 == 0;
#pragma omp parallel num_threads(threads)
  few_rows_backward_weight(dout, reinterpret_cast<const half*>(packed), dweight, {n, c, k},
                           Range{0, pieces(k)}.part(omp_get_thread_num(), omp_get_num_threads()), streaming, odd);
}

}  // extern "C"
#endif
