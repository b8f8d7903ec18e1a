#include "operator/reconcile/render.h"

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "operator/reconcile/child_meta.h"

namespace coxswain {
namespace {

// FNV-1a: stable over compilers and releases, which std::hash is not.
uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace

std::string service_name(const TrainingJob& job) {
  return job.metadata.name;
}

std::string config_map_name(const TrainingJob& job, int64_t attempt) {
  return job.metadata.name + "-config-" + std::to_string(attempt);
}

std::string pod_name(const TrainingJob& job, int64_t node_rank) {
  return job.metadata.name + "-" + std::to_string(node_rank);
}

std::string spec_fingerprint(const TrainingJobSpec& spec) {
  const Json shaping = {spec.config,
                        spec.pod_template,
                        spec.nodes,
                        spec.processes_per_node.value_or(0),
                        spec.image,
                        spec.resources,
                        spec.env,
                        spec.env_from,
                        spec.volumes,
                        spec.volume_mounts,
                        spec.output.claim_name.value_or(""),
                        spec.output.sub_path,
                        spec.recovery.interval_seconds,
                        spec.run_policy.termination_grace_period_seconds};
  char text[24];
  std::snprintf(
      text, sizeof text, "1-%016llx",
      static_cast<unsigned long long>(fnv1a(shaping.dump(-1, ' ', false, Json::error_handler_t::replace))));
  return text;
}

Json job_labels(const TrainingJob& job) {
  return {{"app.kubernetes.io/name", "trainingjob"},
          {"app.kubernetes.io/instance", job.metadata.name},
          {"app.kubernetes.io/component", "training"},
          {"app.kubernetes.io/managed-by", "coxswain"},
          {contract::kLabelJobName, job.metadata.name}};
}

Json child_metadata(const TrainingJob& job, const std::string& name) {
  Json metadata = {{"name", name}, {"labels", job_labels(job)}};
  if (!job.metadata.namespace_name.empty()) metadata["namespace"] = job.metadata.namespace_name;
  metadata["ownerReferences"] = Json::array({{{"apiVersion", contract::kApiVersion},
                                              {"kind", contract::kKind},
                                              {"name", job.metadata.name},
                                              {"uid", job.metadata.uid},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
  return metadata;
}

Json render_service(const TrainingJob& job) {
  const Json ports = {{{"name", "master"}, {"port", contract::kMasterPort}, {"protocol", "TCP"}},
                      {{"name", "agent"}, {"port", contract::kAgentPort}, {"protocol", "TCP"}}};
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", child_metadata(job, service_name(job))},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", {{contract::kLabelJobName, job.metadata.name}}},
            {"ports", ports}}}};
}

Json render_config_map(const TrainingJob& job, int64_t attempt) {
  Json metadata = child_metadata(job, config_map_name(job, attempt));
  metadata["labels"][contract::kLabelAttempt] = std::to_string(attempt);
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", std::move(metadata)},
          {"immutable", true},
          {"data", {{contract::kConfigKey, to_yaml(job.spec.config)}}}};
}

std::vector<Json> render_children(const TrainingJob& job, int64_t attempt, const std::string& runtime_image) {
  std::vector<Json> children = {render_service(job)};
  if (job.spec.has_config()) children.push_back(render_config_map(job, attempt));
  for (int64_t rank = 0; rank < job.spec.nodes; ++rank) {
    children.push_back(render_pod(job, attempt, rank, runtime_image));
  }
  return children;
}

}  // namespace coxswain
