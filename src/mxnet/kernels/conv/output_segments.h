// The outputs of a convolution along one axis, grouped by the taps of the filter that they read inside the image: padding needs no copy then.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

// Along one axis: outputs which lie `apart` from each other, from `first` on, and read the same taps of the kernel, none in the padding.
struct OutputSegment {
  struct Tap {
    int64_t index, source;  // the tap's number, and its input for the first output
  };
  int64_t first, apart, count, step;
  std::vector<Tap> taps;
  // True if each output reads three adjacent inputs, shifted by one for the next output.
  bool in_threes() const {
    if (step != 1 || taps.size() != 3) return false;
    const int64_t side = taps[1].source - taps[0].source;
    return (side == 1 || side == -1) && taps[2].source - taps[1].source == side;
  }
};

// All outputs of one axis. tap(i, r) is the input of output i through tap r, negative for none.
template <typename Source>
void append_segments(std::vector<OutputSegment>& found, int64_t first, int64_t apart, int64_t count, int64_t step, int64_t kernel, int64_t size,
                     Source tap) {
  for (int64_t i = 0; i < count; ++i) {
    std::vector<OutputSegment::Tap> taps;
    for (int64_t r = 0; r < kernel; ++r) {
      const int64_t at = tap(i, r);
      if (at >= 0 && at < size) taps.push_back({r, at});
    }
    bool same = i > 0 && found.back().taps.size() == taps.size();
    for (size_t t = 0; same && t < taps.size(); ++t) same = found.back().taps[t].index == taps[t].index;
    if (same)
      ++found.back().count;
    else
      found.push_back({first + i * apart, apart, 1, step, taps});
  }
}

// The sizes of a convolution; a pointwise one (1 x 1, stride 1) is flattened to a single line of pixels.
template <typename Sizes>
Sizes in_one_line(Sizes z) {
  if (z.r * z.s * z.stride_h * z.stride_w == 1 && !z.pad_h && !z.pad_w) z.w = z.q = z.n * z.h * z.w, z.n = z.h = z.p = 1;
  return z;
}

// One axis of a convolution: the inputs of its outputs.
inline std::vector<OutputSegment> forward_axis(int64_t outputs, int64_t stride, int64_t kernel, int64_t size, int64_t pad, int64_t dilate) {
  if (kernel * stride == 1 && !pad) return {{0, 1, outputs, 1, {{0, 0}}}};
  std::vector<OutputSegment> found;
  append_segments(found, 0, 1, outputs, stride, kernel, size, [=](int64_t i, int64_t tap) { return i * stride + tap * dilate - pad; });
  return found;
}

// And of the way back: which gradients of outputs the gradient of the data, of that size, is made of. With a stride, the positions that are the same
// modulo the stride meet the same taps.
inline std::vector<OutputSegment> backward_axis(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad, int64_t dilate) {
  if (kernel * stride == 1 && !pad) return {{0, 1, size, 1, {{0, 0}}}};
  std::vector<OutputSegment> found;
  for (int64_t first = 0; first < std::min(stride, size); ++first)
    append_segments(found, first, stride, (size - first + stride - 1) / stride, 1, kernel, outputs, [=](int64_t i, int64_t tap) {
      const int64_t at = first + i * stride + pad - tap * dilate;
      return at >= 0 && at % stride == 0 ? at / stride : -1;
    });
  return found;
}

}  // namespace
