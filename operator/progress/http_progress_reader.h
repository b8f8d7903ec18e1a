// Asks the agent in a pod how far training is.
#pragma once

#include <chrono>
#include <cstddef>

#include "contract/contract.h"
#include "operator/controller/progress_reader.h"

namespace coxswain {

struct HttpProgressReaderOptions {
  int port = contract::kAgentPort;
  std::chrono::milliseconds limit{1000};  // connecting and the whole answer
  size_t max_bytes = 256 * 1024;          // head and body
};

// GET http://<status.podIP>:<port>/progress, without proxy, redirects or retries. Nothing for a pod without
// an address, and for whatever isn't a JSON object in time and size; never throws. Safe from any thread.
class HttpProgressReader : public ProgressReader {
 public:
  explicit HttpProgressReader(HttpProgressReaderOptions options = {}) : options_(options) {}

  std::optional<Json> read(const Json& pod) override;

 private:
  const HttpProgressReaderOptions options_;
};

}  // namespace coxswain
