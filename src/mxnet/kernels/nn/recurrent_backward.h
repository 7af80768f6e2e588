// The backward pass of one direction of a recurrent layer: from the last step to the first, the gradients of the gates, and from these, by a product
// with the weights, the gradient of the state before.
#pragma once
#include <cstring>

#include "nn/recurrent_cells.h"

namespace {

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

// The gradients of the gates of one row, for a vector of units from u on. The gradient that bypasses the product is left in `dh`.
template <Mode M, typename T, typename Lanes>
inline __attribute__((always_inline)) void gates_backward(const Backward<T>& b, int64_t s, int64_t row, int64_t u, Lanes lanes) {
  const int64_t at = b.steps.at(s, row);
  const T* gates = b.gates + at * kGates<M> * b.units + u;
  T* dgates = b.dgates + at * kGates<M> * b.units + u;
  const vec dh = b.project ? lanes.get(b.dmiddle + row * b.units + u) : lanes.get(b.dout + at * b.units + u) + lanes.get(b.dh + row * b.units + u);
  if constexpr (M == kLstm) {
    const float* before = row < b.steps.known(s) ? b.kept + b.steps.at(s - 1, row) * b.units : b.c0 + row * b.units;
    const vec in = lanes.get(gates), forget = lanes.get(gates + b.units), candidate = lanes.get(gates + 2 * b.units), out = lanes.get(gates + 3 * b.units);
    const vec t = tanh(lanes.get(b.kept + at * b.units + u));
    const vec dc = lanes.get(b.dc + row * b.units + u) + dh * out * (1.0f - t * t);
    lanes.put(dgates, dc * candidate * in * (1.0f - in));
    lanes.put(dgates + b.units, dc * lanes.get(before + u) * forget * (1.0f - forget));
    lanes.put(dgates + 2 * b.units, dc * in * (1.0f - candidate * candidate));
    lanes.put(dgates + 3 * b.units, dh * t * out * (1.0f - out));
    lanes.put(b.dc + row * b.units + u, dc * forget);
  } else if constexpr (M == kGru) {
    const vec reset = lanes.get(gates), update = lanes.get(gates + b.units), candidate = lanes.get(gates + 2 * b.units);
    const vec inside = dh * (1.0f - update) * (1.0f - candidate * candidate);
    const vec of_reset = inside * lanes.get(b.kept + at * b.units + u) * reset * (1.0f - reset);
    const vec of_update = dh * (lanes.get(b.states + at * b.units + u) - candidate) * update * (1.0f - update);
    T* dproduct = b.dproduct + at * kGates<M> * b.units + u;
    for (T* p : {dgates, dproduct}) {
      lanes.put(p, of_reset);
      lanes.put(p + b.units, of_update);
    }
    lanes.put(dgates + 2 * b.units, inside);
    lanes.put(dproduct + 2 * b.units, inside * reset);
    lanes.put(b.dh + row * b.units + u, dh * update);
  } else {
    const vec value = lanes.get(gates);
    lanes.put(dgates, M == kTanh ? dh * (1.0f - value * value) : value > 0.0f ? dh : vec{});
  }
}

// The same for the units from `from` to `to`.
template <Mode M, typename T>
void gates_backward(const Backward<T>& b, int64_t s, int64_t row, int64_t from, int64_t to) {
  int64_t u = from;
  for (; u + kLanes <= to; u += kLanes) gates_backward<M>(b, s, row, u, AllLanes{});
  if constexpr (sizeof(T) == sizeof(float))
    if (u < to) gates_backward<M>(b, s, row, u, SomeLanes{to - u});
}

// Multiplies R rows of `depth` cells with a packed panel of V vectors, `columns` numbers wide; `add` accumulates into the result.
template <typename W, int R, int V>
void packed_product(float* out, int64_t width, int64_t columns, const cell* given, int64_t depth, bool add, const float* panel, const float* next) {
  vec sum[R][V] = {};
  const cell* left[R];
  const bool whole = columns >= V * kLanes;
  const int64_t last = columns - (V - 1) * kLanes;
  for (int i = 0; i < R; ++i) {
    left[i] = given + i * depth;
    for (int j = 0; add && j < V; ++j)
      sum[i][j] = whole || j < V - 1 ? load(out + i * width + j * kLanes) : load(out + i * width + j * kLanes, last);
  }
  products<W>(sum, left, depth, panel, next);
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < V; ++j) {
      float* const to = out + i * width + j * kLanes;
      whole || j < V - 1 ? store(to, sum[i][j]) : store(to, sum[i][j], last);
    }
}

// kLanes columns, from `unit` on, of cell k of a matrix's depth, which is its rows.
template <typename W, typename T>
vec columns_of(const T* weights, int64_t length, int64_t k, int64_t unit) {
  const T* row = weights + k * Cells<W>::kEach * length + unit;
  if constexpr (sizeof(W) == sizeof(T)) return Cells<T>::join(row, row + length);
  else return load(row);
}

// At most kUnitBlock columns of a matrix: for each cell of its depth their vectors.
template <typename W, typename T>
void pack_columns(const T* weights, int64_t length, int64_t depth, int64_t unit, float* panel) {
  const int64_t columns = std::min<int64_t>(kUnitBlock, length - unit);
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t j = 0; j < columns; j += kLanes, panel += kLanes) {
      if constexpr (sizeof(T) == sizeof(float))
        if (columns - j < kLanes) {
          store(panel, load(weights + k * length + unit + j, columns - j));
          continue;
        }
      store(panel, columns_of<W>(weights, length, k, unit + j));
    }
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
using PackedProduct = void (*)(float*, int64_t, int64_t, const cell*, int64_t, bool, const float*, const float*);

template <typename W, int... I>
PackedProduct packed_product_of(int64_t rows, int64_t columns, std::integer_sequence<int, I...>) {
  static constexpr PackedProduct narrow[] = {packed_product<W, I + 1, 1>...}, wide[] = {packed_product<W, I + 1, kPanelVectors>...};
  return (columns <= kLanes ? narrow : wide)[rows - 1];
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
    const int64_t first = own.at(i, s) * kUnitBlock, columns = std::min<int64_t>(kUnitBlock, width - first);
    const float* weights = p.panels + own.at(i, s) * panel;
    const float* next = i + 1 < own.to ? p.panels + own.at(i + 1, s) * panel : nullptr;
    tiles(p.rows, kBackwardRows, [&](int64_t row, int64_t size, int64_t tile) {
      packed_product_of<W>(size, columns, std::make_integer_sequence<int, kBackwardRows>())(
          out + row * width + first, width, columns, p.left + row * p.depth, p.depth, add, weights,
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
      : own(blocks_of(units, kUnitBlock)), projected(blocks_of(depth, kUnitBlock)), from(own.from * kUnitBlock),
        to(std::min(own.to * kUnitBlock, units)), first(projected.from * kUnitBlock), last(std::min(projected.to * kUnitBlock, depth)) {}
};

template <Mode M, typename T, typename W>
class BackwardPass {
 public:
  BackwardPass(const Backward<T>& b, int threads)
      : b_(b), threads_(threads), rows_(b.steps.rows), width_(kGates<M> * b.units), state_(rows_ * b.units),
        packs_(rows_ > kMaxUnpackedRows || b.project || is_ragged<T>(b.units)), depth_(width_ / (packs_ ? Cells<W>::kEach : kEach)),
        projected_(b.project ? b.depth / Cells<W>::kEach : 0), copies_(packs_ && kWidens ? 2 * rows_ * width_ + rows_ * b.depth : 0),
        middle_(b.project ? state_ : 0), columns_(depth_ * blocks_of(b.depth, kUnitBlock) * kUnitBlock),
        scratch_(packs_ ? columns_ + projected_ * b.units : 2 * threads * state_), projection_(scratch_.data + columns_) {
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
  const Aligned copies_, middle_;
  const int64_t columns_;  // cells of the weights' packed columns
  const Aligned scratch_;
  float* const projection_;
};

template <Mode M, typename T, typename W>
void run_backward(const Backward<T>& b, int threads) {
  BackwardPass<M, T, W>(b, threads).run();
}

}  // namespace
