#include "operator/controller/parallel_runner.h"

#include <algorithm>

namespace coxswain {

void ParallelRunner::start(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { help(stop); });
  }
}

void ParallelRunner::run(size_t count, const std::function<void(size_t)>& work) {
  if (count == 0) return;
  Job job{.work = work, .count = count, .left = count};
  std::unique_lock lock(mutex_);
  jobs_.push_back(&job);
  for (size_t i = 1; i < std::min(count, threads_.size() + 1); ++i) changed_.notify_one();
  while (job.next < job.count) do_next(job, lock);
  job.done.wait(lock, [&] { return job.left == 0; });
}

void ParallelRunner::help(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !jobs_.empty(); })) {
    Job& job = *jobs_.front();
    jobs_.pop_front();
    jobs_.push_back(&job);  // a piece of each in turn
    do_next(job, lock);
  }
}

void ParallelRunner::do_next(Job& job, std::unique_lock<std::mutex>& lock) {
  const size_t piece = job.next++;
  if (job.next == job.count) std::erase(jobs_, &job);
  lock.unlock();
  job.work(piece);
  lock.lock();
  // Under the lock: the caller's Job is gone as soon as it can see this.
  if (--job.left == 0) job.done.notify_all();
}

}  // namespace coxswain
