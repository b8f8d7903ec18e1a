// What the program tells of itself and of a job's training.
#include <gmock/gmock.h>
#include <httplib.h>

#include <memory>
#include <sstream>
#include <thread>

#include "contract/contract.h"
#include "tests/client/objects.h"
#include "tests/integration/fake_nodes.h"
#include "tests/integration/fixture.h"
#include "tests/integration/operator_process.h"

namespace coxswain::testing {
namespace {

using coxswain::resources::kPods;
using coxswain::resources::kTrainingJobs;
using ::testing::Contains;
using ::testing::HasSubstr;

const Resource kNewEvents{"events.k8s.io", "v1", "events", "Event"};
constexpr char kAgentAddress[] = "127.0.0.47";  // an address of the pod's own

class Program : public ControlPlaneTest {
 protected:
  void SetUp() override {
    ControlPlaneTest::SetUp();
    if (IsSkipped()) return;
    nodes_ = std::make_unique<FakeNodes>(plane(), FakeNodesOptions{.namespace_name = ns()});
    program_ = std::make_unique<OperatorProcess>(OperatorProcessOptions{
        .kubeconfig = plane().kubeconfig(),
        .flags = {"--namespaces=" + ns(), "--progress-interval=1s", "--log-format=json"}});
    program_->start_and_wait();
  }
  void TearDown() override {
    program_.reset();
    nodes_.reset();
    ControlPlaneTest::TearDown();
  }

  void submit(const std::string& name) {
    Json job = a_training_job(name, 1);
    job["spec"].erase("template");
    job["spec"]["config"] = {
        {"task", "llm"}, {"base_model", "/m"}, {"project_name", "p"}, {"data", {{"path", "/d"}}}};
    const auto created = api().create(kTrainingJobs, ns(), job, {});
    ASSERT_TRUE(created) << created.error().message;
  }
  Json status(const std::string& name) {
    const auto job = api().get(kTrainingJobs, ns(), name);
    return job ? job->value("status", Json::object()) : Json::object();
  }
  bool becomes(const std::string& name, const std::string& phase) {
    return eventually([&] { return status(name).value("phase", "") == phase; });
  }
  // 0 also where there is no such line.
  double metric(const std::string& sample) {
    std::istringstream text(program_->metrics());
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(sample + " ")) return std::stod(line.substr(sample.size() + 1));
    }
    return 0;
  }
  std::vector<Json> log_lines() {
    std::vector<Json> lines;
    std::istringstream text(program_->log());
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line, nullptr, false));
    return lines;
  }
  // As a kubelet would say it once the sandbox has its network.
  void give_address(const std::string& pod) {
    ASSERT_TRUE(eventually([&] {
      auto object = api().get(kPods, ns(), pod);
      if (!object) return false;
      (*object)["status"]["podIP"] = kAgentAddress;
      (*object)["status"]["podIPs"] = Json::array({{{"ip", kAgentAddress}}});
      return api().update_status(kPods, ns(), *object, {}).has_value();
    }));
  }

  std::unique_ptr<OperatorProcess> program_;
  std::unique_ptr<FakeNodes> nodes_;
};

// An agent as the runtime has it, which says what the test wants.
class Agent {
 public:
  Agent() {
    server_.Get("/progress", [this](const httplib::Request&, httplib::Response& response) {
      const Json worker = {
          {"rank", 0}, {"phase", "training"}, {"step", step_++}, {"loss", 2.5}, {"tokens_per_second", 10.0}};
      response.set_content(Json{{"attempt", 0},
                                {"node_rank", 0},
                                {"workers", Json::array({worker})},
                                {"last_checkpoint_step", nullptr}}
                               .dump(),
                           "application/json");
    });
    bound_ = server_.bind_to_port(kAgentAddress, contract::kAgentPort);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Agent() {
    server_.stop();
    thread_.join();
  }
  bool bound() const { return bound_; }

 private:
  httplib::Server server_;
  std::atomic<int> step_ = 7;
  bool bound_ = false;
  std::thread thread_;
};

TEST_F(Program, AsksRankZeroHowFarItIsAndSaysSoInTheStatus) {
  Agent agent;
  ASSERT_TRUE(agent.bound());
  submit("job");
  ASSERT_TRUE(becomes("job", "Running")) << program_->log();
  give_address("job-0");
  EXPECT_TRUE(eventually([&] { return status("job").contains("training"); })) << program_->log();
  const Json training = status("job")["training"];
  EXPECT_GE(training.value("step", 0), 7) << training;
  EXPECT_EQ(training.value("loss", Json()), "2.5") << training;
  EXPECT_TRUE(eventually([&] { return status("job")["training"].value("step", 0) > training["step"]; }))
      << "it asks only once";
  EXPECT_TRUE(eventually([&] { return metric("coxswain_job_first_step_seconds_count") == 1; }));
}

TEST_F(Program, ItsMetricsTellOfAJobsLife) {
  submit("job");
  ASSERT_TRUE(becomes("job", "Running")) << program_->log();
  EXPECT_TRUE(eventually([&] { return metric("coxswain_jobs{phase=\"Running\"}") == 1; }));
  EXPECT_EQ(metric("coxswain_job_pods_created_seconds_count"), 1);
  EXPECT_EQ(metric("coxswain_job_pods_running_seconds_count"), 1);
  EXPECT_GT(metric("controller_runtime_reconcile_time_seconds_count{controller=\"trainingjob\"}"), 0)
      << program_->metrics();
  EXPECT_GT(metric("workqueue_queue_duration_seconds_count{name=\"trainingjob\"}"), 0);
  EXPECT_THAT(program_->metrics(),
              HasSubstr("rest_client_requests_total{code=\"201\",resource=\"pods\",verb=\"create\"} 1"));
  nodes_->kubelet(ns()).end("job-0", 1, "out of luck");
  EXPECT_TRUE(eventually([&] {
    const std::string text = program_->metrics();
    return text.find("coxswain_job_restarts_total{") != std::string::npos &&
           metric("coxswain_job_restarts_total{cause=\"" +
                  status("job").value("/lastFailure/cause"_json_pointer, "?") + "\"}") == 1;
  })) << program_->metrics();
}

TEST_F(Program, EachLogLineIsJsonAndThoseAboutAJobNameIt) {
  submit("job");
  ASSERT_TRUE(becomes("job", "Running")) << program_->log();
  nodes_->kubelet(ns()).end("job-0", 1, "out of luck");
  const auto names_it = [&] {
    for (const Json& line : log_lines()) {
      if (line.is_object() && line.value("job", "") == "job" && line.contains("attempt")) return true;
    }
    return false;
  };
  EXPECT_TRUE(eventually(names_it)) << program_->log();
  for (const Json& line : log_lines()) EXPECT_TRUE(line.is_object()) << program_->log();
}

TEST_F(Program, AnEventIsAboutAStatusThatIsWritten) {
  submit("job");
  ASSERT_TRUE(becomes("job", "Running")) << program_->log();
  nodes_->kubelet(ns()).end("job-0", 1, "out of luck");
  const auto reasons = [&] {
    std::vector<std::string> result;
    const auto events = api().list(kNewEvents, ns(), {});
    for (const Json& event : events ? events->items : std::vector<Json>{}) {
      if (event.value("/regarding/name"_json_pointer, "") != "job") continue;
      EXPECT_EQ(event.value("reportingController", ""), "coxswain-operator");
      EXPECT_NE(event.value("reportingInstance", ""), "coxswain-operator") << "not this process";
      result.push_back(event.value("reason", ""));
    }
    return result;
  };
  EXPECT_TRUE(eventually([&] {
    const auto found = reasons();
    const bool told = std::ranges::find(found, "Restarting") != found.end();
    EXPECT_TRUE(!told || status("job").contains("lastFailure")) << "told before it is written";
    return told;
  })) << ::testing::PrintToString(reasons());
}

}  // namespace
}  // namespace coxswain::testing
