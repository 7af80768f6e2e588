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

// The second byte of a marker (T.81, table B.1).
enum Marker : int {
  kSOF0 = 0xc0,   // start of a baseline frame
  kDHT = 0xc4,    // Huffman tables
  kRST0 = 0xd0,   // the first of eight restart markers
  kSOI = 0xd8,    // start of image
  kEOI = 0xd9,    // end of image
  kSOS = 0xda,    // start of scan
  kDQT = 0xdb,    // quantization tables
  kDRI = 0xdd,    // restart interval
  kAPP0 = 0xe0,   // JFIF
  kAPP14 = 0xee,  // Adobe
  kAPP15 = 0xef,
  kCOM = 0xfe,  // comment
};
constexpr uint8_t kMarkerPrefix = 0xff;
constexpr int kBlockSize = 64, kTables = 4;
constexpr int kPaddingBytes = 4096;       // bytes of zeros behind the bits: no MCU takes more
constexpr int64_t kMostPixels = 1 << 15;  // of a side
constexpr size_t kMostMemory = 1 << 25;   // bytes that a thread keeps

// The integer inverse DCT of Loeffler, Ligtenberg and Moschytz, with 13 bits for a constant, written as the equivalent matrix products for the even
// and the odd ones of eight numbers.
constexpr int kEven[2][2] = {{10703, 4433}, {4433, -10704}};
constexpr int kOdd[4][4] = {{11363, 9633, 6437, 2260}, {9633, -2259, -11362, -6436}, {6437, -11362, 2261, 9633}, {2260, -6436, 9633, -11363}};
constexpr int kLargestCoefficient = 8192;         // larger coefficients do not occur in photographs, and libraries decode them differently
constexpr int kColumnShift = 11, kRowShift = 18;  // bits that are dropped after the columns, and after the rows

#if defined(__AVX2__)
inline __m256i pairs(__m128i x, __m128i y) { return _mm256_set_m128i(_mm_unpackhi_epi16(x, y), _mm_unpacklo_epi16(x, y)); }

inline __m256i product(__m256i xy, int x, int y) {
  return _mm256_madd_epi16(xy, _mm256_set1_epi32(int32_t(uint32_t(y) << 16 | (uint32_t(x) & 0xffff))));
}

// One pass of the inverse DCT over eight columns; in words, as they are again in the end.
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

inline void transpose(__m128i (&x)[8]) {
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

bool inverse_dct(const int16_t* block, const int16_t* steps, uint8_t* to, int64_t stride) {
  __m128i x[8];
  const auto row = [](const int16_t* from, int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i); };
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = _mm_mullo_epi16(row(block, i), row(steps, i));
  if (!within(x, kLargestCoefficient)) return false;
  transform<kColumnShift>(x);
  if (!within(x, 2 * kLargestCoefficient)) return false;
  transpose(x);
  transform<kRowShift>(x);
  transpose(x);
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

bool inverse_dct(const int16_t* block, const int16_t* steps, uint8_t* to, int64_t stride) {
  int32_t x[64];
  for (int i = 0; i < 64; ++i) x[i] = int16_t(block[i] * steps[i]);
  const auto within = [&](int most) { return std::all_of(x, x + 64, [&](int32_t one) { return -most <= one && one < most; }); };
  if (!within(kLargestCoefficient)) return false;
  for (int i = 0; i < 8; ++i) transform<kColumnShift, 8>(x + i);
  if (!within(2 * kLargestCoefficient)) return false;
  for (int i = 0; i < 8; ++i) {
    transform<kRowShift, 1>(x + 8 * i);
    for (int j = 0; j < 8; ++j) to[i * stride + j] = uint8_t(std::min(std::max(x[8 * i + j] + 128, 0), 255));
  }
  return true;
}
#endif

// The same of a block whose first number is all that it has.
bool inverse_dct_of_dc(int16_t value, uint8_t* to, int64_t stride) {
  const int sample = std::min(std::max(((value + 4) >> 3) + 128, 0), 255);
  for (int i = 0; i < 8; ++i) std::memset(to + i * stride, sample, 8);
  return -kLargestCoefficient <= value && value < kLargestCoefficient;
}

struct Component {
  int64_t id, across, down, quantization, dc = 0, ac = 0, width = 0, height = 0, stride = 0;
  uint8_t* plane = nullptr;
  int16_t last = 0;
};

class Decoder {
 public:
  bool decode(const uint8_t* content, const JpegParams& window, int64_t channels, uint8_t* out) {
    at_ = content, end_ = content + window.length;
    height_ = window.height, width_ = window.width;
    if (!read_headers() || !allocate(size_t(window.length)) || !scan(window)) return false;
    convert_colors(window, channels, out);
    if (memory_.capacity() > kMostMemory) std::vector<uint8_t>().swap(memory_);
    return true;
  }

 private:
  const uint8_t *at_ = nullptr, *end_ = nullptr;
  int64_t height_ = 0, width_ = 0, mcus_per_row_ = 0, mcu_rows_ = 0, sampling_h_ = 0, sampling_v_ = 0, restart_interval_ = 0;
  int component_count_ = 0;
  Component components_[3];
  int16_t quantization_[kTables][kBlockSize];
  bool has_quantization_[kTables];
  HuffmanTable dc_tables_[kTables], ac_tables_[kTables];
  bool has_dc_table_[kTables], has_ac_table_[kTables];
  std::vector<uint8_t> memory_;
  std::vector<int16_t> sums_;
  std::vector<uint8_t> chroma_;
  uint8_t* bits_ = nullptr;
  int64_t filled_ = 0;

  static int64_t word(const uint8_t* p) { return p[0] << 8 | p[1]; }

  bool read_headers() {
    bool framed = false, jfif = false, adobe = false;
    int transform = 0;
    std::fill_n(has_quantization_, kTables, false), std::fill_n(has_dc_table_, kTables, false), std::fill_n(has_ac_table_, kTables, false);
    restart_interval_ = 0;
    if (end_ - at_ < 4 || at_[0] != kMarkerPrefix || at_[1] != kSOI) return false;
    at_ += 2;
    while (true) {
      if (end_ - at_ < 4 || at_[0] != kMarkerPrefix) return false;
      const int marker = at_[1];
      const int64_t size = word(at_ + 2) - 2;
      const uint8_t* body = at_ + 4;
      if (size < 0 || size > end_ - body) return false;
      at_ = body + size;
      if (marker == kSOF0) {
        if (framed || !read_sof(body, size)) return false;
        framed = true;
      } else if (marker == kDHT) {
        if (!read_dht(body, size)) return false;
      } else if (marker == kDQT) {
        if (!read_dqt(body, size)) return false;
      } else if (marker == kDRI) {
        if (size != 2) return false;
        restart_interval_ = word(body);
      } else if (marker == kSOS) {
        if (!framed || !read_sos(body, size)) return false;
        const bool numbered = component_count_ < 3 || (components_[0].id == 1 && components_[1].id == 2 && components_[2].id == 3);
        return component_count_ == 1 || jfif || (adobe ? transform == 1 : numbered);
      } else if (marker == kAPP0) {
        jfif |= size >= 14 && !std::memcmp(body, "JFIF", 5);
      } else if (marker == kAPP14) {
        if (size >= 12 && !std::memcmp(body, "Adobe", 5)) adobe = true, transform = body[11];
      } else if (marker != kCOM && (marker < kAPP0 || marker > kAPP15)) {
        return false;
      }
    }
  }

  bool read_dqt(const uint8_t* body, int64_t size) {
    for (; size; body += 1 + kBlockSize, size -= 1 + kBlockSize) {
      if (size < 1 + kBlockSize || body[0] >= kTables) return false;  // those of 16 bits too
      for (int i = 0; i < kBlockSize; ++i) quantization_[body[0]][kZigZag.at[i]] = body[1 + i];
      has_quantization_[body[0]] = true;
    }
    return true;
  }

  bool read_sof(const uint8_t* body, int64_t size) {
    component_count_ = size < 6 ? 0 : body[5];
    if ((component_count_ != 1 && component_count_ != 3) || size != 6 + 3 * component_count_) return false;
    if (body[0] != 8 || word(body + 1) != height_ || word(body + 3) != width_) return false;
    for (int i = 0; i < component_count_; ++i) {
      const uint8_t* one = body + 6 + 3 * i;
      components_[i] = Component();
      components_[i].id = one[0], components_[i].across = one[1] >> 4, components_[i].down = one[1] & 15, components_[i].quantization = one[2];
      if (one[2] > 3 || (i && (one[1] != 0x11 || one[0] == components_[0].id || (i == 2 && one[0] == components_[1].id)))) return false;
    }
    if (component_count_ == 1) components_[0].across = components_[0].down = 1;  // their values have no effect then
    sampling_h_ = components_[0].across, sampling_v_ = components_[0].down;
    return (sampling_h_ == 1 && sampling_v_ == 1) || (sampling_h_ == 2 && (sampling_v_ == 1 || sampling_v_ == 2));
  }

  bool read_dht(const uint8_t* body, int64_t size) {
    while (size) {
      if (size < 17 || (body[0] & 0xef) > 3) return false;
      int count = 0;
      for (int i = 1; i <= 16; ++i) count += body[i];
      if (count > 256 || size < 17 + count) return false;
      const bool ac = body[0] >> 4;
      const int number = body[0] & 15;
      if (!(ac ? ac_tables_ : dc_tables_)[number].build(body + 1, ac, count)) return false;
      (ac ? has_ac_table_ : has_dc_table_)[number] = true;
      body += 17 + count, size -= 17 + count;
    }
    return true;
  }

  bool read_sos(const uint8_t* body, int64_t size) {
    if (size != 4 + 2 * component_count_ || body[0] != component_count_) return false;
    for (int i = 0; i < component_count_; ++i) {
      Component& component = components_[i];
      if (body[1 + 2 * i] != component.id || (body[2 + 2 * i] & 0xcc)) return false;
      component.dc = body[2 + 2 * i] >> 4, component.ac = body[2 + 2 * i] & 15;
      if (!has_dc_table_[component.dc] || !has_ac_table_[component.ac] || !has_quantization_[component.quantization]) return false;
    }
    const uint8_t* rest = body + 1 + 2 * component_count_;
    return rest[0] == 0 && rest[1] == 63 && rest[2] == 0;
  }

  // Memory for the bits and the samples.
  bool allocate(size_t length) {
    mcus_per_row_ = (width_ + 8 * sampling_h_ - 1) / (8 * sampling_h_), mcu_rows_ = (height_ + 8 * sampling_v_ - 1) / (8 * sampling_v_);
    size_t size = length + kPaddingBytes + 16;
    for (int i = 0; i < component_count_; ++i) {
      Component& component = components_[i];
      component.stride = mcus_per_row_ * 8 * component.across;
      component.width = i ? (width_ + sampling_h_ - 1) / sampling_h_ : width_;
      component.height = i ? (height_ + sampling_v_ - 1) / sampling_v_ : height_;
      size += size_t(component.stride * mcu_rows_ * 8 * component.down);
      // The library does not interpolate between so few.
      if (i && sampling_h_ == 2 && component.width <= 2) return false;
    }
    if (memory_.size() < size) memory_.resize(size);
    bits_ = memory_.data();
    uint8_t* next = bits_ + length + kPaddingBytes + 16;
    for (int i = 0; i < component_count_; ++i) components_[i].plane = next, next += components_[i].stride * mcu_rows_ * 8 * components_[i].down;
    return true;
  }

  // The bits up to the next marker, without the zeros that follow bytes of ones; false if there is no marker.
  bool unstuff_segment() {
    uint8_t* to = bits_;
    while (true) {
      const uint8_t* mark = static_cast<const uint8_t*>(std::memchr(at_, kMarkerPrefix, size_t(end_ - at_)));
      if (!mark || mark + 1 >= end_) return false;
      const size_t size = size_t(mark - at_) + (mark[1] == 0);
      std::memcpy(to, at_, size);
      to += size, at_ = mark + 2;
      if (mark[1]) break;
    }
    at_ -= 2;
    filled_ = to - bits_;
    std::memset(to, 0, kPaddingBytes);
    return true;
  }

  bool scan(const JpegParams& window) {
    const int64_t wide = 8 * sampling_h_, high = 8 * sampling_v_;
    // Interpolation looks at a neighbour.
    const int64_t first = std::max<int64_t>(window.left - 2, 0) / wide, last = std::min((window.left + window.columns + 1) / wide, mcus_per_row_ - 1);
    const int64_t top = std::max<int64_t>(window.top - 2, 0) / high, bottom = std::min((window.top + window.rows + 1) / high, mcu_rows_ - 1);
    BitReader bits{nullptr};
    int64_t until_restart = 0;
    int restart = 0;
    for (int64_t row = 0, number = 0; row < mcu_rows_; ++row) {
      for (int64_t unit = 0; unit < mcus_per_row_; ++unit, ++number) {
        if (until_restart == 0) {
          if (number && !ends_with(bits, kRST0 + restart++ % 8)) return false;
          if (!unstuff_segment()) return false;
          bits = BitReader{bits_};
          until_restart = restart_interval_ ? restart_interval_ : -1;
          for (Component& component : components_) component.last = 0;
        }
        --until_restart;
        const bool keep = row >= top && unit >= first && unit <= last;
        if (!(keep ? decode_mcu<true>(bits, row, unit) : decode_mcu<false>(bits, row, unit)) || used(bits) > 8 * filled_) return false;
      }
      // The rest is not needed; a truncated file is detected by its missing end.
      if (row == bottom && row + 1 < mcu_rows_) return restart_interval_ == 0 ? at_[1] == kEOI : end_[-2] == kMarkerPrefix && end_[-1] == kEOI;
    }
    return ends_with(bits, kEOI);
  }

  int64_t used(const BitReader& bits) const { return 8 * (bits.at - bits_) - bits.count; }

  // Returns true if all bits but the padding of the last byte are used and this marker follows; advances behind it.
  bool ends_with(const BitReader& bits, int marker) {
    if (8 * filled_ - used(bits) >= 8 || at_[1] != marker) return false;
    at_ += 2;
    return true;
  }

  template <bool keep>
  bool decode_mcu(BitReader& shared, int64_t row, int64_t unit) {
    alignas(32) int16_t block[6][64 + 32];  // behind the 64 there is room for what a step past the end would write
    int ends[6], number = 0;
    if (keep) std::memset(block, 0, sizeof block);
    BitReader bits = shared;
    for (int i = 0; i < component_count_; ++i) {
      Component& component = components_[i];
      const HuffmanTable &dc = dc_tables_[component.dc], &ac = ac_tables_[component.ac];
      for (int64_t j = 0; j < component.down * component.across; ++j, ++number) {
        const HuffmanEntry difference = bits.next(dc);
        if (!difference.length()) return false;
        component.last = int16_t(component.last + difference.value(bits.held));
        bits.drop(difference.length());
        if (!decode_ac<keep>(bits, ac, block[number], ends[number])) return false;
        if (keep) block[number][0] = component.last;
      }
    }
    shared = bits;
    if (!keep) return true;
    number = 0;
    for (int i = 0; i < component_count_; ++i) {
      Component& component = components_[i];
      for (int64_t y = 0; y < component.down; ++y)
        for (int64_t x = 0; x < component.across; ++x, ++number) {
          uint8_t* to = component.plane + ((row * component.down + y) * 8) * component.stride + (unit * component.across + x) * 8;
          const int16_t* steps = quantization_[component.quantization];
          const bool done = ends[number] == 1 + kEndOfBlock ? inverse_dct_of_dc(int16_t(block[number][0] * steps[0]), to, component.stride)
                                                            : inverse_dct(block[number], steps, to, component.stride);
          if (!done) return false;
        }
    }
    return true;
  }

  // Decodes the 63 AC coefficients of a block; `end` receives the kind of its end.
  template <bool keep>
  static bool decode_ac(BitReader& shared, const HuffmanTable& table, int16_t* block, int& end) {
    BitReader bits = shared;
    HuffmanEntry found;
    int64_t before = 1, at = 1;
    const auto put = [&] {
      if (keep) {  // in this order: where there is one number only, both may have the same place
        block[kZigZag.at[at + found.first_place()]] = found.first_value();
        block[kZigZag.at[at + found.place()]] = found.value(bits.held);
      }
      bits.drop(found.length());
      before = at, at += found.steps();
    };
    while (at < 64) {
      bits.refill();
#pragma GCC unroll 8
      for (int i = 0; i < kRefillBits / kMaxEntryBits; ++i) {
        found = table.quick[bits.held >> (64 - kLookupBits)];
        if (__builtin_expect(!found.length(), 0)) {
          bits.refill();
          found = table.long_code(bits.held);
          if (!found.length()) return false;
          put();
          break;
        }
        put();
        if (at >= 64) break;
      }
    }
    const int64_t first = before + found.first_steps();
    if (at > 64 && !(first < 64 && at == first + kEndOfBlock)) {
      if (first != 64) return false;
      bits.give_back(found.length() - found.first_length());  // the second number is the next block's
    }
    shared = bits, end = int(at);
    return true;
  }

  // A row of a component at the image's size, from the column `left` on.
  const uint8_t* upsampled_row(const Component& component, int64_t y, int64_t left, int64_t columns, uint8_t* out) {
    if (sampling_h_ == 1 || &component == components_) return component.plane + y * component.stride + left;
    const int64_t first = left / 2, count = (left + columns + 1) / 2 - first;
    const int64_t at = sampling_v_ == 2 ? y / 2 : y;
    const int64_t beside = sampling_v_ == 2 ? std::min(std::max<int64_t>(at + (y & 1 ? 1 : -1), 0), component.height - 1) : at;
    const uint8_t *near = component.plane + at * component.stride, *far = component.plane + beside * component.stride;
    int16_t* sums = sums_.data() + 1;
    for (int64_t i = 0; i < count; ++i) sums[i] = int16_t(3 * near[first + i] + far[first + i]);
    const int64_t before = std::max<int64_t>(first - 1, 0), after = std::min(first + count, component.width - 1);
    sums[-1] = int16_t(3 * near[before] + far[before]), sums[count] = int16_t(3 * near[after] + far[after]);
    // Both are 4 times as large where rows are not interpolated: so are the numbers that round.
    const int up = sampling_v_ == 2 ? 8 : 4, down = sampling_v_ == 2 ? 7 : 8;
    for (int64_t i = 0; i < count; ++i) {
      out[2 * i] = uint8_t((3 * sums[i] + sums[i - 1] + up) >> 4);
      out[2 * i + 1] = uint8_t((3 * sums[i] + sums[i + 1] + down) >> 4);
    }
    return out + (left & 1);
  }

  void convert_colors(const JpegParams& window, int64_t channels, uint8_t* out) {
    const int64_t left = window.left, columns = window.columns;
    if (sums_.size() < size_t(columns + 4)) sums_.resize(size_t(columns + 4));
    if (chroma_.size() < size_t(2 * columns + 64)) chroma_.resize(size_t(2 * columns + 64));
    for (int64_t y = window.top; y < window.top + window.rows; ++y) {
      const uint8_t* luma = components_[0].plane + y * components_[0].stride + left;
      uint8_t* to = out + (y * width_ + left) * channels;
      if (channels == 1) {
        std::memcpy(to, luma, size_t(columns));
      } else if (component_count_ == 1) {
        for (int64_t i = 0; i < columns; ++i) to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = luma[i];
      } else {
        const uint8_t* cb = upsampled_row(components_[1], y, left, columns, chroma_.data());
        const uint8_t* cr = upsampled_row(components_[2], y, left, columns, chroma_.data() + columns + 32);
        ycc_to_bgr(luma, cb, cr, to, columns);
      }
    }
  }

  // YCbCr to BGR, in 16 bits behind the point.
  static void ycc_to_bgr(const uint8_t* luma, const uint8_t* cb, const uint8_t* cr, uint8_t* to, int64_t count) {
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 16 < count; i += 16, to += 48) {
      const auto words = [&](const uint8_t* p) { return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i))); };
      const __m256i middle = _mm256_set1_epi16(128), one = _mm256_set1_epi16(1), round = _mm256_set1_epi32(32768);
      const __m256i y = words(luma), u = _mm256_sub_epi16(words(cb), middle), v = _mm256_sub_epi16(words(cr), middle);
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
      const int y = luma[i], u = cb[i] - 128, v = cr[i] - 128;
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
  static thread_local Decoder reused;
  Decoder* decoder = &reused;
  asm volatile("" : "+r"(decoder));  // else the compiler recomputes the thread-local address each time
  done[0] = decoder->decode(content, z, channels, image);
}

}  // extern "C"
