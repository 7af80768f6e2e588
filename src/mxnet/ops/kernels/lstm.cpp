// One direction of one LSTM layer (Hochreiter and Schmidhuber 1997), forward and backward, over sequences x (T, N, ...) in single precision.
//
// The projection of the input is one large product, made outside. Here is the recurrence: a product of the state, a few rows, with
// weights that are as large as the caches. Each thread keeps to its own units, so that all four gates of a unit meet in registers and
// a step needs one barrier. Rows are few or many: few read the weights as they are, many read a packed copy that each tile of rows
// finds in the L2 cache. Every other step goes through the weights backwards, and begins with those that the cache still has.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <omp.h>

#include "vectors.h"

namespace {

constexpr int kGates = 4;
#if defined(__AVX512F__)
constexpr int kForwardRows = 6, kBackwardRows = 12;
#else
constexpr int kForwardRows = 2, kBackwardRows = 5;
#endif
constexpr int kFew = 3;                  // rows up to which packing the weights would take longer than it helps
constexpr int kWide = 2;                 // vectors in a packed panel of the backward pass
constexpr int kBlock = kWide * kLanes;   // units that a thread takes at a time

typedef int lanes __attribute__((vector_size(kLanes * 4)));

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

struct Forward {
  float* gates;          // (T, N, 4 H): the projected input; the activated gates, if these are kept
  const float* weights;  // (4 H, H)
  const float *h0, *c0;  // (N, H)
  float *out, *cells;    // (T, N, out_stride), (T, N, H) or (N, H) if not kept
  int64_t steps, rows, units, out_stride;
  bool reverse, keep;

  int64_t time(int64_t s) const { return reverse ? steps - 1 - s : s; }
  const float* before(int64_t s, int64_t row) const { return s ? out + (time(s - 1) * rows + row) * out_stride : h0 + row * units; }
  float* cell(int64_t s, int64_t row) const { return cells + ((keep ? time(s) * rows : 0) + row) * units; }
  const float* cell_before(int64_t s, int64_t row) const { return s ? cell(s - 1, row) : c0 + row * units; }
};

// What the gates of kLanes units, from `unit` on, do in a step to R rows, whose sums are complete.
template <int R>
void finish(const Forward& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates]) {
  for (int i = 0; i < R; ++i) {
    const vec in = sigmoid(sum[i][0]), forget = sigmoid(sum[i][1]), candidate = hyperbolic_tangent(sum[i][2]), out = sigmoid(sum[i][3]);
    const vec cell = forget * load(f.cell_before(s, row + i) + unit) + in * candidate;
    store(f.cell(s, row + i) + unit, cell);
    store(f.out + (f.time(s) * f.rows + row + i) * f.out_stride + unit, out * hyperbolic_tangent(cell));
    if (f.keep) {
      float* gates = f.gates + (f.time(s) * f.rows + row + i) * kGates * f.units + unit;
      store(gates, in);
      store(gates + f.units, forget);
      store(gates + 2 * f.units, candidate);
      store(gates + 3 * f.units, out);
    }
  }
}

template <int R>
void begin(const Forward& f, int64_t s, int64_t row, int64_t unit, vec (&sum)[R][kGates], const float* (&h)[R]) {
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
    h[i] = f.before(s, row + i);
#pragma GCC unroll 4
    for (int g = 0; g < kGates; ++g) sum[i][g] = load(f.gates + ((f.time(s) * f.rows + row + i) * kGates + g) * f.units + unit);
  }
}

// R rows with a packed panel: for each k four vectors, one of each gate. Where `next` is not null, a vector of each k of the panel that comes
// next is fetched meanwhile.
template <int R>
void many(const Forward& f, int64_t s, int64_t row, int64_t unit, const float* panel, const float* next) {
  vec sum[R][kGates];
  const float* h[R];
  begin<R>(f, s, row, unit, sum, h);
  const int64_t ahead = next ? next - panel : 0;
  for (int64_t k = 0; k < f.units; ++k, panel += kGates * kLanes) {
    __builtin_prefetch(panel + ahead, 0, 2);
    vec right[kGates];
#pragma GCC unroll 4
    for (int g = 0; g < kGates; ++g) right[g] = load(panel + g * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const float left = h[i][k];
#pragma GCC unroll 4
      for (int g = 0; g < kGates; ++g) sum[i][g] += left * right[g];
    }
  }
  finish<R>(f, s, row, unit, sum);
}

// R rows with the weights as they are: dot products, of U units at a time.
template <int R, int U>
void few(const Forward& f, int64_t s, int64_t row, int64_t unit) {
  vec sum[R][kGates];
  const float* h[R];
  begin<R>(f, s, row, unit, sum, h);
  for (int u = 0; u < kLanes; u += U) {
    vec dots[R][kGates][U] = {};
    const float* w[kGates];
    for (int g = 0; g < kGates; ++g) w[g] = f.weights + (g * f.units + unit + u) * f.units;
    for (int64_t k = 0; k < f.units; k += kLanes) {
      vec left[R];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) left[i] = load(h[i] + k);
#pragma GCC unroll 4
      for (int g = 0; g < kGates; ++g)
#pragma GCC unroll 4
        for (int j = 0; j < U; ++j) {
          const vec right = load(w[g] + j * f.units + k);
#pragma GCC unroll 8
          for (int i = 0; i < R; ++i) dots[i][g][j] += left[i] * right;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int g = 0; g < kGates; ++g)
#pragma GCC unroll 4
        for (int j = 0; j < U; ++j) sum[i][g][u + j] += total(dots[i][g][j]);
  }
  finish<R>(f, s, row, unit, sum);
}

using Few = void (*)(const Forward&, int64_t, int64_t, int64_t);
using Many = void (*)(const Forward&, int64_t, int64_t, int64_t, const float*, const float*);
constexpr Few kFewSteps[] = {nullptr, few<1, 2>, few<2, 1>, few<3, 1>};
#if defined(__AVX512F__)
constexpr Many kManySteps[] = {nullptr, many<1>, many<2>, many<3>, many<4>, many<5>, many<6>};
#else
constexpr Many kManySteps[] = {nullptr, many<1>, many<2>};
#endif

// The weights of kLanes units: for each k, their four gates.
void pack_forward(const Forward& f, int64_t unit, float* panel) {
  for (int g = 0; g < kGates; ++g)
    transpose(kLanes, f.units, [&](int64_t j, int64_t k) { return load(f.weights + (g * f.units + unit + j) * f.units + k); },
              [&](const vec(&rows)[kLanes], int64_t, int64_t k) {
                for (int i = 0; i < kLanes; ++i) store(panel + ((k + i) * kGates + g) * kLanes, rows[i]);
              });
}

// -- backward -----------------------------------------------------------------------------------------------------------------

struct Backward {
  const float *dout, *dh_last, *dc_last;      // (T, N, out_stride); (N, H) or null
  const float *weights, *gates, *cells, *c0;  // (4 H, H); what the forward pass kept, (T, N, 4 H) and (T, N, H); (N, H)
  float *dgates, *dh, *dc;                    // (T, N, 4 H); (N, H): those of the first states
  int64_t steps, rows, units, out_stride;
  bool reverse;

  int64_t time(int64_t s) const { return reverse ? steps - 1 - s : s; }
};

// The gradients of the gates of one row, for the units from `from` to `to`.
void gates_backward(const Backward& b, int64_t s, int64_t row, int64_t from, int64_t to) {
  const int64_t at = b.time(s) * b.rows + row;
  const float* cells = b.cells + at * b.units;
  const float* before = s ? b.cells + (b.time(s - 1) * b.rows + row) * b.units : b.c0 + row * b.units;
  for (int64_t u = from; u < to; u += kLanes) {
    const float* gates = b.gates + at * kGates * b.units + u;
    float* dgates = b.dgates + at * kGates * b.units + u;
    const vec in = load(gates), forget = load(gates + b.units), candidate = load(gates + 2 * b.units), out = load(gates + 3 * b.units);
    const vec dh = load(b.dout + at * b.out_stride + u) + load(b.dh + row * b.units + u), t = hyperbolic_tangent(load(cells + u));
    const vec dc = load(b.dc + row * b.units + u) + dh * out * (1.0f - t * t);
    store(dgates, dc * candidate * in * (1.0f - in));
    store(dgates + b.units, dc * load(before + u) * forget * (1.0f - forget));
    store(dgates + 2 * b.units, dc * in * (1.0f - candidate * candidate));
    store(dgates + 3 * b.units, dh * t * out * (1.0f - out));
    store(b.dc + row * b.units + u, dc * forget);
  }
}

// The gradient of R rows of the state before, for the units of a packed panel.
template <int R>
void many_backward(const Backward& b, int64_t s, int64_t row, int64_t unit, const float* panel, const float* next) {
  vec sum[R][kWide] = {};
  const int64_t ahead = next ? next - panel : 0;
  const float* left = b.dgates + (b.time(s) * b.rows + row) * kGates * b.units;
  for (int64_t k = 0; k < kGates * b.units; ++k, panel += kBlock) {
    __builtin_prefetch(panel + ahead, 0, 2);
    vec right[kWide];
#pragma GCC unroll 2
    for (int j = 0; j < kWide; ++j) right[j] = load(panel + j * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const float value = left[i * kGates * b.units + k];
#pragma GCC unroll 2
      for (int j = 0; j < kWide; ++j) sum[i][j] += value * right[j];
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kWide; ++j) store(b.dh + (row + i) * b.units + unit + j * kLanes, sum[i][j]);
}

// What D rows of the weights, from k on, add to the gradient of R rows of the state before.
template <int R, int D>
void few_backward(const Backward& b, int64_t s, int64_t k, float* sums) {
  float left[R][D];
  for (int i = 0; i < R; ++i) std::memcpy(left[i], b.dgates + (b.time(s) * b.rows + i) * kGates * b.units + k, sizeof left[i]);
  const float* weights = b.weights + k * b.units;
  for (int64_t u = 0; u < b.units; u += kLanes) {
    vec right[D];
#pragma GCC unroll 8
    for (int d = 0; d < D; ++d) right[d] = load(weights + d * b.units + u);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      vec sum = load(sums + i * b.units + u);
#pragma GCC unroll 8
      for (int d = 0; d < D; ++d) sum += left[i][d] * right[d];
      store(sums + i * b.units + u, sum);
    }
  }
}

using FewBackward = void (*)(const Backward&, int64_t, int64_t, float*);
using ManyBackward = void (*)(const Backward&, int64_t, int64_t, int64_t, const float*, const float*);
constexpr int kDeep = 8;  // rows of the weights at a time
constexpr FewBackward kFewBackward[] = {nullptr, few_backward<1, kDeep>, few_backward<2, kDeep>, few_backward<3, kDeep>};
#if defined(__AVX512F__)
constexpr ManyBackward kManyBackward[] = {nullptr,           many_backward<1>,  many_backward<2>, many_backward<3>, many_backward<4>,
                                          many_backward<5>,  many_backward<6>,  many_backward<7>, many_backward<8>, many_backward<9>,
                                          many_backward<10>, many_backward<11>, many_backward<12>};
#else
constexpr ManyBackward kManyBackward[] = {nullptr,          many_backward<1>, many_backward<2>,
                                          many_backward<3>, many_backward<4>, many_backward<5>};
#endif

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

}  // namespace

extern "C" {

// `gates` holds the projected input, with the biases; with `keep` it then holds the activated gates, which the backward pass needs,
// as it does all cell states. The number of units is a multiple of 32.
void forward(float* gates, const float* weights, const float* h0, const float* c0, float* out, float* cells, const int64_t* sizes, int threads) {
  const Forward f{gates, weights, h0, c0, out, cells, sizes[0], sizes[1], sizes[2], sizes[3], bool(sizes[4]), bool(sizes[5])};
  const int64_t blocks = f.units / kLanes, panel = f.units * kGates * kLanes;
  const bool packs = f.rows > kFew;
  const Aligned packed(packs ? blocks * panel : 0);
#pragma omp parallel num_threads(threads)
  {
    const Share own(blocks);
    if (packs)
      for (int64_t b = own.from; b < own.to; ++b) pack_forward(f, b * kLanes, packed.data + b * panel);
    for (int64_t s = 0; s < f.steps; ++s) {
      for (int64_t i = own.from; i < own.to; ++i) {
        const int64_t b = own.at(i, s);
        const float* weights = packed.data + b * panel;
        const float* next = i + 1 < own.to ? packed.data + own.at(i + 1, s) * panel : nullptr;
        if (packs)
          tiles(f.rows, kForwardRows, [&](int64_t row, int64_t size, int64_t tile) {
            kManySteps[size](f, s, row, b * kLanes, weights, next && tile < kGates ? next + tile * kLanes : nullptr);
          });
        else
          kFewSteps[f.rows](f, s, 0, b * kLanes);
      }
#pragma omp barrier
    }
  }
}

// `dgates` gets the gradients of what came from the input, dh and dc those of the first states.
void backward(const float* dout, const float* dh_last, const float* dc_last, const float* weights, const float* gates, const float* cells,
              const float* c0, float* dgates, float* dh, float* dc, const int64_t* sizes, int threads) {
  const Backward b{dout, dh_last, dc_last, weights, gates, cells, c0, dgates, dh, dc, sizes[0], sizes[1], sizes[2], sizes[3], bool(sizes[4])};
  const int64_t blocks = b.units / kBlock, depth = kGates * b.units, panel = depth * kBlock;
  const bool packs = b.rows > kFew;
  const int64_t state = b.rows * b.units;
  // Few rows: each thread adds up what its own rows of the weights, read from one end to the other, give to all units. Sums of two steps
  // are kept apart, since some threads may still read the last ones when others begin the next.
  const Aligned scratch(packs ? blocks * panel : 2 * threads * state);
#pragma omp parallel num_threads(threads)
  {
    const Share own(blocks);
    const int64_t from = own.from * kBlock, to = own.to * kBlock;
    for (int64_t row = 0; row < b.rows && from < to; ++row) {
      const size_t bytes = size_t(to - from) * 4;
      float *rows[] = {dh + row * b.units + from, dc + row * b.units + from};
      const float* last[] = {dh_last, dc_last};
      for (int i = 0; i < 2; ++i) last[i] ? std::memcpy(rows[i], last[i] + row * b.units + from, bytes) : std::memset(rows[i], 0, bytes);
    }
    for (int64_t i = own.from; packs && i < own.to; ++i)
      for (int64_t k = 0; k < depth; ++k) std::memcpy(scratch.data + i * panel + k * kBlock, weights + k * b.units + i * kBlock, kBlock * 4);
    for (int64_t s = b.steps - 1; s >= 0; --s) {
      for (int64_t row = 0; row < b.rows; ++row) gates_backward(b, s, row, from, to);
      float* sums = scratch.data + s % 2 * threads * state;
      if (!packs) {
        float* mine = sums + omp_get_thread_num() * state;
        std::memset(mine, 0, size_t(state) * 4);
        for (int64_t i = 0, count = (to - from) / kDeep; i < kGates * count; ++i) {
          const int64_t n = s % 2 ? kGates * count - 1 - i : i;
          kFewBackward[b.rows](b, s, n / count * b.units + from + n % count * kDeep, mine);
        }
      }
#pragma omp barrier
      if (packs) {
        for (int64_t i = own.from; i < own.to; ++i) {
          const float* columns = scratch.data + own.at(i, s) * panel;
          const float* next = i + 1 < own.to ? scratch.data + own.at(i + 1, s) * panel : nullptr;
          tiles(b.rows, kBackwardRows, [&](int64_t row, int64_t size, int64_t tile) {
            kManyBackward[size](b, s, row, own.at(i, s) * kBlock, columns, next && tile < kWide ? next + tile * kLanes : nullptr);
          });
        }
      } else {
        for (int64_t row = 0; row < b.rows; ++row)
          for (int64_t u = row * b.units + from; u < row * b.units + to; u += kLanes) {
            vec sum = {};
            for (int64_t t = 0; t < omp_get_num_threads(); ++t) sum += load(sums + t * state + u);
            store(dh + u, sum);
          }
      }
    }
  }
}

}  // extern "C"
