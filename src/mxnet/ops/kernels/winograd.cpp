// Convolutions of 3x3 with step 1 by fewer multiplications (Winograd 1980, Lavin 2015), over channels-last arrays: x (N, H, W, C), y (N, P, Q, K).
//
// A square of SxS outputs needs (S+2)^2 products for each pair of channels instead of 9 S^2. Squares are taken in blocks: their inputs are
// transformed ("spectra", one matrix of squares x channels for each of the (S+2)^2 points), multiplied by the transformed weights with the small
// product that direct convolutions are made of, too, and transformed back, before the next block; what lies between stays in the L2 cache.
#include <algorithm>
#include <cstdint>

#include <omp.h>

#include "tiles.h"

namespace {

constexpr int64_t kBlock = 1 << 20;  // bytes of a block of squares, before and after the products
constexpr int64_t kGroup = 256;      // filters whose products are kept before they are transformed back
constexpr int64_t kLeastSquares = 48, kMostSquares = 192;  // in a block: weights are read once for each

// The polynomials' points are 0, +-3/4, +-3/2 and infinity for squares of 4, and 0, +-1 and infinity for squares of 2: with +-1 and +-2 in place
// of the former, errors are twice as large.
template <int S>
struct Square;

template <>
struct Square<2> {
  static constexpr int kPoints = 4;
  static void inputs(const vec (&d)[4], vec (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
  }
  static void weights(const vec (&g)[3], vec (&u)[4]) {
    const vec even = (g[0] + g[2]) * .5f, odd = g[1] * .5f;
    u[0] = g[0];
    u[1] = even + odd;
    u[2] = even - odd;
    u[3] = g[2];
  }
  static void outputs(const vec (&m)[4], vec (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
  }
};

template <>
struct Square<4> {
  static constexpr int kPoints = 6;
  static constexpr float a = 0.75f, b = 1.5f, aa = a * a, bb = b * b;
  static void inputs(const vec (&d)[6], vec (&v)[6]) {
    const vec even_a = d[4] - bb * d[2], odd_a = d[3] - bb * d[1], even_b = d[4] - aa * d[2], odd_b = d[3] - aa * d[1];
    v[0] = aa * bb * d[0] + (d[4] - (aa + bb) * d[2]);
    v[1] = even_a + a * odd_a;
    v[2] = even_a - a * odd_a;
    v[3] = even_b + b * odd_b;
    v[4] = even_b - b * odd_b;
    v[5] = aa * bb * d[1] + (d[5] - (aa + bb) * d[3]);
  }
  static void weights(const vec (&g)[3], vec (&u)[6]) {
    constexpr float of_a = 1 / (2 * aa * (aa - bb)), of_b = 1 / (2 * bb * (bb - aa));
    const vec even_a = (g[0] + aa * g[2]) * of_a, odd_a = g[1] * (a * of_a), even_b = (g[0] + bb * g[2]) * of_b, odd_b = g[1] * (b * of_b);
    u[0] = g[0] * (1 / (aa * bb));
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2];
  }
  static void outputs(const vec (&m)[6], vec (&y)[4]) {
    const vec sum_a = m[1] + m[2], apart_a = m[1] - m[2], sum_b = m[3] + m[4], apart_b = m[3] - m[4];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = a * apart_a + b * apart_b;
    y[2] = aa * sum_a + bb * sum_b;
    y[3] = m[5] + a * aa * apart_a + b * bb * apart_b;
  }
};

struct Sizes {
  int64_t n, h, w, c, k, p, q, pad_h, pad_w, relu;
};

// Weights (K, 3, 3, C) as (point, panel of filters, channel, filter of the panel). `turned` are those that bring gradients back: a convolution
// of K channels to C with its taps in reverse order.
template <int S>
void transform_weights(const float* weight, float* out, int64_t channels, int64_t filters, int64_t turned, int threads) {
  constexpr int A = Square<S>::kPoints;
  const Panels panels(filters);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (int64_t panel = 0; panel < panels.count; ++panel)
    for (int64_t c = 0; c < channels; c += kLanes) {
      const int64_t column = panels.column(panel), width = panels.width(panel) * kLanes;
      for (int64_t j = 0; j < width; j += kLanes) {
        vec taps[9][kLanes];
        for (int t = 0; t < 9; ++t) {
          if (turned) {
            for (int i = 0; i < kLanes; ++i) taps[t][i] = load(weight + ((c + i) * 9 + 8 - t) * filters + column + j);
          } else {
            for (int i = 0; i < kLanes; ++i) taps[t][i] = load(weight + ((column + j + i) * 9 + t) * channels + c);
            turn(taps[t]);
          }
        }
        for (int i = 0; i < kLanes; ++i) {
          vec half[3][A];
          for (int s = 0; s < 3; ++s) {
            const vec g[] = {taps[s][i], taps[3 + s][i], taps[6 + s][i]};
            Square<S>::weights(g, half[s]);
          }
          for (int r = 0; r < A; ++r) {
            const vec g[] = {half[0][r], half[1][r], half[2][r]};
            vec u[A];
            Square<S>::weights(g, u);
            for (int s = 0; s < A; ++s) store(out + (r * A + s) * channels * filters + column * channels + (c + i) * width + j, u[s]);
          }
        }
      }
    }
}

template <int S, typename T>
class Convolution {
  static constexpr int A = Square<S>::kPoints;

 public:
  Convolution(const T* x, const float* weights, const float* bias, const T* sum, T* y, const Sizes& z)
      : x_(x), weights_(weights), bias_(bias), sum_(sum), y_(y), z_(z), down_((z.p + S - 1) / S), right_((z.q + S - 1) / S),
        all_(z.n * down_ * right_), panels_(z.k), group_(std::max<int64_t>(kGroup / kLanes / kWidest, 1)), row_(z.c + 16) {
    const int64_t widest = std::min(z.k, group_ * kWidest * kLanes);
    product_row_ = widest + 16;
    block_ = std::min(std::max(kBlock / (A * A * 4 * (row_ + product_row_)) / 12 * 12, kLeastSquares), kMostSquares);
  }

  void run(int threads) {
    const bool apart = all_ >= threads * kLeastSquares / 2 || panels_.count < threads;
    const int64_t share = apart ? (all_ + threads - 1) / threads : all_;
    const int64_t blocks = (share + block_ - 1) / block_;
    block_ = std::min(block_, (share + blocks - 1) / blocks + 11) / 12 * 12;
    const int64_t plane = spread(block_ * row_), product = spread(block_ * product_row_);
    Aligned shared(apart ? 0 : A * A * plane);
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      Aligned own(apart ? A * A * plane : 0), products(A * A * product);
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
      const int64_t top = i * S - z_.pad_h, left = j * S - z_.pad_w;
      const T* corner = x_ + ((n * z_.h + top) * z_.w + left) * z_.c;
      float* to_row = spectra + (square - block) * row_;
      if (top >= 0 && left >= 0 && top + A <= z_.h && left + A <= z_.w)
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
    for (int64_t c = 0; c < z_.c; c += kLanes) {
      vec half[A][A];
#pragma GCC unroll 6
      for (int s = 0; s < A; ++s) {
        vec d[A];
#pragma GCC unroll 6
        for (int r = 0; r < A; ++r) d[r] = read(r, s, c);
        Square<S>::inputs(d, half[s]);
      }
#pragma GCC unroll 6
      for (int r = 0; r < A; ++r) {
        vec d[A], v[A];
#pragma GCC unroll 6
        for (int s = 0; s < A; ++s) d[s] = half[s][r];
        Square<S>::inputs(d, v);
#pragma GCC unroll 6
        for (int s = 0; s < A; ++s) store(to + (r * A + s) * plane + c, v[s]);
      }
    }
  }

  void multiply(const float* spectra, int64_t plane, float* products, int64_t product, int64_t squares, int64_t first, int64_t last) const {
    const int64_t column = panels_.column(first);
    for (int64_t point = 0; point < A * A; ++point)
      for (int64_t panel = first; panel < last; ++panel) {
        const int nv = panels_.width(panel);
        const float* right = weights_ + (point * z_.k + panels_.column(panel)) * z_.c;
        for (int64_t row = 0; row < squares; row += kRows[nv]) {
          const int mr = int(std::min<int64_t>(kRows[nv], (squares - row + 1) / 2 * 2));
          const float* left[kMostRows];
          float* out[kMostRows];
          for (int r = 0; r < mr; ++r) {
            left[r] = spectra + point * plane + (row + r) * row_;
            out[r] = products + point * product + (row + r) * product_row_ + panels_.column(panel) - column;
          }
          kTiles<float, float>[nv][mr / 2](left, &right, 1, z_.c, out, nullptr, false);
        }
      }
  }

  void leave(const float* products, int64_t product, int64_t from, int64_t to, int64_t column, int64_t end) const {
    for (int64_t square = from; square < to; ++square) {
      const int64_t j = square % right_, i = square / right_ % down_, n = square / right_ / down_;
      const int64_t offset = ((n * z_.p + i * S) * z_.q + j * S) * z_.k;
      const int64_t rows = std::min<int64_t>(S, z_.p - i * S), columns = std::min<int64_t>(S, z_.q - j * S);
      for (int64_t k = column; k < end; k += kLanes) {
        const float* at = products + (square - from) * product_row_ + k - column;
        vec half[A][S], y[S][S];
#pragma GCC unroll 6
        for (int s = 0; s < A; ++s) {
          vec m[A];
#pragma GCC unroll 6
          for (int r = 0; r < A; ++r) m[r] = load(at + (r * A + s) * product);
          Square<S>::outputs(m, half[s]);
        }
        const vec bias = bias_ ? load(bias_ + k) : vec{};
#pragma GCC unroll 6
        for (int r = 0; r < S; ++r) {
          vec m[A];
#pragma GCC unroll 6
          for (int s = 0; s < A; ++s) m[s] = half[s][r];
          Square<S>::outputs(m, y[r]);
        }
        auto put = [&](int64_t r, int64_t s) __attribute__((always_inline)) {
          const int64_t place = offset + (r * z_.q + s) * z_.k + k;
          vec v = y[r][s] + bias;
          if (sum_) v += load(sum_ + place);
          if (z_.relu) v = v > 0 ? v : vec{};
          store(y_ + place, v);
        };
        if (rows == S && columns == S) {
#pragma GCC unroll 4
          for (int r = 0; r < S; ++r)
#pragma GCC unroll 4
            for (int s = 0; s < S; ++s) put(r, s);
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
  const Sizes z_;
  const int64_t down_, right_, all_;  // squares along each axis of an image, and in all of them
  const Panels panels_;
  const int64_t group_, row_;
  int64_t product_row_, block_;
};

}  // namespace

extern "C" {

#define REMEX_WINOGRAD(S)                                                                                                                       \
  void weights_##S(const float* weight, float* out, int64_t channels, int64_t filters, int64_t turned, int threads) {                           \
    transform_weights<S>(weight, out, channels, filters, turned, threads);                                                                      \
  }
#define REMEX_CONVOLUTION(S, suffix, T)                                                                                                         \
  void forward_##S##_##suffix(const T* x, const float* weights, const float* bias, const T* sum, T* y, const Sizes* sizes, int threads) {       \
    Convolution<S, T>(x, weights, bias, sum, y, *sizes).run(threads);                                                                           \
  }

REMEX_WINOGRAD(2)
REMEX_WINOGRAD(4)
REMEX_CONVOLUTION(2, float32, float)
REMEX_CONVOLUTION(4, float32, float)
#if defined(__AVX512BF16__)
REMEX_CONVOLUTION(2, bfloat16, bfloat16)  // stored so; what is between is float32
REMEX_CONVOLUTION(4, bfloat16, bfloat16)
#endif
}
