// What every ApiClient must do, asked only of what a real API server does too. A program that links
// conformance.cpp instantiates the suite with a factory of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "operator/client/api_client.h"

namespace coxswain {

// An API with an empty namespace for one test; the TrainingJob kind is installed in it.
struct ApiUnderTest {
  std::shared_ptr<ApiClient> api;
  std::string ns;
  std::function<void()> clean_up = [] {};
};

struct ApiFactory {
  std::string name;
  std::function<ApiUnderTest()> make;
};

class ApiConformance : public ::testing::TestWithParam<ApiFactory> {
 protected:
  void SetUp() override { under_test_ = GetParam().make(); }
  void TearDown() override { under_test_.clean_up(); }

  ApiClient& api() { return *under_test_.api; }
  const std::string& ns() const { return under_test_.ns; }

  ApiUnderTest under_test_;
};

}  // namespace coxswain
