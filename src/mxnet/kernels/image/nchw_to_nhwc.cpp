// Images (N, C, H, W) of a few channels with their channels last, (N, H, W, C): one pass, on the calling thread.
#include <cstdint>

namespace {

template <int C>
void interleave(const float* __restrict in, float* __restrict out, int64_t images, int64_t pixels) {
  for (int64_t n = 0; n < images; ++n, in += C * pixels, out += C * pixels)
    for (int64_t p = 0; p < pixels; ++p)
      for (int c = 0; c < C; ++c) out[p * C + c] = in[c * pixels + p];
}

}  // namespace

extern "C" {

void two(const float* in, float* out, int64_t images, int64_t pixels) { interleave<2>(in, out, images, pixels); }
void three(const float* in, float* out, int64_t images, int64_t pixels) { interleave<3>(in, out, images, pixels); }
void four(const float* in, float* out, int64_t images, int64_t pixels) { interleave<4>(in, out, images, pixels); }

}  // extern "C"
