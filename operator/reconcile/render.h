// The children of a TrainingJob as objects of the Kubernetes API. Pure: never asks the API, the same job
// gives the same bytes.
#pragma once

#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

// On pods: what of the spec they were made from; differs → the gang is rebuilt.
inline constexpr char kAnnotationSpec[] = "training.coxswain.dev/spec-fingerprint";

std::string service_name(const TrainingJob& job);
std::string config_map_name(const TrainingJob& job, int64_t attempt);
std::string pod_name(const TrainingJob& job, int64_t node_rank);

// A hash of the fields of the spec that shape pods (not of suspend and runPolicy's deadlines).
std::string spec_fingerprint(const TrainingJobSpec& spec);

// Headless, for the pods' host names; resolves pods that are not ready yet, as ranks must find rank 0.
Json render_service(const TrainingJob& job);
// The config as config.yaml; immutable, one for each attempt. Call only where spec.has_config().
Json render_config_map(const TrainingJob& job, int64_t attempt);
// `runtime_image` is used where the job has a config and no image of its own.
Json render_pod(const TrainingJob& job, int64_t attempt, int64_t node_rank, const std::string& runtime_image);
// Service, ConfigMap (with a config) and pods by rank: all that an attempt is made of.
std::vector<Json> render_children(const TrainingJob& job, int64_t attempt, const std::string& runtime_image);

// One sentence for each thing that the manifest says and the pods don't get, because it is the operator's:
// reserved environment names, contract paths, volume names, restartPolicy …
std::vector<std::string> overridden_by_operator(const TrainingJob& job);

}  // namespace coxswain
