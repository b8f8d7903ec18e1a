#include "operator/client/api_client.h"

#include "contract/contract.h"

namespace coxswain {

namespace resources {
const Resource kPods{"", "v1", "pods", "Pod"};
const Resource kServices{"", "v1", "services", "Service"};
const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
const Resource kEvents{"", "v1", "events", "Event"};
const Resource kNodes{"", "v1", "nodes", "Node"};
const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
const Resource kTrainingJobs{contract::kGroup, contract::kVersion, contract::kPlural, contract::kKind};
}  // namespace resources

bool ApiError::permanent() const {
  return code == 400 || code == 405 || code == 413 || code == 415 || code == 422;
}

tl::unexpected<ApiError> api_error(int code, std::string reason, std::string message) {
  return tl::unexpected<ApiError>({code, std::move(reason), std::move(message), std::nullopt});
}

}  // namespace coxswain
