#include "operator/reconcile/conditions.h"

#include <algorithm>

#include "operator/reconcile/reasons.h"

namespace coxswain {
namespace {

void set(TrainingJobStatus& status, const char* type, bool value, const Words& words, const Mark& mark) {
  const TimePoint now = std::chrono::floor<std::chrono::seconds>(mark.now);
  auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                            [&](const Condition& condition) { return condition.type == type; });
  if (found == status.conditions.end()) {
    status.conditions.push_back({type, value, words.reason, words.message, mark.generation, now});
    return;
  }
  if (found->status != value) found->last_transition_time = now;
  found->status = value;
  found->reason = words.reason;
  found->message = words.message;
  found->observed_generation = mark.generation;
}

// False, for a condition that has been there.
void clear(TrainingJobStatus& status, const char* type, const Words& words, const Mark& mark) {
  if (has_condition(status, type)) set(status, type, false, words, mark);
}

struct Kstatus {
  bool ready = false;
  bool reconciling = false;
  bool stalled = false;
};

void set_kstatus(TrainingJobStatus& status, const Kstatus& values, const Words& words, const Mark& mark) {
  set(status, kConditionReady, values.ready, words, mark);
  set(status, kConditionReconciling, values.reconciling, words, mark);
  set(status, kConditionStalled, values.stalled, words, mark);
}

}  // namespace

TrainingJobStatus as_starting(TrainingJobStatus status, const Words& words, const Mark& mark) {
  status.phase = has_condition(status, kConditionRestarting) ? Phase::kRestarting : Phase::kStarting;
  set(status, kConditionRunning, false, words, mark);
  set_kstatus(status, {.reconciling = true}, words, mark);
  return status;
}

TrainingJobStatus as_running(TrainingJobStatus status, const std::string& message, const Mark& mark) {
  const Words words = {kReasonAllPodsRunning, message};
  status.phase = Phase::kRunning;
  set(status, kConditionRunning, true, words, mark);
  clear(status, kConditionRestarting, words, mark);
  set_kstatus(status, {.ready = true}, words, mark);
  return status;
}

TrainingJobStatus as_restarting(TrainingJobStatus status, const Words& words, const Mark& mark) {
  status.phase = Phase::kRestarting;
  set(status, kConditionRunning, false, words, mark);
  set(status, kConditionRestarting, true, words, mark);
  set_kstatus(status, {.reconciling = true}, words, mark);
  return status;
}

TrainingJobStatus as_suspending(TrainingJobStatus status, const Mark& mark) {
  const Words words = {kReasonSuspending, "Suspended by spec.suspend; waiting for the pods to save and end."};
  status.phase = Phase::kSuspending;
  set(status, kConditionRunning, false, words, mark);
  clear(status, kConditionRestarting, words, mark);
  set_kstatus(status, {}, words, mark);
  return status;
}

TrainingJobStatus as_suspended(TrainingJobStatus status, const Mark& mark) {
  const Words words = {kReasonSuspended, "Suspended by spec.suspend; there are no pods."};
  status.phase = Phase::kSuspended;
  set(status, kConditionRunning, false, words, mark);
  clear(status, kConditionRestarting, words, mark);
  set(status, kConditionSuspended, true, words, mark);
  set_kstatus(status, {.ready = true}, words, mark);
  return status;
}

TrainingJobStatus as_resumed(TrainingJobStatus status, const Mark& mark) {
  clear(status, kConditionSuspended, {kReasonResumed, "spec.suspend is false again."}, mark);
  return status;
}

TrainingJobStatus as_stalled(TrainingJobStatus status, const Words& words, const Mark& mark) {
  status.phase = Phase::kStalled;
  set(status, kConditionRunning, false, words, mark);
  set_kstatus(status, {.stalled = true}, words, mark);
  return status;
}

TrainingJobStatus as_complete(TrainingJobStatus status, const Words& words, const Mark& mark) {
  status.phase = Phase::kComplete;
  status.completion_time = std::chrono::floor<std::chrono::seconds>(mark.now);
  set(status, kConditionRunning, false, words, mark);
  clear(status, kConditionRestarting, words, mark);
  set(status, kConditionComplete, true, words, mark);
  set_kstatus(status, {.ready = true}, words, mark);
  return status;
}

TrainingJobStatus as_failed(TrainingJobStatus status, const Words& words, const Mark& mark) {
  status.phase = Phase::kFailed;
  status.completion_time = std::chrono::floor<std::chrono::seconds>(mark.now);
  set(status, kConditionRunning, false, words, mark);
  clear(status, kConditionRestarting, words, mark);
  set(status, kConditionFailed, true, words, mark);
  set_kstatus(status, {.stalled = true}, words, mark);
  return status;
}

}  // namespace coxswain
