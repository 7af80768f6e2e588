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

#include "nn/recurrent_backward.h"
#include "nn/recurrent_forward.h"
#include "runtime/parameters.h"

// `gates` holds the projected input with the biases (GRU's candidate without that of the state, which is `bias`); with `keep` it then holds the
// activated gates, which the backward pass needs, as it does what is `kept`, and the `middle`. The numbers of units and of what is passed on are
// multiples of 32, or any in float32 without a projection. Where weights stay the same they come `packed`, too, by `pack_...`. `counts` are the rows
// of each step, or null for equal ones.
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
