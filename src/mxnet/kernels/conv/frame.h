// Images of few channels in a frame of zeros: the inputs of a row of the filter are neighbours there, in the padding too.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

// A line of an image: `width` pixels, whose channels lie `apart` from each other, become neighbours.
template <int C>
void interleave(const float* from, int64_t apart, int64_t width, float* to) {
  for (int64_t i = 0; i < width; ++i)
    for (int c = 0; c < C; ++c) to[i * C + c] = from[c * apart + i];
}

// Writes the images in their frames, one line after another. With `planes` they have their channels first.
template <typename Sizes>
void make_frame(const float* x, float* frame, const Sizes& z, bool planes, int threads) {
  const int64_t height = z.h + 2 * z.pad_h, width = z.w + 2 * z.pad_w;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < z.n * height; ++i) {
    const int64_t row = i % height - z.pad_h;
    float* to = frame + i * width * z.c;
    if (row < 0 || row >= z.h) {
      std::fill_n(to, width * z.c, 0.f);
      continue;
    }
    std::fill_n(to, z.pad_w * z.c, 0.f);
    if (planes) {
      const float* from = x + (i / height * z.c * z.h + row) * z.w;
      if (z.c == 3)
        interleave<3>(from, z.h * z.w, z.w, to + z.pad_w * z.c);
      else
        for (int64_t c = 0; c < z.c; ++c)
          for (int64_t j = 0; j < z.w; ++j) to[(z.pad_w + j) * z.c + c] = from[c * z.h * z.w + j];
    } else {
      std::memcpy(to + z.pad_w * z.c, x + (i / height * z.h + row) * z.w * z.c, size_t(z.w * z.c) * 4);
    }
    std::fill_n(to + (z.pad_w + z.w) * z.c, z.pad_w * z.c, 0.f);
  }
}

}  // namespace
