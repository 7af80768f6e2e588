// Samples of a deformable convolution: its taps, moved by offsets, interpolated between four pixels. The channels of a pixel are contiguous.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/parameters.h"
#include "runtime/vectors.h"

namespace {

// The pixels around a position and their weights. `inside` is false if all of them are outside of the image.
struct BilinearSample {
  int64_t at[4];
  float weight[4];
  bool inside;

  // What lies outside is zero; with `fades` pixels at the border fade into that within a pixel, else they go on to the border's last row.
  BilinearSample(float y, float x, const DeformableParams& s) {
    inside = (s.fades ? y > -1 && x > -1 : y >= 0 && x >= 0) && y < float(s.h) && x < float(s.w);
    if (!inside) return;  // NaN, too
    if (!s.fades) {
      y = std::min(y, float(s.h - 1));
      x = std::min(x, float(s.w - 1));
    }
    const float top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
    const int64_t row = int64_t(top), column = int64_t(left);
    for (int i = 0; i < 4; ++i) {
      const int64_t r = row + i / 2, c = column + i % 2;
      const bool inside = r >= 0 && r < s.h && c >= 0 && c < s.w;
      at[i] = inside ? r * s.w + c : 0;
      weight[i] = inside ? (i / 2 ? dy : 1 - dy) * (i % 2 ? dx : 1 - dx) : 0.0f;
    }
  }
};

void interpolate(const float* __restrict image, float* __restrict out, const BilinearSample& sample, float factor, int64_t stride, int64_t channels) {
  const float* from[4];
  float weight[4];
  for (int i = 0; i < 4; ++i) {
    from[i] = image + sample.at[i] * stride;
    weight[i] = sample.weight[i] * factor;
  }
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes)
    store(out + c, load(from[0] + c) * weight[0] + load(from[1] + c) * weight[1] + load(from[2] + c) * weight[2] + load(from[3] + c) * weight[3]);
  for (; c < channels; ++c) out[c] = from[0][c] * weight[0] + from[1][c] * weight[1] + from[2][c] * weight[2] + from[3][c] * weight[3];
}

}  // namespace

extern "C" {

// Makes out (images, rows, columns, taps, channels). Offsets are (images, groups, taps, down and right, rows, columns), a mask (images, groups,
// taps, rows, columns); the channels of a group share both.
void patches(const float* data, const float* offset, const float* mask, float* out, const DeformableParams* params, int threads) {
  const DeformableParams& s = *params;
  const int64_t points = s.p * s.q, taps = s.down * s.across, together = s.c / s.groups;
#pragma omp parallel for collapse(2) num_threads(threads)
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t p = 0; p < points; ++p) {
      const float* image = data + n * s.h * s.w * s.c;
      const float down = float(p / s.q * s.stride_down - s.pad_down), across = float(p % s.q * s.stride_across - s.pad_across);
      for (int64_t g = 0; g < s.groups; ++g)
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t tap = (n * s.groups + g) * taps + t;
          const float y = down + float(t / s.across * s.dilate_down) + offset[2 * tap * points + p];
          const float x = across + float(t % s.across * s.dilate_across) + offset[(2 * tap + 1) * points + p];
          const BilinearSample sample(y, x, s);
          float* to = out + ((n * points + p) * taps + t) * s.c + g * together;
          if (sample.inside)
            interpolate(image + g * together, to, sample, mask ? mask[tap * points + p] : 1.0f, s.c, together);
          else
            std::fill(to, to + together, 0.0f);
        }
    }
}

}  // extern "C"
