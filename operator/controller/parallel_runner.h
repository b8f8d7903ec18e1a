// Threads that are kept for work that is done several pieces at a time: starting one for each piece costs
// more than many a piece.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace coxswain {

class ParallelRunner {
 public:
  // Threads that help, from now until destruction; before, callers do all their work themselves.
  void start(int threads);

  // work(0) … work(count - 1), each once, by the caller and by the threads that are free; returns when all
  // are done. `work` must not throw. May be called from several threads at a time, but not before start() has
  // returned where that is called.
  void run(size_t count, const std::function<void(size_t)>& work);

 private:
  struct Job {
    const std::function<void(size_t)>& work;
    size_t count;
    size_t next = 0;  // the first piece that nobody has begun
    size_t left;      // pieces that are not done
    std::condition_variable done{};
  };

  void help(const std::stop_token& stop);
  void do_next(Job& job, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job*> jobs_;  // those with pieces that nobody has begun
  std::vector<std::jthread> threads_;
};

}  // namespace coxswain
