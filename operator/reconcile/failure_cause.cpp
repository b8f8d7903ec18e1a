#include "operator/reconcile/failure_cause.h"

#include <algorithm>
#include <tuple>

#include "contract/contract.h"
#include "operator/reconcile/node_loss.h"
#include "operator/reconcile/render.h"
#include "operator/reconcile/shortened.h"

namespace coxswain {
namespace {

using contract::ExitCode;

// Why one pod ended, and how far that is from being a cause.
struct Verdict {
  std::string cause;
  Charge charge = Charge::kCounted;
  int remoteness = 0;  // 0: a cause; 1: it was stopped; 2: it lost a peer
};

struct Candidate {
  const ObservedPod* pod;
  std::optional<TimePoint> ended;  // absent: it cannot be told
  TimePoint at;                    // the same, or now
  Verdict verdict;
};

std::optional<std::string> disruption_of(const ObservedPod& pod) {
  const std::string& target = pod.disruption;
  const std::string& reason = pod.reason;
  if (target == "PreemptionByScheduler" || reason == "Preempting" || reason == "Preempted")
    return kCausePreempted;
  if (target == "DeletionByTaintManager" || target == "DeletionByPodGC" || reason == "NodeLost")
    return kCauseNodeLost;
  if (reason == "Terminated" || reason == "NodeShutdown" || reason == "Shutdown") return kCauseNodeShutdown;
  if (reason == "Evicted" || !target.empty()) return kCauseEvicted;
  if (reason == "NodeAffinity" || reason == "UnexpectedAdmissionError" || reason.rfind("OutOf", 0) == 0) {
    return kCauseNodeRejected;
  }
  // What a kubelet says of containers that it finds gone after its node came back.
  if (pod.termination && pod.termination->exit_code == 255 && pod.termination->reason == "Unknown") {
    return kCauseNodeLost;
  }
  return std::nullopt;
}

// Exit codes mean what contract.h says only where the program is our runtime.
Verdict verdict_of_runtime(int64_t exit_code) {
  switch (static_cast<ExitCode>(exit_code)) {
    case ExitCode::kBadInput:
      return {kCauseBadInput, Charge::kFinal};
    case ExitCode::kInternal:
      return {kCauseInternal};
    case ExitCode::kStorage:
      return {kCauseStorage};
    case ExitCode::kStopped:
      return {kCauseStopped, Charge::kDisruption, 1};
    case ExitCode::kLostPeer:
      return {kCauseLostPeer, Charge::kCounted, 2};
    case ExitCode::kRendezvousTimeout:
      return {kCauseRendezvousTimeout};
    case ExitCode::kPortInUse:
      return {kCausePortInUse};
    case ExitCode::kDone:
      break;
  }
  return {kCauseError};
}

Verdict verdict_of(const ObservedPod& pod, bool with_config) {
  if (auto disruption = disruption_of(pod)) return {*disruption, Charge::kDisruption};
  if (is_on_unready_node(pod)) return {kCauseNodeLost, Charge::kDisruption};
  if (pod.termination && pod.termination->reason == "OOMKilled") return {kCauseOutOfMemory};
  if (!has_failed(pod)) return {kCausePodDeleted, Charge::kDisruption};
  if (pod.failed_init && !pod.termination) return {kCauseInitContainer};
  if (pod.termination && with_config) return verdict_of_runtime(pod.termination->exit_code);
  return {kCauseError};
}

// A pod that is being deleted counts from when that began.
std::optional<TimePoint> moment_of(const ObservedPod& pod, const RunPolicy& policy, TimePoint now) {
  if (pod.termination && pod.termination->finished) return *pod.termination->finished;
  if (pod.deletion_time) {
    const int64_t grace = pod.deletion_grace_seconds.value_or(policy.termination_grace_period_seconds);
    return std::min(now, *pod.deletion_time - std::chrono::seconds(grace));
  }
  return std::nullopt;
}

Candidate on_lost_node(const ObservedPod& pod, TimePoint now) {
  return {&pod, std::nullopt, pod.node_seen->since.value_or(now), {kCauseNodeLost, Charge::kDisruption}};
}

std::vector<Candidate> candidates(const TrainingJob& job, const Gang& gang, TimePoint now) {
  std::vector<Candidate> found;
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod == nullptr || has_succeeded(*pod)) continue;
    if (has_failed(*pod) || pod->terminating()) {
      const auto ended = moment_of(*pod, job.spec.run_policy, now);
      found.push_back({pod, ended, ended.value_or(now), verdict_of(*pod, job.spec.has_config())});
    } else if (const auto lost = node_lost_at(*pod, job.spec.run_policy); lost && *lost <= now) {
      found.push_back(on_lost_node(*pod, now));
    }
  }
  return found;
}

bool is_collateral(const Candidate& candidate) {
  return candidate.verdict.remoteness == 2;
}

// Peers that lost a rank end within seconds; that its node is gone is known a minute later. A rank that has
// told nothing is what they lost, where its node is not Ready – its time need not be over for that.
void add_suspects(const Gang& gang, TimePoint now, std::vector<Candidate>& found) {
  if (found.empty() || !std::all_of(found.begin(), found.end(), is_collateral)) return;
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod != nullptr && is_on_unready_node(*pod) && !pod->terminating()) {
      found.push_back(on_lost_node(*pod, now));
    }
  }
}

// Whether some rank has told nothing yet whose node may yet turn out to be gone.
bool has_silent_rank(const Gang& gang) {
  return std::any_of(gang.by_rank.begin(), gang.by_rank.end(), [](const ObservedPod* pod) {
    return pod != nullptr && pod->node_seen && !has_failed(*pod) && !has_succeeded(*pod);
  });
}

Duration settle_window(const Candidate& cause, const Gang& gang, const Settings& settings) {
  if (cause.verdict.remoteness == 0) return settings.settle;
  return is_collateral(cause) && has_silent_rank(gang) ? settings.settle_silent : settings.settle_collateral;
}

// The cause first. Kubernetes keeps whole seconds: of two in the same one, what came from outside explains
// the other.
bool explains(const Candidate& a, const Candidate& b) {
  auto key = [](const Candidate& candidate) {
    return std::tuple(candidate.verdict.remoteness, candidate.at,
                      candidate.verdict.charge != Charge::kDisruption, candidate.pod->node_rank);
  };
  return key(a) < key(b);
}

std::optional<TimePoint> first_end(const std::vector<Candidate>& found) {
  std::optional<TimePoint> first;
  for (const Candidate& candidate : found) {
    if (candidate.ended && (!first || *candidate.ended < *first)) first = candidate.ended;
  }
  return first;
}

std::string sentence(const Candidate& candidate) {
  const ObservedPod& pod = *candidate.pod;
  if (candidate.verdict.cause == kCauseNodeLost && is_on_unready_node(pod)) return unready_words(pod);
  std::string text = "Pod " + pod.name + " ";
  std::string detail = pod.message;
  if (candidate.verdict.cause == kCauseInitContainer) {
    text = "Init container " + pod.failed_init->container + " of pod " + pod.name + " ended with exit code " +
           std::to_string(pod.failed_init->exit_code);
    if (!pod.failed_init->message.empty()) detail = pod.failed_init->message;
  } else if (pod.termination) {
    text += "ended with exit code " + std::to_string(pod.termination->exit_code);
    if (!pod.termination->message.empty()) detail = pod.termination->message;
  } else {
    text += has_failed(pod) ? "failed" : "is being deleted";
  }
  text += " (" + candidate.verdict.cause + ")";
  return text + (detail.empty() ? "." : ": " + shortened(detail, 800));
}

GangFailure failure_from(const Candidate& cause) {
  GangFailure failure{cause.verdict.cause, cause.verdict.charge, cause.pod->name, cause.pod->node_rank, {},
                      sentence(cause)};
  if (cause.pod->termination) failure.exit_code = cause.pod->termination->exit_code;
  if (cause.verdict.cause == kCauseInitContainer) failure.exit_code = cause.pod->failed_init->exit_code;
  return failure;
}

// The last status told of every pod: one that is missing now was there.
std::optional<GangFailure> lost_pod(const TrainingJob& job, const Gang& gang) {
  const NodesStatus& seen = job.status.nodes;
  if (seen.active + seen.succeeded + seen.failed < seen.desired || seen.desired != job.spec.nodes)
    return std::nullopt;
  for (size_t rank = 0; rank < gang.by_rank.size(); ++rank) {
    if (gang.by_rank[rank] != nullptr) continue;
    const auto node_rank = static_cast<int64_t>(rank);
    const std::string name = pod_name(job, node_rank);
    return GangFailure{kCausePodLost,
                       Charge::kDisruption,
                       name,
                       node_rank,
                       {},
                       "Pod " + name + " vanished (" + kCausePodLost + ")."};
  }
  return std::nullopt;
}

std::string version_of(const std::string& fingerprint) {
  return fingerprint.substr(0, fingerprint.find('-'));
}

// Only fingerprints of one make are compared: a new release of the operator restarts nobody.
std::optional<GangFailure> changed_spec(const TrainingJob& job, const Gang& gang) {
  const std::string wanted = spec_fingerprint(job.spec);
  std::vector<const ObservedPod*> pods = gang.by_rank;
  pods.insert(pods.end(), gang.surplus.begin(), gang.surplus.end());
  for (const ObservedPod* pod : pods) {
    if (pod == nullptr || pod->spec_fingerprint.empty() || pod->spec_fingerprint == wanted) continue;
    if (version_of(pod->spec_fingerprint) != version_of(wanted)) continue;
    return GangFailure{kCauseSpecChanged,
                       Charge::kNone,
                       pod->name,
                       pod->node_rank,
                       {},
                       "Pod " + pod->name + " was made from another spec (" + kCauseSpecChanged + ")."};
  }
  return std::nullopt;
}

}  // namespace

GangVerdict judge(const TrainingJob& job, const Gang& gang, TimePoint now, const Settings& settings) {
  std::vector<Candidate> found = candidates(job, gang, now);
  add_suspects(gang, now, found);
  if (found.empty()) {
    if (auto lost = lost_pod(job, gang)) return *lost;
    if (auto changed = changed_spec(job, gang)) return *changed;
    return NoFailure();
  }
  const Candidate& cause = *std::min_element(found.begin(), found.end(), explains);
  const Duration window = settle_window(cause, gang, settings);
  const auto first = first_end(found);
  // A node's clock may be ahead of ours: then how long ago it was cannot be told, and nothing is waited for.
  if (first && *first <= now && now < *first + window) return Settling{*first + window};
  return failure_from(cause);
}

}  // namespace coxswain
