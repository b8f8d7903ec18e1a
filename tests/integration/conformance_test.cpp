// The suite that MemoryApi passes, on the control plane: where the two differ, MemoryApi is wrong.
#include "tests/client/conformance.h"

#include "tests/integration/fixture.h"

namespace coxswain {
namespace {

using testing::shared_control_plane;

ApiUnderTest on_the_server() {
  testing::ControlPlane& plane = shared_control_plane();
  const std::string ns = plane.new_namespace("conformance");
  return {plane.connect(), ns, [&plane, ns] { plane.delete_namespace(ns); },
          !plane.owned() || !plane.options().controllers.empty()};
}

INSTANTIATE_TEST_SUITE_P(Server, ApiConformance,
                         ::testing::Values(ApiFactory{"RestApiClient", on_the_server,
                                                      [] { return testing::no_control_plane(); }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace coxswain
