// What a scraper sees: of figures given by hand, and of whole lives of jobs.
#include "operator/metrics/operator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <thread>

#include "operator/api/parse.h"
#include "operator/client/faulty_api.h"
#include "operator/controller/controller.h"
#include "tests/client/objects.h"
#include "tests/client/simulated_node.h"
#include "tests/operator_metrics/exposition.h"

namespace coxswain {
namespace {

using namespace resources;
using std::chrono::milliseconds;
constexpr char kNs[] = "secret-namespace";

Exposition read(const OperatorMetrics& metrics) {
  auto parsed = parse_exposition(metrics.text());
  if (!parsed) throw std::runtime_error(parsed.error());
  return *std::move(parsed);
}

TEST(OperatorMetrics, OfTheQueue) {
  OperatorMetrics metrics("1.2.3");
  metrics.depth(7);
  metrics.added();
  metrics.added();
  metrics.retried();
  metrics.queue_duration(milliseconds(250));
  metrics.work_duration(milliseconds(2000));
  const Exposition seen = read(metrics);
  EXPECT_EQ(seen.value("workqueue_depth{name=\"trainingjob\"}"), 7);
  EXPECT_EQ(seen.value("workqueue_adds_total{name=\"trainingjob\"}"), 2);
  EXPECT_EQ(seen.value("workqueue_retries_total{name=\"trainingjob\"}"), 1);
  EXPECT_EQ(seen.value("workqueue_queue_duration_seconds_sum{name=\"trainingjob\"}"), 0.25);
  EXPECT_EQ(seen.value("workqueue_work_duration_seconds_bucket{le=\"1\",name=\"trainingjob\"}"), 0);
  EXPECT_EQ(seen.value("workqueue_work_duration_seconds_bucket{le=\"10\",name=\"trainingjob\"}"), 1);
}

TEST(OperatorMetrics, OfRequestsByVerbResourceAndCode) {
  OperatorMetrics metrics("1");
  metrics.on_request({"create", "pods", 201, milliseconds(20)});
  metrics.on_request({"create", "pods", 201, milliseconds(20)});
  metrics.on_request({"update", "trainingjobs/status", 409, milliseconds(20)});
  metrics.on_request({"list", "pods", 0, milliseconds(20)});
  const Exposition seen = read(metrics);
  EXPECT_EQ(seen.value("rest_client_requests_total{code=\"201\",resource=\"pods\",verb=\"create\"}"), 2);
  EXPECT_EQ(
      seen.value("rest_client_requests_total{code=\"409\",resource=\"trainingjobs/status\",verb=\"update\"}"),
      1);
  EXPECT_EQ(seen.value("rest_client_requests_total{code=\"<error>\",resource=\"pods\",verb=\"list\"}"), 1);
  EXPECT_EQ(seen.value("rest_client_request_duration_seconds_count{resource=\"pods\",verb=\"create\"}"), 2);
}

TEST(OperatorMetrics, OfTheProgram) {
  OperatorMetrics metrics("1.2.3");
  EXPECT_EQ(read(metrics).value("coxswain_build_info{version=\"1.2.3\"}"), 1);
  EXPECT_TRUE(read(metrics).samples.contains("coxswain_leader"));
  EXPECT_EQ(read(metrics).value("coxswain_leader"), 0);
  metrics.set_leader(true);
  EXPECT_EQ(read(metrics).value("coxswain_leader"), 1);
  metrics.set_leader(false);
  EXPECT_EQ(read(metrics).value("coxswain_leader"), 0);
}

TEST(OperatorMetrics, EveryPhaseAndCauseIsThereFromTheStart) {
  OperatorMetrics metrics("1");
  const Exposition seen = read(metrics);
  for (const char* phase : {"Pending", "Starting", "Running", "Restarting", "Suspending", "Suspended",
                            "Stalled", "Complete", "Failed"}) {
    const std::string sample = std::string("coxswain_jobs{phase=\"") + phase + "\"}";
    EXPECT_TRUE(seen.samples.contains(sample)) << sample;
  }
  EXPECT_TRUE(seen.samples.contains("coxswain_job_restarts_total{cause=\"OOMKilled\"}"));
  EXPECT_TRUE(seen.samples.contains(
      "controller_runtime_reconcile_total{controller=\"trainingjob\",result=\"error\"}"));
}

TEST(OperatorMetrics, ACauseThatIsNoneOfOursMakesNoSeries) {
  OperatorMetrics metrics("1");
  TrainingJobStatus status;
  const Json before = {{"metadata", {{"uid", "u"}}}, {"status", status_to_json(status)}};
  status.attempt = 1;
  status.last_failure = LastFailure{TimePoint{}, 0, "j-0", 0, "made up\"\n", 1, "m"};
  const Json after = {{"metadata", {{"uid", "u"}}}, {"status", status_to_json(status)}};
  metrics.job_changed(before, after, TimePoint{});
  EXPECT_EQ(read(metrics).value("coxswain_job_restarts_total{cause=\"Other\"}"), 1);
  EXPECT_THAT(metrics.text(), ::testing::Not(::testing::HasSubstr("made up")));
}

// docs/metrics.md lists what there is, no more and no less.
TEST(OperatorMetrics, AreAllDocumented) {
  OperatorMetrics metrics("1");
  metrics.on_request({"get", "pods", 200, milliseconds(1)});
  std::map<std::string, std::string> documented;
  std::ifstream file("docs/metrics.md");
  const std::regex row(R"(\| `([a-z_]+)` \| ([a-z]+) \|.*)");
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, match, row)) documented[match[1]] = match[2];
  }
  EXPECT_EQ(read(metrics).types, documented);
}

// --- Whole lives

class LivesTest : public ::testing::Test {
 protected:
  void SetUp() override { new_controller(); }
  void new_controller() {
    metrics_.set_jobs({});
    ControllerOptions options;
    options.watch = in_process_watch_settings();
    options.observer = &metrics_;
    controller_ = std::make_unique<Controller>(faulty_, nullptr, clock_, options);
    metrics_.set_jobs([this] { return controller_->view().jobs(); });
  }
  void TearDown() override { metrics_.set_jobs({}); }
  void settle() {
    for (int i = 0; i < 30; ++i) {
      controller_->step();
      node_.step();
    }
  }
  void pass_time(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_ += std::chrono::seconds(1);
      settle();
    }
  }
  void submit(const std::string& name, const Json& spec = Json::object()) {
    Json job = a_training_job(name, 2);
    job["spec"].merge_patch(spec);
    ASSERT_TRUE(api_.create(kTrainingJobs, kNs, job, {}));
  }
  double jobs(const std::string& phase) {
    return read(metrics_).value("coxswain_jobs{phase=\"" + phase + "\"}");
  }
  double restarts(const std::string& cause) {
    return read(metrics_).value("coxswain_job_restarts_total{cause=\"" + cause + "\"}");
  }
  double observed(const std::string& what) {
    return read(metrics_).value("coxswain_job_" + what + "_seconds_count");
  }

  TimePoint now_{std::chrono::hours(1000)};
  Clock clock_ = [this] { return now_; };
  MemoryApi api_{clock_};
  FaultyApi::Script script_;
  FaultyApi faulty_{api_, [this](const ApiCall& call) { return script_ ? script_(call) : std::nullopt; }};
  SimulatedNode node_{api_, clock_};
  OperatorMetrics metrics_{"1"};
  std::unique_ptr<Controller> controller_;
};

TEST_F(LivesTest, JobsArePhasesNow) {
  submit("a");
  submit("b", {{"suspend", true}});
  settle();
  EXPECT_EQ(jobs("Running"), 1);
  EXPECT_EQ(jobs("Suspended"), 1);
  node_.end(kNs, "a-0", 0);
  node_.end(kNs, "a-1", 0);
  settle();
  EXPECT_EQ(jobs("Running"), 0);
  EXPECT_EQ(jobs("Complete"), 1);
  ASSERT_TRUE(api_.remove(kTrainingJobs, kNs, "a", {}));
  settle();
  EXPECT_EQ(jobs("Complete"), 0);
  EXPECT_EQ(jobs("Suspended"), 1);
  new_controller();
  settle();
  EXPECT_EQ(jobs("Suspended"), 1) << "after a restart of the operator";
}

TEST_F(LivesTest, ARestartIsCountedOnceThoughTheAnswerToItsWriteIsLost) {
  submit("j");
  settle();
  int lost = 0;
  script_ = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kUpdateStatus || lost++ > 0) return std::nullopt;
    return ApiFault{{0, "", "lost", std::nullopt}, true};
  };
  node_.end(kNs, "j-1", 9);
  pass_time(60);
  EXPECT_GT(lost, 0);
  EXPECT_EQ(restarts("Error"), 1);
  ASSERT_EQ(parse_training_job(*api_.get(kTrainingJobs, kNs, "j")).status.restarts.counted, 1);
  new_controller();
  pass_time(5);
  EXPECT_EQ(restarts("Error"), 1) << "not again by the next operator";
}

TEST_F(LivesTest, AStartIsMeasuredOnceForEachJob) {
  now_ += milliseconds(1);
  submit("j");
  settle();
  EXPECT_EQ(observed("pods_created"), 1);
  EXPECT_EQ(observed("pods_running"), 1);
  EXPECT_EQ(observed("first_step"), 0) << "its own program tells of none";
  node_.end(kNs, "j-1", 9);
  pass_time(60);
  ASSERT_EQ(jobs("Running"), 1);
  new_controller();
  pass_time(5);
  EXPECT_EQ(observed("pods_created"), 1);
  EXPECT_EQ(observed("pods_running"), 1);
}

TEST_F(LivesTest, PassesAreCountedByHowTheyEnd) {
  submit("j");
  settle();
  const std::string total = "controller_runtime_reconcile_total{controller=\"trainingjob\",result=\"";
  EXPECT_GT(read(metrics_).value(total + "success\"}"), 0);
  EXPECT_EQ(read(metrics_).value(total + "error\"}"), 0);
  script_ = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (!call.is_write()) return std::nullopt;
    return ApiFault{{500, "InternalError", "no", std::nullopt}, false};
  };
  node_.end(kNs, "j-1", 9);
  pass_time(10);
  const double errors = read(metrics_).value(total + "error\"}");
  EXPECT_GT(errors, 0);
  EXPECT_EQ(read(metrics_).value("controller_runtime_reconcile_errors_total{controller=\"trainingjob\"}"),
            errors);
}

TEST_F(LivesTest, NoNameOfAJobOrNamespaceIsShown) {
  submit("secret-job");
  settle();
  EXPECT_THAT(metrics_.text(), ::testing::Not(::testing::HasSubstr("secret")));
}

// Under ThreadSanitizer too.
TEST(OperatorMetricsThreads, ScrapesBesideWork) {
  OperatorMetrics metrics("1");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int j = 0; j < 200; ++j) {
          metrics.added();
          metrics.pass_ended(PassResult::kSuccess, milliseconds(j));
          metrics.on_request({"get", "r" + std::to_string(i), 200 + j % 5, milliseconds(1)});
        }
      });
    }
    threads.emplace_back([&] {
      for (int j = 0; j < 20; ++j) {
        metrics.set_jobs([] { return ClusterView::Objects(); });
        EXPECT_TRUE(parse_exposition(metrics.text()));
        metrics.set_jobs({});
      }
    });
  }
  EXPECT_EQ(read(metrics).value("workqueue_adds_total{name=\"trainingjob\"}"), 800);
}

}  // namespace
}  // namespace coxswain
