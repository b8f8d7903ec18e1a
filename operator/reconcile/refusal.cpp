#include "operator/reconcile/refusal.h"

#include <algorithm>

#include "operator/reconcile/jitter.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/shortened.h"

namespace coxswain {
namespace {

// A phrase of an admission plugin. The first that the message contains decides.
struct Phrase {
  const char* text;
  const char* reason;
  Outlook outlook;
  const char* advice;
};

constexpr Phrase kPhrases[] = {
    {"exceeded quota", kReasonQuotaExceeded, Outlook::kPasses, "It is tried again until the quota has room."},
    {"status unknown for quota", kReasonQuotaExceeded, Outlook::kPasses, ""},
    {"failed quota", kReasonQuotaNeedsResources, Outlook::kNeedsChange,
     "The namespace's quota wants these set: suspend the job, set them in spec.resources, resume it."},
    {"insufficient quota to ", kReasonQuotaNeedsResources, Outlook::kNeedsChange,
     "The cluster wants a quota that covers this: ask for one for the namespace."},
    {"violates PodSecurity", kReasonPodSecurity, Outlook::kNeedsChange,
     "Suspend the job and change spec.template, or use a namespace that allows it."},
    {"denied the request", kReasonAdmissionDenied, Outlook::kNeedsChange,
     "An admission webhook of the cluster decides this."},
    {"denied request", kReasonAdmissionDenied, Outlook::kNeedsChange,
     "An admission policy of the cluster decides this."},
    {"usage per ", kReasonLimitRange, Outlook::kNeedsChange,
     "A LimitRange of the namespace decides this: suspend the job, change spec.resources, resume it."},
    {"limit to request ratio per ", kReasonLimitRange, Outlook::kNeedsChange,
     "A LimitRange of the namespace decides this: suspend the job, change spec.resources, resume it."},
    {"no PriorityClass with name", kReasonMissingClass, Outlook::kNeedsChange,
     "Create it, or suspend the job and name another."},
    {"pod rejected: RuntimeClass", kReasonMissingClass, Outlook::kNeedsChange,
     "Create it, or suspend the job and name another."},
    {"must not be provided in pod spec", kReasonAdmissionDenied, Outlook::kNeedsChange,
     "Suspend the job and change spec.template."},
    {"pod rejected: ", kReasonAdmissionDenied, Outlook::kNeedsChange,
     "Suspend the job and change spec.template."},
    {"conflict: runtimeClass.scheduling.nodeSelector", kReasonAdmissionDenied, Outlook::kNeedsChange,
     "Suspend the job and change spec.template."},
    {"error looking up service account", kReasonMissingServiceAccount, Outlook::kPasses,
     "It is tried again until the service account is there."},
    {"because it is being terminated", kReasonNamespaceTerminating, Outlook::kPasses, ""},
    {"failed calling webhook", kReasonServerTrouble, Outlook::kPasses, ""},
    {"cannot create resource", kReasonMissingRights, Outlook::kNeedsChange,
     "The operator's own rights (RBAC) lack this."},
    {"cannot set blockOwnerDeletion", kReasonMissingRights, Outlook::kNeedsChange,
     "The operator's own rights (RBAC) lack trainingjobs/finalizers."},
};

const Phrase* phrase_in(const std::string& message) {
  const auto* found = std::find_if(std::begin(kPhrases), std::end(kPhrases), [&](const Phrase& phrase) {
    return message.find(phrase.text) != std::string::npos;
  });
  return found == std::end(kPhrases) ? nullptr : found;
}

Refusal by_status(const Rejection& rejection) {
  if (rejection.permanent) return {kReasonInvalidTemplate, Outlook::kNever, ""};
  if (rejection.code == 429) return {kReasonThrottled, Outlook::kPasses, ""};
  if (rejection.code >= 500) return {kReasonServerTrouble, Outlook::kPasses, ""};
  return {kReasonCreateRefused, Outlook::kPasses, ""};
}

}  // namespace

Refusal understand(const Rejection& rejection) {
  Refusal refusal = by_status(rejection);
  refusal.sentence = "The API server refused " + rejection.kind + " " + rejection.name + ": " +
                     shortened(rejection.message, 800);
  const Phrase* phrase = phrase_in(rejection.message);
  if (phrase == nullptr) return refusal;
  refusal.reason = phrase->reason;
  refusal.outlook = phrase->outlook;
  if (*phrase->advice != '\0') {
    if (!refusal.sentence.ends_with('.')) refusal.sentence += '.';
    refusal.sentence += std::string(" ") + phrase->advice;
  }
  return refusal;
}

Words name_conflict_words(const NameConflict& conflict) {
  if (conflict.of_predecessor) {
    return {kReasonWaitingForOldJob, "Waiting until " + conflict.kind + " " + conflict.name +
                                         " of an earlier job of this name is deleted."};
  }
  return {kReasonNameConflict, "A " + conflict.kind + " named " + conflict.name +
                                   " exists and is not this job's. Delete it, or give the job another name."};
}

TimePoint creation_due(const Rejection& rejection, bool holds_pods, const std::string& job_uid,
                       const Settings& settings) {
  const int64_t doublings = std::clamp<int64_t>(rejection.times - 1, 0, 30);
  const Duration most = holds_pods ? settings.partial_gang_retry : settings.refused_retry_max;
  Duration delay = std::min(settings.refused_retry_base * (int64_t{1} << doublings), most);
  delay += delay * jitter_thousandths(job_uid, rejection.times) / 4000;
  return rejection.time + std::max(delay, rejection.retry_after.value_or(Duration(0)));
}

Duration partial_gang_hold(const std::string& job_uid, int64_t attempt, const Settings& settings) {
  return settings.partial_gang_hold +
         settings.partial_gang_hold * jitter_thousandths(job_uid, attempt) / 1000;
}

}  // namespace coxswain
