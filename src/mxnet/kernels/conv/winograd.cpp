// Convolutions with step 1 by fewer multiplications (Winograd 1980, Lavin 2015), over channels-last arrays: x (N, H, W, C), y (N, P, Q, K).
//
// A tile of outputs, V::kOutputs x H::kOutputs, needs V::kPoints * H::kPoints products for each pair of channels (`winograd.h`). Tiles are taken in
// blocks: their inputs are transformed (one matrix of tiles x channels for each point), multiplied by the transformed weights with the micro-kernels
// that direct convolutions use, too, and transformed back, before the next block; intermediate values stay in the L2 cache.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <omp.h>

#include "conv/winograd.h"
#include "gemm/microkernels.h"
#include "runtime/parameters.h"

namespace {

constexpr int64_t kBlockBytes = 1 << 20;            // bytes of a block of tiles, before and after the products
constexpr int64_t kMaxFilters = 256;                // filters whose products are kept before they are transformed back
constexpr int64_t kMinTiles = 48, kMaxTiles = 192;  // in a block: weights are read once for each

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
            transpose_square(taps[t]);
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
      : x_(x), weights_(weights), bias_(bias), sum_(sum), y_(y + z.first), z_(z), ceiling_(ceiling), down_((z.p + V::kOutputs - 1) / V::kOutputs),
        right_((z.q + H::kOutputs - 1) / H::kOutputs), all_(z.n * down_ * right_), panels_(z.k),
        group_(std::max<int64_t>(kMaxFilters / kLanes / kMaxVectors, 1)), row_(z.c + 16) {
    const int64_t widest = std::min(z.k, group_ * kMaxVectors * kLanes);
    product_row_ = widest + 16;
    block_ = std::min(std::max(kBlockBytes / (kAll * 4 * (row_ + product_row_)) / 12 * 12, kMinTiles), kMaxTiles);
  }

  void run(int threads) {
    const bool apart = all_ >= threads * kMinTiles / 2 || panels_.count < threads;
    const int64_t share = apart ? (all_ + threads - 1) / threads : all_;
    const int64_t blocks = (share + block_ - 1) / block_;
    block_ = std::min(block_, (share + blocks - 1) / blocks + 11) / 12 * 12;
    const int64_t plane = spread(block_ * row_), product = spread(block_ * product_row_);
    Aligned shared(apart ? 0 : kAll * plane);
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      Aligned own(apart ? kAll * plane : 0), products(kAll * product);
      float* transformed = apart ? own.data : shared.data;
      const int64_t begin = apart ? all_ * thread / team : 0, end = apart ? all_ * (thread + 1) / team : all_;
      const int64_t first = apart ? 0 : panels_.count * thread / team, last = apart ? panels_.count : panels_.count * (thread + 1) / team;
      for (int64_t from = begin; from < end; from += block_) {
        const int64_t to = std::min(from + block_, end);
        if (apart) {
          transform_inputs(transformed, plane, from, from, to);
        } else {
          transform_inputs(transformed, plane, from, from + (to - from) * thread / team, from + (to - from) * (thread + 1) / team);
#pragma omp barrier
        }
        for (int64_t panel = first; panel < last; panel += group_) {
          const int64_t until = std::min(panel + group_, last);
          multiply(transformed, plane, products.data, product, to - from, panel, until);
          transform_outputs(products.data, product, from, to, panels_.column(panel), panels_.column(until));
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

  void transform_inputs(float* transformed, int64_t plane, int64_t block, int64_t from, int64_t to) const {
    for (int64_t tile = from; tile < to; ++tile) {
      const int64_t j = tile % right_, i = tile / right_ % down_, n = tile / right_ / down_;
      const int64_t top = i * V::kOutputs - z_.pad_h, left = j * H::kOutputs - z_.pad_w;
      const T* corner = x_ + ((n * z_.h + top) * z_.w + left) * z_.c;
      float* to_row = transformed + (tile - block) * row_;
      if (top >= 0 && left >= 0 && top + V::kPoints <= z_.h && left + H::kPoints <= z_.w)
        transform_tile(to_row, plane, [=](int64_t r, int64_t s, int64_t c) { return load(corner + (r * z_.w + s) * z_.c + c); });
      else
        transform_tile(to_row, plane, [=](int64_t r, int64_t s, int64_t c) {
          const bool inside = uint64_t(top + r) < uint64_t(z_.h) && uint64_t(left + s) < uint64_t(z_.w);
          return inside ? load(corner + (r * z_.w + s) * z_.c + c) : vec{};
        });
    }
  }

  template <typename Read>
  void transform_tile(float* to, int64_t plane, Read read) const {
    for (int64_t c = 0; c < z_.c; c += kLanes)
      inputs<V, H>([&](int r, int s) __attribute__((always_inline)) { return read(r, s, c); },
                   [&](int r, int s, vec v) __attribute__((always_inline)) { store(to + (r * H::kPoints + s) * plane + c, v); });
  }

  void multiply(const float* transformed, int64_t plane, float* products, int64_t product, int64_t count, int64_t first, int64_t last) const {
    const int64_t column = panels_.column(first);
    for (int64_t point = 0; point < kAll; ++point)
      for (int64_t panel = first; panel < last; ++panel) {
        const int nv = panels_.width(panel);
        const float* right = weights_ + (point * z_.k + panels_.column(panel)) * z_.c;
        const float* next_point = point + 1 < kAll ? weights_ + ((point + 1) * z_.k + column) * z_.c : nullptr;
        const float* next = panel + 1 < last ? right + nv * kLanes * z_.c : next_point;
        const int64_t tiles = (count + kRows[nv] - 1) / kRows[nv];
        const bool fetches = !kPrefetchesBefore && nv >= kPrefetchingVectors && tiles <= kFewTiles && next;
        for (int64_t row = 0; row < count; row += kRows[nv]) {
          const int mr = int(std::min<int64_t>(kRows[nv], (count - row + 1) / 2 * 2));
          const float* left[kMaxRows];
          float* out[kMaxRows];
          for (int r = 0; r < mr; ++r) {
            left[r] = transformed + point * plane + (row + r) * row_;
            out[r] = products + point * product + (row + r) * product_row_ + panels_.column(panel) - column;
          }
          if (kPrefetchesBefore && next) fetch_share(next, row / kRows[nv], tiles, nv * kLanes * z_.c);
          if (fetches)
            kPrefetchingMicrokernels<float, float>[nv - kPrefetchingVectors][mr / 2](left, & right, 1, z_.c, out, nullptr, false,
                                                                                     share_of(next, row / kRows[nv], tiles, nv, z_.c));
          else
            kMicrokernels<float, float>[nv][mr / 2](left, & right, 1, z_.c, out, nullptr, false);
        }
      }
  }

  void transform_outputs(const float* products, int64_t product, int64_t from, int64_t to, int64_t column, int64_t end) const {
    for (int64_t tile = from; tile < to; ++tile) {
      const int64_t j = tile % right_, i = tile / right_ % down_, n = tile / right_ / down_;
      const int64_t offset = (n * z_.p + i * V::kOutputs) * z_.q + j * H::kOutputs;
      const int64_t rows = std::min<int64_t>(V::kOutputs, z_.p - i * V::kOutputs), columns = std::min<int64_t>(H::kOutputs, z_.q - j * H::kOutputs);
      for (int64_t k = column; k < end; k += kLanes) {
        const float* at = products + (tile - from) * product_row_ + k - column;
        vec y[V::kOutputs][H::kOutputs];
        outputs<V, H>([&](int r, int s) __attribute__((always_inline)) { return load(at + (r * H::kPoints + s) * product); }, y);
        const vec bias = bias_ ? load(bias_ + k) : vec{};
        auto put = [&](int64_t r, int64_t s) __attribute__((always_inline)) {
          const int64_t place = offset + r * z_.q + s;
          vec v = y[r][s] + bias;
          if (sum_) v += load(sum_ + place * z_.k + k);
          store(y_ + place * z_.total + k, relu(v, ceiling_));
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
  const int64_t down_, right_, all_;  // tiles along each axis of an image, and in all of them
  const Panels panels_;
  const int64_t group_, row_;
  int64_t product_row_, block_;
};

// out[i][j] (+)= sum over depth t of left[t][i] * right[t][j], for MR columns of the left and NV vectors of the right, which lies packed.
template <int MR, int NV>
void outer_product(const float* left, int64_t left_row, const float* right, int64_t depth, float* out, int64_t out_row, bool add) {
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

using OuterProduct = void (*)(const float*, int64_t, const float*, int64_t, float*, int64_t, bool);

#define REMEX_OUTER_PRODUCT(MR, NV) outer_product<MR, NV>
constexpr OuterProduct kOuterProducts[][kMaxRows / 2 + 1] = REMEX_MICROKERNELS(REMEX_OUTER_PRODUCT);
#undef REMEX_OUTER_PRODUCT

// The memory of a weight gradient, which the caller provides: `sums` (points, K, C), and, for the tiles of a block, `left` (points, block of (K + 16)
// and 16) and `right` (points, block of C and 16).
struct Scratch {
  float *sums, *left, *right;
};

// The gradient of the weights: sums over all tiles of products of the data under a tile with the gradient of its outputs, which have
// the role of the taps. V and H are the forms of that sum.
template <typename V, typename H, typename T>
class WeightGradient {
  static constexpr int kAll = V::kPoints * H::kPoints;

 public:
  WeightGradient(const T* dy, const T* x, const Scratch& scratch, const WinogradGradientParams& z)
      : dy_(dy), x_(x), sums_(scratch.sums), left_(scratch.left), right_(scratch.right), z_(z), down_((z.p + V::kTaps - 1) / V::kTaps),
        across_((z.q + H::kTaps - 1) / H::kTaps), all_(z.n * down_ * across_), left_row_(z.k + 16), left_plane_(z.block * left_row_ + 16),
        right_plane_(z.block * z.c + 16), panels_(z.c) {}

  void run(float* dweight, float* dbias, int threads) {
    std::vector<std::vector<float>> bias(threads);
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      bias[thread].resize(z_.k);
      for (int64_t from = 0; from < all_; from += z_.block) {
        const int64_t count = std::min(z_.block, all_ - from);
        for (int64_t tile = count * thread / team; tile < count * (thread + 1) / team; ++tile) {
          const int64_t j = (from + tile) % across_, i = (from + tile) / across_ % down_, n = (from + tile) / across_ / down_;
          transform_gradients(tile, n, i, j, bias[thread].data());
          transform_data(tile, n, i, j);
        }
#pragma omp barrier
        const int64_t pieces = kAll * panels_.count;
        for (int64_t piece = pieces * thread / team; piece < pieces * (thread + 1) / team; ++piece)
          multiply(piece / panels_.count, piece % panels_.count, count, from > 0);
#pragma omp barrier
      }
      const int64_t first = z_.k * thread / team, last = z_.k * (thread + 1) / team;
      transform_sums(dweight, first, last);
      for (int64_t k = first; dbias && k < last; ++k) {
        dbias[k] = 0;
        for (int t = 0; t < team; ++t) dbias[k] += bias[t][k];
      }
    }
  }

 private:
  // The gradients of a tile's outputs, tile (i, j) of image n; their sums are added to `bias`.
  void transform_gradients(int64_t tile, int64_t n, int64_t i, int64_t j, float* bias) const {
    const WinogradGradientParams z = z_;  // a copy, which the compiler need not read again after each store
    const int64_t plane = left_plane_;
    float* const to = left_ + tile * left_row_;
    const int64_t rows = std::min<int64_t>(V::kTaps, z.p - i * V::kTaps), columns = std::min<int64_t>(H::kTaps, z.q - j * H::kTaps);
    const T* from = dy_ + ((n * z.p + i * V::kTaps) * z.q + j * H::kTaps) * z.k;
    for (int64_t k = 0; k < z.k; k += kLanes) {
      vec u[V::kPoints][H::kPoints], sum{};
      weights<V, H>(
          [&](int r, int s) __attribute__((always_inline)) {
            const vec v = r < rows && s < columns ? load(from + (r * z.q + s) * z.k + k) : vec{};
            sum += v;
            return v;
          },
          u);
      store(bias + k, load(bias + k) + sum);
#pragma GCC unroll 8
      for (int r = 0; r < V::kPoints; ++r)
#pragma GCC unroll 8
        for (int s = 0; s < H::kPoints; ++s) store(to + (r * H::kPoints + s) * plane + k, u[r][s]);
    }
  }

  void transform_data(int64_t tile, int64_t n, int64_t i, int64_t j) const {
    const WinogradGradientParams z = z_;
    const int64_t plane = right_plane_;
    const int64_t top = i * V::kTaps - z.pad_h, side = j * H::kTaps - z.pad_w;
    const T* corner = x_ + ((n * z.h + top) * z.w + side) * z.c;
    for (int64_t panel = 0; panel < panels_.count; ++panel) {
      const int64_t column = panels_.column(panel), width = panels_.width(panel) * kLanes;
      for (int64_t c = 0; c < width; c += kLanes) {
        float* to = right_ + column * z.block + tile * width + c;
        inputs<V, H>(
            [&](int r, int s) __attribute__((always_inline)) {
              const bool inside = uint64_t(top + r) < uint64_t(z.h) && uint64_t(side + s) < uint64_t(z.w);
              return inside ? load(corner + (r * z.w + s) * z.c + column + c) : vec{};
            },
            [&](int r, int s, vec v) __attribute__((always_inline)) { store(to + (r * H::kPoints + s) * plane, v); });
      }
    }
  }

  // Adds the products of a block's tiles at one point to the sums of a panel's channels.
  void multiply(int64_t point, int64_t panel, int64_t tiles, bool add) const {
    const int64_t column = panels_.column(panel);
    const int nv = panels_.width(panel);
    for (int64_t k = 0; k < z_.k; k += kRows[nv]) {
      const int mr = int(std::min<int64_t>(kRows[nv], z_.k - k));
      kOuterProducts[nv][mr / 2](left_ + point * left_plane_ + k, left_row_, right_ + point * right_plane_ + column * z_.block, tiles,
                                 sums_ + (point * z_.k + k) * z_.c + column, z_.c, add);
    }
  }

  // The gradients of some filters.
  void transform_sums(float* dweight, int64_t first, int64_t last) const {
    for (int64_t k = first; k < last; ++k)
      for (int64_t c = 0; c < z_.c; c += kLanes) {
        vec y[V::kOutputs][H::kOutputs];
        outputs<V, H>([&](int r, int s) __attribute__((always_inline)) { return load(sums_ + ((r * H::kPoints + s) * z_.k + k) * z_.c + c); }, y);
        for (int r = 0; r < V::kOutputs; ++r)
          for (int s = 0; s < H::kOutputs; ++s) store(dweight + ((k * V::kOutputs + r) * H::kOutputs + s) * z_.c + c, y[r][s]);
      }
  }

  const T *dy_, *x_;
  float *sums_, *left_, *right_;
  const WinogradGradientParams z_;
  const int64_t down_, across_, all_;  // tiles along each axis of an image, and in all of them
  const int64_t left_row_, left_plane_, right_plane_;
  const Panels panels_;
};

template <typename L>
using Across = Line<L::kTaps, L::kOutputs>;

}  // namespace

extern "C" {

#define REMEX_WEIGHTS(name, V, H)                                                                                        \
  void weights_##name(const float* weight, float* out, int64_t channels, int64_t filters, int64_t turned, int threads) { \
    transform_weights<V, H>(weight, out, channels, filters, turned, threads);                                            \
  }
#define REMEX_FORWARD(name, V, H, suffix, T)                                                                                            \
  void forward_##name##_##suffix(const T* x, const float* weights, const float* bias, const T* sum, T* y, const WinogradParams* params, \
                                 float ceiling, int threads) {                                                                          \
    Convolution<V, H, T>(x, weights, bias, sum, y, *params, ceiling).run(threads);                                                      \
  }
#define REMEX_BACKWARD(name, V, H, suffix, T)                                                                                           \
  void backward_weight_##name##_##suffix(const T* dy, const T* x, float* dweight, float* dbias, float* sums, float* left, float* right, \
                                         const WinogradGradientParams* params, int threads) {                                           \
    WeightGradient<Across<V>, Across<H>, T>(dy, x, {sums, left, right}, *params).run(dweight, dbias, threads);                          \
  }
#if defined(__AVX512BF16__)
#define REMEX_WINOGRAD(name, V, H)              \
  REMEX_WEIGHTS(name, V, H)                     \
  REMEX_FORWARD(name, V, H, float32, float)     \
  REMEX_BACKWARD(name, V, H, float32, float)    \
  REMEX_FORWARD(name, V, H, bfloat16, bfloat16) \
  REMEX_BACKWARD(name, V, H, bfloat16, bfloat16)  // the stored type; intermediate values are float32
#else
#define REMEX_WINOGRAD(name, V, H)          \
  REMEX_WEIGHTS(name, V, H)                 \
  REMEX_FORWARD(name, V, H, float32, float) \
  REMEX_BACKWARD(name, V, H, float32, float)
#endif

REMEX_FORMS(REMEX_WINOGRAD)
}
