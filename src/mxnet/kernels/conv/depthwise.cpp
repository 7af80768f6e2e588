// Depthwise convolutions in two dimensions, over channels-last arrays: x (N, H, W, C), weights (R, S, C), y (N, P, Q, C).
//
// There are few multiplications, so the loads dominate. Each input is read rarely and each weight once for a line of outputs: a tile of adjacent
// outputs stays in registers, with all nine weights, while the kernel iterates over the image's columns.
#include <algorithm>
#include <cstdint>
#include <utility>

#include <omp.h>

#include "runtime/parameters.h"
#include "runtime/vectors.h"

namespace {

constexpr int kTileOutputs = 7;  // outputs side by side: images of 224 pixels leave nothing over
constexpr int64_t kMaxTaps = 128;
constexpr int64_t kLarge = 1 << 18;  // numbers of an image from which on its rows are fetched ahead; of smaller ones it takes longer than it saves

// A line of outputs of one vector of channels, with its inputs.
struct Line {
  const float* rows[kMaxTaps];  // of the image, by the row of the kernel; null in the padding
  const float* prefetched[2];   // rows that the next line is the first to read, or null
  const float *weight, *bias, *residual;
  float* out;
  int64_t width, count, pitch;  // of the image, of outputs; from an output to its neighbour
  float ceiling;

  void finish(const DepthwiseParams& z, int64_t q, vec sum) const {
    if (residual) sum += load(residual + q * z.c);
    store(out + q * pitch, relu(sum, ceiling));
  }
};

// Which columns that a tile reads lie in the padding: none, its first one, its last one, both, or any.
enum Padding { kNone = 0, kFirst = 1, kLast = 2, kBoth = kFirst | kLast, kAny = 4 };

// T outputs from q on, of a kernel of 3x3 whose weights are at hand.
template <int T, int Stride, Padding Pads>
inline __attribute__((always_inline)) void tile(const DepthwiseParams& z, const Line& line, const vec (&weight)[9], vec bias, int64_t q) {
  constexpr int kColumns = (T - 1) * Stride + 3;
  vec sum[T];
#pragma GCC unroll 7
  for (int t = 0; t < T; ++t) sum[t] = bias;
  const int64_t left = q * Stride - z.pad_w;
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    if (!line.rows[r]) continue;
    const float* from = line.rows[r] + left * z.c;
#pragma GCC unroll 15
    for (int i = 0; i < kColumns; ++i) {
      if (Pads == kAny ? left + i < 0 || left + i >= line.width : ((Pads & kFirst) && i == 0) || ((Pads & kLast) && i == kColumns - 1)) continue;
      const vec column = load(from + i * z.c);
#pragma GCC unroll 3
      for (int s = 0; s < 3; ++s)
        if (i >= s && (i - s) % Stride == 0 && (i - s) / Stride < T) sum[(i - s) / Stride] += column * weight[r * 3 + s];
    }
  }
  // One row is prefetched into the L1 cache; two would evict the rows in use, and go to the L2.
#pragma GCC unroll 2
  for (int r = 0; r < Stride; ++r) {
    if (!line.prefetched[r]) continue;
#pragma GCC unroll 14
    for (int i = 0; i < T * Stride; ++i) __builtin_prefetch(line.prefetched[r] + (q * Stride + i) * z.c, 0, Stride == 1 ? 3 : 2);
  }
#pragma GCC unroll 7
  for (int t = 0; t < T; ++t) line.finish(z, q + t, sum[t]);
}

template <int Stride, int... T>
void tile_of(const DepthwiseParams& z, const Line& line, const vec (&weight)[9], vec bias, int64_t q, int64_t count,
             std::integer_sequence<int, T...>) {
  (void)((count == T + 1 && (tile<T + 1, Stride, kAny>(z, line, weight, bias, q), true)) || ...);
}

template <int Stride>
void three_by_three(const DepthwiseParams& z, const Line& line) {
  vec weight[9];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) weight[t] = load(line.weight + t * z.c);
  const vec bias = line.bias ? load(line.bias) : vec{};
  for (int64_t q = 0; q < line.count; q += kTileOutputs) {
    const int64_t count = std::min<int64_t>(kTileOutputs, line.count - q);
    const int64_t before = z.pad_w - q * Stride, behind = (count - 1) * Stride + 3 - before - line.width;  // columns in the padding
    if (count < kTileOutputs || before > 1 || behind > 1)
      tile_of<Stride>(z, line, weight, bias, q, count, std::make_integer_sequence<int, kTileOutputs>());
    else if (before <= 0 && behind <= 0)
      tile<kTileOutputs, Stride, kNone>(z, line, weight, bias, q);
    else if (behind <= 0)
      tile<kTileOutputs, Stride, kFirst>(z, line, weight, bias, q);
    else if (before <= 0)
      tile<kTileOutputs, Stride, kLast>(z, line, weight, bias, q);
    else
      tile<kTileOutputs, Stride, kBoth>(z, line, weight, bias, q);
  }
}

// Any kernel.
void any_kernel(const DepthwiseParams& z, const Line& line) {
  const vec bias = line.bias ? load(line.bias) : vec{};
  for (int64_t q = 0; q < line.count; ++q) {
    vec sum = bias;
    for (int64_t r = 0; r < z.r; ++r) {
      if (!line.rows[r]) continue;
      for (int64_t s = 0; s < z.s; ++s) {
        const int64_t column = q * z.stride_w - z.pad_w + s * z.dilate_w;
        if (column >= 0 && column < line.width) sum += load(line.rows[r] + column * z.c) * load(line.weight + (r * z.s + s) * z.c);
      }
    }
    line.finish(z, q, sum);
  }
}

}  // namespace

extern "C" {

// y are C of the `total` channels of an array, from `first` on; the residual has C. There is at least a vector of channels.
void forward_float32(const float* x, const float* weight, const float* bias, const float* residual, float* y, const DepthwiseParams* sizes,
                     float ceiling, int threads) {
  const DepthwiseParams& z = *sizes;
  const int64_t vectors = (z.c + kLanes - 1) / kLanes, lines = z.n * z.p * vectors;
  const bool is_three_by_three = z.r == 3 && z.s == 3 && z.dilate_w == 1, fetches = is_three_by_three && z.h * z.w * z.c >= kLarge;
  const auto run = is_three_by_three && z.stride_w == 1 ? three_by_three<1> : is_three_by_three && z.stride_w == 2 ? three_by_three<2> : any_kernel;
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    for (int64_t i = lines * thread / team; i < lines * (thread + 1) / team; ++i) {
      const int64_t c = std::min(i % vectors * kLanes, z.c - kLanes), p = i / vectors % z.p, n = i / vectors / z.p;  // the last vector may overlap
      const int64_t place = (n * z.p + p) * z.q;
      Line line;
      for (int64_t r = 0; r < z.r; ++r) {
        const int64_t row = p * z.stride_h - z.pad_h + r * z.dilate_h;
        line.rows[r] = row >= 0 && row < z.h ? x + (n * z.h + row) * z.w * z.c + c : nullptr;
      }
      for (int64_t r = 0; r < 2; ++r) {
        const int64_t next = p * z.stride_h - z.pad_h + (z.r - 1) * z.dilate_h + 1 + r;
        line.prefetched[r] = fetches && next < z.h && next >= 0 ? x + (n * z.h + next) * z.w * z.c + c : nullptr;
      }
      line.weight = weight + c;
      line.bias = bias ? bias + c : nullptr;
      line.residual = residual ? residual + place * z.c + c : nullptr;
      line.out = y + place * z.total + z.first + c;
      line.width = z.w, line.count = z.q, line.pitch = z.total;
      line.ceiling = ceiling;
      run(z, line);
    }
  }
}
}
