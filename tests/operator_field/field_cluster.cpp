#include "tests/operator_field/field_cluster.h"

#include <algorithm>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "tests/client/objects.h"

namespace coxswain::testing {

using namespace resources;

ApiResult<Json> FieldCluster::submit(int nodes, const Json& spec_patch, const Json& metadata_patch) {
  Json job = a_training_job("j", nodes);
  job["spec"].merge_patch(spec_patch);
  job["metadata"].merge_patch(metadata_patch);
  return server().create(kTrainingJobs, ns(), job, {});
}

ApiResult<Json> FieldCluster::patch(const Json& spec) {
  return server().merge_patch(kTrainingJobs, ns(), "j", {{"spec", spec}}, {});
}

bool FieldCluster::runs(int64_t attempt) {
  return until([&] {
    const TrainingJobStatus seen = status();
    return seen.phase == Phase::kRunning && seen.attempt == attempt;
  });
}

bool FieldCluster::is_phase(const std::string& wanted) {
  return phase() == wanted;
}

bool FieldCluster::until_phase(const std::string& wanted) {
  return until([&] { return is_phase(wanted); });
}

Json FieldCluster::job() {
  return server().get(kTrainingJobs, ns(), "j").value_or(Json());
}

TrainingJobStatus FieldCluster::status() {
  const Json object = job();
  return object.is_null() ? TrainingJobStatus() : parse_training_job(object).status;
}

std::string FieldCluster::said(const char* condition) {
  const TrainingJobStatus seen = status();
  const Condition* found = find_condition(seen, condition);
  return found == nullptr ? "" : found->message;
}

std::string FieldCluster::reason(const char* condition) {
  const TrainingJobStatus seen = status();
  const Condition* found = find_condition(seen, condition);
  return found == nullptr ? "" : found->reason;
}

bool FieldCluster::has_event(const std::string& reason, const std::string& words) {
  const auto events = server().list(kEvents, ns(), {});
  return events && std::ranges::any_of(events->items, [&](const Json& event) {
           return event.value("reason", "") == reason && event.dump().find(words) != std::string::npos;
         });
}

std::vector<Json> FieldCluster::pods() {
  ListOptions options;
  options.label_selector = std::string(contract::kLabelJobName) + "=j";
  const auto found = server().list(kPods, ns(), options);
  return found ? found->items : std::vector<Json>();
}

Json FieldCluster::pod(const std::string& name) {
  return server().get(kPods, ns(), name).value_or(Json());
}

std::string FieldCluster::node_of(const std::string& name) {
  const Json found = pod(name);
  return found.is_null() ? "" : found["spec"].value("nodeName", "");
}

Json with_config(Json spec_patch) {
  Json spec = {
      {"template", nullptr},
      {"config", {{"task", "llm"}, {"base_model", "/m"}, {"project_name", "p"}, {"data", {{"path", "/d"}}}}},
      {"output", {{"claimName", "out"}}}};
  spec.merge_patch(spec_patch);
  return spec;
}

namespace {

std::vector<FieldReport>& told() {
  static std::vector<FieldReport> reports;
  return reports;
}

}  // namespace

const std::vector<FieldReport>& field_reports() {
  return told();
}

bool add_field_report(const FieldReport& report) {
  told().push_back(report);
  ::testing::RegisterTest("FieldReport", report.name, nullptr, nullptr, report.file, report.line,
                          [report] { return make_field_report_test(report); });
  return true;
}

}  // namespace coxswain::testing
