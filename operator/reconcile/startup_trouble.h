// Why a pod that exists does not start, in plain words.
#pragma once

#include <optional>
#include <string>

#include "operator/reconcile/gang.h"

namespace coxswain {

struct StartupTrouble {
  const ObservedPod* pod = nullptr;
  std::string reason;    // a stable word of reasons.h, or the kubelet's own where it is none that is known
  std::string sentence;  // names the pod, the kubelet's or scheduler's reason, and their words
  // Whether somebody has to act: not so for a pod that only waits its turn.
  bool is_warning = true;
};

// Of one pod; nothing where it has started or is merely on its way.
std::optional<StartupTrouble> trouble_of(const ObservedPod& pod, TimePoint now, const Settings& settings);

// The worst of a gang – what no waiting cures before what may pass – and of those the lowest rank's. Says how
// many pods have the same.
std::optional<StartupTrouble> gang_trouble(const Gang& gang, TimePoint now, const Settings& settings);

// When a pod that has no sandbox yet becomes one in trouble; nothing where none will.
std::optional<TimePoint> next_trouble(const Gang& gang, TimePoint now, const Settings& settings);

// What is waited for where there is no trouble.
std::string waiting_for(const Gang& gang);

}  // namespace coxswain
