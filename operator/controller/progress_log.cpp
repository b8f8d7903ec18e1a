#include "operator/controller/progress_log.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "operator/logging/job_log.h"
#include "operator/reconcile/hang.h"

namespace coxswain {

namespace {

// Of one job: who has not been asked by then counts as silent.
constexpr auto kAskLimit = std::chrono::seconds(5);

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
  const auto end = std::chrono::steady_clock::now() + kAskLimit;
  const auto work = [&] {
    for (size_t i = next++; i < asked.size() && std::chrono::steady_clock::now() < end; i = next++) {
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

TimePoint ProgressLog::due(int64_t attempt, Duration interval) const {
  std::lock_guard lock(mutex_);
  return told_.attempt == attempt ? told_.asked + interval : TimePoint();
}

bool ProgressLog::ask(ProgressReader& reader, int parallel, const TrainingJob& job, const Objects& pods,
                      TimePoint now) {
  std::unique_lock lock(mutex_);
  if (told_.attempt != job.status.attempt) {
    told_ = Told();
    told_.attempt = job.status.attempt;
  }
  const bool everyone = is_everyone_asked(job, told_.moved, now);
  std::vector<Asked> asked = to_be_asked(job, pods, everyone);
  if (asked.empty()) return false;
  told_.asked = now;
  lock.unlock();
  read_all(reader, parallel, job, asked);
  lock.lock();
  told_.agents.clear();
  for (const Asked& one : asked) {
    take(job, one.pod, one.answer, now, told_);
    if (!everyone) continue;
    told_.agents.push_back({one.pod.name, one.pod.node_rank,
                            one.answer ? parse_positions(*one.answer, told_.attempt) : std::nullopt});
  }
  return true;
}

void ProgressLog::take(const TrainingJob& job, const ObservedPod& pod, const std::optional<Json>& answer,
                       TimePoint now, Told& told) {
  if (!answer || !parse_positions(*answer, told.attempt)) return;
  if (!told.heard) told.heard = now;
  const auto before = told.last.find(pod.uid);
  const auto progress = pod.node_rank == 0 ? parse_progress(*answer, told.attempt) : std::nullopt;
  if (before != told.last.end()) {
    if (before->second != *answer) told.moved = now;
  } else if (pod.node_rank == 0) {
    // The first that is heard of it: news, unless the status knows it already.
    const bool known = progress && job.status.training && job.status.training->step == progress->step;
    if (!known) told.moved = now;
  }
  told.last[pod.uid] = *answer;
  if (progress) told.progress = progress;
}

void ProgressLog::tell(int64_t attempt, Observed& observed) const {
  std::lock_guard lock(mutex_);
  if (attempt != told_.attempt) return;
  observed.progress = told_.progress;
  observed.moved = told_.moved;
  observed.heard = told_.heard;
  observed.agents = told_.agents;
}

}  // namespace coxswain
