// The Huffman codes of baseline JPEGs: tables that decode the next bits, two numbers at once where the first is short.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kIndex = 11;  // bits with which a table is asked
constexpr int kReady = 56;  // bits that there are after a refill
constexpr int kMost = 18;   // bits that one look into a table may take, so that three need one refill
constexpr int kEnd = 96;    // the step of the code that ends a block

// The positions of a block's coefficients in the file's (zigzag) order; codes beyond the block map behind it.
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

// A table entry for the next bits: one number, or two of which the first is short. The entry has the first number and its position, and the number of
// bits of the second one, which may extend beyond the index. A single long number, or the end of a block, is stored as a second number only.
class Meaning {
 public:
  Meaning() = default;
  // Of the second number, or of the only one.
  Meaning(int length, int steps, int size) : Meaning(length, steps, steps ? steps - 1 : 0, 0, 0, size, 0) {}
  // Of a short one, behind which nothing is known: a zero is put where the next one will come.
  static Meaning alone(int length, int step, int value) { return Meaning(length, step, step, step - 1, length, 0, value); }
  static Meaning both(Meaning one, Meaning other) {
    const int steps = one.steps() + other.steps();
    return Meaning(one.length() + other.length(), steps, steps - 1, one.first_place(), one.length(), other.size(), one.first_value());
  }
  int length() const { return packed_ & 255; }  // bits of both; 0 if the index is too short
  int steps() const { return packed_ >> 8 & 255; }  // the advance in the block
  int place() const { return packed_ >> 16 & 255; }  // of the second, counted from here as steps are
  int first_place() const { return packed_ >> 24 & 15; }
  int first_length() const { return packed_ >> 28 & 15; }  // 0 if there is none
  int first_steps() const { return first_length() ? first_place() + 1 : 0; }
  int size() const { return packed_ >> 32 & 255; }  // bits of the second beside its code
  int16_t first_value() const { return int16_t(packed_ >> 48); }
  // The second number, the last of the bits.
  int16_t value(uint64_t bits) const {
    const uint32_t limit = uint32_t(1) << size(), found = uint32_t(bits >> (64 - length())) & (limit - 1);
    return int16_t(found < limit >> 1 ? int(found) - int(limit - 1) : int(found));  // the first bit is the sign
  }

 private:
  Meaning(int length, int steps, int place, int first_place, int first_length, int size, int first_value)
      : packed_(uint64_t(length | steps << 8 | place << 16) | uint64_t(first_place | first_length << 4) << 24 | uint64_t(size) << 32 |
                uint64_t(uint16_t(first_value)) << 48) {}
  uint64_t packed_ = 0;
};

struct Table {
  Meaning quick[1 << kIndex];
  uint8_t written[16 + 256] = {};  // as the file has it
  int64_t first[17], past[17], place[17];
  bool alternating = false, whole = false;

  // Returns true if the codes are prefix-free and their symbols are valid in baseline files.
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
      for (int64_t begin = first[length] << (kIndex - length); begin < past[length] << (kIndex - length); ++begin)
        quick[begin] = meaning(uint64_t(begin) << (64 - kIndex), length);
    if (alternating) pair();
    return whole = true;
  }

  // Decodes a code that is longer than the index; length 0 if there is none.
  Meaning looked_up(uint64_t bits) const {
    for (int length = 1; length <= 16; ++length)
      if (int64_t(bits >> (64 - length)) < past[length]) return meaning(bits, length);
    return Meaning();
  }

 private:
  // The symbol of a code of that length.
  Meaning meaning(uint64_t bits, int length) const {
    const int symbol = written[16 + place[length] + int64_t(bits >> (64 - length)) - first[length]], size = alternating ? symbol & 15 : symbol;
    return Meaning(length + size, !alternating ? 0 : symbol == 0 ? kEnd : (symbol >> 4) + 1, size);
  }

  // Two numbers where the first lies within the index and so does the code of the second.
  void pair() {
    Meaning single[1 << kIndex];
    std::copy_n(quick, 1 << kIndex, single);
    for (int i = 0; i < 1 << kIndex; ++i) {
      const Meaning one = single[i];
      const int left = kIndex - one.length();
      if (one.length() > kMost) quick[i] = Meaning();
      if (!one.length() || one.steps() == kEnd || left < 0) continue;
      const uint64_t bits = uint64_t(i) << (64 - kIndex);
      const Meaning short_one = Meaning::alone(one.length(), one.steps(), one.value(bits)), other = single[(i << one.length()) & ((1 << kIndex) - 1)];
      const bool told = other.length() && other.length() - other.size() <= left && one.length() + other.length() <= kMost;
      quick[i] = told ? Meaning::both(short_one, other) : short_one;
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
    return __builtin_expect(found.length(), 1) ? found : table.looked_up(held);
  }
};

}  // namespace
