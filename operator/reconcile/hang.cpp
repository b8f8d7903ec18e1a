#include "operator/reconcile/hang.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "contract/contract.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/shortened.h"

namespace coxswain {
namespace {

constexpr size_t kMaxPositions = 700;  // characters: an event holds 1024 with the rest of the sentence

// The last movement that is known.
std::optional<TimePoint> still_since(const TrainingJob& job, const std::optional<TimePoint>& moved) {
  const auto& seconds = job.spec.run_policy.hang_timeout_seconds;
  const Condition* running = find_condition(job.status, kConditionRunning);
  if (!seconds || !job.spec.has_config() || running == nullptr || !running->status) return std::nullopt;
  TimePoint since = running->last_transition_time;
  if (job.status.training && job.status.training->last_progress_time) {
    since = std::max(since, *job.status.training->last_progress_time);
  }
  return std::max(since, moved.value_or(since));
}

Duration timeout(const TrainingJob& job) {
  return std::chrono::seconds(*job.spec.run_policy.hang_timeout_seconds);
}

struct Place {
  std::string words;
  std::optional<int64_t> step;
  std::vector<int64_t> ranks;
  const AgentAnswer* first = nullptr;
};

// Ranks at the same place together; the fewest first, of as many those that are furthest behind.
std::vector<Place> places(const std::vector<AgentAnswer>& agents) {
  std::map<std::string, Place> by_words;
  for (const AgentAnswer& agent : agents) {
    if (!agent.ranks) continue;
    for (const RankPosition& rank : *agent.ranks) {
      const std::string words =
          rank.phase + (rank.step ? ", step " + std::to_string(*rank.step) : std::string(", no step yet"));
      Place& place = by_words.try_emplace(words, Place{words, rank.step, {}, &agent}).first->second;
      place.ranks.push_back(rank.rank);
    }
  }
  std::vector<Place> sorted;
  for (auto& [words, place] : by_words) {
    std::sort(place.ranks.begin(), place.ranks.end());
    sorted.push_back(std::move(place));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Place& a, const Place& b) {
    return std::tuple(a.ranks.size(), a.step.value_or(-1)) < std::tuple(b.ranks.size(), b.step.value_or(-1));
  });
  return sorted;
}

// "0-2,4"
std::string in_ranges(const std::vector<int64_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (last > i) text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

bool is_anybody_there(const Observed& observed) {
  return std::any_of(observed.agents.begin(), observed.agents.end(),
                     [](const AgentAnswer& agent) { return agent.ranks.has_value(); });
}

GangFailure hang(const TrainingJob& job, const Observed& observed) {
  GangFailure failure;
  failure.cause = kCauseHang;
  failure.charge = Charge::kHang;
  failure.message = "No rank has moved for hangTimeoutSeconds (" +
                    std::to_string(*job.spec.run_policy.hang_timeout_seconds) +
                    " s): " + positions_in_words(observed.agents) + ".";
  const std::vector<Place> sorted = places(observed.agents);
  // Where one place is all there is, nobody stands out.
  if (sorted.size() > 1) {
    failure.pod = sorted.front().first->pod;
    failure.node_rank = sorted.front().first->node_rank;
  }
  return failure;
}

}  // namespace

bool is_everyone_asked(const TrainingJob& job, const std::optional<TimePoint>& moved, TimePoint now) {
  const auto since = still_since(job, moved);
  return since && now >= *since + timeout(job) / 2;
}

GangVerdict judge_hang(const TrainingJob& job, const Gang& gang, const Observed& observed, TimePoint now) {
  const auto since = still_since(job, observed.moved);
  if (!since || !all_started(gang)) return NoFailure();
  TimePoint due = *since + timeout(job);
  if (observed.heard) due = std::max(due, *observed.heard + timeout(job) / 2);
  if (now < due) return Settling{due};
  if (!is_anybody_there(observed)) return NoFailure();
  return hang(job, observed);
}

std::optional<Words> unheard(const TrainingJob& job, const Gang& gang, const Observed& observed,
                             TimePoint now) {
  const auto since = still_since(job, observed.moved);
  if (!since || !all_started(gang) || observed.agents.empty()) return std::nullopt;
  if (now < *since + timeout(job) || is_anybody_there(observed)) return std::nullopt;
  return Words{kEventAgentsUnreachable,
               "No agent of the job's pods answers on port " + std::to_string(contract::kAgentPort) +
                   ", so hangTimeoutSeconds (" + std::to_string(*job.spec.run_policy.hang_timeout_seconds) +
                   " s) has no effect. Let the operator reach the pods there (NetworkPolicy)."};
}

std::string positions_in_words(const std::vector<AgentAnswer>& agents) {
  std::string text;
  auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  for (const Place& place : places(agents)) {
    add((place.ranks.size() == 1 ? "rank " : "ranks ") + in_ranges(place.ranks) + ": " + place.words);
  }
  for (const AgentAnswer& agent : agents) {
    if (!agent.ranks) add("pod " + agent.pod + ": no answer");
  }
  return shortened(text, kMaxPositions);
}

}  // namespace coxswain
