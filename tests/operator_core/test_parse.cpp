#include <gtest/gtest.h>

#include "operator/api/parse.h"

namespace coxswain {
namespace {

using namespace std::chrono_literals;

TimePoint moment(const char* text) {
  return parse_time(text).value();
}

TEST(Parse, ReadsEveryFieldOfTheSpec) {
  const Json object = load_yaml(R"(
metadata: {name: j, namespace: n, uid: u, resourceVersion: "7", generation: 3, creationTimestamp: "2026-01-02T03:04:05Z",
           labels: {a: b}, annotations: {c: d}}
spec:
  config: {base_model: m}
  template: {spec: {nodeSelector: {x: y}}}
  nodes: 2
  processesPerNode: 4
  image: i
  resources: {limits: {cpu: 1}}
  env: [{name: A, value: b}]
  envFrom: [{secretRef: {name: s}}]
  volumes: [{name: v}]
  volumeMounts: [{name: v, mountPath: /v}]
  output: {claimName: c, subPath: s}
  recovery: {intervalSeconds: 5}
  suspend: true
  runPolicy: {backoffLimit: 1, activeDeadlineSeconds: 2, startupDeadlineSeconds: 3, ttlSecondsAfterFinished: 4,
              cleanPodPolicy: All, terminationGracePeriodSeconds: 6}
)",
                                "t")
                          .value()
                          .front();
  const TrainingJob job = parse_training_job(object);
  EXPECT_EQ(
      job.metadata.name + job.metadata.namespace_name + job.metadata.uid + job.metadata.resource_version,
      "jnu7");
  EXPECT_EQ(job.metadata.generation, 3);
  EXPECT_EQ(job.metadata.creation_timestamp, moment("2026-01-02T03:04:05Z"));
  EXPECT_EQ(job.metadata.labels.at("a") + job.metadata.annotations.at("c"), "bd");
  const TrainingJobSpec& spec = job.spec;
  EXPECT_TRUE(spec.has_config() && spec.suspend);
  EXPECT_EQ(spec.pod_template["spec"]["nodeSelector"]["x"], "y");
  EXPECT_EQ(spec.nodes, 2);
  EXPECT_EQ(spec.processes_per_node, 4);
  EXPECT_EQ(spec.image, "i");
  EXPECT_EQ(spec.resources["limits"]["cpu"], 1);
  EXPECT_EQ(spec.env.size() + spec.env_from.size() + spec.volumes.size() + spec.volume_mounts.size(), 4U);
  EXPECT_EQ(spec.output.claim_name, "c");
  EXPECT_EQ(spec.output.sub_path, "s");
  EXPECT_EQ(spec.recovery.interval_seconds, 5);
  EXPECT_EQ(spec.run_policy.backoff_limit, 1);
  EXPECT_EQ(spec.run_policy.active_deadline_seconds, 2);
  EXPECT_EQ(spec.run_policy.startup_deadline_seconds, 3);
  EXPECT_EQ(spec.run_policy.ttl_seconds_after_finished, 4);
  EXPECT_EQ(spec.run_policy.clean_pod_policy, CleanPodPolicy::kAll);
  EXPECT_EQ(spec.run_policy.termination_grace_period_seconds, 6);
}

TEST(Parse, NeverThrowsOnWhatIsNotAJob) {
  for (const char* text :
       {"null", "[]", "3", R"({"spec": 3})", R"({"spec": {"nodes": "x", "env": {}, "runPolicy": []}})",
        R"({"metadata": [], "status": {"conditions": [1], "nodes": 3}})"}) {
    const TrainingJob job = parse_training_job(Json::parse(text));
    EXPECT_EQ(job.spec.nodes, 1) << text;
  }
}

TrainingJobStatus full_status() {
  TrainingJobStatus status;
  status.observed_generation = 4;
  status.conditions = {{"Running", true, "AllPodsRunning", "m", 4, moment("2026-01-02T03:04:05Z")}};
  status.phase = Phase::kRunning;
  status.attempt = 2;
  status.runtime_image = "i";
  status.nodes = {3, 2, 1, 1, 0};
  status.restarts = {1, 1};
  status.start_time = moment("2026-01-02T03:04:05Z");
  status.completion_time = moment("2026-01-02T04:04:05Z");
  status.last_failure = LastFailure{moment("2026-01-02T03:14:05Z"), 1, "j-1", 1, "OOMKilled", 137, "m"};
  TrainingStatus training;
  training.step = 7;
  training.total_steps = 9;
  training.epoch = "0.5";
  training.loss = "NaN";
  training.tokens_per_second = "12.5";
  training.estimated_completion_time = moment("2026-01-02T04:04:05Z");
  training.last_progress_time = moment("2026-01-02T03:54:05Z");
  training.last_checkpoint_step = 5;
  status.training = training;
  return status;
}

TEST(Parse, StatusComesBackAsItWasWritten) {
  EXPECT_EQ(parse_status(status_to_json(full_status())), full_status());
  EXPECT_EQ(parse_status(status_to_json({})), TrainingJobStatus());
  EXPECT_EQ(status_to_json(full_status())["training"]["loss"], "NaN");
}

TEST(Parse, EveryPhaseComesBack) {
  for (int i = 0; i <= static_cast<int>(Phase::kFailed); ++i) {
    TrainingJobStatus status;
    status.phase = static_cast<Phase>(i);
    EXPECT_EQ(parse_status(status_to_json(status)).phase, status.phase);
  }
}

TEST(Parse, Times) {
  EXPECT_EQ(format_time(moment("2026-11-30T22:15:00Z")), "2026-11-30T22:15:00Z");
  EXPECT_EQ(moment("2026-11-30T23:15:00.25+01:00"), moment("2026-11-30T22:15:00Z") + 250ms);
  for (const char* bad :
       {"", "2026-11-30", "2026-13-30T22:15:00Z", "2026-02-30T22:15:00Z", "2026-11-30T25:15:00Z", "x"}) {
    EXPECT_FALSE(parse_time(bad)) << bad;
  }
}

TEST(Parse, Quantities) {
  const std::pair<const char*, double> good[] = {
      {"2", 2},      {"500m", 0.5}, {"1.5Gi", 1.5 * 1024 * 1024 * 1024},
      {"2e3", 2000}, {"1k", 1000},  {"3M", 3e6},
      {"+.5", 0.5},  {"-1", -1},    {"1Ki", 1024},
      {"7E", 7e18},  {"1.", 1},     {"100n", 1e-7}};
  for (const auto& [text, value] : good)
    EXPECT_NEAR(parse_quantity(text).value_or(-99), value, std::abs(value) * 1e-12) << text;
  for (const char* bad : {"", "x", "8 GB", "8GB", "1K", "--1", "1e", "Gi"})
    EXPECT_FALSE(parse_quantity(bad)) << bad;
}

TEST(Parse, ProcessesFollowTheGpus) {
  auto processes = [](const char* spec) {
    return processes_per_node(parse_training_job({{"spec", load_yaml(spec, "t").value().front()}}).spec);
  };
  EXPECT_EQ(processes("{nodes: 1}"), 1);
  EXPECT_EQ(processes("{processesPerNode: 3, resources: {limits: {nvidia.com/gpu: 8}}}"), 3);
  EXPECT_EQ(processes("{resources: {limits: {nvidia.com/gpu: 8}}}"), 8);
  EXPECT_EQ(processes("{resources: {limits: {amd.com/gpu: '2'}}}"), 2);
  EXPECT_EQ(processes("{resources: {limits: {nvidia.com/mig-1g.5gb: 2, nvidia.com/mig-2g.10gb: 1}}}"), 3);
  EXPECT_EQ(processes("{resources: {requests: {nvidia.com/gpu: 2}}}"), 2);
  EXPECT_EQ(processes("{resources: {limits: {cpu: 8, rdma/hca: 1}}}"), 1);
  EXPECT_EQ(processes("{template: {spec: {containers: [{name: s, resources: {limits: {nvidia.com/gpu: 9}}},"
                      " {name: trainer, resources: {limits: {nvidia.com/gpu: 4}}}]}}}"),
            4);
}

}  // namespace
}  // namespace coxswain
