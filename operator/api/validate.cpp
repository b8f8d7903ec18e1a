#include "operator/api/validate.h"

#include <algorithm>
#include <sstream>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "operator/api/pod_schema.h"
#include "operator/api/schema_check.h"

namespace coxswain {
namespace {

constexpr int64_t kMaxLabelLength = 63;  // a pod's name is its host name

Json at(const Json& object, const char* key) {
  return object.is_object() ? object.value(key, Json()) : Json();
}

void check_kind(const Json& object, std::vector<Problem>& problems) {
  for (const auto& [key, wanted] :
       {std::pair{"apiVersion", contract::kApiVersion}, {"kind", contract::kKind}}) {
    if (!object.contains(key)) {
      problems.push_back({key, std::string("must be given: ") + wanted});
    } else if (object[key] != wanted) {
      problems.push_back({key, std::string("must be ") + wanted + ", was " + object[key].dump()});
    }
  }
}

const Schema& property(const Schema& schema, const std::string& name) {
  return std::find_if(schema.properties.begin(), schema.properties.end(),
                      [&](const auto& entry) { return entry.name == name; })
      ->schema;
}

// generateName is an API server's business: the name is checked when there is one.
void check_metadata(const Json& object, std::vector<Problem>& problems) {
  const Json metadata = at(object, "metadata");
  if (!metadata.is_object()) {
    problems.push_back({"metadata", "must be given, with a name"});
  } else if (metadata.contains("name")) {
    check_schema(property(property(training_job_schema(), "metadata"), "name"), metadata["name"],
                 "metadata.name", problems);
  } else if (!metadata.contains("generateName")) {
    problems.push_back({"metadata.name", "must be given"});
  }
}

// What a person writes: status is the operator's and not looked at.
void check_fields(const Json& object, std::vector<Problem>& problems) {
  Schema schema = training_job_schema();
  schema.required.clear();
  Json looked_at = object;
  looked_at.erase("apiVersion");
  looked_at.erase("kind");
  looked_at.erase("metadata");
  looked_at.erase("status");
  if (!looked_at.contains("spec")) problems.push_back({"spec", "must be given"});
  check_schema(schema, looked_at, "", problems);
}

// --- Twins of the CEL rules
// ------------------------------------------------------------------------------------

void check_name_length(const TrainingJob& job, std::vector<Problem>& problems) {
  const std::string last_pod = job.metadata.name + "-" + std::to_string(job.spec.nodes - 1);
  const int64_t length = static_cast<int64_t>(last_pod.size());
  if (length <= kMaxLabelLength) return;
  problems.push_back({"metadata.name", "must leave the last pod's name (" + last_pod +
                                           ") within 63 characters, it has " + std::to_string(length)});
}

void check_program(const TrainingJobSpec& spec, std::vector<Problem>& problems) {
  if (spec.has_config()) return;
  const Json trainer = template_trainer(spec);
  if (!trainer.is_object() || !at(trainer, "image").is_string() || !at(trainer, "command").is_array()) {
    problems.push_back(
        {"spec",
         "must have config, or a template with a container named trainer that has image and command"});
  }
  if (!spec.image.empty()) {
    problems.push_back({"spec.image",
                        "is for jobs with a config; without one, set the image of the template's "
                        "container trainer"});
  }
}

void check_hang_timeout(const TrainingJobSpec& spec, std::vector<Problem>& problems) {
  if (spec.has_config() || !spec.run_policy.hang_timeout_seconds) return;
  problems.push_back({"spec.runPolicy.hangTimeoutSeconds",
                      "is for jobs with a config; a program of one's own reports no progress to tell a hang "
                      "by, so leave it out"});
}

void check_sub_path(const TrainingJobSpec& spec, std::vector<Problem>& problems) {
  const std::string& path = spec.output.sub_path;
  bool climbs = false;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) climbs = climbs || part == "..";
  if (climbs || path.rfind('/', 0) == 0) {
    problems.push_back({"spec.output.subPath", "must be relative and without '..', was \"" + path + "\""});
  }
}

}  // namespace

std::string to_string(const Problem& problem) {
  return problem.field.empty() ? "The manifest " + problem.message : problem.field + ": " + problem.message;
}

std::vector<Problem> validate(const Json& object, const ConfigCheck& check_config) {
  if (!object.is_object()) return {{"", "must be a mapping with apiVersion, kind, metadata and spec"}};
  std::vector<Problem> problems;
  check_kind(object, problems);
  check_metadata(object, problems);
  check_fields(object, problems);
  if (!problems.empty()) return problems;  // the rules below take well-typed values for granted
  check_pod_parts(object["spec"], problems);
  if (!problems.empty()) return problems;
  const TrainingJob job = parse_training_job(object);
  check_name_length(job, problems);
  check_program(job.spec, problems);
  check_hang_timeout(job.spec, problems);
  check_sub_path(job.spec, problems);
  if (problems.empty() && check_config && job.spec.has_config()) {
    if (auto message = check_config(job.spec)) problems.push_back({"spec.config", *message});
  }
  return problems;
}

}  // namespace coxswain
