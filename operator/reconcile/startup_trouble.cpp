#include "operator/reconcile/startup_trouble.h"

#include <algorithm>
#include <map>

#include "operator/reconcile/reasons.h"
#include "operator/reconcile/shortened.h"

namespace coxswain {
namespace {

constexpr size_t kMaxWords = 800;  // of the kubelet's or the scheduler's

// The kubelet's and the scheduler's words, sorted; it has several for each state and changes between them.
const char* reason_of(const Waiting& waiting) {
  static const std::map<std::string, const char*> reasons = {
      {"ErrImagePull", kReasonImagePull},
      {"ImagePullBackOff", kReasonImagePull},
      {"ErrImageNeverPull", kReasonImagePull},
      {"InvalidImageName", kReasonImagePull},
      {"ImageInspectError", kReasonImagePull},
      {"RegistryUnavailable", kReasonImagePull},
      {"SignatureValidationFailed", kReasonImagePull},
      {"CreateContainerConfigError", kReasonContainerConfig},
      {"CreateContainerError", kReasonContainerStart},
      {"RunContainerError", kReasonContainerStart},
      {"PreCreateHookError", kReasonContainerStart},
      {"PreStartHookError", kReasonContainerStart},
      {"PostStartHookError", kReasonContainerStart},
      {"CreatePodSandboxError", kReasonSandbox},
      {"ConfigPodSandboxError", kReasonSandbox},
      {"Unschedulable", kReasonUnschedulable},
      {"SchedulerError", kReasonUnschedulable},
      {"SchedulingGated", kReasonSchedulingGated}};
  const auto found = reasons.find(waiting.reason);
  if (found != reasons.end()) return found->second;
  if (waiting.init) return kReasonInitContainer;  // CrashLoopBackOff of a sidecar
  return waiting.reason.c_str();
}

// What no waiting cures comes first.
int severity(const std::string& reason) {
  static constexpr const char* kOrder[] = {kReasonImagePull,      kReasonContainerConfig,
                                           kReasonContainerStart, kReasonInitContainer,
                                           kReasonSandbox,        kReasonUnschedulable};
  const auto* found =
      std::find_if(std::begin(kOrder), std::end(kOrder), [&](const char* known) { return reason == known; });
  return static_cast<int>(found - std::begin(kOrder));
}

std::string what_fails(const ObservedPod& pod, const std::string& reason) {
  const std::string container =
      (pod.waiting->init ? "init container " : "container ") + pod.waiting->container;
  if (reason == kReasonImagePull) return "cannot pull the image of its " + container;
  if (reason == kReasonContainerConfig) return "cannot set up its " + container;
  if (reason == kReasonContainerStart) return "cannot start its " + container;
  if (reason == kReasonInitContainer) return "waits for its " + container;
  if (reason == kReasonUnschedulable) return "cannot be scheduled";
  if (reason == kReasonSchedulingGated) return "is held back by a scheduling gate";
  return "does not start";
}

std::optional<TimePoint> sandbox_due(const ObservedPod& pod, const Settings& settings) {
  if (has_started(pod) || pod.waiting || !pod.sandbox_missing || !pod.bound) return std::nullopt;
  return *pod.bound + settings.sandbox_patience;
}

StartupTrouble sandbox_trouble(const ObservedPod& pod) {
  // The cause is told in events of the pod only.
  return {&pod, kReasonSandbox,
          "Pod " + pod.name + " is on node " + pod.node +
              " but its sandbox is not ready: its network, or a volume, Secret or ConfigMap it mounts. "
              "`kubectl describe pod " +
              pod.name + "` names it.",
          true};
}

}  // namespace

std::optional<StartupTrouble> trouble_of(const ObservedPod& pod, TimePoint now, const Settings& settings) {
  if (has_started(pod)) return std::nullopt;
  if (const auto due = sandbox_due(pod, settings); due && *due <= now) return sandbox_trouble(pod);
  if (!pod.waiting || pod.waiting->reason.empty()) return std::nullopt;
  const std::string reason = reason_of(*pod.waiting);
  std::string sentence = "Pod " + pod.name + " " + what_fails(pod, reason);
  if (pod.waiting->reason != reason) sentence += " (" + pod.waiting->reason + ")";
  const std::string& words = pod.waiting->message;
  sentence += words.empty() ? "." : ": " + shortened(words, kMaxWords);
  return StartupTrouble{&pod, reason, std::move(sentence), reason != kReasonSchedulingGated};
}

std::optional<StartupTrouble> gang_trouble(const Gang& gang, TimePoint now, const Settings& settings) {
  std::optional<StartupTrouble> worst;
  std::map<std::string, int> pods_with;
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod == nullptr) continue;
    const auto trouble = trouble_of(*pod, now, settings);
    if (!trouble) continue;
    ++pods_with[trouble->reason];
    if (!worst || severity(trouble->reason) < severity(worst->reason)) worst = trouble;
  }
  if (worst && pods_with[worst->reason] > 1) {
    if (!worst->sentence.ends_with('.')) worst->sentence += '.';
    worst->sentence += " So it is with " + std::to_string(pods_with[worst->reason]) + " of " +
                       std::to_string(gang.by_rank.size()) + " pods.";
  }
  return worst;
}

std::optional<TimePoint> next_trouble(const Gang& gang, TimePoint now, const Settings& settings) {
  std::optional<TimePoint> next;
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod == nullptr) continue;
    const auto due = sandbox_due(*pod, settings);
    if (due && *due > now && (!next || *due < *next)) next = due;
  }
  return next;
}

std::string waiting_for(const Gang& gang) {
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod == nullptr || has_started(*pod) || pod->running_init.empty()) continue;
    return "Waiting for all pods to run; init container " + pod->running_init + " of pod " + pod->name +
           " still works.";
  }
  return "Waiting for all pods to run.";
}

}  // namespace coxswain
