// The packed copies of a recurrent layer's weights, as the forward pass reads them: a panel for each vector of units, then those of the projection.
#pragma once
#include "nn/recurrent_cells.h"

namespace {

// kLanes rows of a matrix from each of V places, `apart` rows from one to the next: for each cell of their depth a vector of each.
template <int V, typename W, typename T>
void pack(const T* rows, int64_t apart, int64_t length, float* panel) {
  for (int v = 0; v < V; ++v)
    transpose(kLanes, length / Cells<W>::kEach,
              [&](int64_t j, int64_t k) {
                const T* row = rows + (v * apart + j) * length;
                if constexpr (sizeof(W) == sizeof(T)) return load(cells(row) + k);
                else return load(row + k);
              },
              [&](const vec(&found)[kLanes], int64_t, int64_t k) {
                for (int i = 0; i < kLanes; ++i) store(panel + ((k + i) * V + v) * kLanes, found[i]);
              });
}

// The same for any length, of the first `count` rows at each place; the rest is zero.
template <int V>
void pack_some(const float* rows, int64_t apart, int64_t count, int64_t length, float* panel) {
  for (int v = 0; v < V; ++v)
    for (int64_t k = 0; k < length; k += kLanes) {
      const int64_t width = std::min<int64_t>(kLanes, length - k);
      vec square[kLanes];
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) square[j] = j < count ? load(rows + (v * apart + j) * length + k, width) : vec{};
      transpose_square(square);
      for (int64_t i = 0; i < width; ++i) store(panel + ((k + i) * V + v) * kLanes, square[i]);
    }
}

// The number of panels and their cells: a panel for each vector of units, then those of the projection.
template <Mode M, typename W>
struct Layout {
  int64_t units, depth, blocks, panel, projected, projection_panel;
  Layout(int64_t units, int64_t depth, bool projects)
      : units(units), depth(depth), blocks(blocks_of(units, kLanes)), panel(depth / Cells<W>::kEach * kGates<M> * kLanes),
        projected(projects ? depth / kUnitBlock : 0), projection_panel(units / Cells<W>::kEach * kUnitBlock) {}
  int64_t size() const { return blocks * panel + projected * projection_panel; }
  // A thread's part.
  template <typename T>
  void pack_share(const T* weights, const T* project, float* out) const {
    constexpr int V = kGatesPerPass<M>;
    const Share own(blocks), projected_share(projected);
    for (int64_t b = own.from; b < own.to; ++b)
      for (int g = 0; g < kGates<M>; g += V) {
        const T* rows = weights + (g * units + b * kLanes) * depth;
        float* to = out + b * panel + g * (panel / kGates<M>);
        if constexpr (sizeof(T) == sizeof(float))
          if (is_ragged<T>(units) || is_ragged<T>(depth)) {
            pack_some<V>(rows, units, std::min<int64_t>(kLanes, units - b * kLanes), depth, to);
            continue;
          }
        pack<V, W>(rows, units, depth, to);
      }
    for (int64_t b = projected_share.from; b < projected_share.to; ++b)
      pack<kPanelVectors, W>(project + b * kUnitBlock * units, kLanes, units, out + blocks * panel + b * projection_panel);
  }
};

template <Mode M, typename T, typename W>
void run_pack(const T* weights, const T* project, float* out, int64_t units, int64_t depth, int threads) {
  const Layout<M, W> layout(units, depth, project);
#pragma omp parallel num_threads(threads)
  layout.pack_share(weights, project, out);
}

}  // namespace
