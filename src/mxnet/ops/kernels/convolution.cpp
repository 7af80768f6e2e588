// Two-dimensional convolutions for training, over channels-last arrays: x (N, H, W, C), weights (K, R, S, C), y (N, P, Q, K).
//
// All three directions are sums of products of one small matrix product, `tile`, which keeps its results in registers while it walks along
// the depth. Its left operand is read in place, row by row through pointers, so that neither padding nor strides need a copy ("indirect
// convolution", Dukhan 2019); its right operand is packed into panels that stay in the L2 cache. The weights come and go in the
// order the optimizer keeps them in, and in single precision: nothing has to be reordered, or cast, between steps. With few filters `tile` is bound
// by the inputs it fetches; kernels three taps wide then take `run_of_three` and `backward_few_weights`, which use each input three times.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <omp.h>

#include "tiles.h"

namespace {

constexpr int64_t kPanel = 128 << 10;     // bytes of the packed part of a panel
constexpr int64_t kPanels = 512 << 10;    // of those of several panels, which stay in the L2 cache
constexpr int64_t kRowBlock = 256 << 10;  // of a block of rows, which stays there too
constexpr int64_t kManyRows = 256;        // for each thread: enough to make up for packing all weights first
constexpr int64_t kLongest = 512;         // rows that the gradient of the weights sums up at a time
constexpr int64_t kMostFilters = 512;     // whose gradients are summed up together
constexpr int64_t kEnoughRows = 256;      // for each thread: so many are worth a pass over the weights of their own
constexpr int64_t kMostPanels = 64, kMostTaps = 128;

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
  // Whether each output reads three neighbours, and its neighbour the same but for one.
  bool in_threes() const {
    if (step != 1 || taps.size() != 3) return false;
    const int64_t side = taps[1].source - taps[0].source;
    return (side == 1 || side == -1) && taps[2].source - taps[1].source == side;
  }
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

// A convolution: each output is a bias and a sum over the taps it reads of source x weights, to which a residual may be added, and which may be
// rectified. The source is an image of cells.
template <typename T, typename Out>
class Gather {
 public:
  Gather(const float* source, Image in, Out* destination, Image out, const std::vector<Stretch>& vertical, const std::vector<Stretch>& horizontal,
         int64_t kernel_h, int64_t kernel_w, const float* bias, const Out* residual = nullptr, bool relu = false)
      : source_(source), destination_(destination), bias_(bias), residual_(residual), relu_(relu), in_(in), out_(out), taps_(kernel_h * kernel_w), panels_(out.c), zeros_(in.c, 0.f),
        most_(sizeof(Out) == 4 ? kPanel / (kWidest * kLanes * 4) : std::max(in.c, taps_ * in.c)) {
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
        const bool finishes = (residual_ || relu_) && t + count == taps_ && i + 1 == cuts;
        int64_t before = 0;
        for (const Part& part : parts_) {
          const int64_t begin = std::max(from - before, int64_t(0)), end = std::min(to - before, part.rows);
          before += part.rows;
          if (begin < end) multiply(part, panel, last, begin, end, t, count, c, deep, weights, finishes);
        }
      }
  }

  void multiply(const Part& part, int64_t panel, int64_t last, int64_t from, int64_t to, int64_t t, int64_t count, int64_t c, int64_t deep,
                const float* const* weights, bool finishes) const {
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
    if (taps == 0 && (add || t > 0) && !finishes) return;  // only an output that reads nothing gets nothing, once
    const float *pointers[kMostTaps * kMostRows], *right[kMostTaps];
    Out nowhere[kMostPanels * kWidest * kLanes];
    Out* results[kMostRows];
    int64_t j = from % h.count, i = from / h.count % v.count, n = from / h.count / v.count;
    auto next = [&](int64_t columns) {
      if ((j += columns) < h.count) return;
      j = 0;
      if (++i == v.count) i = 0, ++n;
    };
    const bool runs = nv <= kWidestRun && taps == int64_t(part.taps.size()) && h.in_threes();
    for (int64_t row = from; row < to;) {
      if (const int64_t beside = std::min(h.count - j, to - row); runs && beside > 1) {
        const int64_t pieces = (beside + kLongestRun[nv] - 1) / kLongestRun[nv];
        const int mr = int(std::min((beside + 2 * pieces - 1) / (2 * pieces), beside / 2) * 2);
        const float* base = source_ + ((n * in_.h + i * v.step) * in_.w + j) * in_.c;
        const bool turned = h.taps[2].source < h.taps[0].source;
        for (int64_t l = 0; l < taps / 3; ++l) pointers[l] = base + offsets[3 * l + (turned ? 2 : 0)];
        Out* out = destination_ + ((n * out_.h + i * v.apart + v.first) * out_.w + j * h.apart + h.first) * out_.c + column;
        for (int64_t p = panel; p < last; ++p, out += width) {
          for (int64_t k = 0; k < taps; ++k) right[k] = weights[p - panel] + places[turned ? k / 3 * 3 + 2 - k % 3 : k];
          kRuns<T, Out>[nv][mr / 2](pointers, in_.c, right, taps / 3, deep, out, h.apart * out_.c, bias_ ? bias_ + panels_.column(p) : nullptr, add);
          for (int r = 0; finishes && r < mr; ++r) finish(out + r * h.apart * out_.c, nv);
        }
        row += mr;
        next(mr);
        continue;
      }
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
        next(1);
      }
      for (int64_t p = panel; p < last; ++p) {
        for (int64_t k = 0; k < taps; ++k) right[k] = weights[p - panel] + places[k];
        kTiles<T, Out>[nv][mr / 2](pointers, right, taps, deep, results, bias_ ? bias_ + panels_.column(p) : nullptr, add);
        for (int r = 0; finishes && r < mr && row + r < to; ++r) finish(results[r], nv);
        for (int r = 0; r < mr; ++r) results[r] += width;
      }
      row += kRows[nv];
    }
  }

  void finish(Out* out, int nv) const {
    for (int j = 0; j < nv; ++j) {
      vec v = load(out + j * kLanes);
      if (residual_) v += load(residual_ + (out - destination_) + j * kLanes);
      if (relu_) v = v > 0 ? v : vec{};
      store(out + j * kLanes, v);
    }
  }

  const float* source_;
  Out* destination_;
  const float* bias_;
  const Out* residual_;
  const bool relu_;
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

struct Finished : Sizes {
  int64_t relu;
};

// Numbers as an array of cells: in place, where they are of the cells' type, else made wider.
template <typename T, typename Source>
struct AsCells {
  Aligned wide;
  const float* data;
  AsCells(const Source* source, int64_t count, int threads) : wide(std::is_same<T, Source>::value ? 0 : count) {
    if constexpr (std::is_same<T, Source>::value) {
      data = reinterpret_cast<const float*>(source);
    } else {
      float* to = wide.data;
#pragma omp parallel for num_threads(threads) schedule(static)
      for (int64_t i = 0; i < count; i += kLanes) store(to + i, load(source + i));
      data = to;
    }
  }
};

// T is what cells are made of, and Data what is stored.
template <typename T, typename Data>
void forward(const Data* x, const float* weight, const float* bias, const Data* residual, Data* y, const Sizes& z, bool relu, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  const AsCells<T, Data> source(x, z.n * z.h * z.w * z.c, threads);
  std::vector<Stretch> vertical, horizontal;
  stretches(vertical, 0, 1, z.p, z.stride_h, z.r, z.h, [=](int64_t i, int64_t tap) { return i * z.stride_h + tap * z.dilate_h - z.pad_h; });
  stretches(horizontal, 0, 1, z.q, z.stride_w, z.s, z.w, [=](int64_t i, int64_t tap) { return i * z.stride_w + tap * z.dilate_w - z.pad_w; });
  Gather<T, Data>(source.data, {z.n, z.h, z.w, z.c / each}, y, {z.n, z.p, z.q, z.k}, vertical, horizontal, z.r, z.s, bias, residual, relu)
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

template <typename T, typename Data>
void backward_data(const Data* dy, const float* weight, Data* dx, const Sizes& z, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  const AsCells<T, Data> source(dy, z.n * z.p * z.q * z.k, threads);
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
  Gather<T, Data>(source.data, {z.n, z.p, z.q, z.k / each}, dx, {z.n, z.h, z.w, z.c},
            along(z.h, z.p, z.r, z.stride_h, z.pad_h, z.dilate_h), along(z.w, z.q, z.s, z.stride_w, z.pad_w, z.dilate_w), z.r, z.s, nullptr)
      .run([=](float* to, int64_t tap, int64_t k, int64_t depth, int64_t column, int64_t width) {
        for (int64_t i = 0; i < depth; ++i) {
          const float* from = weight + (k + i) * each * z.filter() + tap * z.c + column;
          for (int64_t j = 0; j < width; j += kLanes) store(to + i * width + j, Cells<T>::rounded(from + j, from + z.filter() + j));
        }
      },
           threads);
}

#if defined(__AVX512F__)
// The gradient of few weights, three taps wide: each thread adds up for its own lines of outputs, and reads them where they are. A result of 8 filters
// and 16 channels for three taps stays in registers along a line. For more weights than fit the L1 cache `backward_weight` is as fast.
bool few_weights(const Sizes& z) { return z.s == 3 && z.stride_w == 1 && z.dilate_w == 1 && z.k * z.c <= 32 * 32; }

void backward_few_weights(const float* dy, const float* x, float* dweight, float* dbias, const Sizes& z, int threads) {
  constexpr int kFilters = 8;
  const int64_t filter = z.filter(), weights = z.k * filter, lines = z.n * z.p;
  const int64_t together = std::max<int64_t>(1, (24 << 10) / ((z.w * z.c + z.q * z.k) * 4));  // lines that the L1 cache holds
  const int64_t low = std::min(z.q, z.pad_w), high = std::max(low, std::min(z.q, z.w + z.pad_w - 2));  // outputs that read no padding
  std::vector<std::vector<float>> partial(threads);
#pragma omp parallel num_threads(threads)
  {
    const int team = omp_get_num_threads(), thread = omp_get_thread_num();
    partial[thread].resize(weights + z.k);
    float *sums = partial[thread].data(), *bias_sums = sums + weights;
    const float zeros[kLanes] = {};
    const int64_t end = lines * (thread + 1) / team;
    for (int64_t from = lines * thread / team; from < end; from += together) {
      const int64_t to = std::min(from + together, end);
      for (int64_t m = from * z.q; dbias && m < to * z.q; ++m)
        for (int64_t f = 0; f < z.k; ++f) bias_sums[f] += dy[m * z.k + f];
      for (int64_t r = 0; r < z.r; ++r)
        for (int64_t c = 0; c < z.c; c += kLanes)
          for (int64_t f = 0; f < z.k; f += kFilters) {
            float* place = sums + f * filter + r * 3 * z.c + c;
            vec sum[kFilters][3];
#pragma GCC unroll 8
            for (int i = 0; i < kFilters; ++i)
#pragma GCC unroll 3
              for (int s = 0; s < 3; ++s) sum[i][s] = load(place + i * filter + s * z.c);
            for (int64_t line = from; line < to; ++line) {
              const int64_t h = line % z.p * z.stride_h + r * z.dilate_h - z.pad_h;
              if (h < 0 || h >= z.h) continue;
              const float *in = x + (line / z.p * z.h + h) * z.w * z.c + c, *out = dy + line * z.q * z.k + f;
              auto add = [&](const float* first, const float* second, const float* third, int64_t j) __attribute__((always_inline)) {
                const vec inputs[] = {load(first), load(second), load(third)};
#pragma GCC unroll 8
                for (int i = 0; i < kFilters; ++i)
#pragma GCC unroll 3
                  for (int s = 0; s < 3; ++s) sum[i][s] += out[j * z.k + i] * inputs[s];
              };
              auto input = [&](int64_t w) { return w >= 0 && w < z.w ? in + w * z.c : zeros; };
              auto edge = [&](int64_t j) { add(input(j - z.pad_w), input(j - z.pad_w + 1), input(j - z.pad_w + 2), j); };
              for (int64_t j = 0; j < low; ++j) edge(j);
              for (int64_t j = low; j < high; ++j) {
                const float* first = in + (j - z.pad_w) * z.c;
                add(first, first + z.c, first + 2 * z.c, j);
              }
              for (int64_t j = high; j < z.q; ++j) edge(j);
            }
#pragma GCC unroll 8
            for (int i = 0; i < kFilters; ++i)
#pragma GCC unroll 3
              for (int s = 0; s < 3; ++s) store(place + i * filter + s * z.c, sum[i][s]);
          }
    }
#pragma omp barrier
    for (int64_t e = (weights + z.k) * thread / team; e < (weights + z.k) * (thread + 1) / team; ++e) {
      float sum = 0;
      for (int t = 0; t < team; ++t) sum += partial[t][e];
      if (e < weights)
        dweight[e] = sum;
      else if (dbias)
        dbias[e - weights] = sum;
    }
  }
}
#endif

// The gradient of the weights, and of the bias unless it is null. Threads share the filters as long as each has enough of them, and
// then the rows, each with sums of its own.
template <typename T, typename Data>
void backward_weight(const Data* dy, const Data* x, float* dweight, float* dbias, const Sizes& z, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
#if defined(__AVX512F__)
  if constexpr (std::is_same<Data, float>::value)
    if (few_weights(z)) return backward_few_weights(dy, x, dweight, dbias, z, threads);
#endif
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
                  const Data *first = output(m * each), *second = output(m * each + each - 1);
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
                    const Data *first = input(m * each), *second = input(m * each + each - 1);
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

#define REMEX_CONVOLUTION(suffix, T, Data)                                                                                                    \
  void forward_##suffix(const Data* x, const float* weight, const float* bias, const Data* residual, Data* y, const Finished* sizes,          \
                        int threads) {                                                                                                        \
    forward<T>(x, weight, bias, residual, y, *sizes, sizes->relu, threads);                                                                   \
  }                                                                                                                                           \
  void backward_data_##suffix(const Data* dy, const float* weight, Data* dx, const Sizes* sizes, int threads) {                               \
    backward_data<T>(dy, weight, dx, *sizes, threads);                                                                                        \
  }                                                                                                                                           \
  void backward_weight_##suffix(const Data* dy, const Data* x, float* dweight, float* dbias, const Sizes* sizes, int threads) {               \
    backward_weight<T>(dy, x, dweight, dbias, *sizes, threads);                                                                               \
  }

REMEX_CONVOLUTION(float32, float, float)
#if defined(__AVX512BF16__)
REMEX_CONVOLUTION(bfloat16, bfloat16, bfloat16)
REMEX_CONVOLUTION(widened_bfloat16, float, bfloat16)  // float32's arithmetic on what is stored in bfloat16
#endif
}
