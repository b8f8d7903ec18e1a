// Reasons of conditions and events. Stable: people write alerts and health checks on them.
#pragma once

namespace coxswain {

// Of the condition Failed (and Stalled).
inline constexpr char kReasonBackoffLimitExceeded[] = "BackoffLimitExceeded";
inline constexpr char kReasonDeadlineExceeded[] = "DeadlineExceeded";  // activeDeadlineSeconds
inline constexpr char kReasonBadInput[] = "BadInput";            // the runtime refused configuration or data
inline constexpr char kReasonInvalidConfig[] = "InvalidConfig";  // refused before a pod existed
inline constexpr char kReasonInvalidTemplate[] = "InvalidTemplate";  // the API server refuses the children
// Of the condition Stalled.
inline constexpr char kReasonNameConflict[] = "NameConflict";
// Of the condition Reconciling.
inline constexpr char kReasonStarting[] = "Starting";
inline constexpr char kReasonCreateRefused[] = "CreateRefused";  // quota, throttling, a server error
inline constexpr char kReasonWaitingForOldPods[] = "WaitingForOldPods";
inline constexpr char kReasonBackingOff[] = "BackingOff";
// Of Complete.
inline constexpr char kReasonAllPodsSucceeded[] = "AllPodsSucceeded";
// Of events.
inline constexpr char kEventStarted[] = "Started";
inline constexpr char kEventResumed[] = "Resumed";
inline constexpr char kEventSuspended[] = "Suspended";
inline constexpr char kEventRunning[] = "Running";
inline constexpr char kEventRestarting[] = "Restarting";
inline constexpr char kEventCompleted[] = "Completed";
inline constexpr char kEventFailed[] = "Failed";
inline constexpr char kEventOverridden[] = "TemplateOverridden";
inline constexpr char kEventOutputNotKept[] = "OutputNotKept";
inline constexpr char kEventDeleted[] = "TimeToLiveOver";

}  // namespace coxswain
