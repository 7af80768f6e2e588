// Two-dimensional convolutions for training, over channels-last arrays: x (N, H, W, C), weights (K, R, S, C), y (N, P, Q, K).
//
// All three directions are sums of products (`indirect_gemm.h`). The weights come and go in the order the optimizer keeps them in, and in single precision:
// nothing has to be reordered, or cast, between steps. The gradient of few weights takes `backward_few_weights`, which uses each input three times.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <omp.h>

#include "conv/indirect_gemm.h"
#include "runtime/parameters.h"

namespace {

constexpr int64_t kLongest = 512;      // rows that the gradient of the weights sums up at a time
constexpr int64_t kMostFilters = 512;  // whose gradients are summed up together
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
void forward(const Data* x, const float* weight, const float* bias, Data* y, const ConvParams& sizes, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  const ConvParams z = in_one_line(sizes);
  const AsCells<T, Data> source(x, z.n * z.h * z.w * z.c, threads);
  Gather<T, Data>(source.data, {z.n, z.h, z.w, z.c / each}, z.c / each, y, {z.n, z.p, z.q, z.k},
                  forward_axis(z.p, z.stride_h, z.r, z.h, z.pad_h, z.dilate_h), forward_axis(z.q, z.stride_w, z.s, z.w, z.pad_w, z.dilate_w), z.r, z.s,
                  bias, {z.k, z.k})
      .run([=](float* to, int64_t tap, int64_t c, int64_t depth, int64_t column, int64_t width) {
        const float* from = weight + column * filter_size(z) + tap * z.c + c * each;
        transpose(
            width, depth * each, [=](int64_t j, int64_t k) { return load(from + j * filter_size(z) + k); },
            [=](vec(&rows)[kLanes], int64_t j, int64_t k) {
              const int count = Cells<T>::rounded(rows);
              for (int i = 0; i < count; ++i) store(to + (k / each + i) * width + j, rows[i]);
            });
      },
           threads);
}

template <typename T, typename Data>
void backward_data(const Data* dy, const float* weight, Data* dx, const ConvParams& sizes, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
  const ConvParams z = in_one_line(sizes);
  const AsCells<T, Data> source(dy, z.n * z.p * z.q * z.k, threads);
  Gather<T, Data>(source.data, {z.n, z.p, z.q, z.k / each}, z.k / each, dx, {z.n, z.h, z.w, z.c},
                  backward_axis(z.h, z.p, z.r, z.stride_h, z.pad_h, z.dilate_h), backward_axis(z.w, z.q, z.s, z.stride_w, z.pad_w, z.dilate_w), z.r,
                  z.s, nullptr, {z.c, z.c})
      .run([=](float* to, int64_t tap, int64_t k, int64_t depth, int64_t column, int64_t width) {
        for (int64_t i = 0; i < depth; ++i) {
          const float* from = weight + (k + i) * each * filter_size(z) + tap * z.c + column;
          for (int64_t j = 0; j < width; j += kLanes) store(to + i * width + j, Cells<T>::rounded(from + j, from + filter_size(z) + j));
        }
      },
           threads);
}

#if defined(__AVX512F__)
// The gradient of few weights, three taps wide: each thread adds up for its own lines of outputs, and reads them where they are. A result of 8 filters
// and 16 channels for three taps stays in registers along a line. For more weights than fit the L1 cache `backward_weight` is as fast.
bool few_weights(const ConvParams& z) { return z.s == 3 && z.stride_w == 1 && z.dilate_w == 1 && z.k * z.c <= 32 * 32; }

void backward_few_weights(const float* dy, const float* x, float* dweight, float* dbias, const ConvParams& z, int threads) {
  constexpr int kFilters = 8;
  const int64_t filter = filter_size(z), weights = z.k * filter, lines = z.n * z.p;
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
void backward_weight(const Data* dy, const Data* x, float* dweight, float* dbias, const ConvParams& z, int threads) {
  constexpr int64_t each = Cells<T>::kEach;
#if defined(__AVX512F__)
  if constexpr (std::is_same<Data, float>::value)
    if (few_weights(z)) return backward_few_weights(dy, x, dweight, dbias, z, threads);
#endif
  const Panels panels(z.c);
  const int64_t filter = filter_size(z), weights = z.k * filter;
  // As many as there will be: inside of another parallel region, or at a limit, fewer come than were asked for.
#pragma omp parallel num_threads(threads)
#pragma omp master
  threads = omp_get_num_threads();
  int across = 1;  // threads that share the filters
  for (int t = 1; t <= threads; ++t)
    if (threads % t == 0 && z.k / t >= 48) across = t;
  const int along = threads / across;  // threads that share the rows
  // Taps in the padding are skipped, where enough rows share the same taps.
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
    // Each thread has whole square blocks of filters, for their transposition, and enough of them for long rows.
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

#define REMEX_CONVOLUTION(suffix, T, Data)                                                                                                           \
  void forward_##suffix(const Data* x, const float* weight, const float* bias, Data* y, const ConvParams* sizes, int threads) {                      \
    forward<T>(x, weight, bias, y, *sizes, threads);                                                                                                 \
  }                                                                                                                                                  \
  void backward_data_##suffix(const Data* dy, const float* weight, Data* dx, const ConvParams* sizes, int threads) {                                 \
    backward_data<T>(dy, weight, dx, *sizes, threads);                                                                                               \
  }                                                                                                                                                  \
  void backward_weight_##suffix(const Data* dy, const Data* x, float* dweight, float* dbias, const ConvParams* sizes, int threads) {                 \
    backward_weight<T>(dy, x, dweight, dbias, *sizes, threads);                                                                                      \
  }

REMEX_CONVOLUTION(float32, float, float)
#if defined(__AVX512BF16__)
REMEX_CONVOLUTION(bfloat16, bfloat16, bfloat16)
REMEX_CONVOLUTION(widened_bfloat16, float, bfloat16)  // float32's arithmetic on what is stored in bfloat16
#endif
}
