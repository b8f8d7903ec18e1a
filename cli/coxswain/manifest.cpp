#include "cli/coxswain/manifest.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "contract/contract.h"
#include "operator/api/json_input.h"
#include "operator/api/parse.h"
#include "runtime/config/parse.h"

namespace coxswain {

namespace {

constexpr char kDefaultNamespace[] = "default";

std::string text(const Json& object, const char* field) {
  const auto it = object.is_object() ? object.find(field) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

struct Setting {
  std::vector<std::string> path;
  std::string value;
};

Result<Setting> split_setting(const std::string& setting) {
  Setting result{{""}, ""};
  bool quoted = false;
  for (size_t i = 0; i < setting.size(); ++i) {
    const char c = setting[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == '.' && !quoted) {
      result.path.emplace_back();
    } else if (c == '=' && !quoted) {
      result.value = setting.substr(i + 1);
      if (std::ranges::find(result.path, "") != result.path.end()) break;
      if (result.path.front() != "spec" && result.path.front() != "metadata") {
        result.path.insert(result.path.begin(), "spec");
      }
      return result;
    } else {
      result.path.back() += c;
    }
  }
  return bad_input("--set " + setting +
                   ": write PATH=VALUE, as in --set nodes=3 or --set config.params.lr=1e-4");
}

std::optional<size_t> index_in(const Json& list, const std::string& word) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error != std::errc{} || end != word.data() + word.size() || index >= list.size()) return std::nullopt;
  return index;
}

void anchor(Json& config, const Json::json_pointer& field, const std::filesystem::path& folder) {
  if (!config.contains(field) || !config.at(field).is_string()) return;
  const std::string path = config.at(field).get<std::string>();
  if (path.empty() || path.starts_with('/') || path.starts_with("${")) return;
  config[field] = (folder / path).lexically_normal().string();
}

// Literal values of spec.env; for what only the cluster knows (valueFrom, envFrom) whatever stands here, so
// that a name that will be set is not refused.
EnvironmentLookup environment_of(const Json& job) {
  const EnvironmentLookup own = process_environment();
  return [own, job](const std::string& name) -> std::optional<std::string> {
    const Json spec = job.value("spec", Json::object());
    const Json entries = spec.value("env", Json::array());
    for (const Json& entry : entries.is_array() ? entries : Json::array()) {
      if (text(entry, "name") != name) continue;
      return entry.contains("valueFrom") ? own(name).value_or("") : text(entry, "value");
    }
    if (spec.contains("envFrom")) return own(name).value_or("");
    return own(name);
  };
}

}  // namespace

Result<std::vector<Json>> load_training_jobs(const std::string& path) {
  auto documents = load_yaml_file(path);
  if (!documents) return documents;
  if (documents->empty()) return bad_input(path + ": holds no document; a TrainingJob is expected");
  for (Json& job : *documents) {
    if (!job.is_object() || text(job, "kind") != contract::kKind) {
      return bad_input(path + ": holds a document of kind \"" + text(job, "kind") + "\"; only " +
                       contract::kKind + " (apiVersion: " + contract::kApiVersion + ") is understood");
    }
    if (job.contains("metadata") && job["metadata"].is_object() && !job["metadata"].contains("namespace")) {
      job["metadata"]["namespace"] = kDefaultNamespace;
    }
  }
  return documents;
}

Result<Json> load_training_job(const std::string& path) {
  auto jobs = load_training_jobs(path);
  if (!jobs) return tl::unexpected(jobs.error());
  if (jobs->size() == 1) return std::move(jobs->front());
  return bad_input(path + ": holds " + std::to_string(jobs->size()) + " TrainingJobs; run one at a time");
}

Result<void> apply_setting(Json& job, const std::string& setting) {
  if (not_utf8_at(setting)) return bad_input("--set: the words after it are not UTF-8 text");
  auto split = split_setting(setting);
  if (!split) return tl::unexpected(split.error());
  auto value = load_yaml(split->value, "--set " + setting);
  if (!value) return tl::unexpected(value.error());
  Json* at = &job;
  for (const std::string& word : split->path) {
    if (at->is_array()) {
      const auto index = index_in(*at, word);
      if (!index) {
        return bad_input("--set " + setting + ": \"" + word + "\" is no element of a list of " +
                         std::to_string(at->size()));
      }
      at = &(*at)[*index];
      continue;
    }
    if (!at->is_object() && !at->is_null()) {
      return bad_input("--set " + setting + ": \"" + word +
                       "\" lies under a value that is no map: " + at->dump());
    }
    at = &(*at)[word];
  }
  *at = value->empty() ? Json() : std::move(value->front());
  return {};
}

void anchor_paths(Json& job, const std::filesystem::path& folder) {
  const auto path = "/spec/config"_json_pointer;
  if (!job.contains(path) || !job.at(path).is_object()) return;
  Json& config = job[path];
  for (const char* field : {"/base_model", "/data/path", "/params/model", "/params/data_path"})
    anchor(config, Json::json_pointer(field), folder);
  const auto resume = "/params/resume_from_checkpoint"_json_pointer;
  if (!config.contains(resume) || !config.at(resume).is_string()) return;
  const std::string from = config.at(resume).get<std::string>();
  for (const char* word : {"auto", "true", "latest", "false", "none"}) {
    if (from == word) return;
  }
  anchor(config, resume, folder);
}

std::vector<Problem> check_manifest(const Json& job) {
  return validate(job, [&](const TrainingJobSpec& spec) -> std::optional<std::string> {
    const auto parsed = parse_train_config(to_yaml(spec.config), "spec.config", {}, environment_of(job));
    if (parsed) return std::nullopt;
    return parsed.error().message;
  });
}

}  // namespace coxswain
