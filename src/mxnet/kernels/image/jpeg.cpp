// Baseline JPEGs: a window of the pixels, equal to libjpeg-turbo's to the last bit. Three quarters of the time of decoding a photograph are
// Huffman decoding; here stuffed bytes are removed from the bits before, and a coefficient takes one table lookup. All unusual files, valid or
// damaged, are left to the library.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "image/huffman.h"
#include "runtime/parameters.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

constexpr int kOver = 4096;       // bytes of zeros behind the bits: no unit of blocks takes more
constexpr int64_t kMostPixels = 1 << 15;  // of a side
constexpr size_t kKept = 1 << 25;  // bytes that a thread keeps

// The integer inverse DCT of Loeffler, Ligtenberg and Moschytz, with 13 bits for a constant, written as the equivalent matrix products for the even
// and the odd ones of eight numbers.
constexpr int kEven[2][2] = {{10703, 4433}, {4433, -10704}};
constexpr int kOdd[4][4] = {{11363, 9633, 6437, 2260}, {9633, -2259, -11362, -6436}, {6437, -11362, 2261, 9633}, {2260, -6436, 9633, -11363}};
constexpr int kLargest = 8192;  // larger coefficients do not occur in photographs, and libraries decode them differently
constexpr int kFirst = 11, kSecond = 18;  // bits that are dropped after the columns, and after the rows

#if defined(__AVX2__)
inline __m256i pairs(__m128i x, __m128i y) { return _mm256_set_m128i(_mm_unpackhi_epi16(x, y), _mm_unpacklo_epi16(x, y)); }

inline __m256i product(__m256i xy, int x, int y) {
  return _mm256_madd_epi16(xy, _mm256_set1_epi32(int32_t(uint32_t(y) << 16 | (uint32_t(x) & 0xffff))));
}

// Of eight columns; in words, as they are again in the end.
template <int kShift>
inline void transform(__m128i (&x)[8]) {
  const __m256i outer = pairs(x[0], x[4]), inner = pairs(x[2], x[6]), low = pairs(x[1], x[3]), high = pairs(x[5], x[7]);
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  const __m256i sum = _mm256_add_epi32(product(outer, 8192, 8192), half), difference = _mm256_add_epi32(product(outer, 8192, -8192), half);
  const __m256i one = product(inner, kEven[0][0], kEven[0][1]), other = product(inner, kEven[1][0], kEven[1][1]);
  const __m256i even[4] = {_mm256_add_epi32(sum, one), _mm256_add_epi32(difference, other), _mm256_sub_epi32(difference, other),
                           _mm256_sub_epi32(sum, one)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256i odd = _mm256_add_epi32(product(low, kOdd[i][0], kOdd[i][1]), product(high, kOdd[i][2], kOdd[i][3]));
    const __m256i both = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(even[i], odd), kShift),
                                            _mm256_srai_epi32(_mm256_sub_epi32(even[i], odd), kShift));
    const __m256i apart = _mm256_permute4x64_epi64(both, 0xd8);
    x[i] = _mm256_castsi256_si128(apart), x[7 - i] = _mm256_extracti128_si256(apart, 1);
  }
}

inline void turn(__m128i (&x)[8]) {
#pragma GCC unroll 3
  for (int round = 0; round < 3; ++round) {
    __m128i next[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) next[2 * i] = _mm_unpacklo_epi16(x[i], x[i + 4]), next[2 * i + 1] = _mm_unpackhi_epi16(x[i], x[i + 4]);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = next[i];
  }
}

// Returns true if all lie between -most and most, a power of two.
inline bool within(const __m128i (&x)[8], int most) {
  __m128i sums = _mm_setzero_si128();
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sums = _mm_or_si128(sums, _mm_add_epi16(x[i], _mm_set1_epi16(int16_t(most))));
  return _mm_testz_si128(sums, _mm_set1_epi16(int16_t(~(2 * most - 1))));
}

bool samples(const int16_t* block, const int16_t* steps, uint8_t* to, int64_t stride) {
  __m128i x[8];
  const auto row = [](const int16_t* from, int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i); };
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = _mm_mullo_epi16(row(block, i), row(steps, i));
  if (!within(x, kLargest)) return false;
  transform<kFirst>(x);
  if (!within(x, 2 * kLargest)) return false;
  turn(x);
  transform<kSecond>(x);
  turn(x);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    const __m128i bytes = _mm_xor_si128(_mm_packs_epi16(x[i], x[i + 1]), _mm_set1_epi8(-128));  // 128 more
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i * stride), bytes);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + (i + 1) * stride), _mm_srli_si128(bytes, 8));
  }
  return true;
}
#else
template <int kShift, int kStep>
inline void transform(int32_t* x) {  // of one column or row, whose numbers stand kStep apart
  int32_t even[4];
  const int32_t sum = (x[0] + x[4 * kStep]) * 8192 + (1 << (kShift - 1)), difference = (x[0] - x[4 * kStep]) * 8192 + (1 << (kShift - 1));
  for (int i = 0; i < 2; ++i) {
    const int32_t part = x[2 * kStep] * kEven[i][0] + x[6 * kStep] * kEven[i][1], whole = i ? difference : sum;
    even[i] = whole + part, even[3 - i] = whole - part;
  }
  const int32_t in[4] = {x[kStep], x[3 * kStep], x[5 * kStep], x[7 * kStep]};
  for (int i = 0; i < 4; ++i) {
    const int32_t odd = in[0] * kOdd[i][0] + in[1] * kOdd[i][1] + in[2] * kOdd[i][2] + in[3] * kOdd[i][3];
    x[i * kStep] = (even[i] + odd) >> kShift, x[(7 - i) * kStep] = (even[i] - odd) >> kShift;
  }
}

bool samples(const int16_t* block, const int16_t* steps, uint8_t* to, int64_t stride) {
  int32_t x[64];
  for (int i = 0; i < 64; ++i) x[i] = int16_t(block[i] * steps[i]);
  const auto within = [&](int most) { return std::all_of(x, x + 64, [&](int32_t one) { return -most <= one && one < most; }); };
  if (!within(kLargest)) return false;
  for (int i = 0; i < 8; ++i) transform<kFirst, 8>(x + i);
  if (!within(2 * kLargest)) return false;
  for (int i = 0; i < 8; ++i) {
    transform<kSecond, 1>(x + 8 * i);
    for (int j = 0; j < 8; ++j) to[i * stride + j] = uint8_t(std::min(std::max(x[8 * i + j] + 128, 0), 255));
  }
  return true;
}
#endif

// The same of a block whose first number is all that it has.
bool flat(int16_t value, uint8_t* to, int64_t stride) {
  const int sample = std::min(std::max(((value + 4) >> 3) + 128, 0), 255);
  for (int i = 0; i < 8; ++i) std::memset(to + i * stride, sample, 8);
  return -kLargest <= value && value < kLargest;
}

struct Component {
  int64_t id, across, down, steps, direct = 0, alternating = 0, width = 0, height = 0, stride = 0;
  uint8_t* plane = nullptr;
  int16_t last = 0;
};

class File {
 public:
  bool decode(const uint8_t* content, const JpegParams& window, int64_t channels, uint8_t* out) {
    at_ = content, end_ = content + window.length;
    height_ = window.height, width_ = window.width;
    if (!header() || !place(size_t(window.length)) || !scan(window)) return false;
    colours(window, channels, out);
    if (memory_.capacity() > kKept) std::vector<uint8_t>().swap(memory_);
    return true;
  }

 private:
  const uint8_t *at_ = nullptr, *end_ = nullptr;
  int64_t height_ = 0, width_ = 0, units_ = 0, unit_rows_ = 0, across_ = 0, down_ = 0, restarts_ = 0;
  int count_ = 0;
  Component parts_[3];
  int16_t steps_[4][64];
  bool known_[4];
  Table direct_[4], alternating_[4];
  bool has_direct_[4], has_alternating_[4];
  std::vector<uint8_t> memory_;
  std::vector<int16_t> sums_;
  std::vector<uint8_t> colour_;
  uint8_t* bits_ = nullptr;
  int64_t filled_ = 0;

  static int64_t word(const uint8_t* p) { return p[0] << 8 | p[1]; }

  bool header() {
    bool framed = false, jfif = false, adobe = false;
    int transform = 0;
    std::fill_n(known_, 4, false), std::fill_n(has_direct_, 4, false), std::fill_n(has_alternating_, 4, false);
    restarts_ = 0;
    if (end_ - at_ < 4 || at_[0] != 0xff || at_[1] != 0xd8) return false;
    at_ += 2;
    while (true) {
      if (end_ - at_ < 4 || at_[0] != 0xff) return false;
      const int marker = at_[1];
      const int64_t size = word(at_ + 2) - 2;
      const uint8_t* body = at_ + 4;
      if (size < 0 || size > end_ - body) return false;
      at_ = body + size;
      if (marker == 0xc0) {
        if (framed || !frame(body, size)) return false;
        framed = true;
      } else if (marker == 0xc4) {
        if (!codes(body, size)) return false;
      } else if (marker == 0xdb) {
        for (; body < at_; body += 65) {
          if (at_ - body < 65 || body[0] > 3) return false;  // those of 16 bits too
          for (int i = 0; i < 64; ++i) steps_[body[0]][kOrder.at[i]] = body[1 + i];
          known_[body[0]] = true;
        }
      } else if (marker == 0xdd) {
        if (size != 2) return false;
        restarts_ = word(body);
      } else if (marker == 0xda) {
        if (!framed || !start(body, size)) return false;
        const bool numbered = count_ < 3 || (parts_[0].id == 1 && parts_[1].id == 2 && parts_[2].id == 3);
        return count_ == 1 || jfif || (adobe ? transform == 1 : numbered);
      } else if (marker == 0xe0) {
        jfif |= size >= 14 && !std::memcmp(body, "JFIF", 5);
      } else if (marker == 0xee) {
        if (size >= 12 && !std::memcmp(body, "Adobe", 5)) adobe = true, transform = body[11];
      } else if (marker != 0xfe && (marker < 0xe0 || marker > 0xef)) {
        return false;
      }
    }
  }

  bool frame(const uint8_t* body, int64_t size) {
    count_ = size < 6 ? 0 : body[5];
    if ((count_ != 1 && count_ != 3) || size != 6 + 3 * count_ || body[0] != 8 || word(body + 1) != height_ || word(body + 3) != width_) return false;
    for (int i = 0; i < count_; ++i) {
      const uint8_t* one = body + 6 + 3 * i;
      parts_[i] = Component();
      parts_[i].id = one[0], parts_[i].across = one[1] >> 4, parts_[i].down = one[1] & 15, parts_[i].steps = one[2];
      if (one[2] > 3 || (i && (one[1] != 0x11 || one[0] == parts_[0].id || (i == 2 && one[0] == parts_[1].id)))) return false;
    }
    if (count_ == 1) parts_[0].across = parts_[0].down = 1;  // their values have no effect then
    across_ = parts_[0].across, down_ = parts_[0].down;
    return (across_ == 1 && down_ == 1) || (across_ == 2 && (down_ == 1 || down_ == 2));
  }

  bool codes(const uint8_t* body, int64_t size) {
    while (size) {
      if (size < 17 || (body[0] & 0xef) > 3) return false;
      int count = 0;
      for (int i = 1; i <= 16; ++i) count += body[i];
      if (count > 256 || size < 17 + count) return false;
      const bool alternating = body[0] >> 4;
      const int number = body[0] & 15;
      if (!(alternating ? alternating_ : direct_)[number].fill(body + 1, alternating, count)) return false;
      (alternating ? has_alternating_ : has_direct_)[number] = true;
      body += 17 + count, size -= 17 + count;
    }
    return true;
  }

  bool start(const uint8_t* body, int64_t size) {
    if (size != 4 + 2 * count_ || body[0] != count_) return false;
    for (int i = 0; i < count_; ++i) {
      Component& part = parts_[i];
      if (body[1 + 2 * i] != part.id || (body[2 + 2 * i] & 0xcc)) return false;
      part.direct = body[2 + 2 * i] >> 4, part.alternating = body[2 + 2 * i] & 15;
      if (!has_direct_[part.direct] || !has_alternating_[part.alternating] || !known_[part.steps]) return false;
    }
    const uint8_t* rest = body + 1 + 2 * count_;
    return rest[0] == 0 && rest[1] == 63 && rest[2] == 0;
  }

  // Memory for the bits and the samples.
  bool place(size_t length) {
    units_ = (width_ + 8 * across_ - 1) / (8 * across_), unit_rows_ = (height_ + 8 * down_ - 1) / (8 * down_);
    size_t size = length + kOver + 16;
    for (int i = 0; i < count_; ++i) {
      Component& part = parts_[i];
      part.stride = units_ * 8 * part.across;
      part.width = i ? (width_ + across_ - 1) / across_ : width_, part.height = i ? (height_ + down_ - 1) / down_ : height_;
      size += size_t(part.stride * unit_rows_ * 8 * part.down);
      // The library does not interpolate between so few.
      if (i && across_ == 2 && part.width <= 2) return false;
    }
    if (memory_.size() < size) memory_.resize(size);
    bits_ = memory_.data();
    uint8_t* next = bits_ + length + kOver + 16;
    for (int i = 0; i < count_; ++i) parts_[i].plane = next, next += parts_[i].stride * unit_rows_ * 8 * parts_[i].down;
    return true;
  }

  // The bits up to the next marker, without the zeros that follow bytes of ones; false if there is no marker.
  bool fill() {
    uint8_t* to = bits_;
    while (true) {
      const uint8_t* mark = static_cast<const uint8_t*>(std::memchr(at_, 0xff, size_t(end_ - at_)));
      if (!mark || mark + 1 >= end_) return false;
      const size_t size = size_t(mark - at_) + (mark[1] == 0);
      std::memcpy(to, at_, size);
      to += size, at_ = mark + 2;
      if (mark[1]) break;
    }
    at_ -= 2;
    filled_ = to - bits_;
    std::memset(to, 0, kOver);
    return true;
  }

  bool scan(const JpegParams& window) {
    const int64_t wide = 8 * across_, high = 8 * down_;
    // Interpolation looks at a neighbour.
    const int64_t first = std::max<int64_t>(window.left - 2, 0) / wide, last = std::min((window.left + window.columns + 1) / wide, units_ - 1);
    const int64_t top = std::max<int64_t>(window.top - 2, 0) / high, bottom = std::min((window.top + window.rows + 1) / high, unit_rows_ - 1);
    Bits bits{nullptr};
    int64_t until_restart = 0;
    int restart = 0;
    for (int64_t row = 0, number = 0; row < unit_rows_; ++row) {
      for (int64_t unit = 0; unit < units_; ++unit, ++number) {
        if (until_restart == 0) {
          if (number && !ends(bits, 0xd0 + restart++ % 8)) return false;
          if (!fill()) return false;
          bits = Bits{bits_};
          until_restart = restarts_ ? restarts_ : -1;
          for (Component& part : parts_) part.last = 0;
        }
        --until_restart;
        const bool keep = row >= top && unit >= first && unit <= last;
        if (!(keep ? blocks<true>(bits, row, unit) : blocks<false>(bits, row, unit)) || used(bits) > 8 * filled_) return false;
      }
      // The rest is not needed; a truncated file is detected by its missing end.
      if (row == bottom && row + 1 < unit_rows_) return restarts_ == 0 ? at_[1] == 0xd9 : end_[-2] == 0xff && end_[-1] == 0xd9;
    }
    return ends(bits, 0xd9);
  }

  int64_t used(const Bits& bits) const { return 8 * (bits.at - bits_) - bits.count; }

  // Returns true if all bits but the padding of the last byte are used and this marker follows; advances behind it.
  bool ends(const Bits& bits, int marker) {
    if (8 * filled_ - used(bits) >= 8 || at_[1] != marker) return false;
    at_ += 2;
    return true;
  }

  template <bool keep>
  bool blocks(Bits& shared, int64_t row, int64_t unit) {
    alignas(32) int16_t block[6][64 + 32];  // behind the 64 there is room for what a step past the end would write
    int ends[6], number = 0;
    if (keep) std::memset(block, 0, sizeof block);
    Bits bits = shared;
    for (int i = 0; i < count_; ++i) {
      Component& part = parts_[i];
      const Table &direct = direct_[part.direct], &alternating = alternating_[part.alternating];
      for (int64_t j = 0; j < part.down * part.across; ++j, ++number) {
        const Meaning difference = bits.next(direct);
        if (!difference.length()) return false;
        part.last = int16_t(part.last + difference.value(bits.held));
        bits.drop(difference.length());
        if (!numbers<keep>(bits, alternating, block[number], ends[number])) return false;
        if (keep) block[number][0] = part.last;
      }
    }
    shared = bits;
    if (!keep) return true;
    number = 0;
    for (int i = 0; i < count_; ++i) {
      Component& part = parts_[i];
      for (int64_t y = 0; y < part.down; ++y)
        for (int64_t x = 0; x < part.across; ++x, ++number) {
          uint8_t* to = part.plane + ((row * part.down + y) * 8) * part.stride + (unit * part.across + x) * 8;
          const int16_t* steps = steps_[part.steps];
          const bool done = ends[number] == 1 + kEnd ? flat(int16_t(block[number][0] * steps[0]), to, part.stride)
                                                     : samples(block[number], steps, to, part.stride);
          if (!done) return false;
        }
    }
    return true;
  }

  // Decodes the 63 AC coefficients of a block; `end` receives the kind of its end.
  template <bool keep>
  static bool numbers(Bits& shared, const Table& table, int16_t* block, int& end) {
    Bits bits = shared;
    Meaning found;
    int64_t before = 1, at = 1;
    const auto put = [&] {
      if (keep) {  // in this order: where there is one number only, both may have the same place
        block[kOrder.at[at + found.first_place()]] = found.first_value();
        block[kOrder.at[at + found.place()]] = found.value(bits.held);
      }
      bits.drop(found.length());
      before = at, at += found.steps();
    };
    while (at < 64) {
      bits.refill();
#pragma GCC unroll 8
      for (int i = 0; i < kReady / kMost; ++i) {
        found = table.quick[bits.held >> (64 - kIndex)];
        if (__builtin_expect(!found.length(), 0)) {
          bits.refill();
          found = table.looked_up(bits.held);
          if (!found.length()) return false;
          put();
          break;
        }
        put();
        if (at >= 64) break;
      }
    }
    const int64_t first = before + found.first_steps();
    if (at > 64 && !(first < 64 && at == first + kEnd)) {
      if (first != 64) return false;
      bits.give_back(found.length() - found.first_length());  // the second number is the next block's
    }
    shared = bits, end = int(at);
    return true;
  }

  // A row of a component at the image's size, from the column `left` on.
  const uint8_t* full(const Component& part, int64_t y, int64_t left, int64_t columns, uint8_t* out) {
    if (across_ == 1 || &part == parts_) return part.plane + y * part.stride + left;
    const int64_t first = left / 2, count = (left + columns + 1) / 2 - first;
    const int64_t at = down_ == 2 ? y / 2 : y, beside = down_ == 2 ? std::min(std::max<int64_t>(at + (y & 1 ? 1 : -1), 0), part.height - 1) : at;
    const uint8_t *near = part.plane + at * part.stride, *far = part.plane + beside * part.stride;
    int16_t* sums = sums_.data() + 1;
    for (int64_t i = 0; i < count; ++i) sums[i] = int16_t(3 * near[first + i] + far[first + i]);
    const int64_t before = std::max<int64_t>(first - 1, 0), after = std::min(first + count, part.width - 1);
    sums[-1] = int16_t(3 * near[before] + far[before]), sums[count] = int16_t(3 * near[after] + far[after]);
    // Both are 4 times as large where rows are not interpolated: so are the numbers that round.
    const int up = down_ == 2 ? 8 : 4, down = down_ == 2 ? 7 : 8;
    for (int64_t i = 0; i < count; ++i) {
      out[2 * i] = uint8_t((3 * sums[i] + sums[i - 1] + up) >> 4);
      out[2 * i + 1] = uint8_t((3 * sums[i] + sums[i + 1] + down) >> 4);
    }
    return out + (left & 1);
  }

  void colours(const JpegParams& window, int64_t channels, uint8_t* out) {
    const int64_t left = window.left, columns = window.columns;
    if (sums_.size() < size_t(columns + 4)) sums_.resize(size_t(columns + 4));
    if (colour_.size() < size_t(2 * columns + 64)) colour_.resize(size_t(2 * columns + 64));
    for (int64_t y = window.top; y < window.top + window.rows; ++y) {
      const uint8_t* light = parts_[0].plane + y * parts_[0].stride + left;
      uint8_t* to = out + (y * width_ + left) * channels;
      if (channels == 1) {
        std::memcpy(to, light, size_t(columns));
      } else if (count_ == 1) {
        for (int64_t i = 0; i < columns; ++i) to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = light[i];
      } else {
        const uint8_t* blue = full(parts_[1], y, left, columns, colour_.data());
        const uint8_t* red = full(parts_[2], y, left, columns, colour_.data() + columns + 32);
        mix(light, blue, red, to, columns);
      }
    }
  }

  // YCbCr to BGR, in 16 bits behind the point.
  static void mix(const uint8_t* light, const uint8_t* blue, const uint8_t* red, uint8_t* to, int64_t count) {
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 16 < count; i += 16, to += 48) {
      const auto words = [&](const uint8_t* p) { return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i))); };
      const __m256i middle = _mm256_set1_epi16(128), one = _mm256_set1_epi16(1), round = _mm256_set1_epi32(32768);
      const __m256i y = words(light), u = _mm256_sub_epi16(words(blue), middle), v = _mm256_sub_epi16(words(red), middle);
      // (x * factor + 32768) >> 16 of words: the highest of twice the product, then half of that, rounded.
      const auto scaled = [&](__m256i x, int factor) {
        return _mm256_srai_epi16(_mm256_add_epi16(_mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16(int16_t(factor))), one), 1);
      };
      const auto both = [&](__m256i uv) {
        const __m256i factors = _mm256_set1_epi32(int32_t(uint32_t(65536 - 46802) << 16 | (uint32_t(-22554) & 0xffff)));
        return _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(uv, factors), round), 16);
      };
      const __m256i green = _mm256_packs_epi32(both(_mm256_unpacklo_epi16(u, v)), both(_mm256_unpackhi_epi16(u, v)));
      const auto bytes = [](__m256i x) { return _mm_packus_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)); };
      const __m128i first = bytes(_mm256_add_epi16(y, _mm256_add_epi16(_mm256_add_epi16(u, u), scaled(u, 116130 - 2 * 65536))));
      const __m128i second = bytes(_mm256_add_epi16(_mm256_sub_epi16(y, v), green));
      const __m128i third = bytes(_mm256_add_epi16(_mm256_add_epi16(y, v), scaled(v, 91881 - 65536)));
      const auto part = [&](__m128i x, __m128i y, __m128i z) {
        return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(first, x), _mm_shuffle_epi8(second, y)), _mm_shuffle_epi8(third, z));
      };
      __m128i* row = reinterpret_cast<__m128i*>(to);
      _mm_storeu_si128(row, part(_mm_setr_epi8(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5),
                                 _mm_setr_epi8(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1),
                                 _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1)));
      _mm_storeu_si128(row + 1, part(_mm_setr_epi8(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1),
                                     _mm_setr_epi8(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10),
                                     _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1)));
      _mm_storeu_si128(row + 2, part(_mm_setr_epi8(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1),
                                     _mm_setr_epi8(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1),
                                     _mm_setr_epi8(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15)));
    }
#endif
    const auto byte = [](int x) { return uint8_t(std::min(std::max(x, 0), 255)); };
    for (; i < count; ++i, to += 3) {
      const int y = light[i], u = blue[i] - 128, v = red[i] - 128;
      to[0] = byte(y + ((u * 116130 + 32768) >> 16));
      to[1] = byte(y + ((u * -22554 + v * -46802 + 32768) >> 16));
      to[2] = byte(y + ((v * 91881 + 32768) >> 16));
    }
  }
};

}  // namespace

extern "C" {

// `done` is 1 on success.
void decode(const uint8_t* content, const JpegParams* params, uint8_t* image, int64_t* done, int64_t bytes, int64_t size, int64_t channels) {
  done[0] = 0;
  const JpegParams z = *params;
  if (z.length < 0 || z.length > bytes || (channels != 1 && channels != 3) || z.height <= 0 || z.height > kMostPixels || z.width <= 0 ||
      z.width > kMostPixels || z.height * z.width * channels > size || z.top < 0 || z.left < 0 || z.rows <= 0 || z.columns <= 0 ||
      z.rows > z.height || z.columns > z.width || z.top > z.height - z.rows || z.left > z.width - z.columns)
    return;
  static thread_local File kept;
  File* file = &kept;
  asm volatile("" : "+r"(file));  // else the compiler recomputes the thread-local address each time
  done[0] = file->decode(content, z, channels, image);
}

}  // extern "C"
