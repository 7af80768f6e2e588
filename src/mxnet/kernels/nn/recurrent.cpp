// One direction of one recurrent layer, forward and backward, over sequences x (T, N, ...): LSTM (Hochreiter and Schmidhuber 1997), which may project
// its state (Sak et al. 2014), GRU (Cho et al. 2014, reset after the product with the state), and plain ones with tanh or ReLU; in single precision
// or in bfloat16 with sums in single precision.
//
// Sequences may end early. They are sorted then, the longest first, and lie packed: a step has only the rows of those that are not over.
//
// The projection of the input is one large product, made outside. Here is the recurrence: a product of the state, a few rows, with
// weights that are as large as the caches. Each thread has its own units, so that all gates of a unit are in registers and a step
// needs one barrier. Few rows read the weights unpacked; many rows read a packed copy, which stays in the L2 cache for all tiles of
// rows. Every other step reads the weights backwards, beginning with those that are still cached.
//
// Operands of products are read in cells of four bytes, as in microkernels.h: a float, or two bfloat16 that are neighbours along the depth. Some
// processors multiply pairs of bfloat16 slower than twice as many floats: there, many rows are computed with `wide` copies of the operands, as
// floats.
#include <chrono>
#include <cstring>

#include "nn/recurrent_cells.h"
#include "runtime/parameters.h"

namespace {

// -- forward ------------------------------------------------------------------------------------------------------------------

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

// Applies the gates of kLanes units, from `unit` on, to R rows in a step, after their sums are complete.
template <Mode M, typename T, int R>
void apply_gates(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates<M>]) {
  for (int i = 0; i < R; ++i) {
    T* gates = f.gates + f.steps.at(s, row + i) * kGates<M> * f.units + unit;
    T* result = f.result(s, row + i) + unit;
    if constexpr (M == kLstm) {
      const vec in = sigmoid(sum[i][0]), forget = sigmoid(sum[i][1]), candidate = tanh(sum[i][2]), out = sigmoid(sum[i][3]);
      const vec carry = forget * load(f.carry_before(s, row + i) + unit) + in * candidate;
      store(f.kept + f.stored(s, row + i) + unit, carry);
      store(result, out * tanh(carry));
      if (f.keep) {
        store(gates, in);
        store(gates + f.units, forget);
        store(gates + 2 * f.units, candidate);
        store(gates + 3 * f.units, out);
      }
    } else if constexpr (M == kGru) {
      const vec reset = sigmoid(sum[i][0]), update = sigmoid(sum[i][1]);
      const vec candidate = tanh(load(gates + 2 * f.units) + reset * sum[i][2]);
      store(result, candidate + update * (load(f.before(s, row + i) + unit) - candidate));
      if (f.keep) {
        store(gates, reset);
        store(gates + f.units, update);
        store(gates + 2 * f.units, candidate);
        store(f.kept + f.stored(s, row + i) + unit, sum[i][2]);
      }
    } else {
      const vec value = M == kTanh ? tanh(sum[i][0]) : sum[i][0] < 0.0f ? vec{} : sum[i][0];
      store(result, value);
      if (f.keep) store(gates, value);
    }
    if (f.wide) store((f.project ? f.wide_middle + (row + i) * f.units : f.wide_before(s + 1, row + i)) + unit, load(result));
  }
}

// `W` is the type of the products' operands: T, or float for wide copies.
template <Mode M, typename T, typename W, int R>
void load_sums(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates<M>], const cell* (&h)[R]) {
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    if constexpr (sizeof(W) == sizeof(T))
      h[i] = cells(f.before(s, row + i));
    else
      h[i] = f.wide_before(s, row + i);
#pragma GCC unroll 4
    for (int g = 0; g < kGates<M>; ++g)
      sum[i][g] = M == kGru && g == 2 ? load(f.bias + unit) : load(f.gates + (f.steps.at(s, row + i) * kGates<M> + g) * f.units + unit);
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
  load_sums<M, T, W, R>(f, s, row, unit, sum, h);
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
  apply_gates<M, T, R>(f, s, row, unit, sum);
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
  load_sums<M, T, T, R>(f, s, row, unit, sum, h);
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
  apply_gates<M, T, R>(f, s, row, unit, sum);
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

// The number of panels and their cells: a panel for each vector of units, then those of the projection.
template <Mode M, typename W>
struct Layout {
  int64_t units, depth, blocks, panel, projected, projection_panel;
  Layout(int64_t units, int64_t depth, bool projects)
      : units(units), depth(depth), blocks(units / kLanes), panel(depth / Cells<W>::kEach * kGates<M> * kLanes),
        projected(projects ? depth / kUnitBlock : 0), projection_panel(units / Cells<W>::kEach * kUnitBlock) {}
  int64_t size() const { return blocks * panel + projected * projection_panel; }
  // A thread's part.
  template <typename T>
  void pack_share(const T* weights, const T* project, float* out) const {
    constexpr int V = kGatesPerPass<M>;
    const Share own(blocks), projected_share(projected);
    for (int64_t b = own.from; b < own.to; ++b)
      for (int g = 0; g < kGates<M>; g += V)
        pack<V, W>(weights + (g * units + b * kLanes) * depth, units, depth, out + b * panel + g * (panel / kGates<M>));
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

template <Mode M, typename T, typename W>
void run_forward(Forward<T> f, int threads) {
  static constexpr UnpackedGates<T> unpacked[] = {unpacked_gates<M, T, 1>, unpacked_gates<M, T, 2>, unpacked_gates<M, T, 3>};
  constexpr bool widens = sizeof(W) != sizeof(T);
  const Layout<M, W> layout(f.units, f.depth, f.project);
  const int64_t most = f.steps.rows, panel = layout.panel;
  const bool packs = most > kMaxUnpackedRows || f.project || f.packed;
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

// -- backward -----------------------------------------------------------------------------------------------------------------

template <typename T>
struct Backward {
  const Steps& steps;
  const T* dout;                             // (n, P)
  const float *dh_last, *dc_last;            // (N, P), (N, H), or null
  const T *weights, *project, *gates;        // (G H, P); (P, H) or null; what the forward pass kept, (n, G H)
  const float *kept, *c0;                    // (n, H); (N, H): LSTM's first cell state
  const T* states;                           // (n, H): GRU's states before each step
  T *dgates, *dproduct;                      // (n, G H): of what came from the input; of what came from the state, where that is another (GRU)
  T* dprojected;                             // (n, P): of what the projection made
  float *dh, *dc;                            // (N, P), (N, H): those of the first states
  int64_t units, depth;
  float* dmiddle;                            // (N, H): of what is projected, in a step
};

// The gradients of the gates of one row, for the units from `from` to `to`. The gradient that bypasses the product is left in `dh`.
template <Mode M, typename T>
void gates_backward(const Backward<T>& b, int64_t s, int64_t row, int64_t from, int64_t to) {
  const int64_t at = b.steps.at(s, row);
  for (int64_t u = from; u < to; u += kLanes) {
    const T* gates = b.gates + at * kGates<M> * b.units + u;
    T* dgates = b.dgates + at * kGates<M> * b.units + u;
    const vec dh = b.project ? load(b.dmiddle + row * b.units + u) : load(b.dout + at * b.units + u) + load(b.dh + row * b.units + u);
    if constexpr (M == kLstm) {
      const float* before = row < b.steps.known(s) ? b.kept + b.steps.at(s - 1, row) * b.units : b.c0 + row * b.units;
      const vec in = load(gates), forget = load(gates + b.units), candidate = load(gates + 2 * b.units), out = load(gates + 3 * b.units);
      const vec t = tanh(load(b.kept + at * b.units + u));
      const vec dc = load(b.dc + row * b.units + u) + dh * out * (1.0f - t * t);
      store(dgates, dc * candidate * in * (1.0f - in));
      store(dgates + b.units, dc * load(before + u) * forget * (1.0f - forget));
      store(dgates + 2 * b.units, dc * in * (1.0f - candidate * candidate));
      store(dgates + 3 * b.units, dh * t * out * (1.0f - out));
      store(b.dc + row * b.units + u, dc * forget);
    } else if constexpr (M == kGru) {
      const vec reset = load(gates), update = load(gates + b.units), candidate = load(gates + 2 * b.units);
      const vec inside = dh * (1.0f - update) * (1.0f - candidate * candidate);
      const vec of_reset = inside * load(b.kept + at * b.units + u) * reset * (1.0f - reset);
      const vec of_update = dh * (load(b.states + at * b.units + u) - candidate) * update * (1.0f - update);
      T* dproduct = b.dproduct + at * kGates<M> * b.units + u;
      for (T* p : {dgates, dproduct}) {
        store(p, of_reset);
        store(p + b.units, of_update);
      }
      store(dgates + 2 * b.units, inside);
      store(dproduct + 2 * b.units, inside * reset);
      store(b.dh + row * b.units + u, dh * update);
    } else {
      const vec value = load(gates);
      store(dgates, M == kTanh ? dh * (1.0f - value * value) : value > 0.0f ? dh : vec{});
    }
  }
}

// Multiplies R rows of `depth` cells with a packed panel; `add` accumulates into the result.
template <typename W, int R>
void packed_product(float* out, int64_t width, const cell* given, int64_t depth, bool add, const float* panel, const float* next) {
  vec sum[R][kPanelVectors] = {};
  const cell* left[R];
  for (int i = 0; i < R; ++i) {
    left[i] = given + i * depth;
    for (int j = 0; add && j < kPanelVectors; ++j) sum[i][j] = load(out + i * width + j * kLanes);
  }
  products<W>(sum, left, depth, panel, next);
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kPanelVectors; ++j) store(out + i * width + j * kLanes, sum[i][j]);
}

// kLanes columns, from `unit` on, of cell k of a matrix's depth, which is its rows.
template <typename W, typename T>
vec columns_of(const T* weights, int64_t length, int64_t k, int64_t unit) {
  const T* row = weights + k * Cells<W>::kEach * length + unit;
  if constexpr (sizeof(W) == sizeof(T)) return Cells<T>::join(row, row + length);
  else return load(row);
}

// kUnitBlock columns of a matrix: for each cell of its depth their vectors.
template <typename W, typename T>
void pack_columns(const T* weights, int64_t length, int64_t depth, int64_t unit, float* panel) {
  for (int64_t k = 0; k < depth; ++k, panel += kUnitBlock)
    for (int j = 0; j < kPanelVectors; ++j) store(panel + j * kLanes, columns_of<W>(weights, length, k, unit + j * kLanes));
}

// Adds the contribution of kColumnCells cells of the depth, from k on, to the gradient of R rows of the previous state.
template <typename T, int R>
void unpacked_product(const Backward<T>& b, const cell* given, int64_t depth, int64_t k, float* sums) {
  float left[R][kColumnCells];
  for (int i = 0; i < R; ++i) std::memcpy(left[i], given + i * depth + k, sizeof left[i]);
  for (int64_t u = 0; u < b.units; u += kLanes) {
    vec right[kColumnCells];
#pragma GCC unroll 8
    for (int d = 0; d < kColumnCells; ++d) right[d] = columns_of<T>(b.weights, b.units, k + d, u);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      vec sum = load(sums + i * b.units + u);
#pragma GCC unroll 8
      for (int d = 0; d < kColumnCells; ++d) sum = Cells<T>::multiply_add(sum, left[i][d], right[d]);
      store(sums + i * b.units + u, sum);
    }
  }
}

template <typename T>
using UnpackedProduct = void (*)(const Backward<T>&, const cell*, int64_t, int64_t, float*);
using PackedProduct = void (*)(float*, int64_t, const cell*, int64_t, bool, const float*, const float*);

template <typename W, int... I>
PackedProduct packed_product_of(int64_t rows, std::integer_sequence<int, I...>) {
  static constexpr PackedProduct found[] = {packed_product<W, I + 1>...};
  return found[rows - 1];
}

// Rows of `depth` cells each, and the packed columns that they are multiplied with.
struct Product {
  const cell* left;
  int64_t rows, depth;
  const float* panels;
};

// The product with the columns of a thread's blocks, into `out` of `width` columns.
template <typename W>
void multiply(const Share& own, int64_t s, const Product& p, float* out, int64_t width, bool add) {
  const int64_t panel = p.depth * kUnitBlock;
  for (int64_t i = own.from; i < own.to; ++i) {
    const float* columns = p.panels + own.at(i, s) * panel;
    const float* next = i + 1 < own.to ? p.panels + own.at(i + 1, s) * panel : nullptr;
    tiles(p.rows, kBackwardRows, [&](int64_t row, int64_t size, int64_t tile) {
      packed_product_of<W>(size, std::make_integer_sequence<int, kBackwardRows>())(out + row * width + own.at(i, s) * kUnitBlock, width,
                                                                                   p.left + row * p.depth, p.depth, add, columns,
                                                                                   next && tile < kPanelVectors ? next + tile * kLanes : nullptr);
    });
  }
}

// Rows of T as cells of W; where these are wider, `copy` gets the thread's columns of them.
template <typename W, typename T>
const cell* widened(const T* rows, float* copy, int64_t count, int64_t width, int64_t from, int64_t to) {
  if constexpr (sizeof(W) == sizeof(T)) return cells(rows);
  for (int64_t i = 0; i < count * width; i += width)
    for (int64_t u = i + from; u < i + to; u += kLanes) store(copy + u, load(rows + u));
  return copy;
}

// The units of a state, and of what is passed on after the projection, that a thread computes.
struct ThreadUnits {
  Share own, projected;
  int64_t from, to, first, last;  // the units of `own`, and of `projected`
  ThreadUnits(int64_t units, int64_t depth)
      : own(units / kUnitBlock), projected(depth / kUnitBlock), from(own.from * kUnitBlock), to(own.to * kUnitBlock),
        first(projected.from * kUnitBlock), last(projected.to * kUnitBlock) {}
};

template <Mode M, typename T, typename W>
class BackwardPass {
 public:
  BackwardPass(const Backward<T>& b, int threads)
      : b_(b), threads_(threads), rows_(b.steps.rows), width_(kGates<M> * b.units), state_(rows_ * b.units),
        packs_(rows_ > kMaxUnpackedRows || b.project), depth_(width_ / (packs_ ? Cells<W>::kEach : kEach)),
        projected_(b.project ? b.depth / Cells<W>::kEach : 0), copies_(packs_ && kWidens ? 2 * rows_ * width_ + rows_ * b.depth : 0),
        middle_(b.project ? state_ : 0), scratch_(packs_ ? depth_ * b.depth + projected_ * b.units : 2 * threads * state_),
        projection_(scratch_.data + depth_ * b.depth) {
    b_.dmiddle = middle_.data;
  }

  void run() {
#pragma omp parallel num_threads(threads_)
    {
      const ThreadUnits t(b_.units, b_.depth);
      begin(b_.dh, b_.dh_last, rows_ * b_.depth, b_.depth, t.first, t.last);
      if (M == kLstm) begin(b_.dc, b_.dc_last, state_, b_.units, t.from, t.to);
      pack(t);
      for (int64_t s = b_.steps.steps - 1; s >= 0; --s) {
        const int64_t rows = b_.steps.count(s);
        if (b_.project) through_projection(t, s, rows);
        for (int64_t row = 0; row < rows; ++row) gates_backward<M>(b_, s, row, t.from, t.to);
        const T* gates = (M == kGru ? b_.dproduct : b_.dgates) + b_.steps.at(s, 0) * width_;
        const cell* given = cells(gates);
        if (packs_ && kWidens)  // two copies by turns: some threads may still read the last one
          for (int64_t g = 0; g < kGates<M>; ++g)
            given = widened<W>(gates, copies_.data + s % 2 * rows_ * width_, rows, width_, g * b_.units + t.from, g * b_.units + t.to);
        float* sums = scratch_.data + s % 2 * threads_ * state_;
        if (!packs_ && rows) multiply_few(t, s, rows, given, sums + omp_get_thread_num() * state_);
#pragma omp barrier
        if (packs_)
          multiply<W>(t.projected, s, {given, rows, depth_, scratch_.data}, b_.dh, b_.depth, M == kGru);
        else
          reduce_few(t, rows, sums);
      }
    }
  }

 private:
  static constexpr int64_t kEach = Cells<T>::kEach;
  static constexpr bool kWidens = sizeof(W) != sizeof(T);

  // Columns `begin` to `end` of rows that are given, or zeros.
  static void begin(float* rows, const float* given, int64_t count, int64_t length, int64_t begin, int64_t end) {
    for (int64_t i = begin; begin < end && i < count; i += length)
      given ? std::memcpy(rows + i, given + i, size_t(end - begin) * 4) : std::memset(rows + i, 0, size_t(end - begin) * 4);
  }

  void pack(const ThreadUnits& t) const {
    for (int64_t i = t.projected.from; packs_ && i < t.projected.to; ++i)
      pack_columns<W>(b_.weights, b_.depth, depth_, i * kUnitBlock, scratch_.data + i * depth_ * kUnitBlock);
    for (int64_t i = t.own.from; b_.project && i < t.own.to; ++i)
      pack_columns<W>(b_.project, b_.units, projected_, i * kUnitBlock, projection_ + i * projected_ * kUnitBlock);
  }

  // The gradient of what the projection made, and, from that, of what is projected.
  void through_projection(const ThreadUnits& t, int64_t s, int64_t rows) const {
    T* dprojected = b_.dprojected + b_.steps.at(s, 0) * b_.depth;
    const T* dout = b_.dout + b_.steps.at(s, 0) * b_.depth;
    for (int64_t i = 0; i < rows * b_.depth; i += b_.depth)
      for (int64_t u = i + t.first; u < i + t.last; u += kLanes) store(dprojected + u, load(dout + u) + load(b_.dh + u));
    const cell* given = widened<W>(dprojected, copies_.data + 2 * rows_ * width_, rows, b_.depth, t.first, t.last);
#pragma omp barrier
    multiply<W>(t.own, s, {given, rows, projected_, projection_}, b_.dmiddle, b_.units, false);
  }

  // Few rows: each thread sums the contributions of its own rows of the weights, read sequentially, to all units. Two steps have separate sums, since
  // some threads may still read the last ones when others begin the next.
  void multiply_few(const ThreadUnits& t, int64_t s, int64_t rows, const cell* given, float* sums) const {
    static constexpr UnpackedProduct<T> unpacked[] = {unpacked_product<T, 1>, unpacked_product<T, 2>, unpacked_product<T, 3>};
    std::memset(sums, 0, size_t(state_) * 4);
    for (int64_t i = 0, count = (t.to - t.from) / kEach / kColumnCells; i < kGates<M> * count; ++i) {
      const int64_t n = s % 2 ? kGates<M> * count - 1 - i : i;
      unpacked[rows - 1](b_, given, depth_, (n / count * b_.units + t.from) / kEach + n % count * kColumnCells, sums);
    }
  }

  void reduce_few(const ThreadUnits& t, int64_t rows, const float* sums) const {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t u = row * b_.units + t.from; u < row * b_.units + t.to; u += kLanes) {
        vec sum = M == kGru ? load(b_.dh + u) : vec{};
        for (int64_t thread = 0; thread < omp_get_num_threads(); ++thread) sum += load(sums + thread * state_ + u);
        store(b_.dh + u, sum);
      }
  }

  Backward<T> b_;
  const int threads_;
  const int64_t rows_, width_, state_;  // rows of a step, at most; gradients of a row's gates; numbers of a state
  const bool packs_;
  const int64_t depth_, projected_;  // in cells, of the products with the weights and with the projection
  const Aligned copies_, middle_, scratch_;
  float* const projection_;
};

template <Mode M, typename T, typename W>
void run_backward(const Backward<T>& b, int threads) {
  BackwardPass<M, T, W>(b, threads).run();
}

}  // namespace

// `gates` holds the projected input with the biases (GRU's candidate without that of the state, which is `bias`); with `keep` it then holds the
// activated gates, which the backward pass needs, as it does what is `kept`, and the `middle`. The numbers of units and of what is passed on are
// multiples of 32. Where weights stay the same they come `packed`, too, by `pack_...`. `counts` are the rows of each step, or null for equal ones.
// `dgates` gets the gradients of what came from the input, `dproduct` (GRU) those of the state's products, `dprojected` those of what a projection
// made, dh and dc those of the first states. With `wide` bfloat16 is multiplied as floats.
#define ENTRIES(name, mode, type, T)                                                                                                                \
  void pack_##name##_##type(const T* weights, const T* project, float* out, const RnnPackingParams* z, int threads) {                               \
    (z->wide ? run_pack<mode, T, float> : run_pack<mode, T, T>)(weights, mode == kLstm ? project : nullptr, out, z->u, z->d, threads);              \
  }                                                                                                                                                 \
  void forward_##name##_##type(T* gates, const T* weights, const float* bias, const T* project, const float* packed, const T* h0, const float* c0,  \
                               T* out, const int64_t* counts, float* kept, T* middle, const RnnParams* z, int threads) {                            \
    const Steps steps(z->t, z->b, z->n, counts, bool(z->reverse));                                                                                  \
    const T* projects = mode == kLstm ? project : nullptr;                                                                                          \
    (z->wide ? run_forward<mode, T, float> : run_forward<mode, T, T>)({steps, gates, weights, projects, packed, bias, h0, c0, out, middle, kept,    \
                                                                       z->u, z->d, bool(z->keep), nullptr, nullptr},                                \
                                                                      threads);                                                                     \
  }                                                                                                                                                 \
  void backward_##name##_##type(const T* dout, const float* dh_last, const float* dc_last, const T* weights, const T* project, const T* gates,      \
                                const float* kept, const float* c0, const T* states, const int64_t* counts, T* dgates, T* dproduct, T* dprojected,  \
                                float* dh, float* dc, const RnnParams* z, int threads) {                                                            \
    const Steps steps(z->t, z->b, z->n, counts, bool(z->reverse));                                                                                  \
    const T* projects = mode == kLstm ? project : nullptr;                                                                                          \
    (z->wide ? run_backward<mode, T, float> : run_backward<mode, T, T>)({steps, dout, dh_last, dc_last, weights, projects, gates, kept, c0, states, \
                                                                         dgates, dproduct, dprojected, dh, dc, z->u, z->d, nullptr},                \
                                                                        threads);                                                                   \
  }

extern "C" {

ENTRIES(lstm, kLstm, float32, float)
ENTRIES(gru, kGru, float32, float)
ENTRIES(rnn_tanh, kTanh, float32, float)
ENTRIES(rnn_relu, kRelu, float32, float)
#if defined(__AVX512BF16__)
ENTRIES(lstm, kLstm, bfloat16, bfloat16)
ENTRIES(gru, kGru, bfloat16, bfloat16)
ENTRIES(rnn_tanh, kTanh, bfloat16, bfloat16)
ENTRIES(rnn_relu, kRelu, bfloat16, bfloat16)

// Returns 1 if products of bfloat16 pairs are no faster than floats, taking twice the time or more for each instruction. A thread that shares the
// core hides half of the difference, but where pairs are faster their instruction takes as long as that for floats: the limit lies between. The
// shortest of several runs of both decides.
int pairs_are_slow() {
  constexpr int kSums = 16, kRounds = 4096;
  vec sums[kSums] = {};
  auto seconds = [&](auto multiply) {
    double least = 1e9;
    for (int run = 0; run < 20; ++run) {
      const auto start = std::chrono::steady_clock::now();
      for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
        for (int i = 0; i < kSums; ++i) {
          sums[i] = multiply(sums[i]);
          asm volatile("" : "+v"(sums[i]));
        }
      }
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return least;
  };
  const vec one = vec{} + 1.0f;
  const double floats = seconds([&](vec sum) { return Cells<float>::multiply_add(sum, 0.5f, one); });
  const double pairs = seconds([&](vec sum) { return Cells<bfloat16>::multiply_add(sum, 0.5f, one); });
  return pairs > 1.5 * floats;
}
#endif

}  // extern "C"
