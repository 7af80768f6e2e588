// Kernels whose number of rows in registers is a constant: one for each number, and rows cut into pieces of these.
#pragma once
#include <cstdint>
#include <utility>

namespace {

// found[i] is `run` of Made<i + 1>.
template <template <int> class Made, int... I>
auto chosen(int64_t number, std::integer_sequence<int, I...>) {
  static constexpr decltype(&Made<1>::run) found[] = {&Made<I + 1>::run...};
  return found[number - 1];
}

// The size of pieces of about the same size, at most `most`.
inline int64_t piece(int64_t all, int64_t most) {
  const int64_t pieces = (all + most - 1) / most;
  return (all + pieces - 1) / pieces;
}

}  // namespace
