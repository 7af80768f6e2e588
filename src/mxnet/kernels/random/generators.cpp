// Random numbers as MXNet's CPU operators draw them: from 1024 Mersenne Twisters, each of which draws a run of consecutive results, or from one more
// for operators that draw one number after the other. The algorithms of std's distributions are written out here, since later versions of the
// standard library use others.
//
// A result must not depend on the compiler: no multiplication is joined with an addition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <cstdint>
#include <vector>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#ifdef __clang__
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif

namespace {

constexpr int kWords = 624, kStates = 1024, kLeastRun = 64, kChunk = 512;
constexpr int64_t kParallelUniform = 1 << 16, kParallelOther = 1 << 15;  // from so many numbers on a second thread pays

struct Twister {
  uint32_t words[kWords];
  uint32_t at, spare[15];
};

// As `random.py` allocates it.
struct Bank {
  Twister states[kStates], single;
  uint32_t seed, seeded;  // of the states those below `seeded` have been started
};

void start(Twister& t, uint32_t seed) {
  uint32_t w = seed;
  for (int i = 0; i < kWords; ++i) t.words[i] = w = i ? 1812433253u * (w ^ (w >> 30)) + i : seed;
  t.at = kWords;
}

// Starts states with seeds in a row, sixteen side by side where as many are needed: one alone waits for its own multiplications.
void start_all(Bank& bank, int64_t needed) {
  constexpr int kStatesAtOnce = 16;  // divides kStates
  uint32_t from = bank.seeded;
  while (from < needed) {
    Twister* states = bank.states + from;
    if (from % kStatesAtOnce || needed - from < kStatesAtOnce / 2) {
      start(*states, bank.seed + from++);
      continue;
    }
    uint32_t w[kStatesAtOnce];
    for (int s = 0; s < kStatesAtOnce; ++s) w[s] = bank.seed + from + s, states[s].at = kWords;
    for (int i = 0; i < kWords; ++i) {
      if (i)
        for (int s = 0; s < kStatesAtOnce; ++s) w[s] = 1812433253u * (w[s] ^ (w[s] >> 30)) + i;
      for (int s = 0; s < kStatesAtOnce; ++s) states[s].words[i] = w[s];
    }
    from += kStatesAtOnce;
  }
  bank.seeded = from;
}

inline uint32_t mixed(uint32_t a, uint32_t b) {
  uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
  return (y >> 1) ^ (-(b & 1u) & 0x9908b0dfu);
}

void twist(Twister& t) {
  uint32_t* w = t.words;
  for (int i = 0; i < 227; ++i) w[i] = w[i + 397] ^ mixed(w[i], w[i + 1]);
#pragma GCC ivdep
  for (int i = 227; i < 227 + 208; ++i) w[i] = w[i - 227] ^ mixed(w[i], w[i + 1]);
#pragma GCC ivdep
  for (int i = 435; i < 623; ++i) w[i] = w[i - 227] ^ mixed(w[i], w[i + 1]);
  w[623] = w[396] ^ mixed(w[623], w[0]);
  t.at = 0;
}

inline uint32_t tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

inline uint32_t next(Twister& t) {
  if (t.at == kWords) twist(t);
  return tempered(t.words[t.at++]);
}

// A generator with its position clamped to the valid range, for any contents of the memory.
inline Twister& sound(Twister& t) {
  t.at = std::min<uint32_t>(t.at, kWords);
  return t;
}

void take(Twister& t, uint32_t* out, int64_t n) {
  while (n > 0) {
    if (t.at == kWords) twist(t);
    int64_t some = std::min<int64_t>(n, kWords - t.at);
    const uint32_t* words = t.words + t.at;
    for (int64_t i = 0; i < some; ++i) out[i] = tempered(words[i]);
    t.at += some, out += some, n -= some;
  }
}

// Uniform numbers in [0, 1): a float takes one word, a double two.
template <typename T> struct Unit;
template <> struct Unit<float> {
  static constexpr int words = 1;
  static float of(const uint32_t* w) { return std::min(float(w[0]) * 0x1p-32f, 0x1.fffffep-1f); }
};
template <> struct Unit<double> {
  static constexpr int words = 2;
  static double of(const uint32_t* w) { return std::min((double(w[0]) + double(w[1]) * 0x1p32) * 0x1p-64, 0x1.fffffffffffffp-1); }
};

template <typename T> T unit(Twister& t) {
  uint32_t w[2];
  for (int i = 0; i < Unit<T>::words; ++i) w[i] = next(t);
  return Unit<T>::of(w);
}

template <typename T> void units(Twister& t, T* out, int64_t n) {
  uint32_t w[2 * kChunk];
  for (int64_t done = 0; done < n; done += kChunk) {
    int64_t some = std::min<int64_t>(kChunk, n - done);
    take(t, w, some * Unit<T>::words);
    for (int64_t i = 0; i < some; ++i) out[done + i] = Unit<T>::of(w + i * Unit<T>::words);
  }
}

// A normal number by the polar method. MXNet's samplers forget the second one of a pair.
template <typename T> T normal(Twister& t) {
  T x, y, square;
  do {
    x = T(2) * unit<T>(t) - T(1);
    y = T(2) * unit<T>(t) - T(1);
    square = x * x + y * y;
  } while (!(square <= 1 && square != 0));
  return y * std::sqrt(-2 * std::log(square) / square);
}

// Returns true if a point with this squared distance is inside the unit circle and not its center.
template <typename T> inline bool inside(T square) { return square <= 1 && square != 0; }

#ifdef __AVX512F__
// Draws sixteen points at a time, within a block and while so many are needed; returns the number of accepted points.
int many_points(Twister& t, float* x, float* y, float* square, int needed) {
  typedef uint32_t word __attribute__((vector_size(64), aligned(4), may_alias));
  typedef float number __attribute__((vector_size(64)));
  const word even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, odd = even + 1;
  const auto coordinate = [](word w) {
    w ^= w >> 11, w ^= (w << 7) & 0x9d2c5680u, w ^= (w << 15) & 0xefc60000u, w ^= w >> 18;
    number u = __builtin_convertvector(w, number) * 0x1p-32f;
    return 2 * (u < 0x1.fffffep-1f ? u : (number)_mm512_set1_ps(0x1.fffffep-1f)) - 1;
  };
  int kept = 0;
  while (kept < needed && kWords - t.at >= 32) {
    const word low = *(const word*)(t.words + t.at), high = *(const word*)(t.words + t.at + 16);
    const number a = coordinate(__builtin_shuffle(low, high, even)), b = coordinate(__builtin_shuffle(low, high, odd)), s = a * a + b * b;
    unsigned good = _mm512_cmp_ps_mask((__m512)s, _mm512_set1_ps(1), _CMP_LE_OQ) & _mm512_test_epi32_mask((__m512i)s, (__m512i)s);
    int found = __builtin_popcount(good), seen = 16;
    if (found >= needed - kept) {
      for (; found > needed - kept; --found) good &= ~(0x80000000u >> __builtin_clz(good));
      seen = 32 - __builtin_clz(good);
    }
    _mm512_storeu_ps(x + kept, _mm512_maskz_compress_ps(good, (__m512)a));
    _mm512_storeu_ps(y + kept, _mm512_maskz_compress_ps(good, (__m512)b));
    _mm512_storeu_ps(square + kept, _mm512_maskz_compress_ps(good, (__m512)s));
    kept += found, t.at += 2 * seen;
  }
  return kept;
}
#endif

// Finds `needed` points inside the unit circle as the polar method does, with the squares of their distances from the center. Thirty-two words
// are looked at together, but none is taken that comes after the last point. Behind each result 16 more places are written to.
template <typename T> void points(Twister& t, T* x, T* y, T* square, int needed) {
  constexpr int kWordsAtOnce = 32, kWordsPerPoint = 2 * Unit<T>::words, kPointsAtOnce = kWordsAtOnce / kWordsPerPoint;
  uint32_t w[kWordsAtOnce];
  T a[kPointsAtOnce], b[kPointsAtOnce], s[kPointsAtOnce];
  for (int kept = 0; kept < needed;) {
#ifdef __AVX512F__
    if constexpr (sizeof(T) == 4) {
      kept += many_points(t, x + kept, y + kept, square + kept, needed - kept);
      if (kept == needed) break;
    }
#endif
    const bool whole = kWords - t.at >= kWordsAtOnce;  // the end of a block is not near
    if (whole)
      for (int i = 0; i < kWordsAtOnce; ++i) w[i] = tempered(t.words[t.at + i]);
    else
      for (int i = 0; i < kWordsPerPoint; ++i) w[i] = next(t);
    for (int i = 0; i < (whole ? kPointsAtOnce : 1); ++i) {
      a[i] = T(2) * Unit<T>::of(w + kWordsPerPoint * i) - T(1);
      b[i] = T(2) * Unit<T>::of(w + kWordsPerPoint * i + kWordsPerPoint / 2) - T(1);
      s[i] = a[i] * a[i] + b[i] * b[i];
    }
    int seen = 0;
    for (; seen < (whole ? kPointsAtOnce : 1) && kept < needed; ++seen) {
      x[kept] = a[seen], y[kept] = b[seen], square[kept] = s[seen];
      kept += inside(s[seen]);
    }
    if (whole) t.at += seen * kWordsPerPoint;
  }
}

// `n` normal numbers, of each point that from its second coordinate, then, if `both`, that from the first.
template <typename T, bool both> void normals(Twister& t, T* out, int64_t n) {
  T x[kChunk + 16], y[kChunk + 16], square[kChunk + 16], factor[kChunk];
  while (n > 0) {
    const int found = int(std::min<int64_t>(kChunk, both ? (n + 1) / 2 : n));
    points(t, x, y, square, found);
    for (int i = 0; i < found; ++i) factor[i] = std::log(square[i]);
    for (int i = 0; i < found; ++i) factor[i] = std::sqrt(-2 * factor[i] / square[i]);
    if (!both) {
      for (int i = 0; i < found; ++i) out[i] = y[i] * factor[i];
      out += found, n -= found;
    } else {
      for (int i = 0; i < found; ++i, out += 2, n -= 2) {
        out[0] = y[i] * factor[i];
        if (n > 1) out[1] = x[i] * factor[i];
      }
    }
  }
}

// Numbers for one set of parameters: `n` of them to `out`. P is the type of the parameters, W the one that is computed with.
template <typename W, typename P> W gamma_number(Twister& t, P alpha, P beta) {
  if (!(alpha > 0) || !std::isfinite(W(alpha))) return std::numeric_limits<W>::quiet_NaN();  // no number would ever be accepted
  W d = alpha < 1 ? alpha + 2.0 / 3.0 : alpha - 1.0 / 3.0;
  W k = std::sqrt(9.0 * d);
  W c = 1.0 / k;
  for (;;) {
    W z = normal<W>(t);
    if (!(z > -k)) continue;
    W x = 1.0 + c * z;
    W v = x * x * x;
    if (std::log(1.0 - unit<W>(t)) < 0.5 * z * z + d * (1.0 - v + std::log(double(v)))) {
      W found = d * v * beta;
      return alpha < 1 ? W(found * std::pow(double(unit<W>(t)), double(W(1.0 / alpha)))) : found;
    }
  }
}

int poisson_number(Twister& t, float lambda) {
  if (!(lambda < 2147480000.0f)) return lambda > 0 ? std::numeric_limits<int>::max() : 0;  // the latter for NaN
  if (lambda < 12.0) {
    float limit = std::exp(-lambda);
    int count = 0;
    for (float product = unit<float>(t); product > limit; product *= unit<float>(t)) ++count;
    return count;
  }
  const float spread = std::sqrt(2.0 * lambda), logarithm = std::log(double(lambda));
  const float g = lambda * logarithm - lgammaf(lambda + 1.0);
  float count, slope, chance;
  do {
    do {
      slope = tanf(3.1415926f * unit<float>(t));
      count = spread * slope + lambda;
    } while (count < 0.0);
    count = std::floor(count);
    chance = 0.9 * (1.0 + slope * slope) * std::exp(count * logarithm - lgammaf(count + 1.0) - g);
  } while (unit<float>(t) > chance);
  return int(count);
}

enum Kind { kUniform, kNormal, kExponential, kGamma, kPoisson, kNegativeBinomial, kGeneralizedNegativeBinomial };

template <typename W, typename P> void numbers(Twister& t, int kind, P a, P b, W* out, int64_t n) {
  switch (kind) {
    case kUniform:
      units(t, out, n);
      for (int64_t i = 0; i < n; ++i) out[i] = a + (b - a) * out[i];
      break;
    case kNormal:
      normals<W, false>(t, out, n);
      for (int64_t i = 0; i < n; ++i) out[i] = out[i] * b + a;
      break;
    case kExponential:
      units(t, out, n);
      for (int64_t i = 0; i < n; ++i) out[i] = -std::log(1.0 - out[i]) / a;
      break;
    case kGamma:
      for (int64_t i = 0; i < n; ++i) out[i] = gamma_number<W>(t, a, b);
      break;
    case kPoisson:
      for (int64_t i = 0; i < n; ++i) out[i] = poisson_number(t, a);
      break;
    case kNegativeBinomial: {
      float chance = b, scale = (1.0 - chance) / chance;
      for (int64_t i = 0; i < n; ++i) out[i] = poisson_number(t, gamma_number<float, P>(t, float(a), scale));
      break;
    }
    case kGeneralizedNegativeBinomial:
      for (int64_t i = 0; i < n; ++i) out[i] = poisson_number(t, b == 0 ? float(a) : gamma_number<float, P>(t, P(1) / b, b * a));
      break;
    default:
      std::fill_n(out, n, std::numeric_limits<W>::quiet_NaN());
  }
}

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
