// A separate best-fit heap for large tensors on the CPU; free memory stays mapped until `trim`.
//
// malloc's heap mixes them with small objects, and memalign, which torch calls, leaves a fragment at both ends of each tensor. Small objects fill the
// fragments, so that a tensor of the same size no longer fits into the hole, and the heap grows from step to step.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

namespace {

constexpr size_t kLeast = 1 << 16;  // smaller tensors stay in malloc's heap
constexpr size_t kStep = 1 << 24;   // growth of the heap at a time
constexpr size_t kHuge = 1 << 26;   // tensors of which passes in a virtual machine take up to a fifth less time on huge pages
constexpr size_t kHugePage = 1 << 21;
constexpr size_t kLine = 64;        // alignment, and the room in front of a tensor for its size

// Bytes of tensors in the heap, and of others while they are counted; the peak of their sum.
std::atomic<int64_t> large{0}, others{0}, most{0};
std::atomic<bool> counting{false};

void add_to(std::atomic<int64_t>& number, int64_t bytes) {
  number += bytes;
  if (!counting.load(std::memory_order_relaxed)) return;
  int64_t now = large + others, before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {}
}

size_t up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

class Heap final : public c10::Allocator {
 public:
  explicit Heap(c10::Allocator* small) : small_(small) {}

  // Address space only, more than could ever be used; false if the system refuses it, or where addresses are limited: others need them.
  bool reserve() {
    struct sysinfo info;
    if (sysinfo(&info) || addresses_are_limited()) return false;
    size_ = up(size_t(info.totalram) * info.mem_unit * 2, kStep);
    // Not accessible, so that it counts as no memory until `grow` asks for some.
    void* found = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return false;
    first_ = top_ = ready_ = static_cast<char*>(found);
    return true;
  }

  c10::DataPtr allocate(size_t n) override {
    char* block = n >= kLeast && n <= size_ ? take(up(n, kLine) + kLine) : nullptr;
    void* data = block ? block + kLine : small_->raw_allocate(n);  // which reports to the profiler itself
    // For smaller tensors, of which many come and go, the memory of scoring doubled: each huge page stays that is used in part.
    if (block && n >= kHuge) {
      char* from = reinterpret_cast<char*>(up(reinterpret_cast<size_t>(block), kHugePage));
      madvise(from, size_t(block + n - from) / kHugePage * kHugePage, MADV_HUGEPAGE);
    }
    if (block) {
      add_to(large, int64_t(*reinterpret_cast<size_t*>(block)));
      c10::profiledCPUMemoryReporter().New(data, n);
    } else if (counting.load(std::memory_order_relaxed) && data) {
      add_to(others, int64_t(malloc_usable_size(data)));
    }
    return {data, data, &give, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &give; }
  void copy_data(void* to, const void* from, size_t n) const override { default_copy_data(to, from, n); }

  // Returns the pages of free blocks to the system, and the number of their bytes to the caller.
  size_t trim() {
    std::lock_guard<std::mutex> hold(lock);
    const size_t page = sysconf(_SC_PAGESIZE);
    size_t given = 0;
    for (auto& [at, size] : by_place_) {
      char* from = reinterpret_cast<char*>(up(reinterpret_cast<size_t>(at), page));
      char* to = reinterpret_cast<char*>(reinterpret_cast<size_t>(at + size) / page * page);
      if (to > from && !madvise(from, to - from, MADV_DONTNEED)) given += to - from;
    }
    return given;
  }

  const char* begin() const { return first_; }
  const char* end() const { return first_ + size_; }

  std::mutex lock;

 private:
  static void give(void* data);

  char* take(size_t size) {
    std::lock_guard<std::mutex> hold(lock);
    auto fit = by_size_.lower_bound({size, nullptr});
    if (fit != by_size_.end()) {
      auto [whole, at] = *fit;
      by_size_.erase(fit);
      by_place_.erase(at);
      if (whole > size) add(at + size, whole - size);
      return mark(at, size);
    }
    // None fits: the top of the heap, with what is free right below it.
    char* at = top_;
    if (!by_place_.empty()) {
      auto last = std::prev(by_place_.end());
      if (last->first + last->second == top_) {
        at = last->first;
        if (size > size_t(first_ + size_ - at) || !grow(at + size)) return nullptr;
        by_size_.erase({last->second, at});
        by_place_.erase(last);
      }
    }
    if (size > size_t(first_ + size_ - at) || !grow(at + size)) return nullptr;
    top_ = at + size;
    return mark(at, size);
  }

  static bool addresses_are_limited() {
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur != RLIM_INFINITY;
  }

  // Makes the heap usable up to `end`; false if the system has no such memory to promise, as malloc would find out, too. A limit on addresses
  // that came since `reserve` would make mprotect forget the one on data (Linux adds the pages to those that it has counted).
  bool grow(char* end) {
    if (end <= ready_) return true;
    if (addresses_are_limited()) return false;
    size_t more = up(end - ready_, kStep);
    if (more > size_t(first_ + size_ - ready_) || mprotect(ready_, more, PROT_READ | PROT_WRITE)) return false;
    ready_ += more;
    return true;
  }

  static char* mark(char* at, size_t size) {
    *reinterpret_cast<size_t*>(at) = size;
    return at;
  }

  void add(char* at, size_t size) {
    by_size_.insert({size, at});
    by_place_[at] = size;
  }

  void put_back(char* at) {
    std::lock_guard<std::mutex> hold(lock);
    size_t size = *reinterpret_cast<size_t*>(at);
    auto after = by_place_.lower_bound(at);
    if (after != by_place_.end() && after->first == at + size) {
      size += after->second;
      by_size_.erase({after->second, after->first});
      after = by_place_.erase(after);
    }
    if (after != by_place_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == at) {
        at = before->first;
        size += before->second;
        by_size_.erase({before->second, at});
        by_place_.erase(before);
      }
    }
    add(at, size);
  }

  c10::Allocator* small_;
  char *first_ = nullptr, *top_ = nullptr, *ready_ = nullptr;  // all of it, what has been taken, and what may be
  size_t size_ = 0;
  std::set<std::pair<size_t, char*>> by_size_;
  std::map<char*, size_t> by_place_;
};

Heap* heap;

void Heap::give(void* data) {
  char* at = static_cast<char*>(data);
  if (at < heap->first_ || at >= heap->first_ + heap->size_) {
    if (counting.load(std::memory_order_relaxed) && data) add_to(others, -int64_t(malloc_usable_size(data)));
    return heap->small_->raw_deallocate(data);
  }
  add_to(large, -int64_t(*reinterpret_cast<size_t*>(at - kLine)));
  c10::profiledCPUMemoryReporter().Delete(data);
  heap->put_back(at - kLine);
}

}  // namespace

extern "C" {

// Makes torch allocate from the heap from now on; returns 1 on success.
int install() {
  if (heap) return 1;
  if (!c10::GetCPUAllocator()->raw_deleter()) return 0;  // a custom allocator, whose memory is not freed by address
  Heap* made = new Heap(c10::GetCPUAllocator());
  if (!made->reserve()) {
    delete made;
    return 0;
  }
  heap = made;
  // A child process must not find the lock held by a thread that it doesn't have.
  pthread_atfork([] { heap->lock.lock(); }, [] { heap->lock.unlock(); }, [] { heap->lock.unlock(); });
  c10::SetCPUAllocator(heap);
  return 1;
}

// Starts (1) to count tensors outside of the heap, too, of which `known` bytes are there already, and the peak; or ends it (0).
void count(int64_t on, int64_t known) {
  others = on ? known : 0;
  most = large + others;
  counting = on != 0;
}

int64_t used() { return large + others; }
int64_t peak() { return most; }

// Returns true if a tensor's memory is in the heap.
int holds(const void* data) {
  const char* at = static_cast<const char*>(data);
  return heap && at >= heap->begin() && at < heap->end();
}

int64_t trim() { return heap ? int64_t(heap->trim()) : 0; }

}
