// The smallest objects that an API server accepts.
#pragma once

#include <string>

#include "contract/contract.h"
#include "operator/client/api_client.h"

namespace coxswain {

inline Json a_pod(const std::string& name) {
  return {{"metadata", {{"name", name}, {"labels", {{"app", "test"}, {"name", name}}}}},
          {"spec",
           {{"restartPolicy", "Never"},
            {"terminationGracePeriodSeconds", 5},
            {"automountServiceAccountToken", false},
            {"containers", {{{"name", "trainer"}, {"image", "example.com/none:1"}}}}}}};
}

inline Json a_config_map(const std::string& name, bool immutable = false) {
  Json map = {{"metadata", {{"name", name}, {"labels", {{"app", "test"}}}}}, {"data", {{"key", "value"}}}};
  if (immutable) map["immutable"] = true;
  return map;
}

inline Json a_service(const std::string& name) {
  return {{"metadata", {{"name", name}}},
          {"spec", {{"clusterIP", "None"}, {"selector", {{"app", "test"}}}, {"ports", {{{"port", 29500}}}}}}};
}

// Bring your own program: no config.
inline Json a_training_job(const std::string& name, int nodes = 1) {
  const Json trainer = {{"name", "trainer"}, {"image", "example.com/none:1"}, {"command", {"true"}}};
  return {{"apiVersion", contract::kApiVersion},
          {"kind", contract::kKind},
          {"metadata", {{"name", name}}},
          {"spec", {{"nodes", nodes}, {"template", {{"spec", {{"containers", {trainer}}}}}}}}};
}

// About an object that there need not be.
inline Json an_event(const std::string& name, const std::string& ns) {
  return {{"metadata", {{"name", name}}},
          {"regarding",
           {{"apiVersion", contract::kApiVersion},
            {"kind", contract::kKind},
            {"namespace", ns},
            {"name", "j"},
            {"uid", "u"}}},
          {"type", "Normal"},
          {"reason", "Started"},
          {"action", "Start"},
          {"note", "words"},
          {"reportingController", "test"},
          {"reportingInstance", "test-0"},
          {"eventTime", "2026-12-01T05:29:28.123000Z"}};
}

inline Json owned_by(Json object, const Json& owner) {
  object["metadata"]["ownerReferences"] = {{{"apiVersion", owner["apiVersion"]},
                                            {"kind", owner["kind"]},
                                            {"name", owner["metadata"]["name"]},
                                            {"uid", owner["metadata"]["uid"]},
                                            {"controller", true},
                                            {"blockOwnerDeletion", false}}};
  return object;
}

}  // namespace coxswain
