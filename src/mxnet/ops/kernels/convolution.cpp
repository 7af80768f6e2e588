// Two-dimensional convolutions for training, over channels-last arrays: x (N, H, W, C), weights (K, R, S, C), y (N, P, Q, K).
//
// All three directions are sums of products of one small matrix product, `tile`, which keeps its results in registers while it walks along
// the depth. Its left operand is read in place, row by row through pointers, so that neither padding nor strides need a copy ("indirect
// convolution", Dukhan 2019); its right operand is packed into panels that stay in the L2 cache. The weights come and go in the
// order the optimizer keeps them in, and in single precision: nothing has to be reordered, or cast, between steps.
//
// Operands are arrays of cells of four bytes: a float, or two bfloat16 that are neighbours along the depth, whose products the processor adds.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include <omp.h>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "vectors.h"

namespace {

#if defined(__AVX512F__)
constexpr int kWidest = 4;
constexpr int kRows[] = {0, 12, 12, 8, 6};  // by the width of a panel in vectors: as many accumulators as there are registers for
#else
constexpr int kWidest = 2;
constexpr int kRows[] = {0, 8, 6};
#endif
constexpr int kMostRows = 12;
constexpr int64_t kPanel = 128 << 10;     // bytes of the packed part of a panel
constexpr int64_t kPanels = 512 << 10;    // of those of several panels, which stay in the L2 cache
constexpr int64_t kRowBlock = 256 << 10;  // of a block of rows, which stays there too
constexpr int64_t kManyRows = 256;        // for each thread: enough to make up for packing all weights first
constexpr int64_t kLongest = 512;         // rows that the gradient of the weights sums up at a time
constexpr int64_t kMostFilters = 512;   // whose gradients are summed up together
constexpr int64_t kEnoughRows = 256;      // for each thread: so many are worth a pass over the weights of their own
constexpr int64_t kMostPanels = 64, kMostTaps = 128;

struct bfloat16 {
  uint16_t bits;
};

// What the two types do differently.
template <typename T>
struct Cells;

template <>
struct Cells<float> {
  static constexpr int64_t kEach = 1;  // numbers in a cell
  static vec multiply_add(vec sum, float left, vec right) { return sum + left * right; }
  static float total(float cell) { return cell; }
  // One cell for each column, out of the first row (of kEach), or two of them; null is a row of zeros.
  static vec join(const float* first, const float*) { return first ? load(first) : vec{}; }
  // Rows of single precision as rows of cells; returns how many.
  static int rounded(vec (&)[kLanes]) { return kLanes; }
  static vec rounded(const float* first, const float*) { return load(first); }
};

#if defined(__AVX512BF16__)
inline void store(bfloat16* p, vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)v)); }
inline vec load(const bfloat16* p) {
  return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16);
}

template <>
struct Cells<bfloat16> {
  static constexpr int64_t kEach = 2;
  static vec multiply_add(vec sum, float left, vec right) {
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(left), (__m512bh)right);
  }
  static float total(float cell) {
    uint32_t bits;
    std::memcpy(&bits, &cell, 4);
    const uint32_t halves[] = {bits << 16, bits & 0xffff0000};
    float values[2];
    std::memcpy(values, halves, 8);
    return values[0] + values[1];
  }
  static vec join(const bfloat16* first, const bfloat16* second) {
    auto wide = [](const bfloat16* p) {
      return p ? _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))) : _mm512_setzero_si512();
    };
    return (vec)_mm512_or_si512(wide(first), _mm512_slli_epi32(wide(second), 16));
  }
  static vec rounded(vec first, vec second) {
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)first));
    return (vec)_mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)second)), 16));
  }
  static int rounded(vec (&rows)[kLanes]) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) rows[i] = rounded(rows[2 * i], rows[2 * i + 1]);
    return kLanes / 2;
  }
  static vec rounded(const float* first, const float* second) { return rounded(load(first), load(second)); }
};
#endif

// out[i][j] (+)= sum over taps t and depth k (in cells) of rows[t * MR + i][k] * weights[t][k, j], for MR rows and NV vectors.
template <typename T, typename Out, int MR, int NV>
void tile(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth, Out* const* out, const float* bias, bool add) {
  vec sum[MR][NV];
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) sum[i][j] = add ? load(out[i] + j * kLanes) : bias ? load(bias + j * kLanes) : vec{};
  for (int64_t t = 0; t < taps; ++t, rows += MR) {
    const float* a[MR];
#pragma GCC unroll 12
    for (int i = 0; i < MR; ++i) a[i] = rows[i];
    const float* b = weights[t];
    for (int64_t k = 0; k < depth; ++k, b += NV * kLanes) {
      vec right[NV];
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) right[j] = load(b + j * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < MR; ++i) {
        const float left = a[i][k];
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j) sum[i][j] = Cells<T>::multiply_add(sum[i][j], left, right[j]);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) store(out[i] + j * kLanes, sum[i][j]);
}

template <typename Out>
using Tile = void (*)(const float* const*, const float* const*, int64_t, int64_t, Out* const*, const float*, bool);

// By the width in vectors and half the number of rows.
template <typename T, typename Out>
constexpr Tile<Out> kTiles[][kMostRows / 2 + 1] = {
    {},
#if defined(__AVX512F__)
    {nullptr, tile<T, Out, 2, 1>, tile<T, Out, 4, 1>, tile<T, Out, 6, 1>, tile<T, Out, 8, 1>, tile<T, Out, 10, 1>, tile<T, Out, 12, 1>},
    {nullptr, tile<T, Out, 2, 2>, tile<T, Out, 4, 2>, tile<T, Out, 6, 2>, tile<T, Out, 8, 2>, tile<T, Out, 10, 2>, tile<T, Out, 12, 2>},
    {nullptr, tile<T, Out, 2, 3>, tile<T, Out, 4, 3>, tile<T, Out, 6, 3>, tile<T, Out, 8, 3>},
    {nullptr, tile<T, Out, 2, 4>, tile<T, Out, 4, 4>, tile<T, Out, 6, 4>},
#else
    {nullptr, tile<T, Out, 2, 1>, tile<T, Out, 4, 1>, tile<T, Out, 6, 1>, tile<T, Out, 8, 1>},
    {nullptr, tile<T, Out, 2, 2>, tile<T, Out, 4, 2>, tile<T, Out, 6, 2>},
#endif
};

// The columns of a matrix, cut into panels of at most kWidest vectors: `wide` of them, and then some that are one vector narrower.
struct Panels {
  int64_t count, narrow, wide;
  explicit Panels(int64_t columns)
      : count((columns / kLanes + kWidest - 1) / kWidest), narrow(columns / kLanes / count), wide(columns / kLanes % count) {}
  int width(int64_t i) const { return int(narrow + (i < wide)); }  // in vectors
  int64_t column(int64_t i) const { return (i * narrow + std::min(i, wide)) * kLanes; }
  int64_t alike(int64_t i) const { return i < wide ? wide : count; }  // the end of the panels that are as wide as this one
};

struct Image {
  int64_t n, h, w, c;
};

// Along one axis: outputs which lie `apart` from each other, from `first` on, and read the same taps of the kernel, none in the padding.
struct Stretch {
  struct Tap {
    int64_t index, source;  // which of the kernel's, and what it reads for the first output
  };
  int64_t first, apart, count, step;
  std::vector<Tap> taps;
};

// All outputs of one axis. tap(i, r) is what output i reads through tap r, anything below 0 if nothing.
template <typename Source>
void stretches(std::vector<Stretch>& found, int64_t first, int64_t apart, int64_t count, int64_t step, int64_t kernel, int64_t size, Source tap) {
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Stretch::Tap> taps;
    for (int64_t r = 0; r < kernel; ++r) {
      const int64_t at = tap(i, r);
      if (at >= 0 && at < size) taps.push_back({r, at});
    }
    bool same = i > 0 && found.back().taps.size() == taps.size();
    for (size_t t = 0; same && t < taps.size(); ++t) same = found.back().taps[t].index == taps[t].index;
    if (same)
      ++found.back().count;
    else
      found.push_back({first + i * apart, apart, 1, step, taps});
  }
}

// A convolution: each output is a bias and a sum over the taps it reads of source x weights. The source is an image of cells.
template <typename T>
class Gather {
 public:
  Gather(const float* source, Image in, T* destination, Image out, const std::vector<Stretch>& vertical, const std::vector<Stretch>& horizontal,
         int64_t kernel_h, int64_t kernel_w, const float* bias)
      : source_(source), destination_(destination), bias_(bias), in_(in), out_(out), taps_(kernel_h * kernel_w), panels_(out.c), zeros_(in.c, 0.f),
        most_(Cells<T>::kEach == 1 ? kPanel / (kWidest * kLanes * 4) : std::max(in.c, taps_ * in.c)) {
    for (const Stretch& v : vertical)
      for (const Stretch& h : horizontal) {
        Part part{in.n * v.count * h.count, v, h, {}};
        for (const auto& down : v.taps)
          for (const auto& right : h.taps) part.taps.push_back({down.index * kernel_w + right.index, (down.source * in.w + right.source) * in.c});
        rows_ += part.rows;
        parts_.push_back(part);
      }
  }

  // pack(to, tap, c, depth, column, width) writes a part of a panel of the weights.
  template <typename Pack>
  void run(Pack pack, int threads) {
    const int64_t filter = taps_ * in_.c;
    const bool many = rows_ >= threads * kManyRows;
    Aligned shared(many ? filter * out_.c : 0);
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      if (many) {
        // Each thread packs a part of the weights, and then takes a range of the rows through all of them, block by block.
        const int64_t pieces = panels_.count * taps_;
        for (int64_t piece = pieces * thread / team; piece < pieces * (thread + 1) / team; ++piece) {
          const int64_t t = piece % taps_, column = panels_.column(piece / taps_), width = panels_.width(piece / taps_) * kLanes;
          pack(shared.data + column * filter + t * in_.c * width, t, 0, in_.c, column, width);
        }
#pragma omp barrier
        const int64_t block = std::max<int64_t>(kRowBlock / (in_.c * 4) / 24, 2) * 24;  // a multiple of every tile's height
        const int64_t together = std::max<int64_t>(1, kPanels / (std::min(most_, filter) * kWidest * kLanes * 4));
        const int64_t begin = row_at(double(thread) / team), end = row_at(double(thread + 1) / team);
        for (int64_t from = begin; from < end; from += block)
          for (int64_t panel = 0, last; panel < panels_.count; panel = last) {
            last = std::min({panel + together, panel + kMostPanels, panels_.alike(panel)});
            multiply(panel, last, from, std::min(end, from + block), [&](int64_t i, int64_t t, int64_t, int64_t c, int64_t) {
              return shared.data + panels_.column(i) * filter + (t * in_.c + c) * panels_.width(i) * kLanes;
            });
          }
      } else {
        // Few rows: each thread takes its own panels, and packs them for itself.
        Aligned own(most_ * kWidest * kLanes);
        const double begin = double(panels_.count) * thread / team, end = double(panels_.count) * (thread + 1) / team;
        for (int64_t panel = int64_t(begin); panel < end; ++panel) {
          const int64_t column = panels_.column(panel), width = panels_.width(panel) * kLanes;
          multiply(panel, panel + 1, row_at(std::max(begin - panel, 0.0)), row_at(std::min(end - panel, 1.0)),
                   [&](int64_t, int64_t t, int64_t count, int64_t c, int64_t deep) {
                     for (int64_t i = 0; i < count; ++i) pack(own.data + i * deep * width, t + i, c, deep, column, width);
                     return own.data;
                   });
        }
      }
    }
  }

 private:
  struct Tap {
    int64_t index, offset;  // its place among the weights; what it adds to the first input of an output
  };
  struct Part {
    int64_t rows;
    Stretch vertical, horizontal;
    std::vector<Tap> taps;
    double work() const { return double(rows) * (taps.size() + 0.2); }
  };

  // The row up to which a share of the work lies: outputs differ in how many taps they read.
  int64_t row_at(double share) const {
    double work = 0;
    for (const Part& part : parts_) work += part.work();
    work *= share;
    int64_t row = 0;
    for (const Part& part : parts_) {
      if (work < part.work()) return row + int64_t(work / part.work() * part.rows + 0.5);
      work -= part.work(), row += part.rows;
    }
    return rows_;
  }

  // Some rows of some panels of one width. packed(panel, tap, taps, c, depth) is where a part of the weights is.
  template <typename Packed>
  void multiply(int64_t panel, int64_t last, int64_t from, int64_t to, Packed packed) const {
    const int64_t together = std::max<int64_t>(most_ / in_.c, 1), cuts = (in_.c + most_ - 1) / most_;
    for (int64_t t = 0; t < taps_; t += together)
      for (int64_t i = 0; i < cuts; ++i) {
        const int64_t c = in_.c / kLanes * i / cuts * kLanes, end = i + 1 < cuts ? in_.c / kLanes * (i + 1) / cuts * kLanes : in_.c;
        const int64_t deep = end - c, count = std::min(together, taps_ - t);
        const float* weights[kMostPanels];
        for (int64_t p = panel; p < last; ++p) weights[p - panel] = packed(p, t, count, c, deep);
        int64_t before = 0;
        for (const Part& part : parts_) {
          const int64_t begin = std::max(from - before, int64_t(0)), end = std::min(to - before, part.rows);
          before += part.rows;
          if (begin < end) multiply(part, panel, last, begin, end, t, count, c, deep, weights);
        }
      }
  }

  void multiply(const Part& part, int64_t panel, int64_t last, int64_t from, int64_t to, int64_t t, int64_t count, int64_t c, int64_t deep,
                const float* const* weights) const {
    const int nv = panels_.width(panel);
    const int64_t width = nv * kLanes, column = panels_.column(panel);
    const Stretch &v = part.vertical, &h = part.horizontal;
    int64_t offsets[kMostTaps], places[kMostTaps], taps = 0;
    bool add = c > 0;
    for (const Tap& tap : part.taps) {
      if (tap.index < t) add = true;
      if (tap.index < t || tap.index >= t + count) continue;
      offsets[taps] = tap.offset + c;
      places[taps++] = (tap.index - t) * deep * width;
    }
    if (taps == 0 && (add || t > 0)) return;  // only an output that reads nothing gets nothing, once
    const float *pointers[kMostTaps * kMostRows], *right[kMostTaps];
    T nowhere[kMostPanels * kWidest * kLanes];
    T* results[kMostRows];
    int64_t j = from % h.count, i = from / h.count % v.count, n = from / h.count / v.count;
    for (int64_t row = from; row < to; row += kRows[nv]) {
      const int mr = int(std::min<int64_t>(kRows[nv], (to - row + 1) / 2 * 2));
      for (int r = 0; r < mr; ++r) {
        if (row + r >= to) {
          for (int64_t k = 0; k < taps; ++k) pointers[k * mr + r] = zeros_.data();
          results[r] = nowhere;
          continue;
        }
        const float* base = source_ + ((n * in_.h + i * v.step) * in_.w + j * h.step) * in_.c;
        for (int64_t k = 0; k < taps; ++k) pointers[k * mr + r] = base + offsets[k];
        // Rows that come two tiles later.
        for (int64_t l = 0; taps && l < deep; l += 16) __builtin_prefetch(base + offsets[0] + 2 * mr * h.step * in_.c + l);
        results[r] = destination_ + ((n * out_.h + i * v.apart + v.first) * out_.w + j * h.apart + h.first) * out_.c + column;
        if (++j == h.count) {
          j = 0;
          if (++i == v.count) i = 0, ++n;
        }
      }
      for (int64_t p = panel; p < last; ++p) {
        for (int64_t k = 0; k < taps; ++k) right[k] = weights[p - panel] + places[k];
        kTiles<T, T>[nv][mr / 2](pointers, right, taps, deep, results, bias_ ? bias_ + panels_.column(p) : nullptr, add);
        for (int r = 0; r < mr; ++r) results[r] += width;
      }
    }
  }

  const float* source_;
  T* destination_;
  const float* bias_;
  const Image in_, out_;
  const int64_t taps_;
  const Panels panels_;
  const std::vector<float> zeros_;
  const int64_t most_;  // depth of a panel; sums in half precision are not interrupted
  std::vector<Part> parts_;
  int64_t rows_ = 0;
};

// What a call is about, in the order the caller gives it.
struct Sizes {
  int64_t n, h, w, c, k, r, s, p, q, stride_h, stride_w, pad_h, pad_w, dilate_h, dilate_w;
  int64_t filter() const { return r * s * c; }
};

template <typename T>
void forward(const T* x, const float* weight, const float* bias, T* y, const Sizes& z, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  std::vector<Stretch> vertical, horizontal;
  stretches(vertical, 0, 1, z.p, z.stride_h, z.r, z.h, [=](int64_t i, int64_t tap) { return i * z.stride_h + tap * z.dilate_h - z.pad_h; });
  stretches(horizontal, 0, 1, z.q, z.stride_w, z.s, z.w, [=](int64_t i, int64_t tap) { return i * z.stride_w + tap * z.dilate_w - z.pad_w; });
  Gather<T>(reinterpret_cast<const float*>(x), {z.n, z.h, z.w, z.c / each}, y, {z.n, z.p, z.q, z.k}, vertical, horizontal, z.r, z.s, bias)
      .run([=](float* to, int64_t tap, int64_t c, int64_t depth, int64_t column, int64_t width) {
        const float* from = weight + column * z.filter() + tap * z.c + c * each;
        transpose(
            width, depth * each, [=](int64_t j, int64_t k) { return load(from + j * z.filter() + k); },
            [=](vec(&rows)[kLanes], int64_t j, int64_t k) {
              const int count = Cells<T>::rounded(rows);
              for (int i = 0; i < count; ++i) store(to + (k / each + i) * width + j, rows[i]);
            });
      },
           threads);
}

template <typename T>
void backward_data(const T* dy, const float* weight, T* dx, const Sizes& z, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  // With a stride, the positions of dx that are the same modulo the stride meet the same taps.
  auto along = [](int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad, int64_t dilate) {
    std::vector<Stretch> found;
    for (int64_t first = 0; first < std::min(stride, size); ++first)
      stretches(found, first, stride, (size - first + stride - 1) / stride, 1, kernel, outputs, [=](int64_t i, int64_t tap) {
        const int64_t at = first + i * stride + pad - tap * dilate;
        return at >= 0 && at % stride == 0 ? at / stride : -1;
      });
    return found;
  };
  Gather<T>(reinterpret_cast<const float*>(dy), {z.n, z.p, z.q, z.k / each}, dx, {z.n, z.h, z.w, z.c},
            along(z.h, z.p, z.r, z.stride_h, z.pad_h, z.dilate_h), along(z.w, z.q, z.s, z.stride_w, z.pad_w, z.dilate_w), z.r, z.s, nullptr)
      .run([=](float* to, int64_t tap, int64_t k, int64_t depth, int64_t column, int64_t width) {
        for (int64_t i = 0; i < depth; ++i) {
          const float* from = weight + (k + i) * each * z.filter() + tap * z.c + column;
          for (int64_t j = 0; j < width; j += kLanes) store(to + i * width + j, Cells<T>::rounded(from + j, from + z.filter() + j));
        }
      },
           threads);
}

// The gradient of the weights, and of the bias unless it is null. Threads share the filters as long as each has enough of them, and
// then the rows, each with sums of its own.
template <typename T>
void backward_weight(const T* dy, const T* x, float* dweight, float* dbias, const Sizes& z, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  const Panels panels(z.c);
  const int64_t filter = z.filter(), weights = z.k * filter;
  // As many as there will be: inside of another parallel region, or at a limit, fewer come than were asked for.
#pragma omp parallel num_threads(threads)
#pragma omp master
  threads = omp_get_num_threads();
  int across = 1;  // threads that share the filters
  for (int t = 1; t <= threads; ++t)
    if (threads % t == 0 && z.k / t >= 48) across = t;
  const int along = threads / across;  // threads that share the rows
  // What lies in the padding is left out, where that leaves enough rows that read the same taps.
  auto axis = [=](int64_t outputs, int64_t step, int64_t kernel, int64_t dilate, int64_t pad, int64_t size, int64_t others) {
    auto source = [=](int64_t i, int64_t tap) { return i * step + tap * dilate - pad; };
    std::vector<Stretch> found;
    stretches(found, 0, 1, outputs, step, kernel, size, source);
    for (const Stretch& part : found)
      if (part.count * others < kEnoughRows * along) {
        Stretch all{0, 1, outputs, step, {}};
        for (int64_t tap = 0; tap < kernel; ++tap) all.taps.push_back({tap, source(0, tap)});
        return std::vector<Stretch>{all};
      }
    return found;
  };
  const std::vector<Stretch> vertical = axis(z.p, z.stride_h, z.r, z.dilate_h, z.pad_h, z.h, z.n * z.q);
  int64_t least = z.p;
  for (const Stretch& part : vertical) least = std::min(least, part.count);
  const std::vector<Stretch> horizontal = axis(z.q, z.stride_w, z.s, z.dilate_w, z.pad_w, z.w, z.n * least);
  std::vector<std::vector<float>> partial(along - 1), partial_bias(along - 1);
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num(), my = thread / across;
    // Whole squares of filters for each thread, so that a square can be transposed; so many at a time that their rows are long.
    const int64_t squares = z.k / kLanes, k_first = squares * (thread % across) / across * kLanes,
                  k_last = squares * (thread % across + 1) / across * kLanes;
    if (my > 0 && thread % across == 0) partial[my - 1].resize(weights), partial_bias[my - 1].resize(z.k);
#pragma omp barrier
    float* sums = my > 0 ? partial[my - 1].data() : dweight;
    float* bias_sums = !dbias ? nullptr : my > 0 ? partial_bias[my - 1].data() : dbias;
    for (int64_t k_begin = k_first; k_begin < k_last; k_begin += kMostFilters) {
      const int64_t filters = std::min(kMostFilters, k_last - k_begin);
      // Counted in cells, of kEach rows.
      const int64_t longest = std::max<int64_t>(std::min<int64_t>((512 << 10) / (filters * 4) / 16 * 16, kLongest), 64), step = longest + 16;
      Aligned left(filters * step), right(kWidest * kLanes * longest);
      const std::vector<float> zeros(longest, 0.f);
      float nowhere[kWidest * kLanes];
      struct Row {
        int64_t h, w, input, output;
      };
      std::vector<Row> rows(longest * each);
      std::vector<char> begun(z.r * z.s, false);
      if (bias_sums) std::fill(bias_sums + k_begin, bias_sums + k_begin + filters, 0.f);
      for (const Stretch& v : vertical)
        for (const Stretch& u : horizontal) {
          const int64_t all = z.n * v.count * u.count, begin = all * my / along, end = all * (my + 1) / along;
          int64_t j = begin % u.count, i = begin / u.count % v.count, image = begin / u.count / v.count;
          for (int64_t from = begin; from < end; from += longest * each) {
            const int64_t count = std::min(longest * each, end - from), depth = (count + each - 1) / each;
            for (int64_t m = 0; m < count; ++m) {
              const int64_t at_h = (i + v.first) * z.stride_h - z.pad_h, at_w = (j + u.first) * z.stride_w - z.pad_w;
              rows[m] = {at_h, at_w, ((image * z.h + at_h) * z.w + at_w) * z.c, ((image * z.p + i + v.first) * z.q + j + u.first) * z.k + k_begin};
              if (++j == u.count) {
                j = 0;
                if (++i == v.count) i = 0, ++image;
              }
            }
            auto output = [&](int64_t m) { return m < count ? dy + rows[m].output : nullptr; };
            transpose(
                (depth + kLanes - 1) / kLanes * kLanes, filters,
                [&](int64_t m, int64_t f) {
                  const T *first = output(m * each), *second = output(m * each + each - 1);
                  return Cells<T>::join(first ? first + f : nullptr, second ? second + f : nullptr);
                },
                [&](vec(&square)[kLanes], int64_t m, int64_t f) {
                  for (int l = 0; l < kLanes; ++l) store(left.data + (f + l) * step + m, square[l]);
                });
            if (bias_sums)
              for (int64_t f = 0; f < filters; ++f) {
                float sum = 0;
  #pragma omp simd reduction(+ : sum)
                for (int64_t m = 0; m < depth; ++m) sum += Cells<T>::total(left.data[f * step + m]);
                bias_sums[k_begin + f] += sum;
              }
            for (const auto& down : v.taps)
              for (const auto& over : u.taps) {
                const int64_t tap = down.index * z.s + over.index, dh = down.index * z.dilate_h, dw = over.index * z.dilate_w;
                for (int64_t panel = 0; panel < panels.count; ++panel) {
                  const int nv = panels.width(panel);
                  const int64_t column = panels.column(panel), offset = (dh * z.w + dw) * z.c + column;
                  auto input = [&](int64_t m) {
                    const bool inside = m < count && uint64_t(rows[m].h + dh) < uint64_t(z.h) && uint64_t(rows[m].w + dw) < uint64_t(z.w);
                    return inside ? x + rows[m].input + offset : nullptr;
                  };
                  for (int64_t m = 0; m < depth; ++m) {
                    const T *first = input(m * each), *second = input(m * each + each - 1);
                    for (int l = 0; l < nv; ++l) {
                      store(right.data + (m * nv + l) * kLanes,
                            Cells<T>::join(first ? first + l * kLanes : nullptr, second ? second + l * kLanes : nullptr));
                      __builtin_prefetch(first + (nv + l) * kLanes, 0, 2);  // for the next panel
                    }
                  }
                  const float* packed = right.data;
                  for (int64_t f = 0; f < filters; f += kRows[nv]) {
                    const int mr = int(std::min<int64_t>(kRows[nv], (filters - f + 1) / 2 * 2));
                    const float* pointers[kMostRows];
                    float* results[kMostRows];
                    for (int l = 0; l < mr; ++l) {
                      pointers[l] = f + l < filters ? left.data + (f + l) * step : zeros.data();
                      results[l] = f + l < filters ? sums + (k_begin + f + l) * filter + tap * z.c + column : nowhere;
                    }
                    kTiles<T, float>[nv][mr / 2](pointers, &packed, 1, depth, results, nullptr, begun[tap]);
                  }
                }
                begun[tap] = true;
              }
          }
        }
      for (int64_t tap = 0; tap < z.r * z.s; ++tap)
        for (int64_t f = 0; !begun[tap] && f < filters; ++f) std::fill_n(sums + (k_begin + f) * filter + tap * z.c, z.c, 0.f);
    }
    if (along > 1) {
#pragma omp barrier
      const int64_t first = weights * thread / threads, last = weights * (thread + 1) / threads;
      for (const auto& more : partial)
        for (int64_t e = first; e < last; ++e) dweight[e] += more[e];
      if (dbias && thread == 0)
        for (const auto& more : partial_bias)
          for (int64_t e = 0; e < z.k; ++e) dbias[e] += more[e];
    }
  }
}

}  // namespace

extern "C" {

#define REMEX_CONVOLUTION(suffix, T)                                                                                                          \
  void forward_##suffix(const T* x, const float* weight, const float* bias, T* y, const Sizes* sizes, int threads) {                          \
    forward<T>(x, weight, bias, y, *sizes, threads);                                                                                          \
  }                                                                                                                                           \
  void backward_data_##suffix(const T* dy, const float* weight, T* dx, const Sizes* sizes, int threads) {                                     \
    backward_data<T>(dy, weight, dx, *sizes, threads);                                                                                        \
  }                                                                                                                                           \
  void backward_weight_##suffix(const T* dy, const T* x, float* dweight, float* dbias, const Sizes* sizes, int threads) {                     \
    backward_weight<T>(dy, x, dweight, dbias, *sizes, threads);                                                                               \
  }

REMEX_CONVOLUTION(float32, float)
#if defined(__AVX512BF16__)
REMEX_CONVOLUTION(bfloat16, bfloat16)
#endif
}
