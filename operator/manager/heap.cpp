#include "operator/manager/heap.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace coxswain {

#ifdef __GLIBC__

namespace {

constexpr auto kPeriod = std::chrono::seconds(1);
constexpr size_t kWorthwhileBytes = 2 << 20;

void trim_from_time_to_time(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  size_t left_free = 0;  // what is free still counts as free once it has been given back
  while (!never.wait_for(lock, stop, kPeriod, [] { return false; }) && !stop.stop_requested()) {
    const size_t free = mallinfo2().fordblks;
    left_free = std::min(left_free, free);
    if (free < left_free + kWorthwhileBytes) continue;
    malloc_trim(0);
    left_free = mallinfo2().fordblks;
  }
}

}  // namespace

void share_memory_between_threads() {
  mallopt(M_ARENA_MAX, 2);
}

std::jthread give_back_free_memory() {
  return std::jthread(trim_from_time_to_time);
}

#else

void share_memory_between_threads() {}

std::jthread give_back_free_memory() {
  return {};
}

#endif

}  // namespace coxswain
