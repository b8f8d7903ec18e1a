// What the workers of this pod last said of themselves.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coxswain {

// Thread-safe: the agent's loop writes, the status server reads.
class ProgressBoard {
 public:
  struct Pod {
    std::string job;
    int attempt = 0;
    int node_rank = 0;
  };

  ProgressBoard(Pod pod, std::vector<int> ranks);

  // One line of the contract's progress protocol. A line that isn't one is ignored. now: unix seconds.
  void update(int rank, std::string_view line, double now);

  // The message of the worker's error event, if it sent one.
  std::optional<std::string> error_of(int rank) const;

  // GET /progress and GET /metrics (Prometheus text format).
  std::string progress_json() const;
  std::string metrics_text() const;

 private:
  struct Worker {
    std::string phase = "start";
    std::optional<int64_t> step;
    std::optional<int64_t> total_steps;
    // epoch, loss, …: absent until the first step; NaN where the worker said null.
    std::map<std::string, double> numbers;
    std::optional<std::string> error;
    double updated_at = 0;
  };

  Pod pod_;
  mutable std::mutex mutex_;
  std::map<int, Worker> workers_;  // by rank
  std::optional<int64_t> last_checkpoint_step_;
};

}  // namespace coxswain
