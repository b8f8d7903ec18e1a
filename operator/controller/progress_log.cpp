#include "operator/controller/progress_log.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "operator/logging/job_log.h"
#include "operator/reconcile/hang.h"

namespace coxswain {

namespace {

struct Asked {
  std::shared_ptr<const Json> object;
  ObservedPod pod;
  std::optional<Json> answer;
};

std::vector<Asked> to_be_asked(const TrainingJob& job, const Objects& pods, bool everyone) {
  std::vector<Asked> asked;
  for (const auto& object : pods) {
    ObservedPod pod = observe_pod(*object);
    const bool runs = pod.attempt == job.status.attempt && pod.phase == PodPhase::kRunning;
    if (runs && (everyone || pod.node_rank == 0)) asked.push_back({object, std::move(pod), std::nullopt});
  }
  std::ranges::sort(asked, {}, [](const Asked& one) { return one.pod.node_rank; });
  return asked;
}

void read_all(ProgressReader& reader, int parallel, const TrainingJob& job, std::vector<Asked>& asked) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < asked.size(); i = next++) {
      try {
        asked[i].answer = reader.read(*asked[i].object);
      } catch (const std::exception& error) {
        warn_job({job.metadata.namespace_name, job.metadata.name, job.status.attempt},
                 "the agent of pod {} could not be asked: {}", asked[i].pod.name, error.what());
      }
    }
  };
  const size_t wanted = std::min(asked.size(), static_cast<size_t>(std::max(1, parallel)));
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
}

}  // namespace

bool ProgressLog::ask(ProgressReader& reader, int parallel, const TrainingJob& job, const Objects& pods,
                      TimePoint now, Duration interval) {
  if (attempt_ != job.status.attempt) {
    *this = ProgressLog();
    attempt_ = job.status.attempt;
  } else if (now < asked_ + interval) {
    return false;
  }
  const bool everyone = is_everyone_asked(job, moved_, now);
  std::vector<Asked> asked = to_be_asked(job, pods, everyone);
  if (asked.empty()) return false;
  asked_ = now;
  read_all(reader, parallel, job, asked);
  agents_.clear();
  for (const Asked& one : asked) {
    take(job, one.pod, one.answer, now);
    if (!everyone) continue;
    agents_.push_back({one.pod.name, one.pod.node_rank,
                       one.answer ? parse_positions(*one.answer, attempt_) : std::nullopt});
  }
  return true;
}

void ProgressLog::take(const TrainingJob& job, const ObservedPod& pod, const std::optional<Json>& answer,
                       TimePoint now) {
  if (!answer || !parse_positions(*answer, attempt_)) return;
  const auto before = last_.find(pod.uid);
  const auto progress = pod.node_rank == 0 ? parse_progress(*answer, attempt_) : std::nullopt;
  if (before != last_.end()) {
    if (before->second != *answer) moved_ = now;
  } else if (pod.node_rank == 0) {
    // The first that is heard of it: news, unless the status knows it already.
    const bool known = progress && job.status.training && job.status.training->step == progress->step;
    if (!known) moved_ = now;
  }
  last_[pod.uid] = *answer;
  if (progress) progress_ = progress;
}

void ProgressLog::tell(int64_t attempt, Observed& observed) const {
  if (attempt != attempt_) return;
  observed.progress = progress_;
  observed.moved = moved_;
  observed.agents = agents_;
}

}  // namespace coxswain
