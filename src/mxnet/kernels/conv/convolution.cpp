// Two-dimensional convolutions for training, over channels-last arrays: x (N, H, W, C), weights (K, R, S, C), y (N, P, Q, K).
//
// All three directions are sums of products (`indirect_gemm.h`). The weights come and go in the order the optimizer keeps them in, and in single
// precision: nothing has to be reordered, or cast, between steps. The gradient of few weights takes `backward_few_weights`, which uses each input
// three times.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <omp.h>

#include "conv/indirect_gemm.h"
#include "runtime/parameters.h"

namespace {

constexpr int64_t kLongest = 512;      // rows that the gradient of the weights sums up at a time
constexpr int64_t kMaxFilters = 512;   // whose gradients are summed up together
constexpr int64_t kLeftBytes = 512 << 10;  // of their transposed outputs, which stay in the L2 cache
constexpr int64_t kEnoughRows = 256;   // for each thread: so many are worth a pass over the weights of their own

int64_t filter_size(const ConvParams& z) { return z.r * z.s * z.c; }

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

// T is the type of cells, and Data the stored type.
template <typename T, typename Data>
void forward(const Data* x, const float* weight, const float* bias, Data* y, const ConvParams& params, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  const ConvParams z = in_one_line(params);
  const AsCells<T, Data> source(x, z.n * z.h * z.w * z.c, threads);
  const auto pack = [=](float* to, int64_t tap, int64_t c, int64_t depth, int64_t column, int64_t width) {
    const float* from = weight + column * filter_size(z) + tap * z.c + c * each;
    transpose(
        width, depth * each, [=](int64_t j, int64_t k) { return load(from + j * filter_size(z) + k); },
        [=](vec(&rows)[kLanes], int64_t j, int64_t k) {
          const int count = Cells<T>::from_float(rows);
          for (int i = 0; i < count; ++i) store(to + (k / each + i) * width + j, rows[i]);
        });
  };
  IndirectGemm<T, Data>(
      {source.data, {z.n, z.h, z.w, z.c / each}, z.c / each}, {y, {z.n, z.p, z.q, z.k}},
      {forward_axis(z.p, z.stride_h, z.r, z.h, z.pad_h, z.dilate_h), forward_axis(z.q, z.stride_w, z.s, z.w, z.pad_w, z.dilate_w), z.r, z.s}, bias,
      {z.k, z.k})
      .run(pack, threads);
}

template <typename T, typename Data>
void backward_data(const Data* dy, const float* weight, Data* dx, const ConvParams& params, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  const ConvParams z = in_one_line(params);
  const AsCells<T, Data> source(dy, z.n * z.p * z.q * z.k, threads);
  const auto pack = [=](float* to, int64_t tap, int64_t k, int64_t depth, int64_t column, int64_t width) {
    for (int64_t i = 0; i < depth; ++i) {
      const float* from = weight + (k + i) * each * filter_size(z) + tap * z.c + column;
      for (int64_t j = 0; j < width; j += kLanes) store(to + i * width + j, Cells<T>::from_float(from + j, from + filter_size(z) + j));
    }
  };
  IndirectGemm<T, Data>(
      {source.data, {z.n, z.p, z.q, z.k / each}, z.k / each}, {dx, {z.n, z.h, z.w, z.c}},
      {backward_axis(z.h, z.p, z.r, z.stride_h, z.pad_h, z.dilate_h), backward_axis(z.w, z.q, z.s, z.stride_w, z.pad_w, z.dilate_w), z.r, z.s},
      nullptr, {z.c, z.c})
      .run(pack, threads);
}

#if defined(__AVX512F__)
// The gradient of few weights, three taps wide: each thread adds up for its own lines of outputs, and reads them where they are. A result of
// kFewFilters filters and 16 channels for three taps stays in registers along a line. For more weights than fit the L1 cache `WeightGradient` is as
// fast.
constexpr int kFewFilters = 8;
constexpr int64_t kFewWeights = 32 * 32;  // of a tap
constexpr int64_t kLineBytes = 24 << 10;  // of lines that the L1 cache holds

bool few_weights(const ConvParams& z) { return z.s == 3 && z.stride_w == 1 && z.dilate_w == 1 && z.k * z.c <= kFewWeights; }

// Adds lines `from` to `to` to the gradients of kFewFilters filters and kLanes channels, whose outputs, inputs and sums `dy`, `x` and `sums` begin
// with, for row r of the filter.
void add_lines(const float* dy, const float* x, float* sums, const ConvParams& z, int64_t r, int64_t from, int64_t to) {
  static const float zeros[kLanes] = {};
  const int64_t filter = filter_size(z);
  const int64_t low = std::min(z.q, z.pad_w), high = std::max(low, std::min(z.q, z.w + z.pad_w - 2));  // outputs that read no padding
  vec sum[kFewFilters][3];
#pragma GCC unroll 8
  for (int i = 0; i < kFewFilters; ++i)
#pragma GCC unroll 3
    for (int s = 0; s < 3; ++s) sum[i][s] = load(sums + i * filter + s * z.c);
  for (int64_t line = from; line < to; ++line) {
    const int64_t h = line % z.p * z.stride_h + r * z.dilate_h - z.pad_h;
    if (h < 0 || h >= z.h) continue;
    const float *in = x + (line / z.p * z.h + h) * z.w * z.c, *out = dy + line * z.q * z.k;
    auto add = [&](const float* first, const float* second, const float* third, int64_t j) __attribute__((always_inline)) {
      const vec inputs[] = {load(first), load(second), load(third)};
#pragma GCC unroll 8
      for (int i = 0; i < kFewFilters; ++i)
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
  for (int i = 0; i < kFewFilters; ++i)
#pragma GCC unroll 3
    for (int s = 0; s < 3; ++s) store(sums + i * filter + s * z.c, sum[i][s]);
}

void backward_few_weights(const float* dy, const float* x, float* dweight, float* dbias, const ConvParams& z, int threads) {
  const int64_t filter = filter_size(z), weights = z.k * filter, lines = z.n * z.p;
  const int64_t together = std::max<int64_t>(1, kLineBytes / ((z.w * z.c + z.q * z.k) * 4));
  std::vector<std::vector<float>> partial(threads);
#pragma omp parallel num_threads(threads)
  {
    const int team = omp_get_num_threads(), thread = omp_get_thread_num();
    partial[thread].resize(weights + z.k);
    float *sums = partial[thread].data(), *bias_sums = sums + weights;
    const int64_t end = lines * (thread + 1) / team;
    for (int64_t from = lines * thread / team; from < end; from += together) {
      const int64_t to = std::min(from + together, end);
      for (int64_t m = from * z.q; dbias && m < to * z.q; ++m)
        for (int64_t f = 0; f < z.k; ++f) bias_sums[f] += dy[m * z.k + f];
      for (int64_t r = 0; r < z.r; ++r)
        for (int64_t c = 0; c < z.c; c += kLanes)
          for (int64_t f = 0; f < z.k; f += kFewFilters) add_lines(dy + f, x + c, sums + f * filter + r * 3 * z.c + c, z, r, from, to);
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
// then the rows (outputs), each with sums of its own.
template <typename T, typename Data>
class WeightGradient {
 public:
  WeightGradient(const Data* dy, const Data* x, float* dweight, float* dbias, const ConvParams& z, int threads)
      : dy_(dy), x_(x), dweight_(dweight), dbias_(dbias), z_(z), filter_(filter_size(z)), panels_(z.c), threads_(threads) {
    // As many as there will be: inside of another parallel region, or at a limit, fewer come than were asked for.
#pragma omp parallel num_threads(threads)
#pragma omp master
    threads_ = omp_get_num_threads();
    for (int t = 1; t <= threads_; ++t)
      if (threads_ % t == 0 && z.k / t >= kLeastFilters) across_ = t;
    along_ = threads_ / across_;
    vertical_ = axis({z.p, z.stride_h, z.r, z.dilate_h, z.pad_h, z.h}, z.n * z.q);
    int64_t least = z.p;
    for (const OutputSegment& part : vertical_) least = std::min(least, part.count);
    horizontal_ = axis({z.q, z.stride_w, z.s, z.dilate_w, z.pad_w, z.w}, z.n * least);
    partial_.resize(along_ - 1), partial_bias_.resize(along_ - 1);
  }

  void run() {
#pragma omp parallel num_threads(threads_)
    {
      const int thread = omp_get_thread_num(), share = thread / across_;
      // Each thread has whole square blocks of filters, for their transposition, and enough of them for long rows.
      const int64_t squares = z_.k / kLanes, first = squares * (thread % across_) / across_ * kLanes,
                    last = squares * (thread % across_ + 1) / across_ * kLanes;
      if (share > 0 && thread % across_ == 0) partial_[share - 1].resize(z_.k * filter_), partial_bias_[share - 1].resize(z_.k);
#pragma omp barrier
      float* sums = share > 0 ? partial_[share - 1].data() : dweight_;
      float* bias_sums = !dbias_ ? nullptr : share > 0 ? partial_bias_[share - 1].data() : dbias_;
      for (int64_t k = first; k < last; k += kMaxFilters) {
        FilterBlock block(*this, k, std::min(kMaxFilters, last - k), sums, bias_sums);
        for (const OutputSegment& v : vertical_)
          for (const OutputSegment& h : horizontal_) add_segment(block, v, h, share);
        fill_untouched_taps(block);
      }
      if (along_ > 1) {
#pragma omp barrier
        add_partial_sums(thread);
      }
    }
  }

 private:
  static constexpr int64_t kEach = Cells<T>::kEach;
  static constexpr int64_t kLeastFilters = 48;  // of a thread

  struct Axis {
    int64_t outputs, stride, kernel, dilate, pad, size;
  };

  // Where the inputs of an output begin, in the padding or not, and where the output lies.
  struct Row {
    int64_t h, w, input, output;
  };

  // The filters whose gradients a thread sums up together, with the memory for it: `longest` cells of kEach rows at a time.
  struct FilterBlock {
    int64_t first, filters, longest, step;
    float *sums, *bias_sums;
    Aligned left, right;  // transposed gradients of outputs, (filters, step); inputs of a panel
    std::vector<float> zeros;
    std::vector<Row> rows;
    std::vector<char> begun;  // by the tap: true if its sums hold numbers already
    float discarded[kMaxVectors * kLanes];

    FilterBlock(const WeightGradient& g, int64_t first, int64_t filters, float* sums, float* bias_sums)
        : first(first), filters(filters), longest(std::max<int64_t>(std::min<int64_t>(kLeftBytes / (filters * 4) / 16 * 16, kLongest), 64)),
          step(longest + 16), sums(sums), bias_sums(bias_sums), left(filters * step), right(kMaxVectors * kLanes * longest), zeros(longest, 0.f),
          rows(longest * kEach), begun(g.z_.r * g.z_.s, false) {
      if (bias_sums) std::fill(bias_sums + first, bias_sums + first + filters, 0.f);
    }
  };

  // The segments of an axis. Taps in the padding are skipped, where enough rows share the same taps; `others` are the outputs along the other axes.
  std::vector<OutputSegment> axis(const Axis& a, int64_t others) const {
    auto source = [=](int64_t i, int64_t tap) { return i * a.stride + tap * a.dilate - a.pad; };
    std::vector<OutputSegment> found;
    append_segments(found, 0, 1, a.outputs, a.stride, a.kernel, a.size, source);
    for (const OutputSegment& part : found)
      if (part.count * others < kEnoughRows * along_) {
        OutputSegment all{0, 1, a.outputs, a.stride, {}};
        for (int64_t tap = 0; tap < a.kernel; ++tap) all.taps.push_back({tap, source(0, tap)});
        return std::vector<OutputSegment>{all};
      }
    return found;
  }

  // Adds a thread's share of the outputs of a segment to the sums.
  void add_segment(FilterBlock& block, const OutputSegment& v, const OutputSegment& h, int share) const {
    const int64_t all = z_.n * v.count * h.count, begin = all * share / along_, end = all * (share + 1) / along_;
    for (int64_t from = begin; from < end; from += block.longest * kEach) {
      const int64_t count = std::min(block.longest * kEach, end - from);
      find_rows(block, v, h, from, count);
      transpose_outputs(block, count);
      if (block.bias_sums) add_bias(block, count);
      for (const auto& down : v.taps)
        for (const auto& over : h.taps) {
          const int64_t tap = down.index * z_.s + over.index;
          for (int64_t panel = 0; panel < panels_.count; ++panel) {
            pack_inputs(block, panel, down.index * z_.dilate_h, over.index * z_.dilate_w, count);
            multiply(block, panel, tap, depth_of(count));
          }
          block.begun[tap] = true;
        }
    }
  }

  static int64_t depth_of(int64_t rows) { return (rows + kEach - 1) / kEach; }

  // The rows of `count` outputs of a segment, from number `from` on.
  void find_rows(FilterBlock& block, const OutputSegment& v, const OutputSegment& h, int64_t from, int64_t count) const {
    int64_t j = from % h.count, i = from / h.count % v.count, image = from / h.count / v.count;
    for (int64_t m = 0; m < count; ++m) {
      const int64_t at_h = (i + v.first) * z_.stride_h - z_.pad_h, at_w = (j + h.first) * z_.stride_w - z_.pad_w;
      block.rows[m] = {at_h, at_w, ((image * z_.h + at_h) * z_.w + at_w) * z_.c,
                       ((image * z_.p + i + v.first) * z_.q + j + h.first) * z_.k + block.first};
      if (++j == h.count) {
        j = 0;
        if (++i == v.count) i = 0, ++image;
      }
    }
  }

  void transpose_outputs(FilterBlock& block, int64_t count) const {
    const int64_t step = block.step;
    const Data* const dy = dy_;
    const Row* const rows = block.rows.data();
    float* const left = block.left.data;
    auto output = [=](int64_t m) { return m < count ? dy + rows[m].output : nullptr; };
    transpose((depth_of(count) + kLanes - 1) / kLanes * kLanes, block.filters,
              [=](int64_t m, int64_t f) {
                const Data *first = output(m * kEach), *second = output(m * kEach + kEach - 1);
                return Cells<T>::join(first ? first + f : nullptr, second ? second + f : nullptr);
              },
              [=](vec(&square)[kLanes], int64_t m, int64_t f) {
                for (int l = 0; l < kLanes; ++l) store(left + (f + l) * step + m, square[l]);
              });
  }

  void add_bias(FilterBlock& block, int64_t count) const {
    const int64_t depth = depth_of(count);
    for (int64_t f = 0; f < block.filters; ++f) {
      const float* row = block.left.data + f * block.step;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t m = 0; m < depth; ++m) sum += Cells<T>::reduce_add(row[m]);
      block.bias_sums[block.first + f] += sum;
    }
  }

  // The inputs of the outputs through a tap, in a panel's channels.
  void pack_inputs(FilterBlock& block, int64_t panel, int64_t dh, int64_t dw, int64_t count) const {
    const int nv = panels_.width(panel);
    // Copies of the members, which the compiler would read again after each store.
    const int64_t h = z_.h, w = z_.w, depth = depth_of(count);
    const Data* const x = x_ + (dh * w + dw) * z_.c + panels_.column(panel);
    const Row* const rows = block.rows.data();
    float* to = block.right.data;
    auto input = [=](int64_t m) {
      const bool inside = m < count && uint64_t(rows[m].h + dh) < uint64_t(h) && uint64_t(rows[m].w + dw) < uint64_t(w);
      return inside ? x + rows[m].input : nullptr;
    };
    for (int64_t m = 0; m < depth; ++m) {
      const Data *first = input(m * kEach), *second = input(m * kEach + kEach - 1);
      for (int l = 0; l < nv; ++l, to += kLanes) {
        store(to, Cells<T>::join(first ? first + l * kLanes : nullptr, second ? second + l * kLanes : nullptr));
        __builtin_prefetch(first + (nv + l) * kLanes, 0, 2);  // for the next panel
      }
    }
  }

  void multiply(FilterBlock& block, int64_t panel, int64_t tap, int64_t depth) const {
    const int nv = panels_.width(panel);
    const int64_t column = panels_.column(panel);
    const float* packed = block.right.data;
    for (int64_t f = 0; f < block.filters; f += kRows[nv]) {
      const int mr = int(std::min<int64_t>(kRows[nv], (block.filters - f + 1) / 2 * 2));
      const float* pointers[kMaxRows];
      float* results[kMaxRows];
      for (int l = 0; l < mr; ++l) {
        const bool there = f + l < block.filters;
        pointers[l] = there ? block.left.data + (f + l) * block.step : block.zeros.data();
        results[l] = there ? block.sums + (block.first + f + l) * filter_ + tap * z_.c + column : block.discarded;
      }
      kMicrokernels<T, float>[nv][mr / 2](pointers, & packed, 1, depth, results, nullptr, block.begun[tap]);
    }
  }

  // Taps that lie in the padding for all outputs.
  void fill_untouched_taps(FilterBlock& block) const {
    for (int64_t tap = 0; tap < z_.r * z_.s; ++tap)
      for (int64_t f = 0; !block.begun[tap] && f < block.filters; ++f) std::fill_n(block.sums + (block.first + f) * filter_ + tap * z_.c, z_.c, 0.f);
  }

  void add_partial_sums(int thread) {
    const int64_t weights = z_.k * filter_, first = weights * thread / threads_, last = weights * (thread + 1) / threads_;
    for (const auto& more : partial_)
      for (int64_t e = first; e < last; ++e) dweight_[e] += more[e];
    if (dbias_ && thread == 0)
      for (const auto& more : partial_bias_)
        for (int64_t e = 0; e < z_.k; ++e) dbias_[e] += more[e];
  }

  const Data *dy_, *x_;
  float *dweight_, *dbias_;
  const ConvParams z_;
  const int64_t filter_;
  const Panels panels_;
  int threads_, across_ = 1, along_ = 1;  // all threads; those that share the filters, and those that share the rows
  std::vector<OutputSegment> vertical_, horizontal_;
  std::vector<std::vector<float>> partial_, partial_bias_;  // of all shares but the first
};

template <typename T, typename Data>
void backward_weight(const Data* dy, const Data* x, float* dweight, float* dbias, const ConvParams& z, int threads) {
#if defined(__AVX512F__)
  if constexpr (std::is_same<Data, float>::value)
    if (few_weights(z)) return backward_few_weights(dy, x, dweight, dbias, z, threads);
#endif
  WeightGradient<T, Data>(dy, x, dweight, dbias, z, threads).run();
}

}  // namespace

extern "C" {

#define REMEX_CONVOLUTION(suffix, T, Data)                                                                                            \
  void forward_##suffix(const Data* x, const float* weight, const float* bias, Data* y, const ConvParams* params, int threads) {      \
    forward<T>(x, weight, bias, y, *params, threads);                                                                                 \
  }                                                                                                                                   \
  void backward_data_##suffix(const Data* dy, const float* weight, Data* dx, const ConvParams* params, int threads) {                 \
    backward_data<T>(dy, weight, dx, *params, threads);                                                                               \
  }                                                                                                                                   \
  void backward_weight_##suffix(const Data* dy, const Data* x, float* dweight, float* dbias, const ConvParams* params, int threads) { \
    backward_weight<T>(dy, x, dweight, dbias, *params, threads);                                                                      \
  }

REMEX_CONVOLUTION(float32, float, float)
#if defined(__AVX512BF16__)
REMEX_CONVOLUTION(bfloat16, bfloat16, bfloat16)
REMEX_CONVOLUTION(widened_bfloat16, float, bfloat16)  // float32's arithmetic on what is stored in bfloat16
#endif
}
