// Convolutions with step 1 by fewer multiplications (Winograd 1980, Lavin 2015), over channels-last arrays: x (N, H, W, C), y (N, P, Q, K).
//
// A square of outputs, V::kOutputs x H::kOutputs, needs V::kPoints * H::kPoints products for each pair of channels (`winograd.h`). Squares are taken in
// blocks: their inputs are transformed ("spectra", one matrix of squares x channels for each point), multiplied by the transformed weights with the small
// product that direct convolutions are made of, too, and transformed back, before the next block; intermediate values stay in the L2 cache.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <omp.h>

#include "gemm/microkernels.h"
#include "conv/winograd.h"
#include "runtime/parameters.h"

namespace {

constexpr int64_t kBlock = 1 << 20;  // bytes of a block of squares, before and after the products
constexpr int64_t kGroup = 256;      // filters whose products are kept before they are transformed back
constexpr int64_t kLeastSquares = 48, kMostSquares = 192;  // in a block: weights are read once for each

// Weights (K, R, S, C) as (point, panel of filters, channel, filter of the panel). `turned` is for the data gradient: a convolution
// of K channels to C with its taps in reverse order.
template <typename V, typename H>
void transform_weights(const float* weight, float* out, int64_t channels, int64_t filters, int64_t turned, int threads) {
  constexpr int kTaps = V::kTaps * H::kTaps;
  const Panels panels(filters);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (int64_t panel = 0; panel < panels.count; ++panel)
    for (int64_t c = 0; c < channels; c += kLanes) {
      const int64_t column = panels.column(panel), width = panels.width(panel) * kLanes;
      for (int64_t j = 0; j < width; j += kLanes) {
        vec taps[kTaps][kLanes];
        for (int t = 0; t < kTaps; ++t) {
          if (turned) {
            for (int i = 0; i < kLanes; ++i) taps[t][i] = load(weight + ((c + i) * kTaps + kTaps - 1 - t) * filters + column + j);
          } else {
            for (int i = 0; i < kLanes; ++i) taps[t][i] = load(weight + ((column + j + i) * kTaps + t) * channels + c);
            turn(taps[t]);
          }
        }
        for (int i = 0; i < kLanes; ++i) {
          vec u[V::kPoints][H::kPoints];
          weights<V, H>([&](int r, int s) { return taps[r * H::kTaps + s][i]; }, u);
          for (int r = 0; r < V::kPoints; ++r)
            for (int s = 0; s < H::kPoints; ++s)
              store(out + (r * H::kPoints + s) * channels * filters + column * channels + (c + i) * width + j, u[r][s]);
        }
      }
    }
}

template <typename V, typename H, typename T>
class Convolution {
  static constexpr int kAll = V::kPoints * H::kPoints;

 public:
  Convolution(const T* x, const float* weights, const float* bias, const T* sum, T* y, const WinogradParams& z, float ceiling)
      : x_(x), weights_(weights), bias_(bias), sum_(sum), y_(y + z.first), z_(z), ceiling_(ceiling),
        down_((z.p + V::kOutputs - 1) / V::kOutputs), right_((z.q + H::kOutputs - 1) / H::kOutputs), all_(z.n * down_ * right_), panels_(z.k), group_(std::max<int64_t>(kGroup / kLanes / kWidest, 1)), row_(z.c + 16) {
    const int64_t widest = std::min(z.k, group_ * kWidest * kLanes);
    product_row_ = widest + 16;
    block_ = std::min(std::max(kBlock / (kAll * 4 * (row_ + product_row_)) / 12 * 12, kLeastSquares), kMostSquares);
  }

  void run(int threads) {
    const bool apart = all_ >= threads * kLeastSquares / 2 || panels_.count < threads;
    const int64_t share = apart ? (all_ + threads - 1) / threads : all_;
    const int64_t blocks = (share + block_ - 1) / block_;
    block_ = std::min(block_, (share + blocks - 1) / blocks + 11) / 12 * 12;
    const int64_t plane = spread(block_ * row_), product = spread(block_ * product_row_);
    Aligned shared(apart ? 0 : kAll * plane);
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      Aligned own(apart ? kAll * plane : 0), products(kAll * product);
      float* spectra = apart ? own.data : shared.data;
      const int64_t begin = apart ? all_ * thread / team : 0, end = apart ? all_ * (thread + 1) / team : all_;
      const int64_t first = apart ? 0 : panels_.count * thread / team, last = apart ? panels_.count : panels_.count * (thread + 1) / team;
      for (int64_t from = begin; from < end; from += block_) {
        const int64_t to = std::min(from + block_, end);
        if (apart) {
          enter(spectra, plane, from, from, to);
        } else {
          enter(spectra, plane, from, from + (to - from) * thread / team, from + (to - from) * (thread + 1) / team);
#pragma omp barrier
        }
        for (int64_t panel = first; panel < last; panel += group_) {
          const int64_t until = std::min(panel + group_, last);
          multiply(spectra, plane, products.data, product, to - from, panel, until);
          leave(products.data, product, from, to, panels_.column(panel), panels_.column(until));
        }
        if (!apart) {
#pragma omp barrier
        }
      }
    }
  }

 private:
  // Planes whose distance is no multiple of a page: they are written side by side.
  static int64_t spread(int64_t n) { return (n + 1023) / 1024 * 1024 + 16; }

  void enter(float* spectra, int64_t plane, int64_t block, int64_t from, int64_t to) const {
    for (int64_t square = from; square < to; ++square) {
      const int64_t j = square % right_, i = square / right_ % down_, n = square / right_ / down_;
      const int64_t top = i * V::kOutputs - z_.pad_h, left = j * H::kOutputs - z_.pad_w;
      const T* corner = x_ + ((n * z_.h + top) * z_.w + left) * z_.c;
      float* to_row = spectra + (square - block) * row_;
      if (top >= 0 && left >= 0 && top + V::kPoints <= z_.h && left + H::kPoints <= z_.w)
        enter_square(to_row, plane, [=](int64_t r, int64_t s, int64_t c) { return load(corner + (r * z_.w + s) * z_.c + c); });
      else
        enter_square(to_row, plane, [=](int64_t r, int64_t s, int64_t c) {
          const bool inside = uint64_t(top + r) < uint64_t(z_.h) && uint64_t(left + s) < uint64_t(z_.w);
          return inside ? load(corner + (r * z_.w + s) * z_.c + c) : vec{};
        });
    }
  }

  template <typename Read>
  void enter_square(float* to, int64_t plane, Read read) const {
    for (int64_t c = 0; c < z_.c; c += kLanes)
      inputs<V, H>([&](int r, int s) __attribute__((always_inline)) { return read(r, s, c); },
                   [&](int r, int s, vec v) __attribute__((always_inline)) { store(to + (r * H::kPoints + s) * plane + c, v); });
  }

  void multiply(const float* spectra, int64_t plane, float* products, int64_t product, int64_t squares, int64_t first, int64_t last) const {
    const int64_t column = panels_.column(first);
    for (int64_t point = 0; point < kAll; ++point)
      for (int64_t panel = first; panel < last; ++panel) {
        const int nv = panels_.width(panel);
        const float* right = weights_ + (point * z_.k + panels_.column(panel)) * z_.c;
        const float* next = panel + 1 < last ? right + nv * kLanes * z_.c : point + 1 < kAll ? weights_ + ((point + 1) * z_.k + column) * z_.c : nullptr;
        const int64_t tiles = (squares + kRows[nv] - 1) / kRows[nv];
        const bool fetches = !kBefore && nv >= kFetching && tiles <= kFewTiles && next;
        for (int64_t row = 0; row < squares; row += kRows[nv]) {
          const int mr = int(std::min<int64_t>(kRows[nv], (squares - row + 1) / 2 * 2));
          const float* left[kMostRows];
          float* out[kMostRows];
          for (int r = 0; r < mr; ++r) {
            left[r] = spectra + point * plane + (row + r) * row_;
            out[r] = products + point * product + (row + r) * product_row_ + panels_.column(panel) - column;
          }
          if (kBefore && next) fetch_share(next, row / kRows[nv], tiles, nv * kLanes * z_.c);
          if (fetches)
            kFetchingTiles<float, float>[nv - kFetching][mr / 2](left, &right, 1, z_.c, out, nullptr, false,
                                                                 share_of(next, row / kRows[nv], tiles, nv, z_.c));
          else
            kTiles<float, float>[nv][mr / 2](left, &right, 1, z_.c, out, nullptr, false);
        }
      }
  }

  void leave(const float* products, int64_t product, int64_t from, int64_t to, int64_t column, int64_t end) const {
    for (int64_t square = from; square < to; ++square) {
      const int64_t j = square % right_, i = square / right_ % down_, n = square / right_ / down_;
      const int64_t offset = (n * z_.p + i * V::kOutputs) * z_.q + j * H::kOutputs;
      const int64_t rows = std::min<int64_t>(V::kOutputs, z_.p - i * V::kOutputs), columns = std::min<int64_t>(H::kOutputs, z_.q - j * H::kOutputs);
      for (int64_t k = column; k < end; k += kLanes) {
        const float* at = products + (square - from) * product_row_ + k - column;
        vec y[V::kOutputs][H::kOutputs];
        outputs<V, H>([&](int r, int s) __attribute__((always_inline)) { return load(at + (r * H::kPoints + s) * product); }, y);
        const vec bias = bias_ ? load(bias_ + k) : vec{};
        auto put = [&](int64_t r, int64_t s) __attribute__((always_inline)) {
          const int64_t place = offset + r * z_.q + s;
          vec v = y[r][s] + bias;
          if (sum_) v += load(sum_ + place * z_.k + k);
          store(y_ + place * z_.total + k, rectified(v, ceiling_));
        };
        if (rows == V::kOutputs && columns == H::kOutputs) {
#pragma GCC unroll 4
          for (int r = 0; r < V::kOutputs; ++r)
#pragma GCC unroll 4
            for (int s = 0; s < H::kOutputs; ++s) put(r, s);
        } else {
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t s = 0; s < columns; ++s) put(r, s);
        }
      }
    }
  }

  const T* x_;
  const float *weights_, *bias_;
  const T* sum_;
  T* y_;
  const WinogradParams z_;
  const float ceiling_;
  const int64_t down_, right_, all_;  // squares along each axis of an image, and in all of them
  const Panels panels_;
  const int64_t group_, row_;
  int64_t product_row_, block_;
};

// out[i][j] (+)= sum over depth t of left[t][i] * right[t][j], for MR columns of the left and NV vectors of the right, which lies packed.
template <int MR, int NV>
void outer(const float* left, int64_t left_row, const float* right, int64_t depth, float* out, int64_t out_row, bool add) {
  vec sum[MR][NV];
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) sum[i][j] = add ? load(out + i * out_row + j * kLanes) : vec{};
  for (int64_t t = 0; t < depth; ++t, left += left_row, right += NV * kLanes) {
    vec b[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) b[j] = load(right + j * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) sum[i][j] += left[i] * b[j];
  }
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) store(out + i * out_row + j * kLanes, sum[i][j]);
}

using Outer = void (*)(const float*, int64_t, const float*, int64_t, float*, int64_t, bool);

#define REMEX_OUTER(MR, NV) outer<MR, NV>
constexpr Outer kOuters[][kMostRows / 2 + 1] = REMEX_TILES(REMEX_OUTER);
#undef REMEX_OUTER

// The gradient of the weights: sums over all squares of products of the data under a square with the gradient of its outputs, which have
// the role of the taps. V and H are the forms of that sum. The caller provides the scratch memory: `sums` (points, K, C), and, for the squares of a
// block, `left` (points, block of (K + 16) and 16) and `right` (points, block of C and 16).
template <typename V, typename H, typename T>
void backward_weight(const T* dy, const T* x, float* dweight, float* dbias, float* sums, float* left, float* right, const WinogradGradientParams& z,
                     int threads) {
  constexpr int kAll = V::kPoints * H::kPoints;
  const int64_t down = (z.p + V::kTaps - 1) / V::kTaps, across = (z.q + H::kTaps - 1) / H::kTaps, all = z.n * down * across;
  const int64_t left_row = z.k + 16, left_plane = z.block * left_row + 16, right_plane = z.block * z.c + 16;
  const Panels panels(z.c);
  std::vector<std::vector<float>> bias(threads);
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    bias[thread].resize(z.k);
    float* own_bias = bias[thread].data();
    for (int64_t from = 0; from < all; from += z.block) {
      const int64_t count = std::min(z.block, all - from);
      for (int64_t square = count * thread / team; square < count * (thread + 1) / team; ++square) {
        const int64_t j = (from + square) % across, i = (from + square) / across % down, n = (from + square) / across / down;
        const int64_t rows = std::min<int64_t>(V::kTaps, z.p - i * V::kTaps), columns = std::min<int64_t>(H::kTaps, z.q - j * H::kTaps);
        const T* outputs_at = dy + ((n * z.p + i * V::kTaps) * z.q + j * H::kTaps) * z.k;
        for (int64_t k = 0; k < z.k; k += kLanes) {
          vec u[V::kPoints][H::kPoints], sum{};
          weights<V, H>(
              [&](int r, int s) __attribute__((always_inline)) {
                const vec v = r < rows && s < columns ? load(outputs_at + (r * z.q + s) * z.k + k) : vec{};
                sum += v;
                return v;
              },
              u);
          store(own_bias + k, load(own_bias + k) + sum);
#pragma GCC unroll 8
          for (int r = 0; r < V::kPoints; ++r)
#pragma GCC unroll 8
            for (int s = 0; s < H::kPoints; ++s) store(left + (r * H::kPoints + s) * left_plane + square * left_row + k, u[r][s]);
        }
        const int64_t top = i * V::kTaps - z.pad_h, side = j * H::kTaps - z.pad_w;
        const T* corner = x + ((n * z.h + top) * z.w + side) * z.c;
        for (int64_t panel = 0; panel < panels.count; ++panel) {
          const int64_t column = panels.column(panel), width = panels.width(panel) * kLanes;
          for (int64_t c = 0; c < width; c += kLanes) {
            float* to = right + column * z.block + square * width + c;
            inputs<V, H>(
                [&](int r, int s) __attribute__((always_inline)) {
                  const bool inside = uint64_t(top + r) < uint64_t(z.h) && uint64_t(side + s) < uint64_t(z.w);
                  return inside ? load(corner + (r * z.w + s) * z.c + column + c) : vec{};
                },
                [&](int r, int s, vec v) __attribute__((always_inline)) { store(to + (r * H::kPoints + s) * right_plane, v); });
          }
        }
      }
#pragma omp barrier
      const int64_t pieces = kAll * panels.count;
      for (int64_t piece = pieces * thread / team; piece < pieces * (thread + 1) / team; ++piece) {
        const int64_t point = piece / panels.count, column = panels.column(piece % panels.count);
        const int nv = panels.width(piece % panels.count);
        for (int64_t k = 0; k < z.k; k += kRows[nv]) {
          const int mr = int(std::min<int64_t>(kRows[nv], z.k - k));
          kOuters[nv][mr / 2](left + point * left_plane + k, left_row, right + point * right_plane + column * z.block, count,
                              sums + (point * z.k + k) * z.c + column, z.c, from > 0);
        }
      }
#pragma omp barrier
    }
    for (int64_t k = z.k * thread / team; k < z.k * (thread + 1) / team; ++k)
      for (int64_t c = 0; c < z.c; c += kLanes) {
        vec y[V::kOutputs][H::kOutputs];
        outputs<V, H>([&](int r, int s) __attribute__((always_inline)) { return load(sums + ((r * H::kPoints + s) * z.k + k) * z.c + c); }, y);
        for (int r = 0; r < V::kOutputs; ++r)
          for (int s = 0; s < H::kOutputs; ++s) store(dweight + ((k * V::kOutputs + r) * H::kOutputs + s) * z.c + c, y[r][s]);
      }
    for (int64_t k = z.k * thread / team; dbias && k < z.k * (thread + 1) / team; ++k) {
      dbias[k] = 0;
      for (int t = 0; t < team; ++t) dbias[k] += bias[t][k];
    }
  }
}

template <typename L>
using Across = Line<L::kTaps, L::kOutputs>;

}  // namespace

extern "C" {

#define REMEX_WEIGHTS(name, V, H)                                                                                                                    \
  void weights_##name(const float* weight, float* out, int64_t channels, int64_t filters, int64_t turned, int threads) {                             \
    transform_weights<V, H>(weight, out, channels, filters, turned, threads);                                                                        \
  }
#define REMEX_FORWARD(name, V, H, suffix, T)                                                                                                         \
  void forward_##name##_##suffix(const T* x, const float* weights, const float* bias, const T* sum, T* y, const WinogradParams* sizes, float ceiling,    \
                                 int threads) {                                                                                                      \
    Convolution<V, H, T>(x, weights, bias, sum, y, *sizes, ceiling).run(threads);                                                                    \
  }
#define REMEX_BACKWARD(name, V, H, suffix, T)                                                                                                        \
  void backward_weight_##name##_##suffix(const T* dy, const T* x, float* dweight, float* dbias, float* sums, float* left, float* right,              \
                                         const WinogradGradientParams* sizes, int threads) {                                                         \
    backward_weight<Across<V>, Across<H>, T>(dy, x, dweight, dbias, sums, left, right, *sizes, threads);                                             \
  }
#if defined(__AVX512BF16__)
#define REMEX_WINOGRAD(name, V, H)                                                                                                                   \
  REMEX_WEIGHTS(name, V, H)                                                                                                                          \
  REMEX_FORWARD(name, V, H, float32, float)                                                                                                          \
  REMEX_BACKWARD(name, V, H, float32, float)                                                                                                         \
  REMEX_FORWARD(name, V, H, bfloat16, bfloat16)                                                                                                      \
  REMEX_BACKWARD(name, V, H, bfloat16, bfloat16)  // the stored type; intermediate values are float32
#else
#define REMEX_WINOGRAD(name, V, H)                                                                                                                   \
  REMEX_WEIGHTS(name, V, H)                                                                                                                          \
  REMEX_FORWARD(name, V, H, float32, float)                                                                                                          \
  REMEX_BACKWARD(name, V, H, float32, float)
#endif

REMEX_FORMS(REMEX_WINOGRAD)
}
