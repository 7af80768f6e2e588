// One direction of one recurrent layer, forward and backward, over sequences x (T, N, ...): LSTM (Hochreiter and Schmidhuber 1997), GRU (Cho et al.
// 2014, reset after the product with the state), and plain ones with tanh or ReLU; in single precision or in bfloat16 with sums in single precision.
//
// The projection of the input is one large product, made outside. Here is the recurrence: a product of the state, a few rows, with
// weights that are as large as the caches. Each thread keeps to its own units, so that all gates of a unit meet in registers and
// a step needs one barrier. Rows are few or many: few read the weights as they are, many read a packed copy that each tile of rows
// finds in the L2 cache. Every other step goes through the weights backwards, and begins with those that the cache still has.
//
// Operands of products are read in cells of four bytes, as in tiles.h: a float, or two bfloat16 that are neighbours along the depth. Some processors
// multiply pairs of bfloat16 slower than twice as many floats: there, many rows are computed with `wide` copies of the operands, as floats.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include <omp.h>

#include "tiles.h"

namespace {

enum Mode { kLstm, kGru, kTanh, kRelu };

template <Mode M>
constexpr int kGates = M == kLstm ? 4 : M == kGru ? 3 : 1;
// Rows of a tile: as many as there are registers for, beside a vector of each gate.
#if defined(__AVX512F__)
template <Mode M>
constexpr int kForwardRows = M == kLstm ? 6 : M == kGru ? 8 : 12;
constexpr int kBackwardRows = 12;
#else
template <Mode M>
constexpr int kForwardRows = M == kLstm ? 2 : M == kGru ? 3 : 8;
constexpr int kBackwardRows = 5;
#endif
constexpr int kFew = 3;                  // rows up to which packing the weights would take longer than it helps
constexpr int kWide = 2;                 // vectors in a packed panel of the backward pass
constexpr int kBlock = kWide * kLanes;   // units that a thread takes at a time
constexpr int kDeep = 8;                 // cells of the weights' columns at a time, where rows are few

typedef int lanes __attribute__((vector_size(kLanes * 4)));
typedef float cell __attribute__((aligned(2), may_alias));  // or two bfloat16, wherever these stand

template <typename T>
inline const cell* cells(const T* p) { return reinterpret_cast<const cell*>(p); }

// sum + left * right, lane by lane.
template <typename T>
inline vec dot(vec sum, vec left, vec right) {
#if defined(__AVX512BF16__)
  if constexpr (sizeof(T) == 2) return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)left, (__m512bh)right);
#endif
  return sum + left * right;
}

// -- functions of the gates ---------------------------------------------------------------------------------------------------

// e^x - 1 is scale * part + (scale - 1), where scale is a power of two: exact where x is small, which e^x alone would not be.
inline void exponential(vec x, vec& scale, vec& part) {
  constexpr float kMost = 87.0f, kLog2e = 1.44269504f, kHigh = 0.693359375f, kLow = -2.12194440e-4f, kShift = 12582912.0f;
  x = x > kMost ? vec{} + kMost : x;
  x = x < -kMost ? vec{} - kMost : x;
  const vec n = (x * kLog2e + kShift) - kShift;
  const vec r = (x - n * kHigh) - n * kLow;
  vec p = vec{} + 1.0f / 5040;
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f}) p = p * r + c;
  part = r + r * r * p;
  scale = (vec)((__builtin_convertvector(n, lanes) + 127) << 23);
}

inline vec sigmoid(vec x) {
  vec scale, part;
  exponential(-x, scale, part);
  return 1.0f / (1.0f + (scale + scale * part));
}

inline vec hyperbolic_tangent(vec x) {
  vec scale, part;
  exponential(2.0f * x, scale, part);
  const vec less = scale * part + (scale - 1.0f);
  return less / (less + 2.0f);
}

// -- forward ------------------------------------------------------------------------------------------------------------------

template <typename T>
struct Forward {
  T* gates;           // (T, N, G H): the projected input; the activated gates, if these are kept
  const T* weights;   // (G H, H)
  const float* bias;  // (H): of GRU's candidate, inside of what is reset
  const T* h0;        // (N, H)
  const float* c0;    // (N, H): LSTM's
  T* out;             // (T, N, H)
  float* kept;        // LSTM: the cell states (T, N, H), or (N, H) if not kept. GRU: the product that is reset, if kept
  float* wide;        // (2, N, H): the states before and after a step, as floats, or null
  int64_t steps, rows, units;
  bool reverse, keep;

  int64_t time(int64_t s) const { return reverse ? steps - 1 - s : s; }
  int64_t at(int64_t s, int64_t row) const { return time(s) * rows + row; }
  const T* before(int64_t s, int64_t row) const { return s ? out + at(s - 1, row) * units : h0 + row * units; }
  float* carry(int64_t s, int64_t row) const { return kept + (keep ? at(s, row) : row) * units; }
  const float* carry_before(int64_t s, int64_t row) const { return s ? carry(s - 1, row) : c0 + row * units; }
  float* wide_before(int64_t s, int64_t row) const { return wide + (s % 2 * rows + row) * units; }
};

// What the gates of kLanes units, from `unit` on, do in a step to R rows, whose sums are complete.
template <Mode M, typename T, int R>
void finish(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates<M>]) {
  for (int i = 0; i < R; ++i) {
    T* gates = f.gates + f.at(s, row + i) * kGates<M> * f.units + unit;
    T* result = f.out + f.at(s, row + i) * f.units + unit;
    if constexpr (M == kLstm) {
      const vec in = sigmoid(sum[i][0]), forget = sigmoid(sum[i][1]), candidate = hyperbolic_tangent(sum[i][2]), out = sigmoid(sum[i][3]);
      const vec carry = forget * load(f.carry_before(s, row + i) + unit) + in * candidate;
      store(f.carry(s, row + i) + unit, carry);
      store(result, out * hyperbolic_tangent(carry));
      if (f.keep) {
        store(gates, in);
        store(gates + f.units, forget);
        store(gates + 2 * f.units, candidate);
        store(gates + 3 * f.units, out);
      }
    } else if constexpr (M == kGru) {
      const vec reset = sigmoid(sum[i][0]), update = sigmoid(sum[i][1]);
      const vec candidate = hyperbolic_tangent(load(gates + 2 * f.units) + reset * sum[i][2]);
      store(result, candidate + update * (load(f.before(s, row + i) + unit) - candidate));
      if (f.keep) {
        store(gates, reset);
        store(gates + f.units, update);
        store(gates + 2 * f.units, candidate);
        store(f.carry(s, row + i) + unit, sum[i][2]);
      }
    } else {
      const vec value = M == kTanh ? hyperbolic_tangent(sum[i][0]) : sum[i][0] < 0.0f ? vec{} : sum[i][0];
      store(result, value);
      if (f.keep) store(gates, value);
    }
    if (f.wide) store(f.wide_before(s + 1, row + i) + unit, load(result));
  }
}

// `W` is what the products are made of: T, or float for wide copies.
template <Mode M, typename T, typename W, int R>
void begin(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates<M>], const cell* (&h)[R]) {
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    if constexpr (sizeof(W) == sizeof(T))
      h[i] = cells(f.before(s, row + i));
    else
      h[i] = f.wide_before(s, row + i);
#pragma GCC unroll 4
    for (int g = 0; g < kGates<M>; ++g)
      sum[i][g] = M == kGru && g == 2 ? load(f.bias + unit) : load(f.gates + (f.at(s, row + i) * kGates<M> + g) * f.units + unit);
  }
}

// R rows with a packed panel: for each cell of the depth a vector of each gate. Where `next` is not null, a vector of each cell of the panel that
// comes next is fetched meanwhile.
template <Mode M, typename T, typename W, int R>
void many(const Forward<T>& f, int64_t s, int64_t row, int64_t unit, const float* panel, const float* next) {
  constexpr int G = kGates<M>;
  vec sum[R][G];
  const cell* h[R];
  begin<M, T, W, R>(f, s, row, unit, sum, h);
  const int64_t ahead = next ? next - panel : 0;
  for (int64_t k = 0; k < f.units / Cells<W>::kEach; ++k, panel += G * kLanes) {
    __builtin_prefetch(panel + ahead, 0, 2);
    vec right[G];
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) right[g] = load(panel + g * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const float left = h[i][k];
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) sum[i][g] = Cells<W>::multiply_add(sum[i][g], left, right[g]);
    }
  }
  finish<M, T, R>(f, s, row, unit, sum);
}

// R rows with the weights as they are: dot products, of U units at a time.
template <Mode M, typename T, int R>
void few(const Forward<T>& f, int64_t s, int64_t row, int64_t unit) {
  constexpr int G = kGates<M>, U = M == kLstm ? (R == 1 ? 2 : 1) : M == kGru ? (R == 1 ? 4 : R == 2 ? 2 : 1) : (R == 1 ? 8 : R == 2 ? 4 : 2);
  const int64_t depth = f.units / Cells<T>::kEach;
  vec sum[R][G];
  const cell* h[R];
  begin<M, T, T, R>(f, s, row, unit, sum, h);
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
        for (int j = 0; j < U; ++j) sum[i][g][u + j] += total(dots[i][g][j]);
  }
  finish<M, T, R>(f, s, row, unit, sum);
}

template <typename T>
using Few = void (*)(const Forward<T>&, int64_t, int64_t, int64_t);
template <typename T>
using Many = void (*)(const Forward<T>&, int64_t, int64_t, int64_t, const float*, const float*);

template <Mode M, typename T, typename W, int... I>
Many<T> many_of(int64_t rows, std::integer_sequence<int, I...>) {
  static constexpr Many<T> found[] = {many<M, T, W, I + 1>...};
  return found[rows - 1];
}

// The weights of kLanes units: for each cell of the depth, their gates.
template <Mode M, typename W, typename T>
void pack_forward(const Forward<T>& f, int64_t unit, float* panel) {
  const int64_t depth = f.units / Cells<W>::kEach;
  for (int g = 0; g < kGates<M>; ++g)
    transpose(kLanes, depth,
              [&](int64_t j, int64_t k) {
                const T* row = f.weights + (g * f.units + unit + j) * f.units;
                if constexpr (sizeof(W) == sizeof(T)) return load(cells(row) + k);
                else return load(row + k);
              },
              [&](const vec(&rows)[kLanes], int64_t, int64_t k) {
                for (int i = 0; i < kLanes; ++i) store(panel + ((k + i) * kGates<M> + g) * kLanes, rows[i]);
              });
}

// -- backward -----------------------------------------------------------------------------------------------------------------

template <typename T>
struct Backward {
  const T* dout;                    // (T, N, H)
  const float *dh_last, *dc_last;   // (N, H) or null
  const T *weights, *gates;         // (G H, H); what the forward pass kept, (T, N, G H)
  const float *kept, *c0;           // (T, N, H); (N, H): LSTM's first cell state
  const T* states;                  // (T, N, H): GRU's states before each step
  T *dgates, *dproduct;             // (T, N, G H): of what came from the input; of what came from the state, where that is another (GRU)
  float *dh, *dc;                   // (N, H): those of the first states
  int64_t steps, rows, units;
  bool reverse;

  int64_t at(int64_t s, int64_t row) const { return (reverse ? steps - 1 - s : s) * rows + row; }
};

// The gradients of the gates of one row, for the units from `from` to `to`. What goes from state to state beside the product is left in `dh`.
template <Mode M, typename T>
void gates_backward(const Backward<T>& b, int64_t s, int64_t row, int64_t from, int64_t to) {
  const int64_t at = b.at(s, row);
  for (int64_t u = from; u < to; u += kLanes) {
    const T* gates = b.gates + at * kGates<M> * b.units + u;
    T* dgates = b.dgates + at * kGates<M> * b.units + u;
    const vec dh = load(b.dout + at * b.units + u) + load(b.dh + row * b.units + u);
    if constexpr (M == kLstm) {
      const float* before = s ? b.kept + b.at(s - 1, row) * b.units : b.c0 + row * b.units;
      const vec in = load(gates), forget = load(gates + b.units), candidate = load(gates + 2 * b.units), out = load(gates + 3 * b.units);
      const vec t = hyperbolic_tangent(load(b.kept + at * b.units + u));
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

// The gradient of R rows of the state before, for the units of a packed panel; `left` has the gradients of the gates, `depth` cells of each row.
template <typename T, typename W, int R>
void many_backward(const Backward<T>& b, const cell* left, int64_t depth, int64_t row, int64_t unit, bool add, const float* panel,
                   const float* next) {
  vec sum[R][kWide] = {};
  float* dh = b.dh + row * b.units + unit;
  if (add)
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < kWide; ++j) sum[i][j] = load(dh + i * b.units + j * kLanes);
  const int64_t ahead = next ? next - panel : 0;
  for (int64_t k = 0; k < depth; ++k, panel += kBlock) {
    __builtin_prefetch(panel + ahead, 0, 2);
    vec right[kWide];
#pragma GCC unroll 2
    for (int j = 0; j < kWide; ++j) right[j] = load(panel + j * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const float value = left[i * depth + k];
#pragma GCC unroll 2
      for (int j = 0; j < kWide; ++j) sum[i][j] = Cells<W>::multiply_add(sum[i][j], value, right[j]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kWide; ++j) store(dh + i * b.units + j * kLanes, sum[i][j]);
}

// The weights of a cell of the depth, for kLanes units.
template <typename W, typename T>
vec weights_of(const Backward<T>& b, int64_t k, int64_t unit) {
  const T* row = b.weights + k * Cells<W>::kEach * b.units + unit;
  if constexpr (sizeof(W) == sizeof(T)) return Cells<T>::join(row, row + b.units);
  else return load(row);
}

// What kDeep cells of the depth, from k on, add to the gradient of R rows of the state before.
template <typename T, int R>
void few_backward(const Backward<T>& b, const cell* given, int64_t depth, int64_t k, float* sums) {
  float left[R][kDeep];
  for (int i = 0; i < R; ++i) std::memcpy(left[i], given + i * depth + k, sizeof left[i]);
  for (int64_t u = 0; u < b.units; u += kLanes) {
    vec right[kDeep];
#pragma GCC unroll 8
    for (int d = 0; d < kDeep; ++d) right[d] = weights_of<T>(b, k + d, u);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      vec sum = load(sums + i * b.units + u);
#pragma GCC unroll 8
      for (int d = 0; d < kDeep; ++d) sum = Cells<T>::multiply_add(sum, left[i][d], right[d]);
      store(sums + i * b.units + u, sum);
    }
  }
}

template <typename T>
using FewBackward = void (*)(const Backward<T>&, const cell*, int64_t, int64_t, float*);
template <typename T>
using ManyBackward = void (*)(const Backward<T>&, const cell*, int64_t, int64_t, int64_t, bool, const float*, const float*);

template <typename T, typename W, int... I>
ManyBackward<T> many_backward_of(int64_t rows, std::integer_sequence<int, I...>) {
  static constexpr ManyBackward<T> found[] = {many_backward<T, W, I + 1>...};
  return found[rows - 1];
}

// -- both ---------------------------------------------------------------------------------------------------------------------

// Calls f(first, count, tile) for rows in tiles of at most `most`, as equal as can be.
template <typename Call>
void tiles(int64_t rows, int64_t most, Call call) {
  const int64_t count = (rows + most - 1) / most;
  for (int64_t i = 0, row = 0; i < count; ++i) {
    const int64_t size = rows / count + (i < rows % count);
    call(row, size, i);
    row += size;
  }
}

// The part of a thread in `blocks` blocks of units.
struct Share {
  int64_t from, to;
  explicit Share(int64_t blocks) {
    const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    from = blocks * thread / threads;
    to = blocks * (thread + 1) / threads;
  }
  // The block that is the i-th in step s.
  int64_t at(int64_t i, int64_t s) const { return s % 2 ? from + to - 1 - i : i; }
};

template <Mode M, typename T, typename W>
void run_forward(Forward<T> f, int threads) {
  static constexpr Few<T> few_steps[] = {few<M, T, 1>, few<M, T, 2>, few<M, T, 3>};
  constexpr int G = kGates<M>;
  constexpr bool widens = sizeof(W) != sizeof(T);
  const int64_t blocks = f.units / kLanes, panel = f.units / Cells<W>::kEach * G * kLanes;
  const bool packs = f.rows > kFew;
  const Aligned packed(packs ? blocks * panel : 0), states(packs && widens ? 2 * f.rows * f.units : 0);
  if (packs && widens) {
    f.wide = states.data;
    for (int64_t i = 0; i < f.rows * f.units; i += kLanes) store(f.wide + i, load(f.h0 + i));
  }
#pragma omp parallel num_threads(threads)
  {
    const Share own(blocks);
    if (packs)
      for (int64_t b = own.from; b < own.to; ++b) pack_forward<M, W>(f, b * kLanes, packed.data + b * panel);
    for (int64_t s = 0; s < f.steps; ++s) {
      for (int64_t i = own.from; i < own.to; ++i) {
        const int64_t b = own.at(i, s);
        const float* weights = packed.data + b * panel;
        const float* next = i + 1 < own.to ? packed.data + own.at(i + 1, s) * panel : nullptr;
        if (packs)
          tiles(f.rows, kForwardRows<M>, [&](int64_t row, int64_t size, int64_t tile) {
            many_of<M, T, W>(size, std::make_integer_sequence<int, kForwardRows<M>>())(f, s, row, b * kLanes, weights,
                                                                                       next && tile < G ? next + tile * kLanes : nullptr);
          });
        else
          few_steps[f.rows - 1](f, s, 0, b * kLanes);
      }
#pragma omp barrier
    }
  }
}

template <Mode M, typename T, typename W>
void run_backward(const Backward<T>& b, int threads) {
  static constexpr FewBackward<T> few_steps[] = {few_backward<T, 1>, few_backward<T, 2>, few_backward<T, 3>};
  constexpr int64_t kEach = Cells<T>::kEach;
  constexpr bool widens = sizeof(W) != sizeof(T);
  const bool packs = b.rows > kFew;
  const int64_t width = kGates<M> * b.units, blocks = b.units / kBlock, depth = width / (packs ? Cells<W>::kEach : kEach), panel = depth * kBlock;
  const Aligned copies(packs && widens ? 2 * b.rows * width : 0);
  const int64_t state = b.rows * b.units;
  const T* left = M == kGru ? b.dproduct : b.dgates;
  // Few rows: each thread adds up what its own rows of the weights, read from one end to the other, give to all units. Sums of two steps
  // are kept apart, since some threads may still read the last ones when others begin the next.
  const Aligned scratch(packs ? blocks * panel : 2 * threads * state);
#pragma omp parallel num_threads(threads)
  {
    const Share own(blocks);
    const int64_t from = own.from * kBlock, to = own.to * kBlock;
    for (int64_t row = 0; row < b.rows && from < to; ++row) {
      const size_t bytes = size_t(to - from) * 4;
      float *rows[] = {b.dh + row * b.units + from, b.dc + row * b.units + from};
      const float* last[] = {b.dh_last, b.dc_last};
      for (int i = 0; i < (M == kLstm ? 2 : 1); ++i)
        last[i] ? std::memcpy(rows[i], last[i] + row * b.units + from, bytes) : std::memset(rows[i], 0, bytes);
    }
    for (int64_t i = own.from; packs && i < own.to; ++i)
      for (int64_t k = 0; k < depth; ++k)
        for (int j = 0; j < kWide; ++j) store(scratch.data + i * panel + k * kBlock + j * kLanes, weights_of<W>(b, k, i * kBlock + j * kLanes));
    for (int64_t s = b.steps - 1; s >= 0; --s) {
      for (int64_t row = 0; row < b.rows; ++row) gates_backward<M>(b, s, row, from, to);
      const T* gates = left + b.at(s, 0) * width;
      const cell* given = cells(gates);
      if (packs && widens) {  // two copies by turns: some threads may still read the last one
        float* wide = copies.data + s % 2 * b.rows * width;
        for (int64_t i = 0; i < b.rows * kGates<M>; ++i)
          for (int64_t u = i * b.units + from; u < i * b.units + to; u += kLanes) store(wide + u, load(gates + u));
        given = wide;
      }
      float* sums = scratch.data + s % 2 * threads * state;
      if (!packs) {
        float* mine = sums + omp_get_thread_num() * state;
        std::memset(mine, 0, size_t(state) * 4);
        for (int64_t i = 0, count = (to - from) / kEach / kDeep; i < kGates<M> * count; ++i) {
          const int64_t n = s % 2 ? kGates<M> * count - 1 - i : i;
          few_steps[b.rows - 1](b, given, depth, (n / count * b.units + from) / kEach + n % count * kDeep, mine);
        }
      }
#pragma omp barrier
      if (packs) {
        for (int64_t i = own.from; i < own.to; ++i) {
          const float* columns = scratch.data + own.at(i, s) * panel;
          const float* next = i + 1 < own.to ? scratch.data + own.at(i + 1, s) * panel : nullptr;
          tiles(b.rows, kBackwardRows, [&](int64_t row, int64_t size, int64_t tile) {
            many_backward_of<T, W>(size, std::make_integer_sequence<int, kBackwardRows>())(
                b, given + row * depth, depth, row, own.at(i, s) * kBlock, M == kGru, columns, next && tile < kWide ? next + tile * kLanes : nullptr);
          });
        }
      } else {
        for (int64_t row = 0; row < b.rows; ++row)
          for (int64_t u = row * b.units + from; u < row * b.units + to; u += kLanes) {
            vec sum = M == kGru ? load(b.dh + u) : vec{};
            for (int64_t t = 0; t < omp_get_num_threads(); ++t) sum += load(sums + t * state + u);
            store(b.dh + u, sum);
          }
      }
    }
  }
}

}  // namespace

// `gates` holds the projected input with the biases (GRU's candidate without that of the state, which is `bias`); with `keep` it then holds the
// activated gates, which the backward pass needs, as it does what is `kept`. The number of units is a multiple of 32.
// `dgates` gets the gradients of what came from the input, `dproduct` (GRU) those of the state's products, dh and dc those of the first states.
// With `wide` bfloat16 is multiplied as floats.
#define ENTRIES(name, mode, type, T)                                                                                                              \
  void forward_##name##_##type(T* gates, const T* weights, const float* bias, const T* h0, const float* c0, T* out, float* kept,                 \
                               const int64_t* sizes, int threads) {                                                                               \
    (sizes[5] ? run_forward<mode, T, float> : run_forward<mode, T, T>)(                                                                           \
        {gates, weights, bias, h0, c0, out, kept, nullptr, sizes[0], sizes[1], sizes[2], bool(sizes[3]), bool(sizes[4])}, threads);               \
  }                                                                                                                                               \
  void backward_##name##_##type(const T* dout, const float* dh_last, const float* dc_last, const T* weights, const T* gates, const float* kept,  \
                                const float* c0, const T* states, T* dgates, T* dproduct, float* dh, float* dc, const int64_t* sizes,             \
                                int threads) {                                                                                                    \
    (sizes[4] ? run_backward<mode, T, float> : run_backward<mode, T, T>)(                                                                         \
        {dout, dh_last, dc_last, weights, gates, kept, c0, states, dgates, dproduct, dh, dc, sizes[0], sizes[1], sizes[2], bool(sizes[3])},       \
        threads);                                                                                                                                 \
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

// Whether pairs of bfloat16 gain nothing over floats, since multiplying them takes twice as long or longer. Who shares the core hides half of that, but
// where they gain they take as long as floats: the limit lies between. The shortest of some runs of both decides.
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
