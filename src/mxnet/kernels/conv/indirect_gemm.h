// Convolutions as sums of products of one small matrix product, `tile`, which keeps its results in registers while it walks along the depth. Its left
// operand is read in place, row by row through pointers, so that neither padding nor strides need a copy ("indirect convolution", Dukhan 2019); its
// right operand is packed into panels that stay in the L2 cache. With few filters `tile` is bound by the inputs it fetches; kernels three taps wide then
// take `run_of_three`, which uses each input three times.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <omp.h>

#include "gemm/microkernels.h"

namespace {

constexpr int64_t kPanel = 128 << 10;     // bytes of the packed part of a panel
constexpr int64_t kPanels = (kBefore ? 256 : 512) << 10;  // of those of several panels, which stay in the L2 cache, beside the next if fetched
constexpr int64_t kRowBlock = 256 << 10;  // of a block of rows, which stays there too
constexpr int64_t kManyRows = 256;        // for each thread: enough to make up for packing all weights first
constexpr int64_t kFewRows = 48;  // for each thread: fewer share no rows
constexpr int64_t kSameSets = 512;        // cells: what lies a multiple of them apart shares two sets of an L1 cache
constexpr int64_t kMostPanels = 64, kMostTaps = 128;

struct Image {
  int64_t n, h, w, c;
};

inline void fetch(const float* row, int64_t cells) {
  for (int64_t i = 0; i < cells; i += kLine) __builtin_prefetch(row + i);
}

// Along one axis: outputs which lie `apart` from each other, from `first` on, and read the same taps of the kernel, none in the padding.
struct Stretch {
  struct Tap {
    int64_t index, source;  // the tap's number, and its input for the first output
  };
  int64_t first, apart, count, step;
  std::vector<Tap> taps;
  // True if each output reads three adjacent inputs, shifted by one for the next output.
  bool in_threes() const {
    if (step != 1 || taps.size() != 3) return false;
    const int64_t side = taps[1].source - taps[0].source;
    return (side == 1 || side == -1) && taps[2].source - taps[1].source == side;
  }
};

// All outputs of one axis. tap(i, r) is the input of output i through tap r, negative for none.
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

// The sizes of a convolution; a pointwise one (1 x 1, stride 1) is flattened to a single line of pixels.
template <typename Sizes>
Sizes in_one_line(Sizes z) {
  if (z.r * z.s * z.stride_h * z.stride_w == 1 && !z.pad_h && !z.pad_w) z.w = z.q = z.n * z.h * z.w, z.n = z.h = z.p = 1;
  return z;
}

// One axis of a convolution: the inputs of its outputs.
inline std::vector<Stretch> forward_axis(int64_t outputs, int64_t stride, int64_t kernel, int64_t size, int64_t pad, int64_t dilate) {
  if (kernel * stride == 1 && !pad) return {{0, 1, outputs, 1, {{0, 0}}}};
  std::vector<Stretch> found;
  stretches(found, 0, 1, outputs, stride, kernel, size, [=](int64_t i, int64_t tap) { return i * stride + tap * dilate - pad; });
  return found;
}

// And of the way back: which gradients of outputs the gradient of the data, of that size, is made of. With a stride, the positions that are the same
// modulo the stride meet the same taps.
inline std::vector<Stretch> backward_axis(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad, int64_t dilate) {
  if (kernel * stride == 1 && !pad) return {{0, 1, size, 1, {{0, 0}}}};
  std::vector<Stretch> found;
  for (int64_t first = 0; first < std::min(stride, size); ++first)
    stretches(found, first, stride, (size - first + stride - 1) / stride, 1, kernel, outputs, [=](int64_t i, int64_t tap) {
      const int64_t at = first + i * stride + pad - tap * dilate;
      return at >= 0 && at % stride == 0 ? at / stride : -1;
    });
  return found;
}

// The epilogue of outputs and their memory layout: `pitch` numbers apart, of which a layer writes its filters.
template <typename Out>
struct Ending {
  int64_t filters, pitch;
  const Out* residual = nullptr;  // as many numbers for each output as there are filters
  float ceiling = kAny;
  bool any() const { return residual || ceiling >= 0; }
};

// As `tile`, the last of a sum: adds the residual, and rectifies.
template <typename T, typename Out, int MR, int NV, bool Fetches>
void last_tile(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth, Out* const* out, const float* bias, bool add,
               const Out* const* residual, float ceiling, Next next) {
  tile_to<T, Out, MR, NV, Fetches>(rows, weights, taps, depth, out, bias, add, next, [=](int i, int j, vec v) __attribute__((always_inline)) {
    if (residual) v += load(residual[i] + j * kLanes);
    store(out[i] + j * kLanes, rectified(v, ceiling));
  });
}

template <typename Out>
using LastTile = void (*)(const float* const*, const float* const*, int64_t, int64_t, Out* const*, const float*, bool, const Out* const*, float, Next);
#define REMEX_LAST(MR, NV) last_tile<T, Out, MR, NV, false>
template <typename T, typename Out>
constexpr LastTile<Out> kLastTiles[][kMostRows / 2 + 1] = REMEX_TILES(REMEX_LAST);
#undef REMEX_LAST
#define REMEX_LAST(MR, NV) last_tile<T, Out, MR, NV, true>
template <typename T, typename Out>
constexpr LastTile<Out> kFetchingLastTiles[2][kMostRows / 2 + 1] = REMEX_FETCHING_TILES(REMEX_LAST);
#undef REMEX_LAST

// A convolution: each output is a bias and a sum over the taps it reads of source x weights, with an optional residual addition and
// ReLU. The source is an image of cells, of which each tap reads `depth`; there are weights, and numbers of the bias, for whole vectors of filters.
template <typename T, typename Out>
class Gather {
 public:
  Gather(const float* source, Image in, int64_t depth, Out* destination, Image out, const std::vector<Stretch>& vertical,
         const std::vector<Stretch>& horizontal, int64_t kernel_h, int64_t kernel_w, const float* bias, Ending<Out> ending)
      : source_(source), destination_(destination), bias_(bias), ending_(ending), in_(in), out_(out), depth_(depth), taps_(kernel_h * kernel_w),
        panels_(out.c), zeros_(depth, 0.f), most_(sizeof(Out) == 4 ? kPanel / (kWidest * kLanes * 4) : std::max(depth, taps_ * depth)) {
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
    const int64_t filter = taps_ * depth_;
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
          pack(shared.data + column * filter + t * depth_ * width, t, 0, depth_, column, width);
        }
#pragma omp barrier
        by_rows(shared.data, thread, team);
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
                   }, false);
        }
      }
    }
  }

  // With weights that are packed already, as by `many` above. Threads share the rows, or, if these are few, the panels.
  void run(const float* packed, int threads) {
    const bool rows = rows_ >= threads * kFewRows;
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      if (rows) {
        by_rows(packed, thread, team);
      } else {
        const double begin = double(panels_.count) * thread / team, end = double(panels_.count) * (thread + 1) / team;
        for (int64_t panel = int64_t(begin); panel < end; ++panel)
          multiply(panel, panel + 1, row_at(std::max(begin - panel, 0.0)), row_at(std::min(end - panel, 1.0)), at(packed), true);
      }
    }
  }

 private:
  struct Tap {
    int64_t index, offset;  // its position among the weights; its offset from an output's first input
  };
  struct Part {
    int64_t rows;
    Stretch vertical, horizontal;
    std::vector<Tap> taps;
    double work() const { return double(rows) * (taps.size() + 0.2); }
  };

  auto at(const float* packed) const {
    return [=](int64_t i, int64_t t, int64_t, int64_t c, int64_t) {
      return packed + panels_.column(i) * taps_ * depth_ + (t * depth_ + c) * panels_.width(i) * kLanes;
    };
  }

  // A thread's range of the rows, block by block through all panels.
  void by_rows(const float* packed, int64_t thread, int64_t team) const {
    const int64_t together = std::max<int64_t>(1, kPanels / (std::min(most_, taps_ * depth_) * kWidest * kLanes * 4));
    const int64_t begin = row_at(double(thread) / team), end = row_at(double(thread + 1) / team);
    // Blocks of about the same size, since a last one of few rows would read all weights as well; a multiple of every tile's height.
    const int64_t size = std::max<int64_t>(kRowBlock / (depth_ * 4), 48), blocks = std::max<int64_t>(1, (end - begin + size / 2) / size);
    const int64_t block = ((end - begin + blocks - 1) / blocks + 23) / 24 * 24;
    for (int64_t from = begin; from < end; from += block)
      for (int64_t panel = 0, last; panel < panels_.count; panel = last) {
        last = std::min({panel + together, panel + kMostPanels, panels_.alike(panel)});
        multiply(panel, last, from, std::min(end, from + block), at(packed), true);
      }
  }

  // The end row of a share of the work: outputs differ in their number of taps.
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

  // Some rows of some panels of one width. packed(panel, tap, taps, c, depth) is where a part of the weights is; with `stays` all are there already.
  template <typename Packed>
  void multiply(int64_t panel, int64_t last, int64_t from, int64_t to, Packed packed, bool stays) const {
    const int height = kRows[panels_.width(panel)];
    stays = stays && (kBefore || (panels_.width(panel) >= kFetching && (to - from + height - 1) / height <= kFewTiles));
    const int64_t together = std::max<int64_t>(most_ / depth_, 1), cuts = (depth_ + most_ - 1) / most_;
    for (int64_t t = 0; t < taps_; t += together)
      for (int64_t i = 0; i < cuts; ++i) {
        const int64_t c = depth_ / kLanes * i / cuts * kLanes, end = i + 1 < cuts ? depth_ / kLanes * (i + 1) / cuts * kLanes : depth_;
        const int64_t deep = end - c, count = std::min(together, taps_ - t);
        const float *weights[kMostPanels], *next[kMostPanels] = {};
        const int64_t coming = i + 1 < cuts ? 1 : t + together < taps_ ? std::min(together, taps_ - t - together) : std::min(together, taps_);  // taps
        for (int64_t p = panel; p < last; ++p) {
          weights[p - panel] = packed(p, t, count, c, deep);
          const int64_t other = p + last - panel;
          if (stays && i + 1 < cuts)
            next[p - panel] = packed(p, t, count, end, deep);
          else if (stays && t + together < taps_)
            next[p - panel] = packed(p, t + together, count, 0, deep);
          else if (stays && other < panels_.count)
            next[p - panel] = packed(other, 0, count, 0, deep);
        }
        const bool finishes = ending_.any() && t + count == taps_ && i + 1 == cuts;
        int64_t before = 0;
        for (const Part& part : parts_) {
          const int64_t begin = std::max(from - before, int64_t(0)), end = std::min(to - before, part.rows);
          before += part.rows;
          if (begin < end) multiply(part, panel, last, begin, end, t, count, c, deep, weights, next, coming * deep, finishes);
        }
      }
  }

  void multiply(const Part& part, int64_t panel, int64_t last, int64_t from, int64_t to, int64_t t, int64_t count, int64_t c, int64_t deep,
                const float* const* weights, const float* const* following, int64_t coming, bool finishes) const {
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
    const Out* residuals[kMostRows] = {};
    alignas(64) Out partial[kMostRows * kWidest * kLanes];
    int64_t j = from % h.count, i = from / h.count % v.count, n = from / h.count / v.count;
    const float* base;  // of the inputs of output j in line i of image n
    int64_t place;      // where that output lies
    auto find = [&] {
      base = source_ + ((n * in_.h + i * v.step) * in_.w + j * h.step) * in_.c;
      place = (n * out_.h + i * v.apart + v.first) * out_.w + j * h.apart + h.first;
    };
    auto next = [&](int64_t columns) {
      base += columns * h.step * in_.c;
      place += columns * h.apart;
      if ((j += columns) < h.count) return;
      j = 0;
      if (++i == v.count) i = 0, ++n;
      find();
    };
    find();
    const int64_t tiles = (to - from + kRows[nv] - 1) / kRows[nv];
    const bool fetches = taps && in_.c % kSameSets;  // rows in the same sets would drive out those that are read
    const bool runs = nv <= kWidestRun && taps == int64_t(part.taps.size()) && h.in_threes() && ending_.filters == out_.c;
    for (int64_t row = from; row < to;) {
      if (const int64_t beside = std::min(h.count - j, to - row); runs && beside > 1) {
        const int64_t pieces = (beside + kLongestRun[nv] - 1) / kLongestRun[nv];
        const int mr = int(std::min((beside + 2 * pieces - 1) / (2 * pieces), beside / 2) * 2);
        const bool turned = h.taps[2].source < h.taps[0].source;
        for (int64_t l = 0; l < taps / 3; ++l) pointers[l] = base + offsets[3 * l + (turned ? 2 : 0)];
        Out* out = destination_ + place * ending_.pitch + column;
        for (int64_t p = panel; p < last; ++p, out += width) {
          for (int64_t k = 0; k < taps; ++k) right[k] = weights[p - panel] + places[turned ? k / 3 * 3 + 2 - k % 3 : k];
          kRuns<T, Out>[nv][mr / 2](pointers, in_.c, right, taps / 3, deep, out, h.apart * ending_.pitch, bias_ ? bias_ + panels_.column(p) : nullptr, add);
          for (int r = 0; finishes && r < mr; ++r)
            finish(out + r * h.apart * ending_.pitch, (place + r * h.apart) * ending_.filters + panels_.column(p), width);
        }
        row += mr;
        next(mr);
        continue;
      }
      const int mr = int(std::min<int64_t>(kRows[nv], (to - row + 1) / 2 * 2));
      const bool neighbours = to - row >= mr && h.count - j >= mr;  // in one line: asking for each where it lies would take longer
      if (neighbours) {
        const int64_t apart = h.step * in_.c;
        for (int64_t k = 0; k < taps; ++k)
          for (int r = 0; r < mr; ++r) pointers[k * mr + r] = base + offsets[k] + r * apart;
        for (int r = 0; fetches && r < mr; ++r) fetch(base + offsets[0] + (2 * mr + r) * apart, deep);
        Out* out = destination_ + place * ending_.pitch + column;
        for (int r = 0; r < mr; ++r) results[r] = out + r * h.apart * ending_.pitch;
        for (int r = 0; ending_.residual && r < mr; ++r) residuals[r] = ending_.residual + (place + r * h.apart) * ending_.filters + column;
        next(mr);
      }
      for (int r = 0; !neighbours && r < mr; ++r) {
        if (row + r >= to) {
          for (int64_t k = 0; k < taps; ++k) pointers[k * mr + r] = zeros_.data();
          results[r] = nowhere;
          residuals[r] = ending_.residual ? ending_.residual + column : nullptr;  // any address: the result is discarded
          continue;
        }
        for (int64_t k = 0; k < taps; ++k) pointers[k * mr + r] = base + offsets[k];
        if (fetches) fetch(base + offsets[0] + 2 * mr * h.step * in_.c, deep);  // the inputs of the tile after the next
        results[r] = destination_ + place * ending_.pitch + column;
        if (ending_.residual) residuals[r] = ending_.residual + place * ending_.filters + column;
        next(1);
      }
      for (int64_t p = panel; p < last; ++p) {
        for (int64_t k = 0; k < taps; ++k) right[k] = weights[p - panel] + places[k];
        const float* bias = bias_ ? bias_ + panels_.column(p) : nullptr;
        if (kBefore && following[p - panel]) fetch_share(following[p - panel], (row - from) / kRows[nv], tiles, coming * width);
        if (const int64_t rest = ending_.filters - panels_.column(p); rest < width) {
          part_of_panel(pointers, right, taps, deep, results, partial, bias, add, finishes, residuals, nv, mr, rest);
        } else if (!kBefore && following[p - panel]) {
          const Next next = share_of(following[p - panel], (row - from) / kRows[nv], tiles, nv, taps * deep);
          if (finishes)
            kFetchingLastTiles<T, Out>[nv - kFetching][mr / 2](pointers, right, taps, deep, results, bias, add, ending_.residual ? residuals : nullptr,
                                                               ending_.ceiling, next);
          else
            kFetchingTiles<T, Out>[nv - kFetching][mr / 2](pointers, right, taps, deep, results, bias, add, next);
        } else if (finishes) {
          kLastTiles<T, Out>[nv][mr / 2](pointers, right, taps, deep, results, bias, add, ending_.residual ? residuals : nullptr, ending_.ceiling, {});
        } else {
          kTiles<T, Out>[nv][mr / 2](pointers, right, taps, deep, results, bias, add);
        }
        for (int r = 0; r < mr; ++r) results[r] += width, residuals[r] += ending_.residual ? width : 0;
      }
      row += kRows[nv];
    }
  }

  // Where there are fewer filters than a panel has columns: `rest`.
  void part_of_panel(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth, Out* const* results, Out* partial,
                     const float* bias, bool add, bool finishes, const Out* const* residuals, int nv, int mr, int64_t rest) const {
    Out* to[kMostRows];
    for (int r = 0; r < mr; ++r) to[r] = partial + r * nv * kLanes;
    if constexpr (std::is_same<Out, float>::value) {
      auto each = [&](auto run) {
        for (int r = 0; r < mr; ++r)
          for (int64_t l = 0; l < rest; l += kLanes) run(r, l, std::min<int64_t>(rest - l, kLanes));
      };
      if (add) each([&](int r, int64_t l, int64_t count) { store(to[r] + l, load(results[r] + l, count)); });
      kTiles<T, Out>[nv][mr / 2](rows, weights, taps, depth, to, bias, add);
      each([&](int r, int64_t l, int64_t count) {
        vec v = load(to[r] + l);
        if (finishes && residuals[r]) v += load(residuals[r] + l, count);
        store(results[r] + l, finishes ? rectified(v, ending_.ceiling) : v, count);
      });
    }
  }

  void finish(Out* out, int64_t residual, int64_t width) const {
    for (int64_t j = 0; j < width; j += kLanes) {
      vec v = load(out + j);
      if (ending_.residual) v += load(ending_.residual + residual + j);
      store(out + j, rectified(v, ending_.ceiling));
    }
  }

  const float* source_;
  Out* destination_;
  const float* bias_;
  const Ending<Out> ending_;
  const Image in_, out_;  // of `out_`, c counts whole vectors
  const int64_t depth_, taps_;
  const Panels panels_;
  const std::vector<float> zeros_;
  const int64_t most_;  // depth of a panel; sums in half precision are not interrupted
  std::vector<Part> parts_;
  int64_t rows_ = 0;
};

}  // namespace
