// The operator as deploy/ installs it, without its pods: tests start the program themselves, as the account
// that the manifests make.
#pragma once

#include <string>
#include <vector>

#include "tests/integration/control_plane.h"

namespace coxswain::testing {

extern const char kOperatorNamespace[];
extern const char kOperatorAccount[];
extern const char kOperatorUser[];  // as the API server knows the account

// What `kubectl kustomize deploy/OVERLAY` makes of it. Throws with kubectl's words where it can't.
std::vector<Json> render(const ControlPlane& plane, const std::string& overlay);
const Json& only(const std::vector<Json>& manifests, const std::string& kind, const std::string& name);

// kubectl apply -k deploy/OVERLAY. Throws with kubectl's words.
void install(const ControlPlane& plane, const std::string& overlay);

}  // namespace coxswain::testing
