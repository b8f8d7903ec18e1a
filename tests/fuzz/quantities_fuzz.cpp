// What Kubernetes writes as text and means as a number: quantities and times.
#include <cmath>

#include "operator/api/parse.h"
#include "operator/client/resource_version.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coxswain;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto quantity = parse_quantity(text)) FUZZ_REQUIRE(std::isfinite(*quantity));
  if (const auto time = parse_time(text)) {
    const auto again = parse_time(format_time(*time));
    FUZZ_REQUIRE(again && *again == std::chrono::floor<std::chrono::seconds>(*time));
  }
  compare_versions(text, "12");
  TrainingJobSpec spec;
  spec.resources = {{"limits", {{"nvidia.com/gpu", text}, {"amd.com/gpu", "1"}}}};
  const int64_t processes = processes_per_node(spec);
  FUZZ_REQUIRE(processes >= 1 && processes <= 1024);
  return 0;
}
