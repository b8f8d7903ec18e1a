#include "operator/client/memory_api.h"
#include "tests/client/conformance.h"

namespace coxswain {

INSTANTIATE_TEST_SUITE_P(Memory, ApiConformance,
                         ::testing::Values(ApiFactory{
                             "MemoryApi",
                             [] {
                               return ApiUnderTest{std::make_shared<MemoryApi>(), "conformance"};
                             }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace coxswain
