// Convolutions as sums of products of one small matrix product, `microkernel`, which keeps its results in registers while it walks along the depth.
// Its left operand is read in place, row by row through pointers, so that neither padding nor strides need a copy ("indirect convolution", Dukhan
// 2019); its right operand is packed into panels that stay in the L2 cache. With few filters `microkernel` is bound by the inputs it fetches; kernels
// three taps wide then take `three_tap_microkernel`, which uses each input three times.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <omp.h>

#include "conv/output_segments.h"
#include "gemm/microkernels.h"

namespace {

constexpr int64_t kPanelBytes = 128 << 10;  // bytes of the packed part of a panel
constexpr int64_t kCachedPanelBytes = (kPrefetchesBefore ? 256 : 512)
                                      << 10;   // of those of several panels, which stay in the L2 cache, beside the next if fetched
constexpr int64_t kRowBlockBytes = 256 << 10;  // of a block of rows, which stays there too
constexpr int64_t kManyRows = 256;        // for each thread: enough to make up for packing all weights first
constexpr int64_t kFewRows = 48;  // for each thread: fewer share no rows
constexpr int64_t kAliasingCells = 512;  // cells: what lies a multiple of them apart shares two sets of an L1 cache
constexpr int64_t kMaxPanels = 64, kMaxTaps = 128;

struct Image {
  int64_t n, h, w, c;
};

inline void fetch(const float* row, int64_t cells) {
  for (int64_t i = 0; i < cells; i += kCacheLineCells) __builtin_prefetch(row + i);
}

// The epilogue of outputs and their memory layout: `pitch` numbers apart, of which a layer writes its filters.
template <typename Out>
struct Epilogue {
  int64_t filters, pitch;
  const Out* residual = nullptr;  // as many numbers for each output as there are filters
  float ceiling = kNoRelu;
  bool any() const { return residual || ceiling >= 0; }
};

// As `microkernel`, the last of a sum: adds the residual, and rectifies.
template <typename T, typename Out, int MR, int NV, bool Prefetches>
void epilogue_microkernel(const float* const* rows, const float* const* weights, int64_t taps, int64_t depth, Out* const* out, const float* bias,
                          bool add, const Out* const* residual, float ceiling, Prefetch next) {
  microkernel_to<T, Out, MR, NV, Prefetches>(rows, weights, taps, depth, out, bias, add, next,
                                             [=](int i, int j, vec v) __attribute__((always_inline)) {
                                               if (residual) v += load(residual[i] + j * kLanes);
                                               store(out[i] + j * kLanes, relu(v, ceiling));
                                             });
}

template <typename Out>
using EpilogueMicrokernel = void (*)(const float* const*, const float* const*, int64_t, int64_t, Out* const*, const float*, bool, const Out* const*,
                                     float, Prefetch);
#define REMEX_EPILOGUE_MICROKERNEL(MR, NV) epilogue_microkernel<T, Out, MR, NV, false>
template <typename T, typename Out>
constexpr EpilogueMicrokernel<Out> kEpilogueMicrokernels[][kMaxRows / 2 + 1] = REMEX_MICROKERNELS(REMEX_EPILOGUE_MICROKERNEL);
#undef REMEX_EPILOGUE_MICROKERNEL
#define REMEX_EPILOGUE_MICROKERNEL(MR, NV) epilogue_microkernel<T, Out, MR, NV, true>
template <typename T, typename Out>
constexpr EpilogueMicrokernel<Out> kPrefetchingEpilogueMicrokernels[2][kMaxRows / 2 + 1] = REMEX_PREFETCHING_MICROKERNELS(REMEX_EPILOGUE_MICROKERNEL);
#undef REMEX_EPILOGUE_MICROKERNEL

// A convolution: each output is a bias and a sum over the taps it reads of source x weights, with an optional residual addition and
// ReLU. The source is an image of cells, of which each tap reads `depth`; there are weights, and numbers of the bias, for whole vectors of filters.
template <typename T, typename Out>
class IndirectGemm {
 public:
  // The output segments along both axes, and the filter's size.
  struct Geometry {
    std::vector<OutputSegment> vertical, horizontal;
    int64_t kernel_h, kernel_w;
  };
  struct Source {
    const float* cells;
    Image size;
    int64_t depth;  // cells that a tap reads
  };
  struct Destination {
    Out* data;
    Image size;  // c counts whole vectors
  };

  IndirectGemm(const Source& source, const Destination& destination, const Geometry& geometry, const float* bias, const Epilogue<Out>& epilogue)
      : source_(source.cells), destination_(destination.data), bias_(bias), epilogue_(epilogue), in_(source.size), out_(destination.size),
        depth_(source.depth), taps_(geometry.kernel_h * geometry.kernel_w), panels_(out_.c), zeros_(depth_, 0.f),
        panel_depth_(sizeof(Out) == 4 ? kPanelBytes / (kMaxVectors * kLanes * 4) : std::max(depth_, taps_ * depth_)) {
    for (const OutputSegment& v : geometry.vertical)
      for (const OutputSegment& h : geometry.horizontal) {
        Part part{in_.n * v.count * h.count, v, h, {}};
        for (const auto& down : v.taps)
          for (const auto& right : h.taps)
            part.taps.push_back({down.index * geometry.kernel_w + right.index, (down.source * in_.w + right.source) * in_.c});
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
        Aligned own(panel_depth_ * kMaxVectors * kLanes);
        by_panels(thread, team, false, [&](int64_t panel, int64_t t, int64_t count, int64_t c, int64_t depth) {
          const int64_t column = panels_.column(panel), width = panels_.width(panel) * kLanes;
          for (int64_t i = 0; i < count; ++i) pack(own.data + i * depth * width, t + i, c, depth, column, width);
          return own.data;
        });
      }
    }
  }

  // With weights that are packed already, as by `many` above. Threads share the rows, or, if these are few, the panels.
  void run(const float* packed, int threads) {
    const bool rows = rows_ >= threads * kFewRows;
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      if (rows)
        by_rows(packed, thread, team);
      else
        by_panels(thread, team, true, at(packed));
    }
  }

 private:
  struct Tap {
    int64_t index, offset;  // its position among the weights; its offset from an output's first input
  };
  struct Part {
    int64_t rows;
    OutputSegment vertical, horizontal;
    std::vector<Tap> taps;
    double work() const { return double(rows) * (taps.size() + 0.2); }
  };

  // A part of the weights: some panels of one width, some taps, and a range of their depth.
  struct WeightBlock {
    int64_t panel, last_panel, tap, taps, channel, depth;
    const float *weights[kMaxPanels], *next[kMaxPanels];  // by the panel; those that are read next, or null
    int64_t next_cells;                                   // of a column of the next ones
    bool finishes;                                        // true if sums are complete after this block, and the epilogue follows
  };

  // The taps of a weight block that the outputs of a part read.
  struct TapOffsets {
    int64_t inputs[kMaxTaps], weights[kMaxTaps];  // from an output's first input; from the block's weights
    int64_t count = 0;
    bool add = false;  // true if the outputs hold a part of their sums already
  };

  // The operands of a micro-kernel: the indirection buffer, the weights of each tap, and the rows of results.
  struct Operands {
    const float *inputs[kMaxTaps * kMaxRows], *weights[kMaxTaps];
    Out* results[kMaxRows];
    const Out* residuals[kMaxRows] = {};
    Out discarded[kMaxPanels * kMaxVectors * kLanes];  // the results of rows that are not there
  };

  // Consecutive outputs of a part.
  struct Cursor {
    const IndirectGemm& gemm;
    const OutputSegment &v, &h;
    int64_t j, i, n;    // column and line of the segment, and the image
    const float* base;  // the first of the inputs
    int64_t place;      // the output's number

    Cursor(const IndirectGemm& gemm, const Part& part, int64_t row)
        : gemm(gemm), v(part.vertical), h(part.horizontal), j(row % h.count), i(row / h.count % v.count), n(row / h.count / v.count) {
      find();
    }
    inline __attribute__((always_inline)) void find() {
      base = gemm.source_ + ((n * gemm.in_.h + i * v.step) * gemm.in_.w + j * h.step) * gemm.in_.c;
      place = (n * gemm.out_.h + i * v.apart + v.first) * gemm.out_.w + j * h.apart + h.first;
    }
    inline __attribute__((always_inline)) void advance(int64_t columns) {
      base += columns * h.step * gemm.in_.c;
      place += columns * h.apart;
      if ((j += columns) < h.count) return;
      j = 0;
      if (++i == v.count) i = 0, ++n;
      find();
    }
  };

  auto at(const float* packed) const {
    return [=](int64_t i, int64_t t, int64_t, int64_t c, int64_t) {
      return packed + panels_.column(i) * taps_ * depth_ + (t * depth_ + c) * panels_.width(i) * kLanes;
    };
  }

  // A thread's range of the rows, block by block through all panels.
  void by_rows(const float* packed, int64_t thread, int64_t team) const {
    const int64_t together = std::max<int64_t>(1, kCachedPanelBytes / (std::min(panel_depth_, taps_ * depth_) * kMaxVectors * kLanes * 4));
    const int64_t begin = row_at(double(thread) / team), end = row_at(double(thread + 1) / team);
    // Blocks of about the same size, since a last one of few rows would read all weights as well; a multiple of every tile's height.
    const int64_t size = std::max<int64_t>(kRowBlockBytes / (depth_ * 4), 48), blocks = std::max<int64_t>(1, (end - begin + size / 2) / size);
    const int64_t block = ((end - begin + blocks - 1) / blocks + 23) / 24 * 24;
    for (int64_t from = begin; from < end; from += block)
      for (int64_t panel = 0, last; panel < panels_.count; panel = last) {
        last = std::min({panel + together, panel + kMaxPanels, panels_.alike(panel)});
        multiply(panel, last, from, std::min(end, from + block), at(packed), true);
      }
  }

  // A thread's range of the panels, with all rows, or with a part of them where threads share a panel.
  template <typename Packed>
  void by_panels(int64_t thread, int64_t team, bool stays, Packed packed) const {
    const double begin = double(panels_.count) * thread / team, end = double(panels_.count) * (thread + 1) / team;
    for (int64_t panel = int64_t(begin); panel < end; ++panel)
      multiply(panel, panel + 1, row_at(std::max(begin - panel, 0.0)), row_at(std::min(end - panel, 1.0)), packed, stays);
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
    stays = stays && (kPrefetchesBefore || (panels_.width(panel) >= kPrefetchingVectors && (to - from + height - 1) / height <= kFewTiles));
    const int64_t together = std::max<int64_t>(panel_depth_ / depth_, 1), cuts = (depth_ + panel_depth_ - 1) / panel_depth_;
    for (int64_t t = 0; t < taps_; t += together)
      for (int64_t i = 0; i < cuts; ++i) {
        const int64_t c = depth_ / kLanes * i / cuts * kLanes, end = i + 1 < cuts ? depth_ / kLanes * (i + 1) / cuts * kLanes : depth_;
        WeightBlock block{panel, last, t, std::min(together, taps_ - t), c, end - c, {}, {}, 0, false};
        const bool last_tap = t + together >= taps_, last_cut = i + 1 == cuts;
        block.next_cells = block.depth * (!last_cut ? 1 : !last_tap ? std::min(together, taps_ - t - together) : std::min(together, taps_));
        block.finishes = epilogue_.any() && t + block.taps == taps_ && last_cut;
        for (int64_t p = panel; p < last; ++p) {
          block.weights[p - panel] = packed(p, t, block.taps, c, block.depth);
          const int64_t other = p + last - panel;
          if (stays && !last_cut)
            block.next[p - panel] = packed(p, t, block.taps, end, block.depth);
          else if (stays && !last_tap)
            block.next[p - panel] = packed(p, t + together, block.taps, 0, block.depth);
          else if (stays && other < panels_.count)
            block.next[p - panel] = packed(other, 0, block.taps, 0, block.depth);
        }
        multiply(block, from, to);
      }
  }

  // These rows of all parts.
  void multiply(const WeightBlock& block, int64_t from, int64_t to) const {
    int64_t before = 0;
    for (const Part& part : parts_) {
      const int64_t begin = std::max(from - before, int64_t(0)), end = std::min(to - before, part.rows);
      before += part.rows;
      if (begin < end) multiply(block, part, begin, end);
    }
  }

  void multiply(const WeightBlock& block, const Part& part, int64_t from, int64_t to) const {
    const int nv = panels_.width(block.panel);
    TapOffsets taps;
    select_taps(block, part, taps);
    if (taps.count == 0 && (taps.add || block.tap > 0) && !block.finishes) return;  // only an output that reads nothing gets nothing, once
    const int64_t tiles = (to - from + kRows[nv] - 1) / kRows[nv];
    const bool three_taps =
        nv <= kMaxThreeTapVectors && taps.count == int64_t(part.taps.size()) && part.horizontal.in_threes() && epilogue_.filters == out_.c;
    Operands operands;
    Cursor cursor(*this, part, from);
    for (int64_t row = from; row < to;) {
      if (const int64_t beside = std::min(part.horizontal.count - cursor.j, to - row); three_taps && beside > 1) {
        const int64_t pieces = (beside + kMaxThreeTapOutputs[nv] - 1) / kMaxThreeTapOutputs[nv];
        const int mr = int(std::min((beside + 2 * pieces - 1) / (2 * pieces), beside / 2) * 2);
        multiply_three_taps(block, taps, cursor, operands, mr);
        row += mr;
        cursor.advance(mr);
        continue;
      }
      const int mr = int(std::min<int64_t>(kRows[nv], (to - row + 1) / 2 * 2));
      fill_indirection(block, taps, cursor, operands, mr, to - row);
      multiply_tile(block, taps, operands, mr, (row - from) / kRows[nv], tiles);
      row += kRows[nv];
    }
  }

  inline __attribute__((always_inline)) void select_taps(const WeightBlock& block, const Part& part, TapOffsets& taps) const {
    const int64_t width = panels_.width(block.panel) * kLanes;
    taps.add = block.channel > 0;
    for (const Tap& tap : part.taps) {
      if (tap.index < block.tap) taps.add = true;
      if (tap.index < block.tap || tap.index >= block.tap + block.taps) continue;
      taps.inputs[taps.count] = tap.offset + block.channel;
      taps.weights[taps.count++] = (tap.index - block.tap) * block.depth * width;
    }
  }

  // `mr` outputs side by side that read three adjacent inputs each.
  inline __attribute__((always_inline)) void multiply_three_taps(const WeightBlock& block, const TapOffsets& taps, const Cursor& at,
                                                                 Operands& operands, int mr) const {
    const int nv = panels_.width(block.panel);
    const int64_t width = nv * kLanes, pitch = at.h.apart * epilogue_.pitch;
    const bool backwards = at.h.taps[2].source < at.h.taps[0].source;
    for (int64_t l = 0; l < taps.count / 3; ++l) operands.inputs[l] = at.base + taps.inputs[3 * l + (backwards ? 2 : 0)];
    Out* out = destination_ + at.place * epilogue_.pitch + panels_.column(block.panel);
    for (int64_t p = block.panel; p < block.last_panel; ++p, out += width) {
      for (int64_t k = 0; k < taps.count; ++k)
        operands.weights[k] = block.weights[p - block.panel] + taps.weights[backwards ? k / 3 * 3 + 2 - k % 3 : k];
      kThreeTapMicrokernels<T, Out>[nv][mr / 2](operands.inputs, in_.c, operands.weights, taps.count / 3, block.depth, out, pitch,
                                                bias_ ? bias_ + panels_.column(p) : nullptr, taps.add);
      for (int r = 0; block.finishes && r < mr; ++r)
        finish(out + r * pitch, (at.place + r * at.h.apart) * epilogue_.filters + panels_.column(p), width);
    }
  }

  // Points the operands to the inputs and results of `mr` outputs, of which `there` exist, and advances behind them.
  inline __attribute__((always_inline)) void fill_indirection(const WeightBlock& block, const TapOffsets& taps, Cursor& at, Operands& operands,
                                                              int mr, int64_t there) const {
    const int64_t column = panels_.column(block.panel), step = at.h.step * in_.c;
    const bool fetches = taps.count && in_.c % kAliasingCells;  // rows in the same sets would drive out those that are read
    if (there >= mr && at.h.count - at.j >= mr) {               // in one line: asking for each where it lies would take longer
      for (int64_t k = 0; k < taps.count; ++k)
        for (int r = 0; r < mr; ++r) operands.inputs[k * mr + r] = at.base + taps.inputs[k] + r * step;
      for (int r = 0; fetches && r < mr; ++r) fetch(at.base + taps.inputs[0] + (2 * mr + r) * step, block.depth);
      Out* out = destination_ + at.place * epilogue_.pitch + column;
      for (int r = 0; r < mr; ++r) operands.results[r] = out + r * at.h.apart * epilogue_.pitch;
      for (int r = 0; epilogue_.residual && r < mr; ++r)
        operands.residuals[r] = epilogue_.residual + (at.place + r * at.h.apart) * epilogue_.filters + column;
      at.advance(mr);
      return;
    }
    for (int r = 0; r < mr; ++r) {
      if (r >= there) {
        for (int64_t k = 0; k < taps.count; ++k) operands.inputs[k * mr + r] = zeros_.data();
        operands.results[r] = operands.discarded;
        operands.residuals[r] = epilogue_.residual ? epilogue_.residual + column : nullptr;  // any address: the result is discarded
        continue;
      }
      for (int64_t k = 0; k < taps.count; ++k) operands.inputs[k * mr + r] = at.base + taps.inputs[k];
      if (fetches) fetch(at.base + taps.inputs[0] + 2 * mr * step, block.depth);  // the inputs of the tile after the next
      operands.results[r] = destination_ + at.place * epilogue_.pitch + column;
      if (epilogue_.residual) operands.residuals[r] = epilogue_.residual + at.place * epilogue_.filters + column;
      at.advance(1);
    }
  }

  // One tile of rows through all panels of a block: it is that number of `tiles`.
  inline __attribute__((always_inline)) void multiply_tile(const WeightBlock& block, const TapOffsets& taps, Operands& o, int mr, int64_t number,
                                                           int64_t tiles) const {
    const int nv = panels_.width(block.panel);
    const int64_t width = nv * kLanes;
    const Out* const* residuals = epilogue_.residual ? o.residuals : nullptr;
    for (int64_t p = block.panel; p < block.last_panel; ++p) {
      for (int64_t k = 0; k < taps.count; ++k) o.weights[k] = block.weights[p - block.panel] + taps.weights[k];
      const float *bias = bias_ ? bias_ + panels_.column(p) : nullptr, *next = block.next[p - block.panel];
      if (kPrefetchesBefore && next) fetch_share(next, number, tiles, block.next_cells * width);
      if (const int64_t rest = epilogue_.filters - panels_.column(p); rest < width) {
        multiply_partial_panel(block, taps, o, bias, nv, mr, rest);
      } else if (!kPrefetchesBefore && next) {
        const Prefetch fetched = share_of(next, number, tiles, nv, taps.count * block.depth);
        if (block.finishes)
          kPrefetchingEpilogueMicrokernels<T, Out>[nv - kPrefetchingVectors][mr / 2](o.inputs, o.weights, taps.count, block.depth, o.results, bias,
                                                                                     taps.add, residuals, epilogue_.ceiling, fetched);
        else
          kPrefetchingMicrokernels<T, Out>[nv - kPrefetchingVectors][mr / 2](o.inputs, o.weights, taps.count, block.depth, o.results, bias, taps.add,
                                                                             fetched);
      } else if (block.finishes) {
        kEpilogueMicrokernels<T, Out>[nv][mr / 2](o.inputs, o.weights, taps.count, block.depth, o.results, bias, taps.add, residuals,
                                                  epilogue_.ceiling, {});
      } else {
        kMicrokernels<T, Out>[nv][mr / 2](o.inputs, o.weights, taps.count, block.depth, o.results, bias, taps.add);
      }
      for (int r = 0; r < mr; ++r) o.results[r] += width, o.residuals[r] += epilogue_.residual ? width : 0;
    }
  }

  // Where there are fewer filters than a panel has columns: `rest`.
  void multiply_partial_panel(const WeightBlock& block, const TapOffsets& taps, const Operands& o, const float* bias, int nv, int mr,
                              int64_t rest) const {
    alignas(64) Out partial[kMaxRows * kMaxVectors * kLanes];
    Out* to[kMaxRows];
    for (int r = 0; r < mr; ++r) to[r] = partial + r * nv * kLanes;
    if constexpr (std::is_same<Out, float>::value) {
      auto each = [&](auto run) {
        for (int r = 0; r < mr; ++r)
          for (int64_t l = 0; l < rest; l += kLanes) run(r, l, std::min<int64_t>(rest - l, kLanes));
      };
      if (taps.add) each([&](int r, int64_t l, int64_t count) { store(to[r] + l, load(o.results[r] + l, count)); });
      kMicrokernels<T, Out>[nv][mr / 2](o.inputs, o.weights, taps.count, block.depth, to, bias, taps.add);
      each([&](int r, int64_t l, int64_t count) {
        vec v = load(to[r] + l);
        if (block.finishes && o.residuals[r]) v += load(o.residuals[r] + l, count);
        store(o.results[r] + l, block.finishes ? relu(v, epilogue_.ceiling) : v, count);
      });
    }
  }

  void finish(Out* out, int64_t residual, int64_t width) const {
    for (int64_t j = 0; j < width; j += kLanes) {
      vec v = load(out + j);
      if (epilogue_.residual) v += load(epilogue_.residual + residual + j);
      store(out + j, relu(v, epilogue_.ceiling));
    }
  }

  const float* source_;
  Out* destination_;
  const float* bias_;
  const Epilogue<Out> epilogue_;
  const Image in_, out_;
  const int64_t depth_, taps_;
  const Panels panels_;
  const std::vector<float> zeros_;
  const int64_t panel_depth_;  // at most; sums in half precision are not interrupted
  std::vector<Part> parts_;
  int64_t rows_ = 0;
};

}  // namespace
