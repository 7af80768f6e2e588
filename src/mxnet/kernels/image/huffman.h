// The Huffman codes of baseline JPEGs: tables that decode the next bits, two coefficients at once where the first is short.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kLookupBits = 11;                  // bits that index a table
constexpr int kRefillBits = 56;                  // bits available after a refill
constexpr int kMaxEntryBits = 18;                // bits that one lookup may take, so that three need one refill
constexpr int kZeroRun = 0xf0;                   // the AC symbol of sixteen zeros (ZRL)
constexpr int kMaxDcSize = 11, kMaxAcSize = 10;  // bits of a coefficient
constexpr int kEndOfBlock = 96;                  // the advance of the code that ends a block (EOB)

// The positions of a block's coefficients in the file's (zigzag) order; codes beyond the block map behind it.
struct ZigZag {
  uint8_t at[64 + 16 + kEndOfBlock];

  constexpr ZigZag() : at() {
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
    for (int i = 64; i < 64 + 16 + kEndOfBlock; ++i) at[i] = 64;
  }
};
constexpr ZigZag kZigZag;

// A table entry for the next bits: one number, or two of which the first is short. The entry has the first number and its position, and the number of
// bits of the second one, which may extend beyond the index. A single long number, or the end of a block, is stored as a second number only.
class HuffmanEntry {
 public:
  HuffmanEntry() = default;
  // Of the second number, or of the only one.
  HuffmanEntry(int length, int steps, int size) : HuffmanEntry(length, steps, steps ? steps - 1 : 0, 0, 0, size, 0) {}
  // Of a short one, behind which nothing is known: a zero is put where the next one will come.
  static HuffmanEntry alone(int length, int step, int value) { return HuffmanEntry(length, step, step, step - 1, length, 0, value); }
  static HuffmanEntry both(HuffmanEntry one, HuffmanEntry other) {
    const int steps = one.steps() + other.steps();
    return HuffmanEntry(one.length() + other.length(), steps, steps - 1, one.first_place(), one.length(), other.size(), one.first_value());
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
  HuffmanEntry(int length, int steps, int place, int first_place, int first_length, int size, int first_value)
      : packed_(uint64_t(length | steps << 8 | place << 16) | uint64_t(first_place | first_length << 4) << 24 | uint64_t(size) << 32 |
                uint64_t(uint16_t(first_value)) << 48) {}
  uint64_t packed_ = 0;
};

struct HuffmanTable {
  HuffmanEntry quick[1 << kLookupBits];
  uint8_t specification[16 + 256] = {};  // as the file has it
  int64_t first[17], past[17], place[17];
  bool ac = false, complete = false;

  // Returns true if the codes are prefix-free and their symbols are valid in baseline files.
  bool build(const uint8_t* bytes, bool is_ac, int count) {
    uint8_t given[sizeof specification] = {};
    std::memcpy(given, bytes, size_t(16 + count));
    if (complete && ac == is_ac && !std::memcmp(given, specification, sizeof specification)) return true;
    std::memcpy(specification, given, sizeof specification);
    ac = is_ac, complete = false;
    int64_t code = 0, at = 0;
    for (int length = 1; length <= 16; ++length, code <<= 1) {
      first[length] = code, place[length] = at;
      for (int i = 0; i < specification[length - 1]; ++i, ++code, ++at) {
        const int symbol = specification[16 + at], size = symbol & 15;
        const bool valid = ac ? size <= kMaxAcSize && (size != 0 || symbol == 0 || symbol == kZeroRun) : symbol <= kMaxDcSize;
        if (code + 1 >= int64_t(1) << length || !valid) return false;
      }
      past[length] = code;
    }
    std::fill_n(quick, 1 << kLookupBits, HuffmanEntry());
    for (int length = 1; length <= kLookupBits; ++length)
      for (int64_t begin = first[length] << (kLookupBits - length); begin < past[length] << (kLookupBits - length); ++begin)
        quick[begin] = entry(uint64_t(begin) << (64 - kLookupBits), length);
    if (ac) pair_entries();
    return complete = true;
  }

  // Decodes a code that is longer than the index; length 0 if there is none.
  HuffmanEntry long_code(uint64_t bits) const {
    for (int length = 1; length <= 16; ++length)
      if (int64_t(bits >> (64 - length)) < past[length]) return entry(bits, length);
    return HuffmanEntry();
  }

 private:
  // The symbol of a code of that length.
  HuffmanEntry entry(uint64_t bits, int length) const {
    const int symbol = specification[16 + place[length] + int64_t(bits >> (64 - length)) - first[length]], size = ac ? symbol & 15 : symbol;
    return HuffmanEntry(length + size, !ac ? 0 : symbol == 0 ? kEndOfBlock : (symbol >> 4) + 1, size);
  }

  // Two numbers where the first lies within the index and so does the code of the second.
  void pair_entries() {
    HuffmanEntry single[1 << kLookupBits];
    std::copy_n(quick, 1 << kLookupBits, single);
    for (int i = 0; i < 1 << kLookupBits; ++i) {
      const HuffmanEntry one = single[i];
      const int left = kLookupBits - one.length();
      if (one.length() > kMaxEntryBits) quick[i] = HuffmanEntry();
      if (!one.length() || one.steps() == kEndOfBlock || left < 0) continue;
      const uint64_t bits = uint64_t(i) << (64 - kLookupBits);
      const HuffmanEntry short_one = HuffmanEntry::alone(one.length(), one.steps(), one.value(bits));
      const HuffmanEntry other = single[(i << one.length()) & ((1 << kLookupBits) - 1)];
      const bool fits = other.length() && other.length() - other.size() <= left && one.length() + other.length() <= kMaxEntryBits;
      quick[i] = fits ? HuffmanEntry::both(short_one, other) : short_one;
    }
  }
};

struct BitReader {  // the next are the highest of `held`
  const uint8_t* at;
  uint64_t held = 0;
  int count = 0;

  void refill() {  // to kRefillBits bits at least
    uint64_t next;
    std::memcpy(&next, at, 8);
    held |= __builtin_bswap64(next) >> count;
    at += (63 - count) >> 3;
    count |= kRefillBits;
  }
  void drop(int n) { held <<= n, count -= n; }
  void give_back(int n) {
    const int bytes = (count + n + 7) / 8, rest = 8 * bytes - count - n;
    at -= bytes, held = 0, count = 0;
    refill();
    drop(rest);
  }
  HuffmanEntry next(const HuffmanTable& table) {
    refill();
    const HuffmanEntry found = table.quick[held >> (64 - kLookupBits)];
    return __builtin_expect(found.length(), 1) ? found : table.long_code(held);
  }
};

}  // namespace
