#include "operator/reconcile/gitops.h"

namespace coxswain {

std::optional<std::string> gitops_tool(const ObjectMeta& metadata) {
  if (metadata.annotations.contains("argocd.argoproj.io/tracking-id") ||
      metadata.labels.contains("argocd.argoproj.io/instance")) {
    return "Argo CD";
  }
  if (metadata.labels.contains("kustomize.toolkit.fluxcd.io/name") ||
      metadata.labels.contains("helm.toolkit.fluxcd.io/name")) {
    return "Flux";
  }
  return std::nullopt;
}

}  // namespace coxswain
