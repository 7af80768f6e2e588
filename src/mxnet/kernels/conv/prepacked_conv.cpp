// Two-dimensional convolutions with constant weights, over channels-last arrays: x (N, H, W, C), y (N, P, Q, K). The weights are packed once.
//
// With few channels the sum runs over rows of the filter instead of taps: the inputs of a row are contiguous, except in the padding, so images are
// copied into a frame of zeros first. Such an image may also have its channels first (N, C, H, W), as the input of a network's first layer.
#include <algorithm>
#include <cstdint>

#include "conv/frame.h"
#include "conv/indirect_gemm.h"
#include "runtime/parameters.h"

namespace {

constexpr int64_t kFilterMultiple = 16;  // the packed number of filters is a multiple of it on every processor

}  // namespace

extern "C" {

// Weights (K, taps, depth) as IndirectGemm reads them; filters that are not there are zeros.
void pack_float32(const float* weight, float* packed, int64_t filters, int64_t taps, int64_t depth, int threads) {
  const Panels panels((filters + kFilterMultiple - 1) / kFilterMultiple * kFilterMultiple);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < panels.count * taps; ++i) {
    const int64_t panel = i / taps, tap = i % taps, column = panels.column(panel), width = panels.width(panel) * kLanes;
    float* to = packed + (column * taps + tap * width) * depth;
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t j = 0; j < width; ++j) to[d * width + j] = column + j < filters ? weight[((column + j) * taps + tap) * depth + d] : 0;
  }
}

// y are K of the `total` channels of an array, from `first` on. With `lines` there is a frame for the padded images, which come as `planes` or not.
void forward_float32(const float* x, const float* packed, const float* bias, const float* residual, float* y, float* frame,
                     const PrepackedConvParams* params, float ceiling, int threads) {
  using Gemm = IndirectGemm<float, float>;
  const PrepackedConvParams z = params->lines ? *params : in_one_line(*params);  // frames are made line by line, of planes image by image
  const Gemm::Destination out{y + z.first, {z.n, z.p, z.q, (z.k + kFilterMultiple - 1) / kFilterMultiple * kFilterMultiple}};
  const Epilogue<float> epilogue{z.k, z.total, residual, ceiling};
  if (z.lines) {
    make_frame(x, frame, z, z.planes, threads);
    const Image framed{z.n, z.h + 2 * z.pad_h, z.w + 2 * z.pad_w, z.c};
    const OutputSegment whole_rows{0, 1, z.q, z.stride_w, {{0, 0}}};
    Gemm({frame, framed, z.s * z.c}, out, {forward_axis(z.p, z.stride_h, z.r, framed.h, 0, z.dilate_h), {whole_rows}, z.r, 1}, bias, epilogue)
        .run(packed, threads);
  } else {
    Gemm({x, {z.n, z.h, z.w, z.c}, z.c}, out,
         {forward_axis(z.p, z.stride_h, z.r, z.h, z.pad_h, z.dilate_h), forward_axis(z.q, z.stride_w, z.s, z.w, z.pad_w, z.dilate_w), z.r, z.s}, bias,
         epilogue)
        .run(packed, threads);
  }
}

}  // extern "C"
