// Float32 convolutions on bfloat16 tiles (AMX), whose multiplication rate is sixteen times that of floats.
//
// A float is the sum of three numbers of bfloat16: its first eight bits, the next eight and the last eight, without a rounding. Of the nine products
// of two such sums the six largest are added, in single precision; the others are below 2^-23 of the product, as the rounding of each sum is.
// Results are closer to those of double precision than those of the direct kernel, since a tile adds up in shorter chains. Infinite numbers give NaN;
// below 2^-110 the last parts are not normal, and count as zero.
//
// A convolution is a product of matrices: rows are outputs, whose inputs are split while they are copied into tiles, tap by tap; the weights lie in
// tiles already. Products on tiles leave the vector units idle, which meanwhile finish the results of the block before and split the inputs of the
// next. Arrays: x (N, H, W, C), weights (K, R, S, C), y (N, P, Q, K), channels last in memory.
#include <algorithm>
#include <cstdint>

#include <omp.h>

#if defined(__AMX_BF16__) && defined(__AVX512BW__)
#include <sys/syscall.h>
#include <unistd.h>

#include "gemm/amx_few_rows.h"
#include "gemm/amx_gradients.h"

namespace {

constexpr int64_t kBlock = kSide * kSide;    // results
constexpr int64_t kMostSteps = 4;            // along the depth that are computed at once, so that no sums are stored in between
constexpr int64_t kSteps = 3;                // of a cut along a longer depth: the L1 cache holds their inputs, and the weights of a panel
constexpr int64_t kStepsOfFew = 2;           // where few blocks wait for the weights: nobody fetches those of the first cut in time
constexpr int64_t kResultBytes = 256 << 10;  // bytes of results that the L2 cache holds until their sums are complete, beside inputs and weights
constexpr int64_t kFewestBlocks = 8;         // blocks of rows that go through the weights together, at least, if there are so many; and at most
constexpr int64_t kMostBlocks = 16;
constexpr int64_t kFewBlocks = 4;            // for each thread: fewer rows are not shared, but the columns

constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA of Linux

constexpr int64_t each(int64_t work, int64_t parts) { return (work + parts - 1) / parts; }

// Outputs in blocks of at most 32 rows, of about the same size: of two tiles with so many lines.
struct RowBlocks {
  int64_t rows, lines;
  explicit RowBlocks(int64_t rows) : rows(rows), lines(each(rows, 2 * pieces(rows))) {}
  int64_t count() const { return each(rows, 2 * lines); }
  int64_t first(int64_t block) const { return block * 2 * lines; }
  int64_t size(int64_t block) const { return std::min(2 * lines, rows - first(block)); }
};

// The inputs of a block of outputs in some steps along the depth, which are split into tiles row by row.
class InputBlock {
 public:
  InputBlock() = default;
  InputBlock(const float* x, const StridedConvParams& z, const RowBlocks& all, int64_t block, int64_t begin, int64_t end, half* to)
      : left_(all.size(block)), until_tile_(all.lines), lines_(all.lines), ahead_(2 * all.lines * z.stride_w * z.c), to_(to) {
    const int64_t row = all.first(block), across = pieces(z.c);
    j_ = row % z.q, i_ = row / z.q % z.p, image_ = x + row / z.q / z.p * z.h * z.w * z.c;
    for (int64_t step = begin; step < end; ++count_) {
      const int64_t tap = step / across, last = std::min(end, (tap + 1) * across);
      segments_[count_] = {tap / z.s * z.dilate_h - z.pad_h, tap % z.s * z.dilate_w - z.pad_w, step % across * kSide, last - step};
      step = last;
    }
  }

  bool any() const { return left_ > 0; }

  // Splits the next row, and fetches one of the next block.
  void split_row(const StridedConvParams& z) {
    half* to = to_;
    for (int s = 0; s < count_; ++s) {
      const Segment& segment = segments_[s];
      const int64_t h = i_ * z.stride_h + segment.h, w = j_ * z.stride_w + segment.w;
      const bool inside = h >= 0 && h < z.h && w >= 0 && w < z.w;
      const float* from = image_ + (h * z.w + w) * z.c + segment.channel;
      for (int64_t step = 0, c = segment.channel; step < segment.steps; ++step, c += kSide, from += kSide, to += kStep) {
        __m512i parts[3] = {};
        if (inside) split(from, those(c, z.c), parts);
#pragma GCC unroll 3
        for (int p = 0; p < 3; ++p) _mm512_store_si512(to + p * 2 * kTile, parts[p]);
        __builtin_prefetch(from + ahead_, 0, 2);
        __builtin_prefetch(from + ahead_ + kLanes, 0, 2);
      }
    }
    to_ += kSide;
    if (--until_tile_ == 0) to_ += kTile - lines_ * kSide;
    --left_;
    if (++j_ == z.q) {
      j_ = 0;
      if (++i_ == z.p) i_ = 0, image_ += z.h * z.w * z.c;
    }
  }

 private:
  // Steps of one tap: its offset from an output's first input, and its first channel.
  struct Segment {
    int64_t h, w, channel, steps;
  };
  int64_t left_ = 0, until_tile_, lines_, ahead_, j_, i_;
  const float* image_;
  half* to_;
  int count_ = 0;
  Segment segments_[kMostSteps];
};

struct Epilogue {
  const float *bias, *residual;
  float* y;
  float ceiling;
  int64_t* odd;  // set where a result is no number; may be null
};

// A block of complete sums, whose results are written row by row, from the filter `column` on.
class ResultBlock {
 public:
  ResultBlock() = default;
  ResultBlock(const float* sums, const RowBlocks& all, int64_t block, int64_t column, const StridedConvParams& z, const Epilogue& e)
      : left_(all.size(block)), until_tile_(all.lines), gap_((16 - all.lines) * kSide), masks_(those(column, z.k)), sums_(sums),
        bias_(e.bias ? e.bias + column : nullptr), residual_(e.residual ? e.residual + all.first(block) * z.k + column : nullptr),
        y_(e.y + all.first(block) * z.total + z.first + column) {}

  bool any() const { return left_ > 0; }

  // Writes the next row; returns true where a result is no number.
  bool finish_row(const StridedConvParams& z, float ceiling) {
    __mmask16 odd = 0;
    for (int64_t f = 0; f < kSide; f += kLanes) {
      const __mmask16 there = __mmask16(masks_ >> f);
      vec v = load(sums_ + f);
      if (bias_) v += (vec)_mm512_maskz_loadu_ps(there, bias_ + f);
      if (residual_) v += (vec)_mm512_maskz_loadu_ps(there, residual_ + f);
      odd |= _mm512_mask_cmp_ps_mask(there, (__m512)v, (__m512)v, _CMP_UNORD_Q);
      _mm512_mask_storeu_ps(y_ + f, there, (__m512)relu(v, ceiling));
    }
    sums_ += kSide;
    if (--until_tile_ == 0) sums_ += gap_;
    if (residual_) residual_ += z.k;
    y_ += z.total;
    --left_;
    return odd;
  }

 private:
  int64_t left_ = 0, until_tile_, gap_;
  uint32_t masks_;
  const float *sums_, *bias_, *residual_;
  float* y_;
};

// The work beside the products of a block: the results of the block before, the inputs of the next, and weights that are fetched.
class SideWork {
 public:
  SideWork(const StridedConvParams& z, const Epilogue& epilogue) : z_(z), epilogue_(epilogue) {}

  InputBlock inputs;
  ResultBlock results;

  // The rows, of inputs and results, and the lines of caches of each call.
  void pace(int64_t inputs, int64_t results, int64_t lines) { inputs_each_ = inputs, results_each_ = results, lines_each_ = lines; }
  void fetch(const half* weights, int64_t lines) { weights_ = weights, lines_ = lines; }

  // Not inlined: it is called at six places of each product.
  __attribute__((noinline)) void operator()() {
    for (int64_t n = std::min(lines_, lines_each_); n > 0; --n, --lines_, weights_ += kSide) __builtin_prefetch(weights_, 0, 2);
    for (int64_t n = results_each_; n > 0 && results.any(); --n) odd_ |= results.finish_row(z_, epilogue_.ceiling);
    for (int64_t n = inputs_each_; n > 0 && inputs.any(); --n) inputs.split_row(z_);
  }

  // What no call was left for.
  void finish_inputs() {
    while (inputs.any()) inputs.split_row(z_);
  }
  void finish_results() {
    while (results.any()) odd_ |= results.finish_row(z_, epilogue_.ceiling);
    if (odd_ && epilogue_.odd) __atomic_store_n(epilogue_.odd, 1, __ATOMIC_RELAXED);
  }

 private:
  const StridedConvParams& z_;
  const Epilogue& epilogue_;
  int64_t inputs_each_ = 0, results_each_ = 0, lines_each_ = 0, lines_ = 0;
  const half* weights_ = nullptr;
  bool odd_ = false;
};

// Some blocks of rows through some columns, in panels of 32: as many blocks together as leave their sums room.
void multiply_blocks(const float* x, const half* packed, const RowBlocks& all, Range blocks, Range panels, const StridedConvParams& z,
                     const Epilogue& epilogue) {
  const int64_t steps = z.r * z.s * pieces(z.c), cut = steps <= kMostSteps ? steps : blocks.size() < kFewBlocks ? kStepsOfFew : kSteps;
  const bool at_once = cut == steps;  // sums are complete after one product
  const int64_t most = at_once ? kMostBlocks : std::clamp<int64_t>(kResultBytes / (panels.size() * kBlock * 4), 1, kMostBlocks);
  const Tiles tiles(all.lines);
  Aligned left(kMostSteps * kStep), sums(at_once ? kBlock : panels.size() * std::min(most, blocks.size()) * kBlock);
  half *inputs = reinterpret_cast<half*>(left.data), *next_inputs = inputs + kMostSteps * kStep;
  SideWork beside(z, epilogue);
  beside.inputs = InputBlock(x, z, all, blocks.begin, 0, cut, next_inputs);
  for (int64_t from = blocks.begin; from < blocks.end; from += most) {
    const int64_t end = std::min(from + most, blocks.end);
    for (int64_t step = 0; step < steps; step += cut) {
      const int64_t deep = std::min(cut, steps - step), next_deep = std::min(cut, steps - step - deep), calls = kCallsOfSideWork * deep;
      // Each block fetches a share of the weights of the next cut; the first one of all those of the next panel.
      const int64_t lines = next_deep * kStep / kSide, share = each(lines, std::max<int64_t>(end - from - (step == 0), 1));
      for (int64_t block = from; block < end; ++block) {
        beside.finish_inputs();
        std::swap(inputs, next_inputs);
        if (block + 1 < end)
          beside.inputs = InputBlock(x, z, all, block + 1, step, step + deep, next_inputs);
        else if (next_deep)
          beside.inputs = InputBlock(x, z, all, from, step + deep, step + deep + next_deep, next_inputs);
        else if (end < blocks.end)
          beside.inputs = InputBlock(x, z, all, end, 0, cut, next_inputs);
        const bool first = step == 0 && block == from;
        const int64_t begin = share * (block - from - (step == 0));
        const int64_t fetched = first ? deep * kStep / kSide : std::clamp<int64_t>(lines - begin, 0, share);
        beside.pace(each(2 * all.lines, calls * panels.size()), each(2 * all.lines, calls), each(fetched, calls));
        const half* weights = packed + (panels.begin * steps + step) * kStep;
        for (int64_t panel = panels.begin; panel < panels.end; ++panel, weights += steps * kStep) {
          float* to = sums.data + (at_once ? 0 : ((panel - panels.begin) * (end - from) + block - from) * kBlock);
          if (first)
            beside.fetch(weights + steps * kStep, panel + 1 < panels.end ? fetched : 0);
          else
            beside.fetch(weights + deep * kStep + begin * kSide, fetched);
          kMultiply<3, SideWork>[all.size(block) > all.lines][z.k - panel * kSide > 16](inputs, weights, deep, to, kSide, step > 0, beside);
          if (!next_deep) beside.results = ResultBlock(to, all, block, panel * kSide, z, epilogue);
        }
      }
    }
  }
  beside.finish_results();
}

// A thread's rows and columns: so many columns at a time that several blocks of rows read the weights together, once for all of them.
void multiply_share(const float* x, const half* packed, const RowBlocks& all, Range blocks, Range panels, const StridedConvParams& z,
                    const Epilogue& epilogue) {
  if (blocks.size() <= 0 || panels.size() <= 0) return;
  const int64_t most = std::max<int64_t>(kResultBytes / (std::min(kFewestBlocks, blocks.size()) * kBlock * 4), 1);
  const int64_t groups = each(panels.size(), most);
  for (int64_t g = 0; g < groups; ++g) multiply_blocks(x, packed, all, blocks, panels.part(g, groups), z, epilogue);
}

void forward(const float* x, const float* packed, const Epilogue& epilogue, const StridedConvParams& z, int threads) {
  const half* weights = reinterpret_cast<const half*>(packed);
  const RowBlocks all(z.n * z.p * z.q);
  const Range blocks{0, all.count()}, panels{0, pieces(z.k)};
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    if (blocks.size() >= kFewBlocks * team)
      multiply_share(x, weights, all, blocks.part(thread, team), panels, z, epilogue);
    else
      multiply_share(x, weights, all, blocks, panels.part(thread, team), z, epilogue);
  }
}

// A matrix product as a convolution: each row is a pixel of one line.
StridedConvParams as_pixels(int64_t n, int64_t c, int64_t k) {
  StridedConvParams z{};
  z.n = z.h = z.p = z.r = z.s = z.stride_h = z.stride_w = z.dilate_h = z.dilate_w = 1;
  z.w = z.q = n, z.c = c, z.k = z.total = k;
  return z;
}

}  // namespace

extern "C" {

// Requests permission for tiles from the operating system, which is needed once; returns 1 if granted.
int64_t allow() { return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0; }

// Weights (K, taps, C) in tiles; filters and channels that are not there are zeros.
void pack_float32(const float* weight, float* packed, int64_t filters, int64_t taps, int64_t channels, int threads) {
  const int64_t across = pieces(channels), steps = taps * across;
  half* to = reinterpret_cast<half*>(packed);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < pieces(filters) * steps; ++i) {
    const int64_t column = i / steps * kSide, tap = i % steps / across, c = i % across * kSide;
    pack(weight + (column * taps + tap) * channels + c, taps * channels, std::min(kSide, filters - column), those(c, channels), to + i * kStep);
  }
}

// The same weights for the convolution back to their C channels, with the taps in the opposite order.
void pack_turned_float32(const float* weight, float* packed, int64_t filters, int64_t taps, int64_t channels, int threads) {
  const int64_t across = pieces(filters), steps = taps * across;
  half* to = reinterpret_cast<half*>(packed);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < pieces(channels) * steps; ++i) {
    const int64_t c = i / steps * kSide, tap = taps - 1 - i % steps / across, k = i % across * kSide;
    pack_turned(weight + (k * taps + tap) * channels + c, taps * channels, filters - k, those(c, channels), to + i * kStep);
  }
}

// y are K of the `total` channels of an array, from `first` on.
void forward_float32(const float* x, const float* packed, const float* bias, const float* residual, float* y, const StridedConvParams* params,
                     float ceiling, int threads) {
  forward(x, packed, {bias, residual, y, ceiling, nullptr}, *params, threads);
}

// C and K are multiples of 16.
void backward_weight_float32(const float* dy, const float* x, float* dweight, const StridedConvParams* params, int threads) {
  backward_weight(dy, x, dweight, *params, threads);
}

// The same of numbers of bfloat16, which are one part each.
void backward_weight_bfloat16(const half* dy, const half* x, float* dweight, const StridedConvParams* params, int threads) {
  backward_weight(dy, x, dweight, *params, threads);
}

// out (N, K) = rows (N, C) times the weight (K, C), transposed where it is (C, K). `odd` is set where a result is NaN, as for infinite inputs.
void product_float32(const float* rows, const float* weight, const float* bias, float* out, float* packed, int64_t* odd, int64_t n, int64_t c,
                     int64_t k, int64_t turned, int threads) {
  turned ? pack_turned_float32(weight, packed, c, 1, k, threads) : pack_float32(weight, packed, k, 1, c, threads);
  forward(rows, packed, {bias, nullptr, out, kNoRelu, odd}, as_pixels(n, c, k), threads);
}

// dweight (K, C) = dout (N, K), transposed, times rows (N, C); C and K are multiples of 16.
void outer_float32(const float* dout, const float* rows, float* dweight, int64_t* odd, int64_t n, int64_t c, int64_t k, int threads) {
  backward_weight(dout, rows, dweight, as_pixels(n, c, k), threads);
  int64_t found = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(| : found)
  for (int64_t i = 0; i < k * c; i += kLanes) found |= _mm512_cmp_ps_mask(_mm512_loadu_ps(dweight + i), _mm512_loadu_ps(dweight + i), _CMP_UNORD_Q);
  *odd = found != 0;
}

// The same products of few rows; `packed` has room for the rows in tiles.
void few_rows_forward_float32(const float* rows, const float* weight, const float* bias, float* out, float* packed, int64_t* odd, int64_t n,
                              int64_t c, int64_t k, int threads) {
  pack_float32(rows, packed, n, 1, c, threads);
#pragma omp parallel num_threads(threads)
  few_rows_forward(reinterpret_cast<const half*>(packed), weight, bias, out, {n, c, k},
                   Range{0, pieces(k)}.part(omp_get_thread_num(), omp_get_num_threads()), odd);
}

// dx (N, C) = dout (N, K) times the weight.
void few_rows_backward_data_float32(const float* dout, const float* weight, float* dx, int64_t* odd, int64_t n, int64_t c, int64_t k, int threads) {
  const FewRowsSizes z{n, c, k};
  const int64_t size = z.panels() * z.columns() * kResults, blocks = (pieces(k) + kDepth - 1) / kDepth;
  threads = int(std::min<int64_t>(threads, blocks));
  Aligned totals(size * threads);
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    std::fill_n(totals.data + thread * size, size, 0.f);
    few_rows_backward_data(dout, weight, totals.data + thread * size, z, Range{0, blocks}.part(thread, team));
#pragma omp barrier
    if (add_up(totals.data, team, dx, z)) __atomic_store_n(odd, 1, __ATOMIC_RELAXED);
  }
}

// C is a multiple of 16.
void few_rows_backward_weight_float32(const float* dout, const float* rows, float* dweight, float* packed, int64_t* odd, int64_t n, int64_t c,
                                      int64_t k, int threads) {
  pack_turned_float32(rows, packed, n, 1, c, threads);
  const bool streaming = is_large(k * c) && reinterpret_cast<uintptr_t>(dweight) % 64 == 0;
#pragma omp parallel num_threads(threads)
  few_rows_backward_weight(dout, reinterpret_cast<const half*>(packed), dweight, {n, c, k},
                           Range{0, pieces(k)}.part(omp_get_thread_num(), omp_get_num_threads()), streaming, odd);
}

}  // extern "C"
#endif
