// The Mersenne Twisters of a thread: seeding, words, and uniform numbers.
#pragma once
#include <algorithm>
#include <cstdint>

#include "random/no_contraction.h"

namespace {

constexpr int kWords = 624, kStates = 1024;
constexpr int kChunk = 512;  // numbers that are made of their words together

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

}  // namespace
