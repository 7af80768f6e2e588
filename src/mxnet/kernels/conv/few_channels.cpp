// Two-dimensional convolutions of images with few channels, such as a network's first layer, for training, over channels-last arrays: x (N, H, W, C),
// weights (K, R, S, C), y (N, P, Q, K). Any number of filters is taken.
//
// Sums run over rows of the filter, of S * C numbers, since a vector has more lanes than a pixel has channels.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <omp.h>

#include "conv/frame.h"
#include "conv/indirect_gemm.h"
#include "runtime/parameters.h"

namespace {

constexpr int64_t kLineBytes = 24 << 10;  // of lines that the L1 cache holds
// A part of a weight gradient, of so many numbers of a row of the filter, for two vectors of filters, stays in registers along the lines.
#if defined(__AVX512F__)
constexpr int kMaxDepth = 12;
#else
constexpr int kMaxDepth = 5;
#endif

int64_t whole_vectors(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// The images in their frame, and the sizes of the convolution without padding that it is there.
struct Framed {
  Aligned frame;
  ConvParams sizes;
  Framed(const float* x, const ConvParams& z, int threads) : frame(z.n * (z.h + 2 * z.pad_h) * (z.w + 2 * z.pad_w) * z.c), sizes(z) {
    make_frame(x, frame.data, z, false, threads);
    sizes.h += 2 * z.pad_h, sizes.w += 2 * z.pad_w;
    sizes.pad_h = sizes.pad_w = 0;
  }
};

// The lines of outputs `from` to `to`, for `numbers` filters from those that `dy` and `sums` begin with. Adds to sums[d][filter], for D numbers of the
// row of the filter whose first input is in `x`; `pitch` is the distance of two d.
template <int D, int NV>
void add_lines(const float* dy, const float* x, float* sums, int64_t pitch, const ConvParams& z, int64_t from, int64_t to, int64_t numbers) {
  const int64_t last = numbers - (NV - 1) * kLanes;  // filters of the last vector
  vec sum[D][NV];
#pragma GCC unroll 12
  for (int d = 0; d < D; ++d)
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) sum[d][v] = load(sums + d * pitch + v * kLanes);
  for (int64_t line = from; line < to; ++line) {
    const float *in = x + (line / z.p * z.h + line % z.p * z.stride_h) * z.w * z.c, *out = dy + line * z.q * z.k;
    for (int64_t j = 0; j < z.q; ++j, in += z.stride_w * z.c, out += z.k) {
      vec gradient[NV];
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) gradient[v] = v + 1 < NV ? load(out + v * kLanes) : load(out + v * kLanes, last);
#pragma GCC unroll 12
      for (int d = 0; d < D; ++d)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[d][v] += in[d] * gradient[v];
    }
  }
#pragma GCC unroll 12
  for (int d = 0; d < D; ++d)
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) store(sums + d * pitch + v * kLanes, sum[d][v]);
}

using AddLines = void (*)(const float*, const float*, float*, int64_t, const ConvParams&, int64_t, int64_t, int64_t);
template <int NV, int... D>
constexpr AddLines add_lines_of(int64_t depth, std::integer_sequence<int, D...>) {
  constexpr AddLines all[] = {add_lines<D + 1, NV>...};
  return all[depth - 1];
}

// A thread's sums: (R * S * C, filters), and those of the bias in a last line.
void add_own_lines(const float* dy, const float* frame, float* sums, const ConvParams& z, bool biased, int64_t from, int64_t end) {
  constexpr auto kDepths = std::make_integer_sequence<int, kMaxDepth>();
  const int64_t pitch = whole_vectors(z.k), row = z.s * z.c, pieces = (row + kMaxDepth - 1) / kMaxDepth;
  const int64_t together = std::max<int64_t>(1, kLineBytes / ((z.w * z.c + z.q * z.k) * 4));
  for (int64_t to; from < end; from = to) {
    to = std::min(from + together, end);
    for (int64_t k = 0; k < z.k; k += 2 * kLanes) {
      const int64_t numbers = std::min<int64_t>(z.k - k, 2 * kLanes);
      for (int64_t r = 0; r < z.r; ++r)
        for (int64_t piece = 0; piece < pieces; ++piece) {
          const int64_t begin = row * piece / pieces, depth = row * (piece + 1) / pieces - begin;
          const auto run = numbers > kLanes ? add_lines_of<2>(depth, kDepths) : add_lines_of<1>(depth, kDepths);
          run(dy + k, frame + r * z.dilate_h * z.w * z.c + begin, sums + (r * row + begin) * pitch + k, pitch, z, from, to, numbers);
        }
    }
    float* bias_sums = sums + z.r * row * pitch;
    for (int64_t m = from * z.q; biased && m < to * z.q; ++m)
      for (int64_t k = 0; k < z.k; ++k) bias_sums[k] += dy[m * z.k + k];
  }
}

}  // namespace

extern "C" {

void forward_float32(const float* x, const float* weight, const float* bias, float* y, const ConvParams* params, int threads) {
  using Gemm = IndirectGemm<float, float>;
  const Framed images(x, *params, threads);
  const ConvParams& z = images.sizes;
  const int64_t row = z.s * z.c, filters = whole_vectors(z.k);
  std::vector<float> offsets(filters, 0.f);  // read in whole vectors
  if (bias) std::copy_n(bias, z.k, offsets.begin());
  const auto pack = [=](float* to, int64_t r, int64_t first, int64_t depth, int64_t column, int64_t width) {
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t j = 0; j < width; ++j) *to++ = column + j < z.k ? weight[((column + j) * z.r + r) * row + first + d] : 0;
  };
  const OutputSegment whole_rows{0, 1, z.q, z.stride_w, {{0, 0}}};
  Gemm({images.frame.data, {z.n, z.h, z.w, z.c}, row}, {y, {z.n, z.p, z.q, filters}},
       {forward_axis(z.p, z.stride_h, z.r, z.h, 0, z.dilate_h), {whole_rows}, z.r, 1}, bias ? offsets.data() : nullptr, {z.k, z.k})
      .run(pack, threads);
}

// The bias's gradient is left out where `dbias` is null.
void backward_weight_float32(const float* dy, const float* x, float* dweight, float* dbias, const ConvParams* params, int threads) {
  const Framed images(x, *params, threads);
  const ConvParams& z = images.sizes;
  const int64_t filter = z.r * z.s * z.c, pitch = whole_vectors(z.k), lines = z.n * z.p;
  std::vector<std::vector<float>> partial(threads);
#pragma omp parallel num_threads(threads)
  {
    const int team = omp_get_num_threads(), thread = omp_get_thread_num();
    partial[thread].resize((filter + 1) * pitch);
    add_own_lines(dy, images.frame.data, partial[thread].data(), z, dbias, lines * thread / team, lines * (thread + 1) / team);
#pragma omp barrier
    for (int64_t k = z.k * thread / team; k < z.k * (thread + 1) / team; ++k)
      for (int64_t e = 0; e < filter + (dbias ? 1 : 0); ++e) {
        float sum = 0;
        for (int t = 0; t < team; ++t) sum += partial[t][e * pitch + k];
        (e < filter ? dweight[k * filter + e] : dbias[k]) = sum;
      }
  }
}
}
