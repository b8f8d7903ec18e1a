// What all children of a job have in their metadata.
#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace coxswain {

// app.kubernetes.io/* and the job's name.
Json job_labels(const TrainingJob& job);
// Name, namespace, labels and the controller reference.
Json child_metadata(const TrainingJob& job, const std::string& name);

}  // namespace coxswain
