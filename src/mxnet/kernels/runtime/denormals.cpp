// Switches the flushing of denormal numbers (below 1.2e-38) to zero for the threads that share a product. An operation on a denormal number takes
// over a hundred cycles.
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

#if defined(__x86_64__)
constexpr uint64_t kZero = 0x8040;  // results (FTZ) and operands (DAZ)
uint64_t control() { return _mm_getcsr(); }
void control(uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
constexpr uint64_t kZero = uint64_t{1} << 24;  // both (FZ)
uint64_t control() {
  uint64_t bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void control(uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
constexpr uint64_t kZero = 0;
uint64_t control() { return 0; }
void control(uint64_t) {}
#endif

thread_local int depth = 0;       // of the blocks that this thread is in
thread_local uint64_t before = 0;  // the mode outside of all blocks

}  // namespace

extern "C" {

// The calling thread and its team take them for zero from now on, and again as they did before.
void begin(int threads) {
#pragma omp parallel num_threads(threads)
  {
    if (!depth++) before = control();
    control(control() | kZero);
  }
}

void end(int threads) {
#pragma omp parallel num_threads(threads)
  if (!--depth) control(before);
}

}
