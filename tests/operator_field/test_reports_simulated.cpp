// The reports of reports_*.cpp on the simulated cluster.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/operator_field/simulated_field.h"

namespace coxswain::testing {

void SimulatedField::operator_is_down_for(Duration time) {
  cluster_.now += time;
  cluster_.restart_operator();
}

int SimulatedField::writes() {
  const auto calls = cluster_.faulty->calls();
  return static_cast<int>(std::ranges::count_if(calls, [](const ApiCall& call) { return call.is_write(); }));
}

void SimulatedField::make_unschedulable(const std::string& pod, bool is) {
  if (is) {
    cluster_.unschedulable.insert(pod);
  } else {
    cluster_.unschedulable.erase(pod);
  }
}

namespace {

class Simulated : public ::testing::Test {
 public:
  explicit Simulated(const FieldReport& report) : report_(report) {}
  void TestBody() override {
    SimulatedField cluster;
    report_.tell(cluster);
  }

 private:
  const FieldReport report_;
};

}  // namespace

::testing::Test* make_field_report_test(const FieldReport& report) {
  return new Simulated(report);
}

}  // namespace coxswain::testing
