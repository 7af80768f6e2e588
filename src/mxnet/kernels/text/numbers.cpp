// Parsers of numbers in text: lines of comma-separated values, and lines of LibSVM's format.
//
// Each function parses lines until one is not plain, and returns the number of lines and the position. The caller parses such a line, or reports its
// error.
#include <charconv>
#include <cfloat>
#include <cstdint>
#include <limits>

namespace {

// Text that ends with the end of a line: a parser that stops there does not check for the end of the text.
struct Text {
  const uint8_t* at;

  bool over() const { return *at == '\n'; }
  void blanks() {
    while (*at == ' ' || *at == '\t' || *at == '\r') ++at;
  }
  // Behind the end of this line.
  void next() {
    while (*at != '\n') ++at;
    ++at;
  }
};

inline bool digit(uint8_t c) { return c - '0' < 10u; }

constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Parses the number at `text` to the nearest double, and moves `text` behind it.
bool number(Text& text, double& out) {
  const uint8_t* at = text.at;
  const bool negative = *at == '-';
  if (*at == '-' || *at == '+') ++at;
  const uint8_t* first = at;
  uint64_t mantissa = 0;
  for (; digit(*at); ++at) mantissa = mantissa * 10 + (*at - '0');
  int64_t digits = at - first, exponent = 0;
  if (*at == '.') {
    const uint8_t* point = at;
    for (++at; digit(*at); ++at) mantissa = mantissa * 10 + (*at - '0');
    exponent = point + 1 - at;
    digits -= exponent;
  }
  if (!digits) return false;
  if ((*at | 32) == 'e') {
    ++at;
    const bool minus = *at == '-';
    if (*at == '-' || *at == '+') ++at;
    if (!digit(*at)) return false;
    int64_t power = 0;
    for (; digit(*at); ++at)
      if (power < 100000) power = power * 10 + (*at - '0');
    exponent += minus ? -power : power;
  }
  text.at = at;
  double value;
  if (digits <= 19 && mantissa <= uint64_t(1) << 53 && exponent >= -22 && exponent <= 22) {
    // Both are exact, so that there is one rounding. More digits would not fit.
    value = exponent < 0 ? double(mantissa) / POWERS[-exponent] : double(mantissa) * POWERS[exponent];
  } else {
#ifdef __cpp_lib_to_chars
    const char* end = reinterpret_cast<const char*>(at);
    const auto found = std::from_chars(reinterpret_cast<const char*>(first), end, value);
    if (found.ec != std::errc() || found.ptr != end) return false;
#else
    return false;
#endif
  }
  out = negative ? -value : value;
  return true;
}

bool value(Text& text, float& out) {
  double found;
  if (!number(text, found) || found > FLT_MAX || found < -FLT_MAX) return false;
  out = float(found);
  return true;
}

template <typename T>
bool value(Text& text, T& out) {
  const bool negative = *text.at == '-';
  if (*text.at == '-' || *text.at == '+') ++text.at;
  const uint8_t* start = text.at;
  uint64_t found = 0;
  for (; digit(*text.at); ++text.at) found = found * 10 + (*text.at - '0');
  if (text.at == start || text.at - start > 18) return false;  // more might not fit
  const int64_t number = negative ? -int64_t(found) : int64_t(found);
  if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) return false;
  out = T(number);
  return true;
}

template <typename T>
bool row(Text& text, T* out, int64_t width) {
  for (int64_t i = 0; i < width; ++i) {
    text.blanks();
    if (!value(text, out[i])) return false;
    text.blanks();
    if (i + 1 < width) {
      if (text.over() || *text.at != ',') return false;
      ++text.at;
    }
  }
  return text.over();
}

// Parses lines with `line(text, number of rows so far)` while that succeeds. `done` receives the numbers of rows, of bytes and of lines, including
// the empty ones.
template <typename F>
void read(const uint8_t* bytes, int64_t* done, int64_t size, int64_t rows, F line) {
  Text text{bytes};
  const uint8_t* end = bytes + size;
  done[0] = done[1] = done[2] = 0;
  if (!size || end[-1] != '\n') return;
  while (text.at != end && done[0] < rows) {
    text.blanks();
    if (!text.over()) {
      if (!line(text, done[0])) return;
      ++done[0];
    }
    text.next();
    done[1] = text.at - bytes;
    ++done[2];
  }
}

template <typename T>
void csv(const uint8_t* bytes, T* out, int64_t* done, int64_t size, int64_t rows, int64_t width) {
  read(bytes, done, size, rows, [=](Text& text, int64_t i) { return row(text, out + i * width, width); });
}

inline bool ends(const Text& text) {
  return text.over() || *text.at == ' ' || *text.at == '\t' || *text.at == '\r' || *text.at == '#';
}

// A line "label column:value column:value ..."; `count` columns are there already.
bool example(Text& text, float& label, int64_t* columns, float* values, int64_t& count, int64_t capacity, int64_t width) {
  if (!value(text, label) || !ends(text)) return false;
  for (int64_t last = -1;;) {
    text.blanks();
    if (text.over() || *text.at == '#') return true;
    if (*text.at == 'q') {  // the number of a query, which is skipped
      const char* name = "qid:";
      for (; *name; ++name, ++text.at)
        if (text.over() || *text.at != uint8_t(*name)) return false;
      while (!ends(text)) ++text.at;
      continue;
    }
    int64_t column;
    if (!digit(*text.at) || !value(text, column) || column <= last || column >= width || count >= capacity) return false;
    float found = 1;
    if (!text.over() && *text.at == ':') {
      ++text.at;
      if (!value(text, found)) return false;
    }
    if (!ends(text)) return false;
    columns[count] = last = column;
    values[count++] = found;
  }
}

}  // namespace

extern "C" {

// Rows of `width` numbers each.
void csv_float32(const uint8_t* text, float* out, int64_t* done, int64_t size, int64_t rows, int64_t width) { csv(text, out, done, size, rows, width); }
void csv_int32(const uint8_t* text, int32_t* out, int64_t* done, int64_t size, int64_t rows, int64_t width) { csv(text, out, done, size, rows, width); }
void csv_int64(const uint8_t* text, int64_t* out, int64_t* done, int64_t size, int64_t rows, int64_t width) { csv(text, out, done, size, rows, width); }

// Labels, and compressed rows: row i has the columns and values from starts[i] to starts[i + 1]. The arrays have an entry for each two
// bytes, the densest possible text.
void libsvm(const uint8_t* text, float* labels, int64_t* starts, int64_t* columns, float* values, int64_t* done, int64_t size, int64_t rows,
            int64_t width) {
  starts[0] = 0;
  read(text, done, size, rows, [=](Text& line, int64_t i) {
    int64_t count = starts[i];
    if (!example(line, labels[i], columns, values, count, size / 2, width)) return false;
    starts[i + 1] = count;
    return true;
  });
}
}
