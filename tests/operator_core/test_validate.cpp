// Every case of manifests.yaml; the same table is put to a real API server by the integration tests.
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "operator/api/validate.h"

namespace coxswain {
namespace {

Json table() {
  auto documents = load_yaml_file("tests/operator_core/manifests.yaml");
  if (!documents || documents->size() != 1) return Json::object();
  return documents->front();
}

Json patched(Json object, const Json& patch) {
  object.merge_patch(patch);
  return object;
}

std::string listed(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& problem : problems) out += to_string(problem) + "\n";
  return out;
}

TEST(Validate, SaysYesAndNoAsTheTableOfManifestsDoes) {
  const Json manifests = table();
  ASSERT_GT(manifests.value("cases", Json::array()).size(), 80U);
  for (const Json& test : manifests["cases"]) {
    SCOPED_TRACE(test["name"].get<std::string>());
    std::vector<Problem> problems;
    if (test.contains("before")) {
      const Json before = patched(manifests["base"], test["before"]);
      ASSERT_EQ(listed(validate(before)), "");
      problems = validate_update(patched(before, test["update"]), before);
    } else {
      problems = validate(patched(manifests["base"], test["create"]));
    }
    if (test.contains("field")) {
      ASSERT_FALSE(problems.empty());
      EXPECT_EQ(problems.front().field, test["field"].get<std::string>()) << listed(problems);
      EXPECT_GT(problems.front().message.size(), 10U);
    } else {
      EXPECT_EQ(listed(problems), "");
    }
  }
}

TEST(Validate, NamesTheFieldThatWasMeant) {
  const Json object = patched(table()["base"], {{"spec", {{"runPolicy", {{"backofLimit", 3}}}}}});
  EXPECT_EQ(listed(validate(object)),
            "spec.runPolicy.backofLimit: is not a field; did you mean backoffLimit?\n");
}

TEST(Validate, SaysWhatAValueWasAndWhatItMayBe) {
  const Json object = patched(table()["base"], {{"spec", {{"runPolicy", {{"cleanPodPolicy", "some"}}}}}});
  EXPECT_EQ(listed(validate(object)),
            "spec.runPolicy.cleanPodPolicy: must be one of Running, All, None, was \"some\"\n");
}

TEST(Validate, ReportsEveryProblemAtOnce) {
  const Json object = patched(table()["base"], {{"spec", {{"nodes", 0}, {"suspend", 1}, {"imagee", "x"}}}});
  EXPECT_EQ(validate(object).size(), 3U) << listed(validate(object));
}

TEST(Validate, RefusesOtherKinds) {
  const Json object = patched(table()["base"], {{"kind", "Job"}, {"apiVersion", "batch/v1"}});
  const auto problems = validate(object);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].field, "apiVersion");
  EXPECT_EQ(problems[1].field, "kind");
  EXPECT_FALSE(validate(Json::array()).empty());
  EXPECT_EQ(validate(patched(table()["base"], {{"metadata", {{"name", nullptr}}}})).front().field,
            "metadata.name");
}

TEST(Validate, AsksTheConfigCheckOnlyAboutAnOtherwiseValidJob) {
  int asked = 0;
  const ConfigCheck check = [&asked](const TrainingJobSpec& spec) -> std::optional<std::string> {
    ++asked;
    return spec.config.contains("typo") ? std::optional<std::string>("typo is not a key") : std::nullopt;
  };
  const Json base = table()["base"];
  EXPECT_TRUE(validate(base, check).empty());
  EXPECT_EQ(listed(validate(patched(base, {{"spec", {{"config", {{"typo", 1}}}}}}), check)),
            "spec.config: typo is not a key\n");
  EXPECT_EQ(asked, 2);
  validate(patched(base, {{"spec", {{"nodes", 0}}}}), check);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace coxswain
