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
// The API server refuses pods until somebody changes something.
inline constexpr char kReasonPodSecurity[] = "PodSecurityViolation";
inline constexpr char kReasonAdmissionDenied[] = "AdmissionDenied";  // a webhook or a policy
inline constexpr char kReasonLimitRange[] = "LimitRangeViolation";
inline constexpr char kReasonQuotaNeedsResources[] = "QuotaNeedsResources";  // limits or requests must be set
inline constexpr char kReasonMissingClass[] = "ClassNotFound";               // PriorityClass, RuntimeClass
inline constexpr char kReasonMissingRights[] = "OperatorLacksRights";        // RBAC
// Of the condition Reconciling.
inline constexpr char kReasonStarting[] = "Starting";
// The API server refuses pods for now.
inline constexpr char kReasonQuotaExceeded[] = "QuotaExceeded";
inline constexpr char kReasonThrottled[] = "Throttled";
inline constexpr char kReasonServerTrouble[] = "ServerError";
inline constexpr char kReasonMissingServiceAccount[] = "ServiceAccountNotFound";
inline constexpr char kReasonNamespaceTerminating[] = "NamespaceTerminating";
inline constexpr char kReasonCreateRefused[] = "CreateRefused";  // for another reason
// Pods exist and don't start, see startup_trouble.h.
inline constexpr char kReasonImagePull[] = "ImagePullFailed";
inline constexpr char kReasonContainerConfig[] = "ContainerConfigError";
inline constexpr char kReasonContainerStart[] = "ContainerStartError";
inline constexpr char kReasonInitContainer[] = "InitContainerFailed";
inline constexpr char kReasonSandbox[] = "SandboxNotReady";
inline constexpr char kReasonUnschedulable[] = "Unschedulable";
inline constexpr char kReasonSchedulingGated[] = "SchedulingGated";
inline constexpr char kReasonWaitingForOldPods[] = "WaitingForOldPods";
inline constexpr char kReasonWaitingForOldJob[] = "WaitingForOldJob";  // of the same name, its children
inline constexpr char kReasonBackingOff[] = "BackingOff";
// Of Running, and of Ready with it.
inline constexpr char kReasonAllPodsRunning[] = "AllPodsRunning";
// Of a suspended job; Resumed of Suspended when it is False again.
inline constexpr char kReasonSuspending[] = "Suspending";
inline constexpr char kReasonSuspended[] = "Suspended";
inline constexpr char kReasonResumed[] = "Resumed";
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
inline constexpr char kEventGangReleased[] = "GangReleased";
inline constexpr char kEventForceDeleted[] = "PodForceDeleted";
// No agent answers, so that a hang would not be seen.
inline constexpr char kEventAgentsUnreachable[] = "AgentsUnreachable";

}  // namespace coxswain
