#include "operator/client/memory_api.h"
#include "tests/client/conformance.h"

namespace coxswain {
namespace {

ApiFactory memory_api(const std::string& name, StreamingList mode) {
  return {name, [mode] {
            auto api = std::make_shared<MemoryApi>();
            api->set_streaming_list(mode);
            return ApiUnderTest{std::move(api), "conformance"};
          }};
}

INSTANTIATE_TEST_SUITE_P(Memory, ApiConformance,
                         ::testing::Values(memory_api("MemoryApi", StreamingList::kServed),
                                           memory_api("OldEtcd", StreamingList::kErrorEvent)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace coxswain
