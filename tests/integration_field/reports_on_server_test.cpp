// The reports, several at a time: each waits most of its time for deadlines and back-offs. GoogleTest sees
// them one after the other, each with what its own thread found.
#include <gtest/gtest-spi.h>

#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <queue>
#include <thread>

#include "tests/integration_field/server_field.h"

namespace coxswain::testing {
namespace {

constexpr int kAtATime = 16;

using Results = std::vector<::testing::TestPartResult>;

Results tell(const FieldReport& report) {
  ::testing::TestPartResultArray found;
  {
    ::testing::ScopedFakeTestPartResultReporter mine(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &found);
    const auto began = std::chrono::steady_clock::now();
    try {
      ServerField cluster(field_plane());
      report.tell(cluster);
      if (found.size() > 0) ADD_FAILURE_AT(report.file, report.line) << cluster.describe();
    } catch (const std::exception& error) {
      ADD_FAILURE_AT(report.file, report.line) << error.what();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::cout << std::string(report.name) + ": told in " + std::to_string(took.count()) + " s\n"
              << std::flush;
  }
  Results results;
  for (int i = 0; i < found.size(); ++i) results.push_back(found.GetTestPartResult(i));
  return results;
}

// Of the reports that are to run (--gtest_filter). Joined when main() ends.
class Tellers {
 public:
  static Tellers& instance() {
    static Tellers tellers;
    return tellers;
  }

  Results of(const std::string& name) { return results_.at(name).get(); }

 private:
  using Task = std::packaged_task<Results()>;

  Tellers() {
    for (const FieldReport& report : field_reports()) {
      if (!is_wanted(report.name)) continue;
      tasks_.emplace([report] { return tell(report); });
      results_[report.name] = tasks_.back().get_future();
    }
    const int threads = std::min<int>(kAtATime, static_cast<int>(tasks_.size()));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }

  static bool is_wanted(const std::string& name) {
    const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
    for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
      const ::testing::TestSuite& tests = *all.GetTestSuite(suite);
      for (int test = 0; test < tests.total_test_count(); ++test) {
        const ::testing::TestInfo& info = *tests.GetTestInfo(test);
        if (info.name() == name) return info.should_run();
      }
    }
    return false;
  }

  void work() {
    for (;;) {
      Task task;
      {
        std::lock_guard lock(mutex_);
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop();
      }
      task();
    }
  }

  std::mutex mutex_;
  std::queue<Task> tasks_;
  std::map<std::string, std::future<Results>> results_;
  std::vector<std::jthread> threads_;
};

class OnServer : public ::testing::Test {
 public:
  explicit OnServer(const FieldReport& report) : report_(report) {}

  void TestBody() override {
    if (const auto missing = no_control_plane()) GTEST_SKIP() << *missing;
    for (const ::testing::TestPartResult& result : Tellers::instance().of(report_.name)) {
      ADD_FAILURE_AT(result.file_name(), result.line_number()) << result.message();
    }
  }

 private:
  const FieldReport report_;
};

}  // namespace

::testing::Test* make_field_report_test(const FieldReport& report) {
  return new OnServer(report);
}

}  // namespace coxswain::testing
