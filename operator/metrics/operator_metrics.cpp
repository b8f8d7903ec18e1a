#include "operator/metrics/operator_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <mutex>
#include <string_view>

#include "operator/metrics/job_milestones.h"
#include "operator/reconcile/failure_cause.h"

namespace coxswain {

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using Buckets = Histogram::BucketBoundaries;

// As client-go and controller-runtime name their only queue and controller: by the kind.
const Labels kQueue = {{"name", "trainingjob"}};
const Labels kController = {{"controller", "trainingjob"}};
constexpr char kOther[] = "Other";

constexpr Phase kPhases[] = {Phase::kPending,    Phase::kStarting,   Phase::kRunning,
                             Phase::kRestarting, Phase::kSuspending, Phase::kSuspended,
                             Phase::kStalled,    Phase::kComplete,   Phase::kFailed};
constexpr std::array<const char*, 4> kResults = {"success", "requeue_after", "requeue", "error"};

// client-go's.
const Buckets kQueueBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10};
const Buckets kRequestBuckets = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
// controller-runtime's go to a minute in 30 steps; these tell as much.
const Buckets kPassBuckets = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const Buckets kStartBuckets = {0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400};

template <typename T>
double seconds(T duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

struct OperatorMetrics::Impl {
  prometheus::Registry registry;

  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  // --- The work queue
  Gauge& depth = gauges("workqueue_depth", "Jobs that wait for a worker.").Add(kQueue);
  Counter& adds = counters("workqueue_adds_total", "Jobs that began to wait for a worker.").Add(kQueue);
  Counter& retries =
      counters("workqueue_retries_total", "Jobs that were queued again after a failure.").Add(kQueue);
  Histogram& waited = histograms("workqueue_queue_duration_seconds", "From being due to being worked on.")
                          .Add(kQueue, kQueueBuckets);
  Histogram& worked = histograms("workqueue_work_duration_seconds", "Time that a worker had a job.")
                          .Add(kQueue, kQueueBuckets);

  // --- Passes
  Family<Counter>& passes =
      counters("controller_runtime_reconcile_total", "Passes over jobs, by how they ended.");
  Counter& pass_errors =
      counters("controller_runtime_reconcile_errors_total", "Passes that ended in an error.")
          .Add(kController);
  Histogram& pass_time =
      histograms("controller_runtime_reconcile_time_seconds", "Length of a pass over a job.")
          .Add(kController, kPassBuckets);

  // --- Requests
  Family<Counter>& requests =
      counters("rest_client_requests_total", "Requests to the API server; code <error>: no answer.");
  Family<Histogram>& request_time =
      histograms("rest_client_request_duration_seconds", "Time to the answer; of a watch, to its beginning.");

  // --- Jobs
  Family<Gauge>& jobs = gauges("coxswain_jobs", "TrainingJobs by phase.");
  Family<Counter>& restarts =
      counters("coxswain_job_restarts_total", "Restarts of gangs by the cause of the failure.");
  std::array<Histogram*, 3> milestones = {
      &histograms("coxswain_job_pods_created_seconds", "From a job's creation to its last pod's.")
           .Add({}, kStartBuckets),
      &histograms("coxswain_job_pods_running_seconds", "From a job's creation to all its pods running.")
           .Add({}, kStartBuckets),
      &histograms("coxswain_job_first_step_seconds",
                  "From a job's creation to the first training step that is known of.")
           .Add({}, kStartBuckets)};

  // --- The program
  Gauge& leader = gauges("coxswain_leader", "1 in the operator that leads, else 0.").Add({});

  std::mutex jobs_mutex;
  std::function<ClusterView::Objects()> all_jobs;
  std::map<Phase, Gauge*> by_phase;
  std::mutex milestones_mutex;
  JobMilestones seen;

  explicit Impl(const std::string& version) {
    gauges("coxswain_build_info", "1; the version is a label.").Add({{"version", version}}).Set(1);
    for (const Phase phase : kPhases) by_phase[phase] = &jobs.Add({{"phase", to_string(phase)}});
    for (const char* cause : kCauses) restarts.Add({{"cause", cause}});
    restarts.Add({{"cause", kOther}});
    for (const char* result : kResults) passes.Add({{"controller", "trainingjob"}, {"result", result}});
  }

  void take(const JobNews& news) {
    if (news.restart_cause) restarts.Add({{"cause", known_cause(*news.restart_cause)}}).Increment();
    for (const MilestoneReached& one : news.reached) {
      milestones[static_cast<size_t>(one.milestone)]->Observe(one.seconds);
    }
  }

  // Whoever may write a status could else make series without end.
  static std::string known_cause(const std::string& cause) {
    for (const char* known : kCauses) {
      if (cause == known) return cause;
    }
    return kOther;
  }

  void count_jobs() {
    std::map<std::string, int> counts;
    std::lock_guard lock(jobs_mutex);
    if (all_jobs) {
      for (const auto& job : all_jobs()) {
        const Json::json_pointer path("/status/phase");
        const bool told = job->contains(path) && job->at(path).is_string();
        ++counts[told ? job->at(path).get<std::string>() : to_string(Phase::kPending)];
      }
    }
    for (const auto& [phase, gauge] : by_phase) gauge->Set(counts[to_string(phase)]);
  }
};

OperatorMetrics::OperatorMetrics(const std::string& version) : impl_(std::make_unique<Impl>(version)) {}

OperatorMetrics::~OperatorMetrics() = default;

void OperatorMetrics::on_request(const RequestRecord& record) {
  const std::string code = record.code == 0 ? "<error>" : std::to_string(record.code);
  const Labels what = {{"verb", record.verb}, {"resource", record.resource}};
  Labels answered = what;
  answered["code"] = code;
  impl_->requests.Add(answered).Increment();
  impl_->request_time.Add(what, kRequestBuckets).Observe(seconds(record.latency));
}

void OperatorMetrics::set_leader(bool leads) {
  impl_->leader.Set(leads ? 1 : 0);
}

void OperatorMetrics::set_jobs(std::function<ClusterView::Objects()> jobs) {
  std::lock_guard lock(impl_->jobs_mutex);
  impl_->all_jobs = std::move(jobs);
}

std::string OperatorMetrics::text() const {
  impl_->count_jobs();
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

void OperatorMetrics::depth(size_t keys) {
  impl_->depth.Set(static_cast<double>(keys));
}
void OperatorMetrics::added() {
  impl_->adds.Increment();
}
void OperatorMetrics::retried() {
  impl_->retries.Increment();
}
void OperatorMetrics::queue_duration(Duration duration) {
  impl_->waited.Observe(seconds(duration));
}
void OperatorMetrics::work_duration(Duration duration) {
  impl_->worked.Observe(seconds(duration));
}

void OperatorMetrics::pass_ended(PassResult result, std::chrono::steady_clock::duration duration) {
  const char* word = kResults[static_cast<size_t>(result)];
  impl_->passes.Add({{"controller", "trainingjob"}, {"result", word}}).Increment();
  if (result == PassResult::kError) impl_->pass_errors.Increment();
  impl_->pass_time.Observe(seconds(duration));
}

void OperatorMetrics::job_changed(const Json& before, const Json& after, TimePoint now) {
  std::lock_guard lock(impl_->milestones_mutex);
  impl_->take(impl_->seen.job_changed(before, after, now));
}

void OperatorMetrics::pods_created(const TrainingJob& job, TimePoint now) {
  std::lock_guard lock(impl_->milestones_mutex);
  impl_->take(impl_->seen.pods_created(job, now));
}

}  // namespace coxswain
