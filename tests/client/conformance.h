// What every ApiClient must do, asked only of what a real API server does too. A program that links
// conformance.cpp instantiates the suite with a factory of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "operator/client/api_client.h"

namespace coxswain {

// An API with an empty namespace for one test; the TrainingJob kind is installed in it.
struct ApiUnderTest {
  std::shared_ptr<ApiClient> api;
  std::string ns;
  std::function<void()> clean_up = [] {};
  bool collects_garbage = true;  // a server does with a controller-manager beside it
};

struct ApiFactory {
  std::string name;
  std::function<ApiUnderTest()> make;
  // Why there is none here; none: there is.
  std::function<std::optional<std::string>()> why_not = [] { return std::nullopt; };

  friend void PrintTo(const ApiFactory& factory, std::ostream* out) { *out << factory.name; }
};

class ApiConformance : public ::testing::TestWithParam<ApiFactory> {
 protected:
  void SetUp() override {
    if (const auto reason = GetParam().why_not()) GTEST_SKIP() << *reason;
    under_test_ = GetParam().make();
  }
  void TearDown() override { under_test_.clean_up(); }

  ApiClient& api() { return *under_test_.api; }
  const std::string& ns() const { return under_test_.ns; }

  ApiUnderTest under_test_;
};

}  // namespace coxswain
