// The conformance suite on the API server that the usual rules find (KUBECONFIG, a pod's service account):
// the TrainingJob kind must be installed, and the user must be allowed to create namespaces. No test of
// ctest's by itself: whoever starts an API server runs this program.
#include <unistd.h>

#include <atomic>

#include "operator/client/rest/rest_api_client.h"
#include "tests/client/conformance.h"

namespace coxswain {
namespace {

const Resource kNamespaces{"", "v1", "namespaces", "Namespace"};

ApiUnderTest on_the_server() {
  static std::atomic<int> count{0};
  auto access = find_cluster_access({}, process_environment());
  if (!access) throw std::runtime_error(access.error().message);
  auto connected = RestApiClient::connect(*access, {}, process_environment());
  if (!connected) throw std::runtime_error(connected.error().message);
  const std::shared_ptr<RestApiClient> api = std::move(*connected);
  const std::string ns = "conformance-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  const auto created = api->create(kNamespaces, "", {{"metadata", {{"name", ns}}}}, {});
  if (!created) throw std::runtime_error(created.error().message);
  return {api, ns, [api, ns] { api->remove(kNamespaces, "", ns, {}); }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Server, ApiConformance,
                         ::testing::Values(ApiFactory{"RestApiClient", on_the_server}),
                         [](const auto& info) { return info.param.name; });

}  // namespace coxswain
