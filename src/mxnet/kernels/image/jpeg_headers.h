// The headers of a baseline JPEG: the frame with its components, and the tables.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "image/huffman.h"

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

// `plane` has the decoded samples, rows of `stride`.
struct Component {
  int64_t id, across, down, quantization, dc = 0, ac = 0, width = 0, height = 0, stride = 0;
  uint8_t* plane = nullptr;
  int16_t last = 0;
};

// The headers of one file; `read` replaces those of the file before.
struct JpegHeaders {
  int64_t sampling_h = 0, sampling_v = 0, restart_interval = 0;
  int component_count = 0;
  Component components[3];
  int16_t quantization[kTables][kBlockSize];
  bool has_quantization[kTables];
  HuffmanTable dc_tables[kTables], ac_tables[kTables];
  bool has_dc_table[kTables], has_ac_table[kTables];

  // Reads all segments up to the scan's header. Returns the position of the scan's data, or null for a file that is left to the library.
  const uint8_t* read(const uint8_t* at, const uint8_t* end, int64_t height, int64_t width) {
    bool framed = false, jfif = false, adobe = false;
    int transform = 0;
    std::fill_n(has_quantization, kTables, false), std::fill_n(has_dc_table, kTables, false), std::fill_n(has_ac_table, kTables, false);
    restart_interval = 0;
    if (end - at < 4 || at[0] != kMarkerPrefix || at[1] != kSOI) return nullptr;
    at += 2;
    while (true) {
      if (end - at < 4 || at[0] != kMarkerPrefix) return nullptr;
      const int marker = at[1];
      const int64_t size = word(at + 2) - 2;
      const uint8_t* body = at + 4;
      if (size < 0 || size > end - body) return nullptr;
      at = body + size;
      if (marker == kSOF0) {
        if (framed || !read_sof(body, size, height, width)) return nullptr;
        framed = true;
      } else if (marker == kDHT) {
        if (!read_dht(body, size)) return nullptr;
      } else if (marker == kDQT) {
        if (!read_dqt(body, size)) return nullptr;
      } else if (marker == kDRI) {
        if (size != 2) return nullptr;
        restart_interval = word(body);
      } else if (marker == kSOS) {
        if (!framed || !read_sos(body, size)) return nullptr;
        const bool numbered = component_count < 3 || (components[0].id == 1 && components[1].id == 2 && components[2].id == 3);
        return component_count == 1 || jfif || (adobe ? transform == 1 : numbered) ? at : nullptr;
      } else if (marker == kAPP0) {
        jfif |= size >= 14 && !std::memcmp(body, "JFIF", 5);
      } else if (marker == kAPP14) {
        if (size >= 12 && !std::memcmp(body, "Adobe", 5)) adobe = true, transform = body[11];
      } else if (marker != kCOM && (marker < kAPP0 || marker > kAPP15)) {
        return nullptr;
      }
    }
  }

 private:
  static int64_t word(const uint8_t* p) { return p[0] << 8 | p[1]; }

  bool read_dqt(const uint8_t* body, int64_t size) {
    for (; size; body += 1 + kBlockSize, size -= 1 + kBlockSize) {
      if (size < 1 + kBlockSize || body[0] >= kTables) return false;  // those of 16 bits too
      for (int i = 0; i < kBlockSize; ++i) quantization[body[0]][kZigZag.at[i]] = body[1 + i];
      has_quantization[body[0]] = true;
    }
    return true;
  }

  bool read_sof(const uint8_t* body, int64_t size, int64_t height, int64_t width) {
    component_count = size < 6 ? 0 : body[5];
    if ((component_count != 1 && component_count != 3) || size != 6 + 3 * component_count) return false;
    if (body[0] != 8 || word(body + 1) != height || word(body + 3) != width) return false;
    for (int i = 0; i < component_count; ++i) {
      const uint8_t* one = body + 6 + 3 * i;
      components[i] = Component();
      components[i].id = one[0], components[i].across = one[1] >> 4, components[i].down = one[1] & 15, components[i].quantization = one[2];
      if (one[2] > 3 || (i && (one[1] != 0x11 || one[0] == components[0].id || (i == 2 && one[0] == components[1].id)))) return false;
    }
    if (component_count == 1) components[0].across = components[0].down = 1;  // their values have no effect then
    sampling_h = components[0].across, sampling_v = components[0].down;
    return (sampling_h == 1 && sampling_v == 1) || (sampling_h == 2 && (sampling_v == 1 || sampling_v == 2));
  }

  bool read_dht(const uint8_t* body, int64_t size) {
    while (size) {
      if (size < 17 || (body[0] & 0xef) > 3) return false;
      int count = 0;
      for (int i = 1; i <= 16; ++i) count += body[i];
      if (count > 256 || size < 17 + count) return false;
      const bool ac = body[0] >> 4;
      const int number = body[0] & 15;
      if (!(ac ? ac_tables : dc_tables)[number].build(body + 1, ac, count)) return false;
      (ac ? has_ac_table : has_dc_table)[number] = true;
      body += 17 + count, size -= 17 + count;
    }
    return true;
  }

  bool read_sos(const uint8_t* body, int64_t size) {
    if (size != 4 + 2 * component_count || body[0] != component_count) return false;
    for (int i = 0; i < component_count; ++i) {
      Component& component = components[i];
      if (body[1 + 2 * i] != component.id || (body[2 + 2 * i] & 0xcc)) return false;
      component.dc = body[2 + 2 * i] >> 4, component.ac = body[2 + 2 * i] & 15;
      if (!has_dc_table[component.dc] || !has_ac_table[component.ac] || !has_quantization[component.quantization]) return false;
    }
    const uint8_t* rest = body + 1 + 2 * component_count;
    return rest[0] == 0 && rest[1] == 63 && rest[2] == 0;
  }
};

}  // namespace
