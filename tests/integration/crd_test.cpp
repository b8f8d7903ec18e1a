// crds/trainingjob.yaml as a real API server and kubectl understand it.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "operator/api/parse.h"
#include "operator/api/schema.h"
#include "operator/client/rest/api_request.h"
#include "tests/client/objects.h"
#include "tests/integration/fixture.h"

namespace coxswain::testing {
namespace {

using coxswain::resources::kTrainingJobs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kStrictDryRun[] = "?dryRun=All&fieldValidation=Strict";

Json document(const std::string& path) {
  const auto documents = load_yaml_file(path);
  if (!documents || documents->size() != 1) throw std::runtime_error(path + " is not one YAML document");
  return documents->front();
}

Json patched(Json object, const Json& patch) {
  object.merge_patch(patch);
  return object;
}

// Whether the server said yes, and if not, of which fields.
struct Verdict {
  bool accepted = false;
  std::set<std::string> fields{};
  std::string answer{};
};

// The fields of `strict decoding error: unknown field "spec.a", unknown field "spec.b"`.
void read_unknown_fields(const std::string& message, std::set<std::string>& fields) {
  const std::string before = "unknown field \"";
  for (size_t at = message.find(before); at != std::string::npos; at = message.find(before, at)) {
    at += before.size();
    fields.insert(message.substr(at, message.find('"', at) - at));
  }
}

Verdict verdict(const HttpResult& answer) {
  if (!answer) return {false, {}, answer.error().message};
  Verdict result{answer->status < 300, {}, answer->body};
  const Json body = Json::parse(answer->body, nullptr, false);
  for (const Json& cause : body.value("/details/causes"_json_pointer, Json::array())) {
    result.fields.insert(cause.value("field", ""));
  }
  read_unknown_fields(body.value("message", ""), result.fields);
  return result;
}

class Crd : public ControlPlaneTest {
 protected:
  std::string path(const std::string& name = "", const std::string& subresource = "") {
    return api_request::path(kTrainingJobs, ns(), name, subresource);
  }
  Json in_this_namespace(Json job) {
    job["metadata"]["namespace"] = ns();
    return job;
  }
  Json create(const Json& job) {
    const auto created = api().create(kTrainingJobs, ns(), job, {});
    EXPECT_TRUE(created) << created.error().message;
    return created.value_or(Json::object());
  }
  // As `kubectl apply` would: the whole object replaces the stored one.
  Verdict update(const Json& before, const Json& patch) {
    const Json stored = create(before);
    Json after = patched(before, patch);
    after["metadata"]["resourceVersion"] = stored.at("/metadata/resourceVersion"_json_pointer);
    const Verdict result =
        verdict(plane().send("PUT", path(before["metadata"]["name"]) + kStrictDryRun, after));
    EXPECT_TRUE(api().remove(kTrainingJobs, ns(), before["metadata"]["name"], {}));
    return result;
  }
  Finished kubectl(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.push_back("--namespace=" + ns());
    Finished result = plane().kubectl(arguments, input);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }
};

// The table that validate() is held to by tests/operator_core.
TEST_F(Crd, TheServerSaysYesAndNoAsTheTableOfManifestsDoes) {
  const Json manifests = document("tests/operator_core/manifests.yaml");
  const Json base = in_this_namespace(manifests["base"]);
  int refused = 0;
  for (const Json& test : manifests["cases"]) {
    SCOPED_TRACE(test["name"].get<std::string>());
    const Verdict result =
        test.contains("before")
            ? update(patched(base, test["before"]), test["update"])
            : verdict(plane().send("POST", path() + kStrictDryRun, patched(base, test["create"])));
    // `only: client` says that a server cannot refuse it.
    const bool bad = test.contains("field") && test.value("only", "") != "client";
    EXPECT_EQ(result.accepted, !bad) << result.answer;
    if (bad) {
      EXPECT_TRUE(result.fields.contains(test["field"])) << result.answer;
    }
    refused += bad ? 1 : 0;
  }
  EXPECT_GT(refused, 60);
}

// --- kubectl

TEST_F(Crd, ApplyingTheDefinitionAgainChangesNothing) {
  const std::vector<std::string> get{"get", "crd", "trainingjobs.training.coxswain.dev", "--output=json"};
  kubectl({"apply", "--filename=crds/trainingjob.yaml"});
  const Json first = Json::parse(kubectl(get).out)["metadata"];
  EXPECT_THAT(kubectl({"apply", "--filename=crds/trainingjob.yaml"}).out, HasSubstr("unchanged"));
  const Json second = Json::parse(kubectl(get).out)["metadata"];
  EXPECT_EQ(first["resourceVersion"], second["resourceVersion"]);
  EXPECT_EQ(first["generation"], second["generation"]);
}

TEST_F(Crd, ApplyingAJobAgainChangesNothing) {
  const std::string manifest = a_training_job("j", 2).dump();
  EXPECT_THAT(kubectl({"apply", "--filename=-"}, manifest).out, HasSubstr("created"));
  const Json first = *api().get(kTrainingJobs, ns(), "j");
  EXPECT_THAT(kubectl({"apply", "--filename=-"}, manifest).out, HasSubstr("unchanged"));
  EXPECT_THAT(kubectl({"apply", "--server-side", "--field-manager=flux", "--filename=-"}, manifest).out,
              HasSubstr("serverside-applied"));
  const Json second = *api().get(kTrainingJobs, ns(), "j");
  EXPECT_EQ(first["spec"], second["spec"]);
  EXPECT_EQ(first["metadata"]["generation"], second["metadata"]["generation"]);
}

TEST_F(Crd, GetPrintsWhatAPersonWantsToKnow) {
  Json job = create(a_training_job("j", 2));
  TrainingJobStatus status;
  status.phase = Phase::kRunning;
  status.nodes = {.desired = 2, .active = 2, .ready = 2};
  status.restarts.counted = 1;
  status.training.emplace();
  status.training->step = 7;
  status.training->loss = "0.25";
  status.training->tokens_per_second = "1234.5";
  job["status"] = status_to_json(status);
  const auto written = api().update_status(kTrainingJobs, ns(), job, {});
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_THAT(kubectl({"get", "tj"}).out,
              ::testing::MatchesRegex("NAME +PHASE +READY +STEP +LOSS +TOKENS/S +RESTARTS +AGE *\n"
                                      "j +Running +2 +7 +0.25 +1234.5 +1 +[0-9]+s *\n"));
  for (const char* name : {"trainingjob", "trainingjobs", "training", "all"}) {
    EXPECT_THAT(kubectl({"get", name, "--output=name"}).out, HasSubstr("/j\n")) << name;
  }
}

// `tj.spec`, `tj.spec.runPolicy` …: every object of ours, as `kubectl explain` names it.
void collect_objects(const Schema& schema, const std::string& path, std::vector<std::string>& paths) {
  if (schema.type == FieldType::kArray) return collect_objects(schema.items[0], path, paths);
  if (schema.type != FieldType::kObject || schema.properties.empty()) return;
  paths.push_back(path);
  for (const auto& [name, property] : schema.properties) {
    const bool of_kubernetes = path == "tj" && name == "metadata";
    if (!of_kubernetes) collect_objects(property, path + "." + name, paths);
  }
}

TEST_F(Crd, ExplainSaysSomethingOfEveryField) {
  std::vector<std::string> paths;
  collect_objects(training_job_schema(), "tj", paths);
  ASSERT_THAT(paths, ::testing::IsSupersetOf({"tj.spec", "tj.spec.runPolicy", "tj.status.training"}));
  for (const std::string& path : paths) {
    const std::string text = kubectl({"explain", path}).out;
    EXPECT_THAT(text, HasSubstr("FIELDS:")) << path;
    EXPECT_THAT(text, Not(HasSubstr("<no description>"))) << path;
  }
}

// --- The C++ types

// Properties that `value` doesn't have, so that a sample of everything stays one.
void collect_missing(const Schema& schema, const Json& value, const std::string& path,
                     std::vector<std::string>& missing) {
  if (schema.type == FieldType::kArray && value.is_array() && !value.empty()) {
    return collect_missing(schema.items[0], value[0], path + "[0]", missing);
  }
  for (const auto& [name, property] : schema.properties) {
    if (!value.contains(name)) {
      missing.push_back(path + "." + name);
    } else {
      collect_missing(property, value[name], path + "." + name, missing);
    }
  }
}

const Schema& property(const std::string& name) {
  const auto& properties = training_job_schema().properties;
  return std::ranges::find(properties, name, &Property::name)->schema;
}

TEST_F(Crd, ASpecWithEveryFieldComesBackAsItWasSent) {
  const Json manifests = document("tests/operator_core/manifests.yaml");
  Json job;
  for (const Json& test : manifests["cases"]) {
    if (test["name"] == "everything there is") job = patched(manifests["base"], test["create"]);
  }
  ASSERT_FALSE(job.is_null());
  job = in_this_namespace(job);
  std::vector<std::string> missing;
  collect_missing(property("spec"), job["spec"], "spec", missing);
  EXPECT_THAT(missing, IsEmpty()) << "not in the case \"everything there is\" of manifests.yaml";
  EXPECT_EQ(Json::diff(job["spec"], create(job)["spec"]), Json::array());
}

TimePoint moment(int minutes) {
  return parse_time("2026-01-02T03:00:00Z").value() + std::chrono::minutes(minutes);
}

TrainingJobStatus full_status() {
  TrainingJobStatus status;
  status.observed_generation = 4;
  status.conditions = {{"Running", true, "AllPodsRunning", "m", 4, moment(1)},
                       {"Ready", false, "Starting", "n", 3, moment(2)}};
  status.phase = Phase::kRunning;
  status.attempt = 2;
  status.runtime_image = "registry.example/runtime:1";
  status.nodes = {.desired = 5, .active = 4, .ready = 3, .succeeded = 2, .failed = 1};
  status.restarts = {.counted = 3, .disruptions = 2, .hangs = 1};
  status.start_time = moment(3);
  status.startup_time = moment(4);
  status.completion_time = moment(5);
  status.last_failure = LastFailure{moment(6), 1, "j-1", 1, "OOMKilled", 137, "killed"};
  status.training = TrainingStatus{.step = 7,
                                   .total_steps = 9,
                                   .epoch = "0.5",
                                   .loss = "NaN",
                                   .tokens_per_second = "12.5",
                                   .estimated_completion_time = moment(7),
                                   .last_progress_time = moment(8),
                                   .last_checkpoint_step = 5};
  return status;
}

TEST_F(Crd, AStatusWithEveryFieldComesBackAsItWasWritten) {
  const Json sent = status_to_json(full_status());
  std::vector<std::string> missing;
  collect_missing(property("status"), sent, "status", missing);
  EXPECT_THAT(missing, IsEmpty()) << "not in full_status()";
  Json job = create(a_training_job("j"));
  job["status"] = sent;
  const auto written = api().update_status(kTrainingJobs, ns(), job, {});
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(Json::diff(sent, (*written)["status"]), Json::array());
  EXPECT_EQ(parse_training_job(*api().get(kTrainingJobs, ns(), "j")).status, full_status());
}

// What a server fills in is what parse_training_job() assumes where nothing is written.
TEST_F(Crd, DefaultsAreThoseOfTheTypes) {
  const Json job = in_this_namespace(document("tests/operator_core/manifests.yaml")["base"]);
  const Json filled = with_defaults(training_job_schema(), job);
  EXPECT_EQ(Json::diff(filled["spec"], create(job)["spec"]), Json::array());
}

}  // namespace
}  // namespace coxswain::testing
