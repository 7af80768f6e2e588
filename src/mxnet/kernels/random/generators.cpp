// Random numbers as MXNet's CPU operators draw them: from 1024 Mersenne Twisters, each of which draws a run of consecutive results, or from one more
// for operators that draw one number after the other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "random/distributions.h"

namespace {

constexpr int kLeastRun = 64;  // numbers of a state, at least, if there are so many
constexpr int64_t kParallelUniform = 1 << 16, kParallelOther = 1 << 15;  // from so many numbers on a second thread pays

// Calls work(state, begin, end) for the runs of a result of `n` numbers, on several threads from `least` numbers on.
template <typename Work> void spread(Bank& bank, int64_t n, int threads, int64_t least, Work work) {
  if (n <= 0) return;
  const int64_t runs = std::min<int64_t>((n + kLeastRun - 1) / kLeastRun, kStates), step = (n + runs - 1) / runs;
  start_all(bank, runs);
  if (threads < 2 || n < least) {
    for (int64_t r = 0; r < runs; ++r) work(sound(bank.states[r]), r * step, std::min(n, (r + 1) * step));
    return;
  }
#pragma omp parallel for num_threads(threads)
  for (int64_t r = 0; r < runs; ++r) work(sound(bank.states[r]), r * step, std::min(n, (r + 1) * step));
}

template <typename W, typename P>
void sample(Bank* bank, W* out, int64_t n, const P* first, const P* second, int64_t count, int kind, int threads) {
  if (n <= 0) return;
  const int64_t each = 1 + (n - 1) / count;
  spread(*bank, n, threads, kind == kUniform ? kParallelUniform : kParallelOther, [=](Twister& t, int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t which = begin / each, stop = std::min(end, (which + 1) * each);
      numbers<W, P>(t, kind, first[which], second ? second[which] : P(0), out + begin, stop - begin);
      begin = stop;
    }
  });
}

}  // namespace

extern "C" {

// Seeds the single generator; the states are seeded at their first use.
void start_single(Bank* bank, int64_t seed) { start(bank->single, uint32_t(seed)); }

// Numbers of a distribution with one set of parameters, or with `count` sets for as many parts of the result.
#define DRAW(W, name)                                                                                     \
  void draw_##name(Bank* bank, W* out, int64_t n, int kind, float a, float b, int threads) {              \
    sample(bank, out, n, &a, &b, 1, kind, threads);                                                       \
  }
#define DRAW_EACH(W, P, name)                                                                             \
  void draw_##name(Bank* bank, const P* a, const P* b, W* out, int64_t n, int64_t count, int kind, int threads) { \
    sample(bank, out, n, a, b, count, kind, threads);                                                     \
  }
DRAW(float, float32)
DRAW(double, float64)
DRAW_EACH(float, float, float32_float32)
DRAW_EACH(float, double, float32_float64)
DRAW_EACH(double, float, float64_float32)
DRAW_EACH(double, double, float64_float64)

}  // extern "C"

namespace {

// Integers from `low` on, below `low` + `range`.
template <typename T> void integers(Bank* bank, T* out, int64_t n, int64_t low, int64_t range, int threads) {
  const uint64_t magic = range > 1 ? ~uint64_t(0) / uint64_t(range) : 0;
  spread(*bank, n, threads, kParallelUniform, [=](Twister& t, int64_t begin, int64_t end) {
    uint32_t w[2 * kChunk];
    for (; begin < end; begin += kChunk) {
      const int64_t some = std::min<int64_t>(kChunk, end - begin);
      take(t, w, 2 * some);
      for (int64_t i = 0; i < some; ++i) {
        // MXNet's sum may pass the largest int64 and come out negative.
        const int64_t number = int64_t((uint64_t(w[2 * i]) << 31) + w[2 * i + 1]);
        int64_t rest;
        if (number < 0 || range < 2) {
          rest = range < 2 ? 0 : number % range;
        } else {
          rest = number - int64_t((unsigned __int128)(uint64_t(number)) * magic >> 64) * range;  // at most one range too many
          rest -= rest >= range ? range : 0;
        }
        out[begin + i] = T(uint64_t(low) + uint64_t(rest));
      }
    }
  });
}

// For each of `n` numbers `scale` if a uniform one, of one word or (wide) two, is below `chance`, or (inclusive) equal to it; else 0.
template <typename T> void kept(Bank* bank, T* out, int64_t n, int wide, float chance, float scale, int inclusive, int threads) {
  // Below a number means at most the one before it.
  const float most = inclusive ? chance : std::nextafter(chance, -1.0f);
  const T value = T(scale);
  spread(*bank, n, threads, kParallelUniform, [=](Twister& t, int64_t begin, int64_t end) {
    float u[kChunk];
    double v[kChunk];
    for (; begin < end; begin += kChunk) {
      const int64_t some = std::min<int64_t>(kChunk, end - begin);
      if (wide) {
        units(t, v, some);
        for (int64_t i = 0; i < some; ++i) u[i] = float(v[i]);
      } else {
        units(t, u, some);
      }
      for (int64_t i = 0; i < some; ++i) out[begin + i] = u[i] <= most ? value : T(0);
    }
  });
}

// Where a row of ascending sums reaches `at`: the first place, or the last one if none does.
int64_t reached(const float* sums, int64_t count, float at) {
  int64_t first = 0;
  while (count > 1) {  // without a branch that a processor could guess wrong
    const int64_t half = count / 2;
    first += sums[first + half - 1] >= at ? 0 : half;
    count -= half;
  }
  return first;
}

}  // namespace

extern "C" {

void integers_int32(Bank* bank, int32_t* out, int64_t n, int64_t low, int64_t range, int threads) { integers(bank, out, n, low, range, threads); }
void integers_int64(Bank* bank, int64_t* out, int64_t n, int64_t low, int64_t range, int threads) { integers(bank, out, n, low, range, threads); }

#define KEPT(T, name)                                                                                                           \
  void kept_##name(Bank* bank, T* out, int64_t n, int wide, float chance, float scale, int inclusive, int threads) {            \
    kept(bank, out, n, wide, chance, scale, inclusive, threads);                                                                \
  }
KEPT(uint8_t, uint8)
KEPT(float, float32)
KEPT(double, float64)

// The next numbers of the single generator: words, or uniform or normal numbers.
void next_words(Bank* bank, uint32_t* out, int64_t n) { take(sound(bank->single), out, n); }
void next_float32(Bank* bank, float* out, int64_t n, int normal) {
  normal ? normals<float, true>(sound(bank->single), out, n) : units(sound(bank->single), out, n);
}
void next_float64(Bank* bank, double* out, int64_t n, int normal) {
  normal ? normals<double, true>(sound(bank->single), out, n) : units(sound(bank->single), out, n);
}

// Uniform doubles of one of the states.
void state_numbers(Bank* bank, double* out, int64_t n, int64_t state) {
  start_all(*bank, state + 1);
  units(sound(bank->states[state]), out, n);
}

// Logarithms and powers as the C library rounds them, in place.
void logarithms(float* numbers, int64_t n) {
  for (int64_t i = 0; i < n; ++i) numbers[i] = std::log(numbers[i]);
}
void powers(float* numbers, int64_t n, float exponent) {
  for (int64_t i = 0; i < n; ++i) numbers[i] = std::pow(numbers[i], exponent);
}

// For each row of chances as many classes as there are uniform numbers for it. Chances that do not add up to 1 are weights; `done` marks rows
// that are neither.
void choose(const float* chances, const float* numbers, int64_t* out, uint8_t* done, int64_t rows, int64_t classes, int64_t draws, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> sums(classes);
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      double total = 0;
      bool right = true;
      for (int64_t i = 0; i < classes; ++i) {
        const float chance = chances[row * classes + i];
        right &= chance >= 0;
        total += chance;
        sums[i] = float(total);
      }
      done[row] = right && total > 0;
      const float scale = std::fabs(total - 1) < 1e-3 ? 1 : float(total);
      for (int64_t i = row * draws; i < (row + 1) * draws; ++i) out[i] = reached(sums.data(), classes, numbers[i] * scale);
    }
  }
}

// A random order of `n` indices; with `backwards` the swaps begin at the end.
void order(Bank* bank, int64_t* out, int64_t n, int backwards) {
  Twister& t = sound(bank->single);
  for (int64_t i = 0; i < n; ++i) out[i] = i;
  auto below = [&](uint32_t size) {
    const uint32_t scale = 0xffffffffu / size;
    uint32_t w;
    do w = next(t) / scale; while (w >= size);
    return int64_t(w);
  };
  if (backwards)
    for (int64_t i = n - 1; i > 0; --i) std::swap(out[i], out[below(uint32_t(i + 1))]);
  else
    for (int64_t i = 1; i < n; ++i) std::swap(out[i], out[below(uint32_t(i + 1))]);
}

// The indices below `n`, the last `count` of them exchanged with others at random.
void reservoir(Bank* bank, int64_t* out, int64_t n, int64_t count) {
  Twister& t = sound(bank->single);
  for (int64_t i = 0; i < n; ++i) out[i] = i;
  for (int64_t i = n - count; i < n; ++i) {
    const int64_t other = next(t) % uint64_t(i + 1);
    if (other < n - count) std::swap(out[i], out[other]);
  }
}

}  // extern "C"
