#include "tests/integration_deploy/installation.h"

#include <stdexcept>

#include "operator/api/parse.h"

namespace coxswain::testing {

const char kOperatorNamespace[] = "coxswain-system";
const char kOperatorAccount[] = "coxswain-operator";
const char kOperatorUser[] = "system:serviceaccount:coxswain-system:coxswain-operator";

namespace {

Finished checked(Finished finished, const std::string& what) {
  if (finished.exit_code != 0) throw std::runtime_error(what + ": " + finished.err);
  return finished;
}

}  // namespace

std::vector<Json> render(const ControlPlane& plane, const std::string& overlay) {
  const Finished rendered = checked(plane.kubectl({"kustomize", "deploy/" + overlay}), "kubectl kustomize");
  auto manifests = load_yaml(rendered.out, "deploy/" + overlay);
  if (!manifests) throw std::runtime_error(manifests.error().message);
  return *manifests;
}

const Json& only(const std::vector<Json>& manifests, const std::string& kind, const std::string& name) {
  const Json* found = nullptr;
  for (const Json& manifest : manifests) {
    if (manifest["kind"] != kind || manifest["metadata"]["name"] != name) continue;
    if (found != nullptr) throw std::runtime_error("two of " + kind + " " + name);
    found = &manifest;
  }
  if (found == nullptr) throw std::runtime_error("no " + kind + " " + name);
  return *found;
}

void install(const ControlPlane& plane, const std::string& overlay) {
  checked(plane.kubectl({"apply", "-k", "deploy/" + overlay}), "kubectl apply -k deploy/" + overlay);
}

}  // namespace coxswain::testing
