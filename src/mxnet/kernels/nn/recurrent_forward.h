// The forward pass of one direction of a recurrent layer: in each step the products of the state with the weights, packed or (few rows) as they are,
// then the gates, then the projection.
#pragma once
#include "nn/recurrent_packing.h"

namespace {

template <typename T>
struct Forward {
  const Steps& steps;
  T* gates;                     // (n, G H): the projected input; the activated gates, if these are kept
  const T *weights, *project;   // (G H, P); (P, H), or null where P is H and nothing is projected
  const float* packed;          // the weights and the projection as panels, or null
  const float* bias;            // (H): of GRU's candidate, inside of what is reset
  const T* h0;                  // (N, P)
  const float* c0;              // (N, H): LSTM's
  T *out, *middle;              // (n, P); what is projected, (n, H), or (N, H) if not kept
  float* kept;                  // LSTM: the cell states (n, H), or (N, H) if not kept. GRU: the product that is reset, if kept
  int64_t units, depth;
  bool keep;
  float *wide, *wide_middle;    // as floats, or null: the states before and after a step (2, N, P), what is projected (N, H)

  const T* before(int64_t s, int64_t row) const { return row < steps.known(s) ? out + steps.at(s - 1, row) * depth : h0 + row * depth; }
  int64_t stored(int64_t s, int64_t row) const { return (keep ? steps.at(s, row) : row) * units; }
  const float* carry_before(int64_t s, int64_t row) const { return row < steps.known(s) ? kept + stored(s - 1, row) : c0 + row * units; }
  T* result(int64_t s, int64_t row) const { return project ? middle + stored(s, row) : out + steps.at(s, row) * units; }
  float* wide_before(int64_t s, int64_t row) const { return wide + (s % 2 * steps.rows + row) * depth; }
};

// Applies the gates of a vector of units, from `unit` on, to R rows in a step, after their sums are complete.
template <Mode M, typename T, int R, typename Lanes>
inline __attribute__((always_inline)) void apply_gates(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates<M>], Lanes lanes) {
  for (int i = 0; i < R; ++i) {
    T* gates = f.gates + f.steps.at(s, row + i) * kGates<M> * f.units + unit;
    T* result = f.result(s, row + i) + unit;
    if constexpr (M == kLstm) {
      const vec in = sigmoid(sum[i][0]), forget = sigmoid(sum[i][1]), candidate = tanh(sum[i][2]), out = sigmoid(sum[i][3]);
      const vec carry = forget * lanes.get(f.carry_before(s, row + i) + unit) + in * candidate;
      lanes.put(f.kept + f.stored(s, row + i) + unit, carry);
      lanes.put(result, out * tanh(carry));
      if (f.keep) {
        lanes.put(gates, in);
        lanes.put(gates + f.units, forget);
        lanes.put(gates + 2 * f.units, candidate);
        lanes.put(gates + 3 * f.units, out);
      }
    } else if constexpr (M == kGru) {
      const vec reset = sigmoid(sum[i][0]), update = sigmoid(sum[i][1]);
      const vec candidate = tanh(lanes.get(gates + 2 * f.units) + reset * sum[i][2]);
      lanes.put(result, candidate + update * (lanes.get(f.before(s, row + i) + unit) - candidate));
      if (f.keep) {
        lanes.put(gates, reset);
        lanes.put(gates + f.units, update);
        lanes.put(gates + 2 * f.units, candidate);
        lanes.put(f.kept + f.stored(s, row + i) + unit, sum[i][2]);
      }
    } else {
      const vec value = M == kTanh ? tanh(sum[i][0]) : sum[i][0] < 0.0f ? vec{} : sum[i][0];
      lanes.put(result, value);
      if (f.keep) lanes.put(gates, value);
    }
    if (f.wide) lanes.put((f.project ? f.wide_middle + (row + i) * f.units : f.wide_before(s + 1, row + i)) + unit, lanes.get(result));
  }
}

// `W` is the type of the products' operands: T, or float for wide copies.
template <Mode M, typename T, typename W, int R, typename Lanes>
inline __attribute__((always_inline)) void load_sums(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates<M>],
                                                     const cell* (&h)[R], Lanes lanes) {
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    if constexpr (sizeof(W) == sizeof(T))
      h[i] = cells(f.before(s, row + i));
    else
      h[i] = f.wide_before(s, row + i);
#pragma GCC unroll 4
    for (int g = 0; g < kGates<M>; ++g)
      sum[i][g] = M == kGru && g == 2 ? lanes.get(f.bias + unit) : lanes.get(f.gates + (f.steps.at(s, row + i) * kGates<M> + g) * f.units + unit);
  }
}

// R rows with a packed panel: for each pass, for each cell of the depth, a vector of each gate. `next` is the next panel, or null; its
// projected input is prefetched, too, since the lines of that are far apart.
template <Mode M, typename T, typename W, int R>
void packed_gates(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, const float* panel, const float* next, int64_t tile, int64_t next_unit) {
  constexpr int G = kGates<M>, V = kGatesPerPass<M>;
  const int64_t depth = f.depth / Cells<W>::kEach;
  vec sum[R][G];
  const cell* h[R];
  const int64_t count = f.units - unit;
  with_lanes<T>(count, [&](auto lanes) { load_sums<M, T, W, R>(f, s, row, unit, sum, h, lanes); });
  for (int i = 0; i < R; ++i)
    for (int g = 0; g < G; ++g) __builtin_prefetch(f.gates + (f.steps.at(s, row + i) * G + g) * f.units + next_unit, 0, 2);
#pragma GCC unroll 4
  for (int from = 0; from < G; from += V) {
    vec part[R][V];
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) part[i][v] = sum[i][from + v];
    const int64_t fetched = tile * (G / V) + from / V;
    const bool streams = R <= kMaxUnpackedRows && f.steps.rows <= kMaxUnpackedRows;
    if constexpr (R <= kMaxUnpackedRows)
      if (streams) streaming_products<W>(part, h, depth, panel + from * depth * kLanes);
    if (!streams)
      products<W>(part, h, depth, panel + from * depth * kLanes,
                  next && fetched < G ? next + (fetched / V * depth * V + fetched % V) * kLanes : nullptr);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][from + v] = part[i][v];
  }
  with_lanes<T>(count, [&](auto lanes) { apply_gates<M, T, R>(f, s, row, unit, sum, lanes); });
}

// Computes the projected states of R rows for the units of a packed panel of the projection.
template <typename T, typename W, int R>
void project_rows(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, const float* panel) {
  vec sum[R][kPanelVectors] = {};
  const cell* left[R];
  for (int i = 0; i < R; ++i) {
    if constexpr (sizeof(W) == sizeof(T))
      left[i] = cells(f.result(s, row + i));
    else
      left[i] = f.wide_middle + (row + i) * f.units;
  }
  products<W>(sum, left, f.units / Cells<W>::kEach, panel, nullptr);
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < kPanelVectors; ++j) {
      T* out = f.out + f.steps.at(s, row + i) * f.depth + unit + j * kLanes;
      store(out, sum[i][j]);
      if (f.wide) store(f.wide_before(s + 1, row + i) + unit + j * kLanes, load(out));
    }
}

// R rows with the weights as they are: dot products, of U units at a time.
template <Mode M, typename T, int R>
void unpacked_gates(const Forward<T>& f, int64_t s, int64_t row, int64_t unit) {
  constexpr int G = kGates<M>, U = M == kLstm ? (R == 1 ? 2 : 1) : M == kGru ? (R == 1 ? 4 : R == 2 ? 2 : 1) : (R == 1 ? 8 : R == 2 ? 4 : 2);
  const int64_t depth = f.units / Cells<T>::kEach;
  vec sum[R][G];
  const cell* h[R];
  load_sums<M, T, T, R>(f, s, row, unit, sum, h, AllLanes{});
  for (int u = 0; u < kLanes; u += U) {
    vec dots[R][G][U] = {};
    const cell* w[G];
    for (int g = 0; g < G; ++g) w[g] = cells(f.weights + (g * f.units + unit + u) * f.units);
    for (int64_t k = 0; k < depth; k += kLanes) {
      vec left[R];
#pragma GCC unroll 3
      for (int i = 0; i < R; ++i) left[i] = load(h[i] + k);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g)
#pragma GCC unroll 8
        for (int j = 0; j < U; ++j) {
          const vec right = load(w[g] + j * depth + k);
#pragma GCC unroll 3
          for (int i = 0; i < R; ++i) dots[i][g][j] = dot<T>(dots[i][g][j], left[i], right);
        }
    }
#pragma GCC unroll 3
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g)
#pragma GCC unroll 8
        for (int j = 0; j < U; ++j) sum[i][g][u + j] += reduce_add(dots[i][g][j]);
  }
  apply_gates<M, T, R>(f, s, row, unit, sum, AllLanes{});
}

template <typename T>
using UnpackedGates = void (*)(const Forward<T>&, int64_t, int64_t, int64_t);
template <typename T>
using PackedGates = void (*)(const Forward<T>&, int64_t, int64_t, int64_t, const float*, const float*, int64_t, int64_t);
template <typename T>
using ProjectRows = void (*)(const Forward<T>&, int64_t, int64_t, int64_t, const float*);

template <Mode M, typename T, typename W, int... I>
PackedGates<T> packed_gates_of(int64_t rows, std::integer_sequence<int, I...>) {
  static constexpr PackedGates<T> found[] = {packed_gates<M, T, W, I + 1>...};
  return found[rows - 1];
}

template <typename T, typename W, int... I>
ProjectRows<T> project_rows_of(int64_t rows, std::integer_sequence<int, I...>) {
  static constexpr ProjectRows<T> found[] = {project_rows<T, W, I + 1>...};
  return found[rows - 1];
}

template <Mode M, typename T, typename W>
void run_forward(Forward<T> f, int threads) {
  static constexpr UnpackedGates<T> unpacked[] = {unpacked_gates<M, T, 1>, unpacked_gates<M, T, 2>, unpacked_gates<M, T, 3>};
  constexpr bool widens = sizeof(W) != sizeof(T);
  const Layout<M, W> layout(f.units, f.depth, f.project);
  const int64_t most = f.steps.rows, panel = layout.panel;
  const bool packs = most > kMaxUnpackedRows || f.project || f.packed || is_ragged<T>(f.units);
  const Aligned own_panels(packs && !f.packed ? layout.size() : 0);
  const Aligned states(packs && widens ? most * (2 * f.depth + (f.project ? f.units : 0)) : 0);
  const float* const panels = f.packed ? f.packed : own_panels.data;
  const float* const projection = panels + layout.blocks * panel;
  if (packs && widens) {
    f.wide = states.data;
    f.wide_middle = states.data + 2 * most * f.depth;
    for (int64_t turn = 0; turn < 2; ++turn)  // going backwards, sequences begin in either
      for (int64_t i = 0; i < most * f.depth; i += kLanes) store(f.wide_before(turn, 0) + i, load(f.h0 + i));
  }
#pragma omp parallel num_threads(threads)
  {
    const Share own(layout.blocks), projected_share(layout.projected);
    if (packs && !f.packed) layout.pack_share(f.weights, f.project, own_panels.data);
    for (int64_t s = 0; s < f.steps.steps; ++s) {
      const int64_t rows = f.steps.count(s);
      for (int64_t i = own.from; i < own.to && rows; ++i) {
        const int64_t b = own.at(i, s);
        const float* weights = panels + b * panel;
        const int64_t after = i + 1 < own.to ? own.at(i + 1, s) : b;
        const float* next = after != b ? panels + after * panel : nullptr;
        if (packs)
          tiles(rows, kForwardRows<M>, [&](int64_t row, int64_t size, int64_t tile) {
            packed_gates_of<M, T, W>(size, std::make_integer_sequence<int, kForwardRows<M>>())(f, s, row, b * kLanes, weights, next, tile,
                                                                                               after * kLanes);
          });
        else
          unpacked[rows - 1](f, s, 0, b * kLanes);
      }
#pragma omp barrier
      if (f.project) {
        for (int64_t b = projected_share.from; b < projected_share.to; ++b)
          tiles(rows, kBackwardRows, [&](int64_t row, int64_t size, int64_t) {
            project_rows_of<T, W>(size, std::make_integer_sequence<int, kBackwardRows>())(f, s, row, b * kUnitBlock,
                                                                                          projection + b * layout.projection_panel);
          });
#pragma omp barrier
      }
    }
  }
}

}  // namespace
