// What is known of one exchange with the API server once it is over.
#pragma once

#include <chrono>
#include <string>

namespace coxswain {

// One HTTP exchange, for metrics.
struct RequestRecord {
  std::string verb;      // get, list, watch, create, update, patch, delete: as the API's audit log names them
  std::string resource;  // the plural, "/status" for that subresource
  int code = 0;          // 0: no answer
  std::chrono::steady_clock::duration latency{};  // of a watch: until its head
};

}  // namespace coxswain
