// Baseline JPEGs: a window of the pixels, equal to libjpeg-turbo's to the last bit. Three quarters of the time of decoding a photograph are
// Huffman decoding; here stuffed bytes are removed from the bits before, and a coefficient takes one table lookup. All unusual files, valid or
// damaged, are left to the library.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "image/inverse_dct.h"
#include "image/jpeg_colors.h"
#include "image/jpeg_headers.h"
#include "runtime/parameters.h"

namespace {

constexpr int kPaddingBytes = 4096;       // bytes of zeros behind the bits: no MCU takes more
constexpr int64_t kMostPixels = 1 << 15;  // of a side
constexpr size_t kMostMemory = 1 << 25;   // bytes that a thread keeps

class Decoder {
 public:
  bool decode(const uint8_t* content, const JpegParams& window, int64_t channels, uint8_t* out) {
    height_ = window.height, width_ = window.width, end_ = content + window.length;
    at_ = headers_.read(content, end_, height_, width_);
    if (!at_ || !allocate(size_t(window.length)) || !scan(window)) return false;
    convert_colors(window, channels, out);
    if (memory_.capacity() > kMostMemory) std::vector<uint8_t>().swap(memory_);
    return true;
  }

 private:
  const uint8_t *at_ = nullptr, *end_ = nullptr;
  int64_t height_ = 0, width_ = 0, mcus_per_row_ = 0, mcu_rows_ = 0;
  JpegHeaders headers_;
  std::vector<uint8_t> memory_;
  std::vector<int16_t> sums_;
  std::vector<uint8_t> chroma_;
  uint8_t* bits_ = nullptr;
  int64_t filled_ = 0;

  // Memory for the bits and the samples.
  bool allocate(size_t length) {
    const int64_t across = headers_.sampling_h, down = headers_.sampling_v;
    mcus_per_row_ = (width_ + 8 * across - 1) / (8 * across), mcu_rows_ = (height_ + 8 * down - 1) / (8 * down);
    size_t size = length + kPaddingBytes + 16;
    for (int i = 0; i < headers_.component_count; ++i) {
      Component& component = headers_.components[i];
      component.stride = mcus_per_row_ * 8 * component.across;
      component.width = i ? (width_ + across - 1) / across : width_;
      component.height = i ? (height_ + down - 1) / down : height_;
      size += size_t(component.stride * mcu_rows_ * 8 * component.down);
      // The library does not interpolate between so few.
      if (i && across == 2 && component.width <= 2) return false;
    }
    if (memory_.size() < size) memory_.resize(size);
    bits_ = memory_.data();
    uint8_t* next = bits_ + length + kPaddingBytes + 16;
    for (int i = 0; i < headers_.component_count; ++i) {
      Component& component = headers_.components[i];
      component.plane = next, next += component.stride * mcu_rows_ * 8 * component.down;
    }
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
    const int64_t wide = 8 * headers_.sampling_h, high = 8 * headers_.sampling_v;
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
          until_restart = headers_.restart_interval ? headers_.restart_interval : -1;
          for (Component& component : headers_.components) component.last = 0;
        }
        --until_restart;
        const bool keep = row >= top && unit >= first && unit <= last;
        if (!(keep ? decode_mcu<true>(bits, row, unit) : decode_mcu<false>(bits, row, unit)) || used(bits) > 8 * filled_) return false;
      }
      // The rest is not needed; a truncated file is detected by its missing end.
      if (row == bottom && row + 1 < mcu_rows_)
        return headers_.restart_interval == 0 ? at_[1] == kEOI : end_[-2] == kMarkerPrefix && end_[-1] == kEOI;
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
    for (int i = 0; i < headers_.component_count; ++i) {
      Component& component = headers_.components[i];
      const HuffmanTable &dc = headers_.dc_tables[component.dc], &ac = headers_.ac_tables[component.ac];
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
    for (int i = 0; i < headers_.component_count; ++i) {
      Component& component = headers_.components[i];
      for (int64_t y = 0; y < component.down; ++y)
        for (int64_t x = 0; x < component.across; ++x, ++number) {
          uint8_t* to = component.plane + ((row * component.down + y) * 8) * component.stride + (unit * component.across + x) * 8;
          const int16_t* steps = headers_.quantization[component.quantization];
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

  void convert_colors(const JpegParams& window, int64_t channels, uint8_t* out) {
    const int64_t left = window.left, columns = window.columns;
    if (sums_.size() < size_t(columns + 4)) sums_.resize(size_t(columns + 4));
    if (chroma_.size() < size_t(2 * columns + 64)) chroma_.resize(size_t(2 * columns + 64));
    for (int64_t y = window.top; y < window.top + window.rows; ++y) {
      const uint8_t* luma = headers_.components[0].plane + y * headers_.components[0].stride + left;
      uint8_t* to = out + (y * width_ + left) * channels;
      if (channels == 1) {
        std::memcpy(to, luma, size_t(columns));
      } else if (headers_.component_count == 1) {
        for (int64_t i = 0; i < columns; ++i) to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = luma[i];
      } else {
        const auto chroma = [&](int i, uint8_t* row) {
          return upsampled_row(headers_.components[i], headers_.sampling_h, headers_.sampling_v, y, left, columns, sums_.data(), row);
        };
        ycc_to_bgr(luma, chroma(1, chroma_.data()), chroma(2, chroma_.data() + columns + 32), to, columns);
      }
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
