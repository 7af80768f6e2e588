// When each step of torch's backward passes begins and ends, for the profiler: torch announces them, and a call of Python for each
// would take longer than many of them.
#include <ATen/record_function.h>
#include <pthread.h>
#include <time.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace {

struct Step {
  int64_t sequence, forward, thread, start, end;  // numbers of the recorded call, and of torch's thread that made it; ns of the steady clock
};

constexpr size_t kThreads = 256;
constexpr size_t kMost = 1 << 20;  // steps that wait to be taken; what comes then is lost, and counted

std::mutex lock;
std::vector<Step> steps;
std::vector<std::pair<int64_t, int64_t>> natives_;  // the system's number and pthread's of each thread that has run a step
int64_t lost = 0;
at::CallbackHandle handle = 0;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

struct Begun final : at::ObserverContext {
  int64_t at = now();
};

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction&) { return std::make_unique<Begun>(); }

void leave(const at::RecordFunction& step, at::ObserverContext* begun) {
  int64_t end = now();
  std::lock_guard<std::mutex> hold(lock);
#ifdef __linux__
  static thread_local bool known = false;
  if (!known) {
    known = true;
    if (natives_.size() >= kThreads) natives_.erase(natives_.begin());
    natives_.emplace_back(int64_t(syscall(SYS_gettid)), int64_t(pthread_self()));
  }
#endif
  if (steps.size() >= kMost) {
    ++lost;
    return;
  }
  steps.push_back({step.seqNr(), int64_t(step.forwardThreadId()), int64_t(pthread_self()), static_cast<Begun*>(begun)->at, end});
}

}  // namespace

extern "C" {

// Starts (1) or ends (0) the watch; to be called by one thread at a time.
void watch(int64_t on) {
  if (on && !handle) {
    handle = at::addGlobalCallback(at::RecordFunctionCallback(enter, leave).scopes({at::RecordScope::BACKWARD_FUNCTION}));
  } else if (!on && handle) {
    at::removeCallback(handle);
    handle = 0;
  }
}

// Torch's number of the calling thread, as steps have it.
int64_t thread() { return int64_t(at::RecordFunction::currentThreadId()); }

// Moves up to `most` steps to `out`, five numbers each, and returns their number.
int64_t take(int64_t* out, int64_t most) {
  std::lock_guard<std::mutex> hold(lock);
  size_t count = std::min<size_t>(steps.size(), most);
  for (size_t i = 0; i < count; ++i) {
    const Step& s = steps[i];
    for (int64_t value : {s.sequence, s.forward, s.thread, s.start, s.end}) *out++ = value;
  }
  steps.erase(steps.begin(), steps.begin() + count);
  return int64_t(count);
}

// Writes the last threads, at most `most`, that have run a step, two numbers each (the system's and pthread's); returns their number.
int64_t natives(int64_t* out, int64_t most) {
  std::lock_guard<std::mutex> hold(lock);
  size_t count = std::min<size_t>(natives_.size(), most);
  for (size_t i = natives_.size() - count; i < natives_.size(); ++i) {
    *out++ = natives_[i].first;
    *out++ = natives_[i].second;
  }
  return int64_t(count);
}

// Returns the number of steps in the queue.
int64_t waiting() {
  std::lock_guard<std::mutex> hold(lock);
  return int64_t(steps.size());
}

// Returns the number of steps lost since the last call.
int64_t missed() {
  std::lock_guard<std::mutex> hold(lock);
  return std::exchange(lost, 0);
}

}
