// Overlaps of boxes [left, top, right, bottom], and the greedy choice among those that overlap.
#include <cstdint>
#include <vector>

#include <omp.h>

// A fused multiplication and addition rounds once where NumPy rounds twice: a box on the threshold would be judged otherwise than without this.
#pragma GCC optimize("fp-contract=off")

namespace {

// These keep a NaN, as NumPy's do: a box with one overlaps nothing.
inline float larger(float a, float b) { return (b > a) | (b != b) ? b : a; }
inline float smaller(float a, float b) { return (b < a) | (b != b) ? b : a; }

struct Boxes {
  std::vector<float> left, top, right, bottom, area;

  Boxes(const float* corners, int64_t count, float border) : left(count), top(count), right(count), bottom(count), area(count) {
    for (int64_t i = 0; i < count; ++i) {
      left[i] = corners[4 * i], top[i] = corners[4 * i + 1], right[i] = corners[4 * i + 2], bottom[i] = corners[4 * i + 3];
      area[i] = larger(right[i] - left[i] + border, 0) * larger(bottom[i] - top[i] + border, 0);
    }
  }
};

}  // namespace

extern "C" {

// Marks the remaining boxes (1) after each one, best first, has removed (0) the later ones that overlap it too much. `classes` may be null; `limit`
// is the most remaining boxes.
void suppress(const float* corners, const int64_t* classes, uint8_t* stays, int64_t count, float threshold, float border, int64_t limit,
              int inclusive) {
  const Boxes boxes(corners, count, border);
  const float *left = boxes.left.data(), *top = boxes.top.data(), *right = boxes.right.data(), *bottom = boxes.bottom.data(),
              *area = boxes.area.data();
  // As wide as a float, for these are worked on together.
  std::vector<int32_t> alive(count, 1);
  int32_t* living = alive.data();
  const auto too_much = [=](int64_t i, int64_t j) {
    const float width = larger(smaller(right[i], right[j]) - larger(left[i], left[j]) + border, 0);
    const float height = larger(smaller(bottom[i], bottom[j]) - larger(top[i], top[j]) + border, 0);
    const float shared = width * height;
    const float overlap = shared / (area[i] + area[j] - shared);
    return (overlap > threshold) | (bool(inclusive) & (overlap == threshold));
  };
  for (int64_t i = 0, found = 0; i < count; ++i) {
    stays[i] = living[i] && found < limit;
    if (!stays[i]) continue;
    ++found;
    if (classes) {
      for (int64_t j = i + 1; j < count; ++j)
        if (living[j] && classes[j] == classes[i] && too_much(i, j)) living[j] = 0;
    } else {
#pragma omp simd
      for (int64_t j = i + 1; j < count; ++j) living[j] &= !too_much(i, j);
    }
  }
}

// Intersection over union of each of the first boxes with each of the second, 0 where they share nothing.
void overlaps(const float* first, const float* second, float* out, int64_t rows, int64_t columns, int threads) {
  const Boxes a(first, rows, 0), b(second, columns, 0);
  const float *left = b.left.data(), *top = b.top.data(), *right = b.right.data(), *bottom = b.bottom.data(), *area = b.area.data();
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < rows; ++i) {
    const float l = a.left[i], t = a.top[i], r = a.right[i], d = a.bottom[i], size = a.area[i];
    float* __restrict line = out + i * columns;
#pragma omp simd simdlen(8)  // boxes of an image are few: vectors of 16 would leave most of them to the scalar rest
    for (int64_t j = 0; j < columns; ++j) {
      const float width = larger(smaller(r, right[j]) - larger(l, left[j]), 0);
      const float height = larger(smaller(d, bottom[j]) - larger(t, top[j]), 0);
      const float shared = width * height;
      line[j] = shared > 0 ? shared / (size + area[j] - shared) : 0;
    }
  }
}
}
