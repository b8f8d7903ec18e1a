// crds/trainingjob.yaml and the C++ table of fields are one: every name, type, default, enum and bound, both
// ways.
#include <gtest/gtest.h>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "operator/api/schema.h"

namespace coxswain {
namespace {

Json crd() {
  auto documents = load_yaml_file("crds/trainingjob.yaml");
  return documents && documents->size() == 1 ? documents->front() : Json::object();
}

// What the C++ table does not hold: prose, and the CEL rules (their twins are held equal by manifests.yaml).
// A property may be called `description`, so only keys of schemas are removed.
Json without_prose(Json schema) {
  schema.erase("description");
  schema.erase("x-kubernetes-validations");
  if (schema.contains("properties")) {
    for (Json& property : schema["properties"]) property = without_prose(property);
  }
  for (const char* nested : {"items", "additionalProperties"}) {
    if (schema.contains(nested)) schema[nested] = without_prose(schema[nested]);
  }
  return schema;
}

TEST(Crd, HasTheFieldsOfTheTypes) {
  const Json version = crd()["spec"]["versions"][0];
  const Json in_file = without_prose(version["schema"]["openAPIV3Schema"]);
  const Json in_code = to_openapi(training_job_schema());
  EXPECT_EQ(Json::diff(in_code, in_file), Json::array());
}

TEST(Crd, HasTheNamesOfTheContract) {
  const Json object = crd();
  EXPECT_EQ(object["spec"]["group"], contract::kGroup);
  EXPECT_EQ(object["spec"]["names"]["kind"], contract::kKind);
  EXPECT_EQ(object["spec"]["names"]["plural"], contract::kPlural);
  EXPECT_EQ(object["spec"]["versions"][0]["name"], contract::kVersion);
  EXPECT_EQ(object["metadata"]["name"], std::string(contract::kPlural) + "." + contract::kGroup);
}

TEST(Crd, PrinterColumnsPointAtStatusFields) {
  const Json version = crd()["spec"]["versions"][0];
  const Json schema = version["schema"]["openAPIV3Schema"];
  std::string names;
  for (const Json& column : version["additionalPrinterColumns"]) {
    names += column["name"].get<std::string>() + " ";
    const std::string path = column["jsonPath"];
    if (path == ".metadata.creationTimestamp") continue;
    std::string pointer;
    for (const char c : path) pointer += c == '.' ? "/properties/" : std::string(1, c);
    ASSERT_TRUE(schema.contains(Json::json_pointer(pointer))) << path;
    EXPECT_EQ(schema[Json::json_pointer(pointer)]["type"], column["type"]) << path;
  }
  EXPECT_EQ(names, "Phase Ready Step Loss Tokens/s Restarts Age ");
}

TEST(Crd, DefaultsAreThoseOfTheStructs) {
  const TrainingJobSpec from_code;
  const TrainingJob parsed = parse_training_job({{"spec", Json::object()}});
  const TrainingJobSpec& spec = parsed.spec;
  EXPECT_EQ(spec.nodes, from_code.nodes);
  EXPECT_EQ(spec.suspend, from_code.suspend);
  EXPECT_EQ(spec.recovery.interval_seconds, from_code.recovery.interval_seconds);
  EXPECT_EQ(spec.run_policy.backoff_limit, from_code.run_policy.backoff_limit);
  EXPECT_EQ(spec.run_policy.startup_deadline_seconds, from_code.run_policy.startup_deadline_seconds);
  EXPECT_EQ(spec.run_policy.termination_grace_period_seconds,
            from_code.run_policy.termination_grace_period_seconds);
  EXPECT_EQ(spec.run_policy.clean_pod_policy, from_code.run_policy.clean_pod_policy);
  EXPECT_EQ(spec.run_policy.node_lost_timeout_seconds, from_code.run_policy.node_lost_timeout_seconds);
  EXPECT_FALSE(spec.run_policy.active_deadline_seconds || spec.run_policy.ttl_seconds_after_finished ||
               spec.run_policy.hang_timeout_seconds);
  const Json filled = with_defaults(training_job_schema(), {{"spec", Json::object()}});
  EXPECT_EQ(filled["spec"].size(), 4U)
      << filled;  // nodes, recovery, suspend, runPolicy: nothing else has a default
}

}  // namespace
}  // namespace coxswain
