// Why an attempt failed: the earliest termination that is not a consequence of another.
#pragma once

#include <string>
#include <variant>

#include "operator/reconcile/gang.h"

namespace coxswain {

// The words of status.lastFailure.cause. Stable: people write alerts on them.
inline constexpr char kCauseBadInput[] = "BadInput";  // exit 2 of the runtime; never retried
inline constexpr char kCauseError[] = "Error";        // any other exit code of the program
inline constexpr char kCauseInternal[] = "Internal";  // exit 70
inline constexpr char kCauseStorage[] = "Storage";    // exit 74
inline constexpr char kCauseStopped[] = "Stopped";    // exit 75, and the operator had not asked
inline constexpr char kCauseLostPeer[] = "LostPeer";  // exit 76, and no peer told why
inline constexpr char kCauseRendezvousTimeout[] = "RendezvousTimeout";  // exit 77
inline constexpr char kCausePortInUse[] = "PortInUse";                  // exit 78
inline constexpr char kCauseOutOfMemory[] = "OOMKilled";
inline constexpr char kCauseStartupDeadline[] = "StartupDeadlineExceeded";
inline constexpr char kCauseInitContainer[] = "InitContainerFailed";
inline constexpr char kCauseHang[] = "Hang";  // no rank moved for hangTimeoutSeconds
// Disruptions: not the job's fault, never counted.
inline constexpr char kCauseEvicted[] = "Evicted";
inline constexpr char kCausePreempted[] = "Preempted";
inline constexpr char kCauseNodeLost[] = "NodeLost";
inline constexpr char kCauseNodeShutdown[] = "NodeShutdown";
inline constexpr char kCauseNodeRejected[] = "NodeRejected";  // the kubelet would not run it
inline constexpr char kCausePodDeleted[] = "PodDeleted";      // someone deleted it
inline constexpr char kCausePodLost[] = "PodLost";            // it vanished unseen
// Neither: the spec was changed under the pods, between two looks.
inline constexpr char kCauseSpecChanged[] = "SpecChanged";

// All of them.
inline constexpr const char* kCauses[] = {
    kCauseBadInput,     kCauseError,           kCauseInternal,          kCauseStorage,
    kCauseStopped,      kCauseLostPeer,        kCauseRendezvousTimeout, kCausePortInUse,
    kCauseOutOfMemory,  kCauseStartupDeadline, kCauseInitContainer,     kCauseHang,
    kCauseEvicted,      kCausePreempted,       kCauseNodeLost,          kCauseNodeShutdown,
    kCauseNodeRejected, kCausePodDeleted,      kCausePodLost,           kCauseSpecChanged};

enum class Charge {
  kFinal,       // the same again would fail the same: no retry
  kCounted,     // against backoffLimit
  kHang,        // the same, and as a hang
  kDisruption,  // retried, not counted
  kNone,        // retried, counted nowhere
};

struct GangFailure {
  std::string cause;
  Charge charge = Charge::kCounted;
  std::string pod;
  std::optional<int64_t> node_rank;
  std::optional<int64_t> exit_code;
  std::string message;  // a sentence
};

struct NoFailure {};
// Something failed; peers may yet tell more.
struct Settling {
  TimePoint until;
};

using GangVerdict = std::variant<NoFailure, Settling, GangFailure>;

GangVerdict judge(const TrainingJob& job, const Gang& gang, TimePoint now, const Settings& settings);

}  // namespace coxswain
