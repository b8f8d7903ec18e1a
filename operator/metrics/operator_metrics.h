// The operator's metrics (docs/metrics.md is their list). Labels have few values, known beforehand: never a
// job's name or namespace.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/client/rest/request_record.h"
#include "operator/controller/cluster_view.h"
#include "operator/controller/controller_observer.h"

namespace coxswain {

// Safe from any thread.
class OperatorMetrics : public ControllerObserver {
 public:
  // `version`: of the program, for coxswain_build_info.
  explicit OperatorMetrics(const std::string& version);
  ~OperatorMetrics() override;

  // For RestClientOptions::on_request.
  void on_request(const RequestRecord& record);
  void set_leader(bool leads);
  // Where the jobs are counted, at each text(); null: there are none. Once it returns, the one before is not
  // called any more.
  void set_jobs(std::function<ClusterView::Objects()> jobs);

  // Prometheus' text format 0.0.4.
  std::string text() const;

  void depth(size_t keys) override;
  void added() override;
  void retried() override;
  void queue_duration(Duration) override;
  void work_duration(Duration) override;
  void pass_ended(PassResult, std::chrono::steady_clock::duration) override;
  void job_changed(const Json& before, const Json& after, TimePoint now) override;
  void pods_created(const TrainingJob&, TimePoint now) override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace coxswain
