// Two-dimensional convolutions for training, over channels-last arrays: x (N, H, W, C), weights (K, R, S, C), y (N, P, Q, K).
//
// All three directions are sums of products of one small matrix product, `tile`, which keeps its results in registers while it walks along
// the depth. Its left operand is read in place, row by row through pointers, so that neither padding nor strides need a copy ("indirect
// convolution", Dukhan 2019); its right operand is packed into panels that stay in the second-level cache. The weights come and go in the
// order the optimizer keeps them in: nothing has to be reordered between steps.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include <omp.h>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kWidest = 4;
constexpr int kRows[] = {0, 12, 12, 8, 6};  // by the width of a panel in vectors: as many accumulators as there are registers for
#else
constexpr int kLanes = 8, kWidest = 2;
constexpr int kRows[] = {0, 8, 6};
#endif
constexpr int kMostRows = 12;
constexpr int64_t kPanel = 128 << 10;     // bytes of the packed part of a panel
constexpr int64_t kPanels = 512 << 10;    // of those of several panels, which stay in the second cache
constexpr int64_t kRowBlock = 256 << 10;  // of a block of rows, which stays there too
constexpr int64_t kManyRows = 256;        // for each thread: enough to make up for packing all weights first
constexpr int64_t kLongest = 512;         // rows that the gradient of the weights sums up at a time
constexpr int64_t kEnoughRows = 256;      // for each thread: so many are worth a pass over the weights of their own
constexpr int64_t kMostPanels = 64, kMostTaps = 128;

typedef float vec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline vec load(const float* p) { return *reinterpret_cast<const vec*>(p); }
inline void store(float* p, vec v) { *reinterpret_cast<vec*>(p) = v; }

// out[i][j] (+)= sum over taps t and depth k of rows[t * MR + i][k] * weights[t][k, j], for MR rows and NV vectors.
template <int MR, int NV>
void tile(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth, float* const* out, const float* bias, bool add) {
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
        for (int j = 0; j < NV; ++j) sum[i][j] += left * right[j];
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) store(out[i] + j * kLanes, sum[i][j]);
}

using Tile = void (*)(const float* const*, const float* const*, int64_t, int64_t, float* const*, const float*, bool);

// By the width in vectors and half the number of rows.
constexpr Tile kTiles[][kMostRows / 2 + 1] = {
    {},
#if defined(__AVX512F__)
    {nullptr, tile<2, 1>, tile<4, 1>, tile<6, 1>, tile<8, 1>, tile<10, 1>, tile<12, 1>},
    {nullptr, tile<2, 2>, tile<4, 2>, tile<6, 2>, tile<8, 2>, tile<10, 2>, tile<12, 2>},
    {nullptr, tile<2, 3>, tile<4, 3>, tile<6, 3>, tile<8, 3>},
    {nullptr, tile<2, 4>, tile<4, 4>, tile<6, 4>},
#else
    {nullptr, tile<2, 1>, tile<4, 1>, tile<6, 1>, tile<8, 1>},
    {nullptr, tile<2, 2>, tile<4, 2>, tile<6, 2>},
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

struct Aligned {  // uninitialized memory on a cache line
  std::vector<float> held;
  float* data;
  explicit Aligned(int64_t n) : held(size_t(n) + 16) { data = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(held.data()) + 63) & ~uintptr_t(63)); }
};

// A square of numbers turned over: each round takes the first and the second half of the rows apart, lane by lane.
inline void turn(vec (&rows)[kLanes]) {
  typedef int lanes __attribute__((vector_size(kLanes * 4)));
  lanes low, high;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = i / 2 + i % 2 * kLanes;
    high[i] = low[i] + kLanes / 2;
  }
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    vec next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], low);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

// to[k * width + j] = row(j)[k], for j below `columns` and k below `depth`.
template <typename Row>
void transpose(Row row, int64_t columns, int64_t depth, float* to, int64_t width) {
  const int64_t square_k = depth / kLanes * kLanes, square_j = columns / kLanes * kLanes;
  for (int64_t j = 0; j < square_j; j += kLanes) {
    const float* from[kLanes];
    for (int i = 0; i < kLanes; ++i) from[i] = row(j + i);
    for (int64_t k = 0; k < square_k; k += kLanes) {
      vec rows[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) rows[i] = load(from[i] + k);
      turn(rows);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(to + (k + i) * width + j, rows[i]);
    }
  }
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t k = j < square_j ? square_k : 0; k < depth; ++k) to[k * width + j] = row(j)[k];
}

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

// A convolution: each output is a bias and a sum over the taps it reads of source x weights.
class Gather {
 public:
  Gather(const float* source, Image in, float* destination, Image out, const std::vector<Stretch>& vertical, const std::vector<Stretch>& horizontal,
         int64_t kernel_h, int64_t kernel_w, const float* bias)
      : source_(source), destination_(destination), bias_(bias), in_(in), out_(out), taps_(kernel_h * kernel_w), panels_(out.c), zeros_(in.c, 0.f) {
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
        // Everybody packs a part of the weights, and then takes a stretch of the rows through all of them, block by block.
        const int64_t pieces = panels_.count * taps_;
        for (int64_t piece = pieces * thread / team; piece < pieces * (thread + 1) / team; ++piece) {
          const int64_t t = piece % taps_, column = panels_.column(piece / taps_), width = panels_.width(piece / taps_) * kLanes;
          pack(shared.data + column * filter + t * in_.c * width, t, 0, in_.c, column, width);
        }
#pragma omp barrier
        const int64_t block = std::max<int64_t>(kRowBlock / (in_.c * 4) / 24, 2) * 24;  // a multiple of every tile's height
        const int64_t together = std::max<int64_t>(1, kPanels / (std::min(kPanel, filter * kWidest * kLanes * 4)));
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
        Aligned own(kPanel / 4);
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
    const int64_t width = panels_.width(panel) * kLanes, most = kPanel / (width * 4);
    const int64_t together = std::max<int64_t>(most / in_.c, 1), cuts = (in_.c + most - 1) / most;
    for (int64_t t = 0; t < taps_; t += together)
      for (int64_t i = 0; i < cuts; ++i) {
        const int64_t c = in_.c * i / cuts, deep = in_.c * (i + 1) / cuts - c, count = std::min(together, taps_ - t);
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
    float nowhere[kMostPanels * kWidest * kLanes];
    float* results[kMostRows];
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
        kTiles[nv][mr / 2](pointers, right, taps, deep, results, bias_ ? bias_ + panels_.column(p) : nullptr, add);
        for (int r = 0; r < mr; ++r) results[r] += width;
      }
    }
  }

  const float* source_;
  float* destination_;
  const float* bias_;
  const Image in_, out_;
  const int64_t taps_;
  const Panels panels_;
  const std::vector<float> zeros_;
  std::vector<Part> parts_;
  int64_t rows_ = 0;
};

}  // namespace

extern "C" {

void forward(const float* x, const float* weight, const float* bias, float* y, int64_t n, int64_t h, int64_t w, int64_t c, int64_t k, int64_t r,
             int64_t s, int64_t p, int64_t q, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t dilate_h,
             int64_t dilate_w, int threads) {
  std::vector<Stretch> vertical, horizontal;
  stretches(vertical, 0, 1, p, stride_h, r, h, [=](int64_t i, int64_t tap) { return i * stride_h + tap * dilate_h - pad_h; });
  stretches(horizontal, 0, 1, q, stride_w, s, w, [=](int64_t i, int64_t tap) { return i * stride_w + tap * dilate_w - pad_w; });
  const int64_t filter = r * s * c;
  Gather(x, {n, h, w, c}, y, {n, p, q, k}, vertical, horizontal, r, s, bias)
      .run([=](float* to, int64_t tap, int64_t c0, int64_t depth, int64_t column, int64_t width) {
        transpose([=](int64_t j) { return weight + (column + j) * filter + tap * c + c0; }, width, depth, to, width);
      },
           threads);
}

void backward_data(const float* dy, const float* weight, float* dx, int64_t n, int64_t h, int64_t w, int64_t c, int64_t k, int64_t r, int64_t s,
                   int64_t p, int64_t q, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t dilate_h, int64_t dilate_w,
                   int threads) {
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
  const int64_t filter = r * s * c;
  Gather(dy, {n, p, q, k}, dx, {n, h, w, c}, along(h, p, r, stride_h, pad_h, dilate_h), along(w, q, s, stride_w, pad_w, dilate_w), r, s, nullptr)
      .run([=](float* to, int64_t tap, int64_t k0, int64_t depth, int64_t column, int64_t width) {
        for (int64_t i = 0; i < depth; ++i) std::memcpy(to + i * width, weight + (k0 + i) * filter + tap * c + column, width * 4);
      },
           threads);
}

// The gradient of the weights, and of the bias unless it is null. Threads share the filters as long as each has enough of them, and
// then the rows, each with sums of its own.
void backward_weight(const float* dy, const float* x, float* dweight, float* dbias, int64_t n, int64_t h, int64_t w, int64_t c, int64_t k,
                     int64_t r, int64_t s, int64_t p, int64_t q, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                     int64_t dilate_h, int64_t dilate_w, int threads) {
  const Panels panels(c);
  const int64_t filter = r * s * c, weights = k * filter;
  int across = 1;  // threads that share the filters
  for (int t = 1; t <= threads; ++t)
    if (threads % t == 0 && k / t >= 48) across = t;
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
  const std::vector<Stretch> vertical = axis(p, stride_h, r, dilate_h, pad_h, h, n * q);
  int64_t least = p;
  for (const Stretch& part : vertical) least = std::min(least, part.count);
  const std::vector<Stretch> horizontal = axis(q, stride_w, s, dilate_w, pad_w, w, n * least);
  std::vector<std::vector<float>> partial(along - 1), partial_bias(along - 1);
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num(), my = thread / across;
    const int64_t k_begin = k * (thread % across) / across, filters = k * (thread % across + 1) / across - k_begin;
    if (my > 0 && thread % across == 0) partial[my - 1].resize(weights), partial_bias[my - 1].resize(k);
#pragma omp barrier
    float* sums = my > 0 ? partial[my - 1].data() : dweight;
    float* bias_sums = !dbias ? nullptr : my > 0 ? partial_bias[my - 1].data() : dbias;
    const int64_t longest = std::max<int64_t>(std::min<int64_t>((512 << 10) / (filters * 4) / 16 * 16, kLongest), 64), step = longest + 16;
    Aligned left(filters * step), right(kWidest * kLanes * longest);
    const std::vector<float> zeros(std::max<int64_t>(longest, kWidest * kLanes), 0.f);
    float nowhere[kWidest * kLanes];
    struct Row {
      int64_t h, w, input, output;
    };
    std::vector<Row> rows(longest);
    std::vector<char> begun(r * s, false);
    if (bias_sums) std::fill(bias_sums + k_begin, bias_sums + k_begin + filters, 0.f);
    for (const Stretch& v : vertical)
      for (const Stretch& u : horizontal) {
        const int64_t all = n * v.count * u.count, begin = all * my / along, end = all * (my + 1) / along;
        int64_t j = begin % u.count, i = begin / u.count % v.count, image = begin / u.count / v.count;
        for (int64_t from = begin; from < end; from += longest) {
          const int64_t depth = std::min(longest, end - from);
          for (int64_t m = 0; m < depth; ++m) {
            const int64_t at_h = (i + v.first) * stride_h - pad_h, at_w = (j + u.first) * stride_w - pad_w;
            rows[m] = {at_h, at_w, ((image * h + at_h) * w + at_w) * c, ((image * p + i + v.first) * q + j + u.first) * k + k_begin};
            if (++j == u.count) {
              j = 0;
              if (++i == v.count) i = 0, ++image;
            }
          }
          transpose([&](int64_t m) { return dy + rows[m].output; }, depth, filters, left.data, step);
          if (bias_sums)
            for (int64_t f = 0; f < filters; ++f) {
              float sum = 0;
#pragma omp simd reduction(+ : sum)
              for (int64_t m = 0; m < depth; ++m) sum += left.data[f * step + m];
              bias_sums[k_begin + f] += sum;
            }
          for (const auto& down : v.taps)
            for (const auto& over : u.taps) {
              const int64_t tap = down.index * s + over.index, dh = down.index * dilate_h, dw = over.index * dilate_w;
              for (int64_t panel = 0; panel < panels.count; ++panel) {
                const int nv = panels.width(panel);
                const int64_t column = panels.column(panel), offset = (dh * w + dw) * c + column;
                for (int64_t m = 0; m < depth; ++m) {
                  const bool inside = uint64_t(rows[m].h + dh) < uint64_t(h) && uint64_t(rows[m].w + dw) < uint64_t(w);
                  const float* row = inside ? x + rows[m].input + offset : zeros.data();
                  for (int l = 0; l < nv; ++l) {
                    store(right.data + (m * nv + l) * kLanes, load(row + l * kLanes));
                    __builtin_prefetch(row + (nv + l) * kLanes, 0, 2);  // for the next panel
                  }
                }
                const float* packed = right.data;
                for (int64_t f = 0; f < filters; f += kRows[nv]) {
                  const int mr = int(std::min<int64_t>(kRows[nv], (filters - f + 1) / 2 * 2));
                  const float* pointers[kMostRows];
                  float* results[kMostRows];
                  for (int l = 0; l < mr; ++l) {
                    pointers[l] = f + l < filters ? left.data + (f + l) * step : zeros.data();
                    results[l] = f + l < filters ? sums + (k_begin + f + l) * filter + tap * c + column : nowhere;
                  }
                  kTiles[nv][mr / 2](pointers, &packed, 1, depth, results, nullptr, begun[tap]);
                }
              }
              begun[tap] = true;
            }
        }
      }
    for (int64_t tap = 0; tap < r * s; ++tap)
      for (int64_t f = 0; !begun[tap] && f < filters; ++f) std::fill_n(sums + (k_begin + f) * filter + tap * c, c, 0.f);
    if (along > 1) {
#pragma omp barrier
      const int64_t first = weights * thread / threads, last = weights * (thread + 1) / threads;
      for (const auto& more : partial)
        for (int64_t e = first; e < last; ++e) dweight[e] += more[e];
      if (dbias && thread == 0)
        for (const auto& more : partial_bias)
          for (int64_t e = 0; e < k; ++e) dbias[e] += more[e];
    }
  }
}
}
