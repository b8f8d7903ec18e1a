// Children against golden files. COXSWAIN_REGENERATE=1 writes the files anew: read the difference before
// committing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "operator/api/validate.h"
#include "operator/reconcile/render.h"

namespace coxswain {
namespace {

const std::filesystem::path kFolder = "tests/operator_core/golden";

TrainingJob job_from(Json object) {
  object["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  object["metadata"]["generation"] = 1;
  return parse_training_job(object);
}

TrainingJob job_with(const std::string& spec) {
  Json json = load_yaml(spec, "spec").value().front();
  if (!json.contains("template") && !json.contains("config")) json["config"] = {{"base_model", "m"}};
  return job_from({{"metadata", {{"name", "j"}, {"namespace", "n"}}}, {"spec", json}});
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string rendered(const TrainingJob& job) {
  std::string text;
  for (const Json& child : render_children(job, 2, "registry.example/coxswain-runtime:1.0")) {
    text += "---\n" + to_yaml(child);
  }
  return text;
}

TEST(Render, GoldenFiles) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name.find(".in.yaml") == std::string::npos) continue;
    SCOPED_TRACE(name);
    ++files;
    const auto documents = load_yaml_file(entry.path());
    ASSERT_TRUE(documents) << documents.error().message;
    ASSERT_TRUE(validate(documents->front()).empty()) << to_string(validate(documents->front()).front());
    const auto golden = kFolder / (name.substr(0, name.find(".in.yaml")) + ".out.yaml");
    const std::string text = rendered(job_from(documents->front()));
    if (std::getenv("COXSWAIN_REGENERATE") != nullptr) std::ofstream(golden) << text;
    EXPECT_EQ(text, read(golden)) << "COXSWAIN_REGENERATE=1 writes " << golden;
    EXPECT_TRUE(load_yaml(text, golden)) << "not YAML";
  }
  EXPECT_GE(files, 3);
}

Json pod_of(const std::string& spec, int64_t rank = 1) {
  return render_pod(job_with(spec), 2, rank, "image");
}

Json trainer_of(const std::string& spec, int64_t rank = 1) {
  const Json pod = pod_of(spec, rank);
  for (const Json& container : pod["spec"]["containers"]) {
    if (container["name"] == "trainer") return container;
  }
  return nullptr;
}

// The value of a variable; "" where it is not set; fails where it is set twice.
std::string env(const Json& trainer, const std::string& name) {
  std::string value;
  int times = 0;
  for (const Json& item : trainer["env"]) {
    if (item["name"] != name) continue;
    value = item.value("value", "");
    ++times;
  }
  EXPECT_LE(times, 1) << name;
  return value;
}

TEST(Render, TheEnvironmentOfTheContract) {
  const Json trainer = trainer_of("{nodes: 3, output: {claimName: c}, recovery: {intervalSeconds: 7}}", 2);
  const std::pair<const char*, const char*> wanted[] = {
      {"MASTER_ADDR", "j-0.j.n.svc"},
      {"MASTER_PORT", "29500"},
      {"NNODES", "3"},
      {"NODE_RANK", "2"},
      {"NPROC_PER_NODE", "1"},
      {"RANK", "2"},
      {"LOCAL_RANK", "0"},
      {"WORLD_SIZE", "3"},
      {"LOCAL_WORLD_SIZE", "1"},
      {"PET_NNODES", "3"},
      {"PET_NODE_RANK", "2"},
      {"PET_NPROC_PER_NODE", "1"},
      {"PET_MASTER_ADDR", "j-0.j.n.svc"},
      {"PET_MASTER_PORT", "29500"},
      {"TRAINING_JOB_NAME", "j"},
      {"TRAINING_JOB_UID", "11111111-2222-3333-4444-555555555555"},
      {"TRAINING_JOB_ATTEMPT", "2"},
      {"COXSWAIN_CONFIG", "/etc/coxswain/config.yaml"},
      {"COXSWAIN_OUTPUT_DIR", "/output/j"},
      {"COXSWAIN_RECOVERY_DIR", "/output/j/.recovery/11111111-2222-3333-4444-555555555555"},
      {"COXSWAIN_RECOVERY_INTERVAL_SECONDS", "7"},
      {"PYTHONUNBUFFERED", "1"}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(env(trainer, name), value) << name;
  for (const char* reserved : contract::kReservedEnv) EXPECT_NE(env(trainer, reserved), "") << reserved;
  EXPECT_EQ(trainer["command"], Json({"coxswain-runtime", "launch"}));
}

TEST(Render, RanksAreTheAgentsWhereAPodHasSeveralProcesses) {
  const Json trainer = trainer_of("{nodes: 2, resources: {limits: {nvidia.com/gpu: 4}}}");
  EXPECT_EQ(env(trainer, "NPROC_PER_NODE"), "4");
  EXPECT_EQ(env(trainer, "RANK") + env(trainer, "LOCAL_RANK") + env(trainer, "WORLD_SIZE"), "");
}

TEST(Render, ReservedNamesAndPathsStayTheOperatorsAndAreSaid) {
  const std::string spec = R"(
env: [{name: RANK, value: "7"}, {name: MINE, value: x}]
volumes: [{name: coxswain-output, emptyDir: {}}, {name: v, emptyDir: {}}]
volumeMounts: [{name: v, mountPath: /output/}, {name: v, mountPath: /etc/coxswain/x}, {name: v, mountPath: /v}]
template:
  metadata: {labels: {training.coxswain.dev/attempt: "9"}}
  spec:
    restartPolicy: Always
    hostname: h
    containers: [{name: trainer, image: i, env: [{name: MASTER_ADDR, value: h}]}]
config: {a: 1}
)";
  const Json pod = pod_of(spec);
  const Json trainer = trainer_of(spec);
  EXPECT_EQ(env(trainer, "RANK") + env(trainer, "MASTER_ADDR") + env(trainer, "MINE"), "1j-0.j.n.svcx");
  EXPECT_EQ(pod["spec"]["hostname"], "j-1");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(pod["metadata"]["labels"]["training.coxswain.dev/attempt"], "2");
  std::string mounts;
  for (const Json& mount : trainer["volumeMounts"]) mounts += mount["mountPath"].get<std::string>() + " ";
  EXPECT_EQ(mounts, "/v /etc/coxswain /output /dev/shm /tmp ");
  EXPECT_EQ(overridden_by_operator(job_with(spec)).size(), 9U)
      << Json(overridden_by_operator(job_with(spec)));
  EXPECT_TRUE(overridden_by_operator(job_with("{nodes: 2}")).empty());
}

// Kubernetes 1.35 lets a container restart in a pod that never does.
TEST(Render, NoTrainerIsStartedAgainByItsKubelet) {
  const std::string spec = R"(
nodes: 2
template:
  spec:
    initContainers: [{name: side, image: i, restartPolicy: Always}]
    containers:
    - name: trainer
      image: i
      restartPolicy: OnFailure
      restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [3]}}]
)";
  const Json trainer = trainer_of(spec);
  EXPECT_FALSE(trainer.contains("restartPolicy") || trainer.contains("restartPolicyRules"));
  EXPECT_EQ(pod_of(spec)["spec"]["initContainers"][0]["restartPolicy"], "Always") << "a sidecar";
  EXPECT_EQ(
      overridden_by_operator(job_with(spec)),
      (std::vector<std::string>{
          "spec.template sets restartPolicy of the container trainer; the operator restarts the whole gang.",
          "spec.template sets restartPolicyRules of the container trainer; the operator restarts the whole "
          "gang."}));
}

TEST(Render, ABroughtProgramKeepsItsCommandAndSecurity) {
  const std::string spec =
      "{template: {spec: {containers: [{name: trainer, image: pytorch, command: [torchrun, train.py]}]}}}";
  const Json pod = pod_of(spec);
  const Json trainer = trainer_of(spec);
  EXPECT_EQ(trainer["image"], "pytorch");
  EXPECT_EQ(trainer["command"], Json({"torchrun", "train.py"}));
  EXPECT_FALSE(trainer.contains("securityContext") || pod["spec"].contains("securityContext"));
  EXPECT_EQ(env(trainer, "COXSWAIN_CONFIG"), "");
  EXPECT_EQ(env(trainer, "PET_NODE_RANK"), "1");
}

TEST(Render, SharedMemoryIsHalfOfTheMemoryLimitUnlessMounted) {
  auto size = [](const std::string& spec) {
    const Json pod = pod_of(spec);
    for (const Json& volume : pod["spec"]["volumes"]) {
      if (volume["name"] == "coxswain-shm") return volume["emptyDir"]["sizeLimit"].get<std::string>();
    }
    return std::string("none");
  };
  EXPECT_EQ(size("{resources: {limits: {memory: 8Gi}}}"), "4096Mi");
  EXPECT_EQ(size("{nodes: 1}"), "2048Mi");
  EXPECT_EQ(size("{volumes: [{name: s, emptyDir: {}}], volumeMounts: [{name: s, mountPath: /dev/shm}]}"),
            "none");
}

TEST(Render, SpecWinsOverTheTemplate) {
  const Json trainer = trainer_of(R"(
resources: {limits: {cpu: 2}}
env: [{name: A, value: spec}]
template: {spec: {containers: [{name: trainer, resources: {limits: {memory: 1Gi}},
                                env: [{name: A, value: t}, {name: B, value: t}]}]}}
config: {a: 1}
)");
  EXPECT_EQ(trainer["resources"], Json::parse(R"({"limits": {"cpu": 2}})"));
  EXPECT_EQ(env(trainer, "A") + env(trainer, "B"), "spect");
}

TEST(Render, TheConfigComesBackAsItWasWritten) {
  const std::string config = "{base_model: m, lr: 5e-5, on: [yes, 'true', 012, \"\"], deep: {a: {b: null}}}";
  const TrainingJob job = job_with("{config: " + config + "}");
  const std::string text = render_config_map(job, 0)["data"]["config.yaml"];
  EXPECT_EQ(load_yaml(text, "t").value().front(), load_yaml(config, "t").value().front()) << text;
}

TEST(Render, TheFingerprintFollowsWhatShapesPodsAndNothingElse) {
  const std::string plain = spec_fingerprint(job_with("{nodes: 2}").spec);
  for (const char* same :
       {"{nodes: 2, suspend: true}", "{nodes: 2, runPolicy: {activeDeadlineSeconds: 5}}"}) {
    EXPECT_EQ(spec_fingerprint(job_with(same).spec), plain) << same;
  }
  for (const char* other : {"{nodes: 3}", "{nodes: 2, image: x}", "{nodes: 2, config: {a: 1}}",
                            "{nodes: 2, env: [{name: A}]}", "{nodes: 2, volumes: [{name: v}]}"}) {
    EXPECT_NE(spec_fingerprint(job_with(other).spec), plain) << other;
  }
}

}  // namespace
}  // namespace coxswain
