// The codes of baseline JPEGs: tables that tell what the next bits mean, two numbers at once where both are short.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kIndex = 11;  // bits with which a table is asked
constexpr int kReady = 56;  // bits that there are after a refill
constexpr int kEnd = 96;    // the step of the code that ends a block

// Where the numbers of a block stand, in the order of the file; what leads out of the block, behind it.
struct Order {
  uint8_t at[64 + 16 + kEnd];

  constexpr Order() : at() {
    int row = 0, column = 0, step = -1;  // the diagonals, up and down by turns
    for (int i = 0; i < 64; ++i) {
      at[i] = uint8_t(8 * row + column);
      if (row + step < 0 || row + step > 7 || column - step < 0 || column - step > 7) {
        if (step < 0 ? column < 7 : row == 7)
          ++column;
        else
          ++row;
        step = -step;
      } else {
        row += step, column -= step;
      }
    }
    for (int i = 64; i < 64 + 16 + kEnd; ++i) at[i] = 64;
  }
};
constexpr Order kOrder;

inline int extended(uint64_t bits, int size) {  // a number of so many bits whose first says its sign
  return int(bits) - (bits >> (size - 1) ? 0 : (1 << size) - 1);
}

// What the next bits mean: one or two numbers, how many bits these and the first of them take, how far the first goes on in the block, and both.
// Where there is only one, the second is the same one once more.
class Meaning {
 public:
  Meaning() = default;
  Meaning(int length, int step, int value) : Meaning(length, length, step, step, value, value) {}
  Meaning(Meaning one, Meaning other)
      : Meaning(one.length() + other.length(), one.length(), one.step(), one.step() + other.step(), one.value(), other.value()) {}
  int length() const { return packed_ & 63; }
  int first_length() const { return packed_ >> 24 & 63; }
  int step() const { return packed_ >> 8 & 255; }
  int steps() const { return packed_ >> 16 & 255; }
  int16_t value() const { return int16_t(packed_ >> 32); }
  int16_t second_value() const { return int16_t(packed_ >> 48); }

 private:
  Meaning(int length, int first_length, int step, int steps, int value, int second_value)
      : packed_(uint64_t(length | step << 8 | steps << 16 | first_length << 24) | uint64_t(uint16_t(value)) << 32 | uint64_t(second_value) << 48) {}
  uint64_t packed_ = 0;
};

struct Table {
  Meaning quick[1 << kIndex];
  uint8_t written[16 + 256] = {};  // as the file has it
  int64_t first[17], past[17], place[17];
  bool alternating = false, whole = false;

  // Whether the codes can be told apart and mean something that baseline files say.
  bool fill(const uint8_t* bytes, bool is_alternating, int count) {
    uint8_t given[sizeof written] = {};
    std::memcpy(given, bytes, size_t(16 + count));
    if (whole && alternating == is_alternating && !std::memcmp(given, written, sizeof written)) return true;
    std::memcpy(written, given, sizeof written);
    alternating = is_alternating, whole = false;
    int64_t code = 0, at = 0;
    for (int length = 1; length <= 16; ++length, code <<= 1) {
      first[length] = code, place[length] = at;
      for (int i = 0; i < written[length - 1]; ++i, ++code, ++at) {
        const int symbol = written[16 + at], size = symbol & 15;
        if (code + 1 >= int64_t(1) << length || (alternating ? size > 10 || (size == 0 && symbol != 0 && symbol != 0xf0) : symbol > 11)) return false;
      }
      past[length] = code;
    }
    std::fill_n(quick, 1 << kIndex, Meaning());
    for (int length = 1; length <= kIndex; ++length)
      for (int64_t begin = first[length] << (kIndex - length); begin < past[length] << (kIndex - length); ++begin) {
        const Meaning one = meaning(uint64_t(begin) << (64 - kIndex), length);
        quick[begin] = one.length() <= kIndex ? one : Meaning(0, length, 0);
      }
    if (alternating) pair();
    return whole = true;
  }

  // What the index does not say: a number that is longer, whose code it knows the length of; a code that is longer. No length if there is none.
  Meaning looked_up(uint64_t bits, Meaning quick) const {
    if (quick.step()) return meaning(bits, quick.step());
    for (int length = kIndex + 1; length <= 16; ++length)
      if (int64_t(bits >> (64 - length)) < past[length]) return meaning(bits, length);
    return Meaning();
  }

  // What a code of that length means.
  Meaning meaning(uint64_t bits, int length) const {
    const int symbol = written[16 + place[length] + int64_t(bits >> (64 - length)) - first[length]], size = alternating ? symbol & 15 : symbol;
    const int value = size ? extended(bits << length >> (64 - size), size) : 0;
    return Meaning(length + size, !alternating ? 0 : symbol == 0 ? kEnd : (symbol >> 4) + 1, value);
  }

 private:
  // Two numbers where both fit.
  void pair() {
    Meaning single[1 << kIndex];
    std::copy_n(quick, 1 << kIndex, single);
    for (int i = 0; i < 1 << kIndex; ++i) {
      const Meaning one = single[i], other = single[(i << one.length()) & ((1 << kIndex) - 1)];
      if (one.length() && one.step() != kEnd && other.length() && one.length() + other.length() <= kIndex) quick[i] = Meaning(one, other);
    }
  }
};

struct Bits {  // the next are the highest of `held`
  const uint8_t* at;
  uint64_t held = 0;
  int count = 0;

  void refill() {  // to kReady bits at least
    uint64_t next;
    std::memcpy(&next, at, 8);
    held |= __builtin_bswap64(next) >> count;
    at += (63 - count) >> 3;
    count |= kReady;
  }
  void drop(int n) { held <<= n, count -= n; }
  void give_back(int n) {
    const int whole = (count + n + 7) / 8, rest = 8 * whole - count - n;
    at -= whole, held = 0, count = 0;
    refill();
    drop(rest);
  }
  Meaning next(const Table& table) {
    refill();
    const Meaning found = table.quick[held >> (64 - kIndex)];
    return __builtin_expect(found.length(), 1) ? found : table.looked_up(held, found);
  }
};

}  // namespace
