// One training pod: the template, what spec adds to it, and what is the operator's – in this order, later
// wins.
#include <algorithm>
#include <set>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "operator/api/pod_schema.h"
#include "operator/reconcile/child_meta.h"
#include "operator/reconcile/pod_parts.h"
#include "operator/reconcile/render.h"

namespace coxswain {
namespace {

constexpr int64_t kRuntimeUser = 65532;  // the runtime image's user
constexpr double kDefaultShmBytes = 2.0 * 1024 * 1024 * 1024;
constexpr double kMib = 1024.0 * 1024.0;

struct PodContext {
  const TrainingJob& job;
  int64_t attempt;
  int64_t node_rank;
  const std::string& runtime_image;

  const TrainingJobSpec& spec() const { return job.spec; }
};

Json variable(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

// Sets what `defaults` has and `object` lacks, at every depth.
void fill_in(Json& object, const Json& defaults) {
  for (const auto& [key, value] : defaults.items()) {
    if (!object.contains(key)) {
      object[key] = value;
    } else if (object[key].is_object() && value.is_object()) {
      fill_in(object[key], value);
    }
  }
}

// `list` with each item of `more` added, or put in the place of the one with the same `key`.
Json merge_by_key(Json list, const Json& more, const char* key) {
  for (const Json& item : more) {
    auto same = std::find_if(list.begin(), list.end(), [&](const Json& existing) {
      return existing.is_object() && existing.value(key, Json()) == item.value(key, Json());
    });
    if (same == list.end()) {
      list.push_back(item);
    } else {
      *same = item;
    }
  }
  return list;
}

template <typename Reserved>
Json without(const Json& list, const char* key, Reserved reserved) {
  Json out = Json::array();
  for (const Json& item : list) {
    const Json value = item.is_object() ? item.value(key, Json()) : Json();
    if (value.is_string() && !reserved(value.get<std::string>())) out.push_back(item);
  }
  return out;
}

// --- Environment
// ------------------------------------------------------------------------------------------------

Json contract_env(const PodContext& pod) {
  const auto& meta = pod.job.metadata;
  const std::string service = service_name(pod.job);
  const std::string name_space = meta.namespace_name.empty() ? "default" : meta.namespace_name;
  const std::string master = pod_name(pod.job, 0) + "." + service + "." + name_space + ".svc";
  const std::string port = std::to_string(contract::kMasterPort);
  const std::string nodes = std::to_string(pod.spec().nodes);
  const std::string rank = std::to_string(pod.node_rank);
  const std::string processes = std::to_string(processes_per_node(pod.spec()));
  const std::string output = std::string(contract::kOutputMount) + "/" + meta.name;
  Json env = {variable(contract::kEnvMasterAddr, master),
              variable(contract::kEnvMasterPort, port),
              variable(contract::kEnvNodes, nodes),
              variable(contract::kEnvNodeRank, rank),
              variable(contract::kEnvProcessesPerNode, processes),
              variable(contract::kEnvPetNodes, nodes),
              variable(contract::kEnvPetProcessesPerNode, processes),
              variable(contract::kEnvPetNodeRank, rank),
              variable(contract::kEnvPetMasterAddr, master),
              variable(contract::kEnvPetMasterPort, port),
              variable(contract::kEnvJobName, meta.name),
              variable(contract::kEnvJobUid, meta.uid),
              variable(contract::kEnvJobAttempt, std::to_string(pod.attempt)),
              variable(contract::kEnvOutputDir, output),
              variable(contract::kEnvRecoveryDir, output + "/" + contract::kRecoveryFolder + "/" + meta.uid),
              variable(contract::kEnvRecoveryInterval, std::to_string(pod.spec().recovery.interval_seconds)),
              variable(contract::kEnvPythonUnbuffered, "1")};
  if (pod.spec().has_config()) env.push_back(variable(contract::kEnvConfig, contract::kConfigPath));
  if (processes == "1") {
    env.push_back(variable(contract::kEnvRank, rank));
    env.push_back(variable(contract::kEnvLocalRank, "0"));
    env.push_back(variable(contract::kEnvWorldSize, nodes));
    env.push_back(variable(contract::kEnvLocalWorldSize, "1"));
  }
  return env;
}

// Ours come first, so that the user's can refer to them as $(MASTER_ADDR).
Json trainer_env(const PodContext& pod, const Json& trainer) {
  const Json users =
      merge_by_key(member_or_empty(trainer, "env", Json::value_t::array), pod.spec().env, "name");
  Json env = contract_env(pod);
  for (const Json& item : without(users, "name", is_reserved_env)) env.push_back(item);
  return env;
}

// --- Volumes
// ----------------------------------------------------------------------------------------------------

// Half of the memory that the trainer may use: what lies in /dev/shm counts against its limit.
std::string shm_size(const Json& trainer) {
  const Json limits = member_or_empty(member_or_empty(trainer, "resources", Json::value_t::object), "limits",
                                      Json::value_t::object);
  const Json memory = limits.value("memory", Json());
  const auto bytes = parse_quantity(memory.is_string() ? memory.get<std::string>() : memory.dump());
  const double size = bytes && *bytes > 0 ? *bytes / 2 : kDefaultShmBytes;
  constexpr double kLargest = 9e12;  // 2^63 bytes, as far as a quantity of Kubernetes goes
  return std::to_string(static_cast<int64_t>(std::clamp(size / kMib, 1.0, kLargest))) + "Mi";
}

bool mounts_path(const Json& mounts, const char* path) {
  return std::any_of(mounts.begin(), mounts.end(), [&](const Json& mount) {
    const Json at = mount.value("mountPath", Json());
    return at == path || at == std::string(path) + "/";
  });
}

struct Mounted {
  Json volumes = Json::array();
  Json mounts = Json::array();

  void add(Json volume, const char* path, const Json& extra = Json::object()) {
    Json mount = {{"name", volume["name"]}, {"mountPath", path}};
    mount.update(extra);
    mounts.push_back(std::move(mount));
    volumes.push_back(std::move(volume));
  }
};

void add_output(const Output& output, Mounted& mounted) {
  if (!output.claim_name) {
    mounted.add({{"name", kOutputVolume}, {"emptyDir", Json::object()}}, contract::kOutputMount);
    return;
  }
  Json extra = Json::object();
  if (!output.sub_path.empty()) extra["subPath"] = output.sub_path;
  mounted.add({{"name", kOutputVolume}, {"persistentVolumeClaim", {{"claimName", *output.claim_name}}}},
              contract::kOutputMount, extra);
}

void add_operator_volumes(const PodContext& pod, const Json& trainer, Mounted& mounted) {
  if (pod.spec().has_config()) {
    mounted.add({{"name", kConfigVolume}, {"configMap", {{"name", config_map_name(pod.job, pod.attempt)}}}},
                contract::kConfigDir, {{"readOnly", true}});
  }
  add_output(pod.spec().output, mounted);
  if (!mounts_path(mounted.mounts, kShmPath)) {
    mounted.add(
        {{"name", kShmVolume}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", shm_size(trainer)}}}},
        kShmPath);
  }
  // The root file system of our image is read-only.
  if (pod.spec().has_config() && !mounts_path(mounted.mounts, kTmpPath)) {
    mounted.add({{"name", kTmpVolume}, {"emptyDir", Json::object()}}, kTmpPath);
  }
}

// --- The container
// ----------------------------------------------------------------------------------------------

void run_the_runtime(const PodContext& pod, Json& trainer) {
  trainer["image"] = pod.spec().image.empty() ? pod.runtime_image : pod.spec().image;
  trainer["command"] = {contract::kRuntimeProgram, "launch"};
  trainer.erase("args");
  Json& security = trainer["securityContext"];
  if (!security.is_object()) security = Json::object();
  fill_in(security, {{"allowPrivilegeEscalation", false},
                     {"readOnlyRootFilesystem", true},
                     {"capabilities", {{"drop", {"ALL"}}}}});
  trainer["ports"] = merge_by_key(
      member_or_empty(trainer, "ports", Json::value_t::array),
      {{{"name", "agent"}, {"containerPort", contract::kAgentPort}, {"protocol", "TCP"}}}, "containerPort");
  if (!trainer.contains("terminationMessagePolicy"))
    trainer["terminationMessagePolicy"] = "FallbackToLogsOnError";
}

// The trainer container; `mounted` gets its volumes.
Json render_trainer(const PodContext& pod, Mounted& mounted) {
  Json trainer = template_trainer(pod.spec());
  if (!trainer.is_object()) trainer = {{"name", contract::kTrainerContainer}};
  for (const char* key : kRestartFields) trainer.erase(key);
  trainer["env"] = trainer_env(pod, trainer);
  const Json env_from = member_or_empty(trainer, "envFrom", Json::value_t::array);
  if (!env_from.empty() || !pod.spec().env_from.empty()) {
    trainer["envFrom"] = env_from;
    for (const Json& source : pod.spec().env_from) trainer["envFrom"].push_back(source);
  }
  if (pod.spec().resources.is_object()) trainer["resources"] = pod.spec().resources;
  mounted.mounts =
      without(without(merge_by_key(member_or_empty(trainer, "volumeMounts", Json::value_t::array),
                                   pod.spec().volume_mounts, "mountPath"),
                      "mountPath", is_reserved_mount),
              "name", is_reserved_volume);
  add_operator_volumes(pod, trainer, mounted);
  trainer["volumeMounts"] = mounted.mounts;
  if (pod.spec().has_config()) run_the_runtime(pod, trainer);
  return trainer;
}

Json pod_metadata(const PodContext& pod) {
  Json metadata = child_metadata(pod.job, pod_name(pod.job, pod.node_rank));
  metadata["labels"][contract::kLabelNodeRank] = std::to_string(pod.node_rank);
  metadata["labels"][contract::kLabelAttempt] = std::to_string(pod.attempt);
  metadata["annotations"] = {{kAnnotationSpec, spec_fingerprint(pod.spec())}};
  const Json users = member_or_empty(pod.spec().pod_template, "metadata", Json::value_t::object);
  fill_in(metadata["labels"], member_or_empty(users, "labels", Json::value_t::object));
  fill_in(metadata["annotations"], member_or_empty(users, "annotations", Json::value_t::object));
  return metadata;
}

void set_pod_fields(const PodContext& pod, Json& pod_spec) {
  pod_spec["hostname"] = pod_name(pod.job, pod.node_rank);
  pod_spec["subdomain"] = service_name(pod.job);
  pod_spec["restartPolicy"] = "Never";
  pod_spec["terminationGracePeriodSeconds"] = pod.spec().run_policy.termination_grace_period_seconds;
  fill_in(pod_spec, {{"enableServiceLinks", false}, {"automountServiceAccountToken", false}});
  if (!pod.spec().has_config()) return;
  fill_in(pod_spec, {{"securityContext",
                      {{"runAsNonRoot", true},
                       {"runAsUser", kRuntimeUser},
                       {"runAsGroup", kRuntimeUser},
                       {"fsGroup", kRuntimeUser},
                       {"fsGroupChangePolicy", "OnRootMismatch"},
                       {"seccompProfile", {{"type", "RuntimeDefault"}}}}}});
}

}  // namespace

Json render_pod(const TrainingJob& job, int64_t attempt, int64_t node_rank,
                const std::string& runtime_image) {
  const PodContext pod{job, attempt, node_rank, runtime_image};
  Json pod_spec = member_or_empty(job.spec.pod_template, "spec", Json::value_t::object);
  Mounted mounted;
  const Json trainer = render_trainer(pod, mounted);
  pod_spec["containers"] = merge_by_key(member_or_empty(pod_spec, "containers", Json::value_t::array),
                                        Json::array({trainer}), "name");
  Json volumes =
      merge_by_key(member_or_empty(pod_spec, "volumes", Json::value_t::array), job.spec.volumes, "name");
  volumes = without(volumes, "name", is_reserved_volume);
  for (const Json& volume : mounted.volumes) volumes.push_back(volume);
  pod_spec["volumes"] = std::move(volumes);
  set_pod_fields(pod, pod_spec);
  return without_nulls({{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"metadata", pod_metadata(pod)},
                        {"spec", std::move(pod_spec)}});
}

}  // namespace coxswain
