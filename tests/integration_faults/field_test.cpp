// What people and other controllers do to a job's world while it runs.
#include <gmock/gmock.h>

#include <atomic>
#include <iostream>

#include "operator/client/metadata.h"
#include "operator/client/rest/api_request.h"
#include "tests/client/objects.h"
#include "tests/integration_deploy/installation.h"
#include "tests/integration_faults/scene.h"

namespace coxswain::testing {
namespace {

using namespace coxswain::resources;
using namespace std::chrono_literals;

const Resource kSecrets{"", "v1", "secrets", "Secret"};
const Resource kQuotas{"", "v1", "resourcequotas", "ResourceQuota"};

class InTheField : public FaultTest {
 protected:
  ApiClient& api() { return plane().api(); }

  // A token that is good as long as the secret is there.
  std::string token_bound_to(const std::string& secret) {
    EXPECT_TRUE(api().create(kSecrets, kOperatorNamespace, {{"metadata", {{"name", secret}}}}, {}));
    const Json bound = {{"kind", "Secret"}, {"apiVersion", "v1"}, {"name", secret}};
    const auto answer = plane().request(
        "POST", api_request::path(kServiceAccounts, kOperatorNamespace, kOperatorAccount, "token"),
        {{"apiVersion", "authentication.k8s.io/v1"},
         {"kind", "TokenRequest"},
         {"spec", {{"expirationSeconds", 600}, {"boundObjectRef", bound}}}});
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? answer->at("/status/token"_json_pointer).get<std::string>() : "";
  }
  bool is_good(const std::string& token) {
    const Finished asked =
        plane().kubectl({"--kubeconfig", plane().kubeconfig_for_token(token), "auth", "whoami"});
    return asked.exit_code == 0;
  }
};

TEST_F(InTheField, ATokenIsReplacedAndTheOldOneRefused) {
  const std::string old = token_bound_to("first");
  write_token(old);
  FaultProxy proxy(plane());
  Storm storm(plane(), invariants(), {3, storm_seed()});
  OperatorProcess program(operator_for(proxy, storm.ns()));
  program.start();
  let_it_blow(storm, 1);
  write_token(token_bound_to("second"));
  ASSERT_TRUE(api().remove(kSecrets, kOperatorNamespace, "first", {}));
  ASSERT_TRUE(eventually([&] { return !is_good(old); })) << "the old token is still good";
  let_it_blow(storm, storm.attempts_ended() + 2);
  see_it_through(storm);
  EXPECT_TRUE(program.running());
  EXPECT_LT(proxy.answers(401), 20) << "the old token was shown again and again";
  std::cout << "token replaced and the old one refused: " << proxy.answers(401) << " answers of 401; "
            << storm.summary() << "\n";
}

TEST_F(InTheField, ServiceAndConfigMapDeletedByHandComeBackAndEndNothing) {
  FaultProxy proxy(plane());
  Storm storm(plane(), invariants(), {1, storm_seed()});
  OperatorProcess program(operator_for(proxy, storm.ns()));
  program.start();
  ASSERT_TRUE(eventually([&] { return storm.all_run(); })) << program.log();
  for (const Resource& resource : {kServices, kConfigMaps}) {
    const auto ours = api().list(resource, storm.ns(), {.label_selector = "training.coxswain.dev/job-name"});
    ASSERT_TRUE(ours);
    ASSERT_EQ(ours->items.size(), 1U) << resource.kind;
    const std::string name = metadata::name(ours->items[0]);
    ASSERT_TRUE(api().remove(resource, storm.ns(), name, {}));
    EXPECT_TRUE(eventually([&] {
      const auto now = api().get(resource, storm.ns(), name);
      return now && metadata::uid(*now) != metadata::uid(ours->items[0]);
    })) << resource.kind
        << " does not come back";
  }
  EXPECT_EQ(storm.attempts_ended(), 0);
  see_it_through(storm);
}

TEST_F(InTheField, AQuotaHoldsAJobUpUntilItIsFreed) {
  FaultProxy proxy(plane());
  Storm storm(plane(), invariants(), {0, storm_seed()});
  const Json quota = {{"metadata", {{"name", "pods"}}}, {"spec", {{"hard", {{"pods", "1"}}}}}};
  ASSERT_TRUE(api().create(kQuotas, storm.ns(), quota, {}));
  ASSERT_TRUE(eventually([&] {
    const auto now = api().get(kQuotas, storm.ns(), "pods");
    return now && now->contains("/status/hard/pods"_json_pointer);
  }));
  storm.submit("one", 1, false);
  OperatorProcess program(operator_for(proxy, storm.ns()));
  program.start();
  ASSERT_TRUE(eventually([&] { return storm.all_run(); })) << program.log();
  storm.submit("two", 2, false);
  EXPECT_TRUE(eventually([&] {
    const auto job = api().get(kTrainingJobs, storm.ns(), "two");
    return job &&
           job->value("/status"_json_pointer, Json::object()).dump().find("quota") != std::string::npos;
  })) << "the status does not say that the quota is used up";
  EXPECT_EQ(invariants().jobs(storm.ns()).at("two").pods.size(), 0U);
  ASSERT_TRUE(api().merge_patch(kQuotas, storm.ns(), "pods", {{"spec", {{"hard", {{"pods", "3"}}}}}}, {}));
  see_it_through(storm);
  std::cout << "quota filled and freed: " << proxy.answers(403) << " answers of 403; " << storm.summary()
            << "\n";
  EXPECT_LT(proxy.answers(403), 20) << Json(proxy.requests_by_kind()).dump(2);
}

TEST_F(InTheField, SomebodyElseWritesToTheJobsAllTheTime) {
  constexpr int kJobs = 4;
  FaultProxy proxy(plane());
  Storm storm(plane(), invariants(), {kJobs, storm_seed()});
  std::atomic<int> writes = 0;
  {
    std::jthread meddler([&](const std::stop_token& stop) {
      for (int i = 0; !stop.stop_requested(); ++i) {
        for (int j = 0; j < kJobs; ++j) {
          const std::string name = "job-" + std::to_string(j);
          const Json note = {{"metadata", {{"annotations", {{"example.com/touched", std::to_string(i)}}}}}};
          writes += api().merge_patch(kTrainingJobs, storm.ns(), name, note, {}) ? 1 : 0;
          // A status that is not theirs to write: refused where it is not of the newest object.
          auto job = api().get(kTrainingJobs, storm.ns(), name);
          if (!job || !job->contains("status")) continue;
          (*job)["status"]["nodes"]["ready"] = 99;
          writes += api().update_status(kTrainingJobs, storm.ns(), *job, {}) ? 1 : 0;
        }
      }
    });
    OperatorProcess program(operator_for(proxy, storm.ns()));
    program.start();
    let_it_blow(storm, 2 * kJobs);
    see_it_through(storm);
  }
  std::cout << "conflicts forced: " << writes << " writes by another hand, " << proxy.answers(409)
            << " answers of 409, " << proxy.requests() << " requests; " << storm.summary() << "\n";
  EXPECT_GT(proxy.answers(409), 0) << "no conflict was forced";
  EXPECT_LT(proxy.requests(), 5 * writes) << "more than what each of their writes gives reason for";
}

}  // namespace
}  // namespace coxswain::testing
