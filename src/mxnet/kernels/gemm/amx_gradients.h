// The gradient of a convolution's weights on tiles of bfloat16 (AMX): a product over all outputs, of their gradients with their inputs.
#pragma once
#include <algorithm>
#include <cstdint>

#include <omp.h>

#include "gemm/amx_tiles.h"
#include "runtime/parameters.h"

namespace {

constexpr int64_t kLong = 16;             // steps along the outputs whose products are added to the gradient of the weights together
constexpr int64_t kFewWeights = 1 << 18;  // whose gradients each thread sums up for itself
constexpr int64_t kGradients = 1 << 20;   // bytes of transposed output gradients that stay in the L2 cache

// Prefetches the numbers behind 32 numbers of two rows, for the next panel; for a first panel, rows that are further away.
constexpr int64_t kAhead = 16;  // rows
template <typename T>
inline void ahead(const T* first, const T* second, int64_t further) {
  constexpr int64_t line = 64 / sizeof(T);
  for (const T* row : {first, second})
    for (int64_t i = 0; row && i < kSide; i += line) {
      __builtin_prefetch(row + kSide + i, 0, 2);
      if (further) __builtin_prefetch(row + further + i, 0, 2);
    }
}

// The transposed gradients of up to kLong * kSide outputs, from m on, for the filters of one panel, in tiles. With `first` they are the first panel.
template <typename T>
void pack_gradients(const T* dy, const StridedConvParams& z, int64_t m, int64_t count, int64_t k, bool first_panel, half* to) {
  constexpr int kParallelTiles = 2 * kParts<T>;
  for (int64_t step = 0; step < pieces(count); ++step, to += kParallelTiles * kTile) {
    vec lines[kParallelTiles][kLanes];
    for (int64_t i = 0; i < 16; ++i) {
      auto row = [=](int64_t r) { return r < count ? dy + (m + r) * z.k + k * kSide : nullptr; };
      const T *first = row(step * kSide + 2 * i), *second = row(step * kSide + 2 * i + 1);
      ahead(first, second, first_panel ? kAhead * z.k : 0);
      pairs(first, second, those(k * kSide, z.k), [&](int tile, __m512i line) { lines[tile][i] = (vec)_mm512_castsi512_ps(line); });
    }
    for (int tile = 0; tile < kParallelTiles; ++tile) {
      transpose_square(lines[tile]);
      for (int i = 0; i < kLanes; ++i) store(reinterpret_cast<float*>(to + tile * kTile + i * kSide), lines[tile][i]);
    }
  }
}

// The inputs of these outputs through one tap; null in the padding, and behind the last.
template <typename T>
void find_inputs(const T* x, const StridedConvParams& z, int64_t m, int64_t count, int64_t tap, const T** from) {
  int64_t j = m % z.q, i = m / z.q % z.p, image = m / z.q / z.p;
  for (int64_t r = 0; r < pieces(count) * kSide; ++r) {
    const int64_t h = i * z.stride_h - z.pad_h + tap / z.s * z.dilate_h, w = j * z.stride_w - z.pad_w + tap % z.s * z.dilate_w;
    const bool inside = r < count && h >= 0 && h < z.h && w >= 0 && w < z.w;
    from[r] = inside ? x + ((image * z.h + h) * z.w + w) * z.c : nullptr;
    if (++j == z.q) {
      j = 0;
      if (++i == z.p) i = 0, ++image;
    }
  }
}

// The weight gradient is a product over all outputs, of their transposed gradients with their inputs. This is the part of some outputs, filters and
// channels, in panels of 32, accumulated in the result.
template <typename T>
void gradients(const T* dy, const T* x, float* dweight, const StridedConvParams& z, Range outputs, Range filters, Range channels) {
  constexpr int64_t step_size = 2 * kParts<T> * kTile;
  const int64_t taps = z.r * z.s;
  const Tiles tiles;
  Aligned left_memory(filters.size() * kLong * step_size / 2), right_memory(kLong * step_size / 2);
  half *left = reinterpret_cast<half*>(left_memory.data), *right = reinterpret_cast<half*>(right_memory.data);
  const T* from[kLong * kSide];
  for (int64_t m = outputs.begin; m < outputs.end; m += kLong * kSide) {
    const int64_t count = std::min(kLong * kSide, outputs.end - m), deep = pieces(count);
    for (int64_t k = filters.begin; k < filters.end; ++k)
      pack_gradients(dy, z, m, count, k, k == filters.begin, left + (k - filters.begin) * kLong * step_size);
    for (int64_t tap = 0; tap < taps; ++tap) {
      find_inputs(x, z, m, count, tap, from);
      for (int64_t c = channels.begin; c < channels.end; ++c) {
        for (int64_t r = 0; r < deep * kSide; r += 2) {
          auto row = [&](int64_t at) { return from[at] ? from[at] + c * kSide : nullptr; };
          const T *first = row(r), *second = row(r + 1);
          half* to = right + r / kSide * step_size + r % kSide / 2 * kSide;
          ahead(first, second, c == channels.begin ? kAhead * z.c : 0);
          pairs(first, second, those(c * kSide, z.c), [=](int tile, __m512i line) { _mm512_store_si512(to + tile * kTile, line); });
        }
        for (int64_t k = filters.begin; k < filters.end; ++k)
          multiply_tiles<kParts<T>>(z.k - k * kSide, z.c - c * kSide, left + (k - filters.begin) * kLong * step_size, right, deep,
                                    dweight + (k * kSide * taps + tap) * z.c + c * kSide, taps * z.c, m > outputs.begin, [] {});
      }
    }
  }
}

// All filters and channels of some panels: so many filters at a time as leave their gradients room.
template <typename T>
void in_groups(const T* dy, const T* x, float* dweight, const StridedConvParams& z, Range outputs, Range filters, Range channels) {
  constexpr int64_t most = kGradients / (kLong * 2 * kParts<T> * kTile * 2);
  const int64_t groups = (filters.size() + most - 1) / most;
  for (int64_t g = 0; g < groups && channels.size() > 0; ++g) gradients(dy, x, dweight, z, outputs, filters.part(g, groups), channels);
}

// Threads share the outputs, with sums of their own, where weights are few; else the filters, or the channels where filters are too few.
template <typename T>
void backward_weight(const T* dy, const T* x, float* dweight, const StridedConvParams& z, int threads) {
  const int64_t outputs = z.n * z.p * z.q, weights = z.k * z.r * z.s * z.c;
  const Range filters{0, pieces(z.k)}, channels{0, pieces(z.c)};
  const bool along = weights <= kFewWeights && outputs >= threads * kLong * kSide;
  Aligned sums(along ? weights * (threads - 1) : 0);
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    if (along) {
      const Range blocks = Range{0, pieces(outputs)}.part(thread, team);
      in_groups(dy, x, thread ? sums.data + (thread - 1) * weights : dweight, z, {blocks.begin * kSide, std::min(blocks.end * kSide, outputs)},
                filters, channels);
#pragma omp barrier
#pragma omp for schedule(static)
      for (int64_t i = 0; i < weights; i += kLanes)
        for (int64_t other = 0; other < team - 1; ++other) store(dweight + i, load(dweight + i) + load(sums.data + other * weights + i));
    } else if (filters.size() >= team) {
      in_groups(dy, x, dweight, z, {0, outputs}, filters.part(thread, team), channels);
    } else {
      in_groups(dy, x, dweight, z, {0, outputs}, filters, channels.part(thread, team));
    }
  }
}

}  // namespace
