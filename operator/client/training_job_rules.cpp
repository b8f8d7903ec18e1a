#include "operator/client/training_job_rules.h"

#include "contract/contract.h"
#include "operator/api/validate.h"

namespace coxswain::training_job_rules {

namespace {

std::optional<ApiError> invalid(const Json& object, const std::vector<Problem>& problems) {
  if (problems.empty()) return std::nullopt;
  std::string why;
  for (const Problem& problem : problems) why += (why.empty() ? "" : ", ") + to_string(problem);
  if (problems.size() > 1) why = "[" + why + "]";
  const std::string name = object["metadata"].value("name", "");
  return ApiError{
      422, "Invalid",
      std::string(contract::kKind) + "." + contract::kGroup + " \"" + name + "\" is invalid: " + why,
      std::nullopt};
}

}  // namespace

std::optional<ApiError> check_create(const Json& object) {
  return invalid(object, validate(object));
}

std::optional<ApiError> check_update(const Json& current, const Json& next) {
  return invalid(next, validate_update(next, current));
}

}  // namespace coxswain::training_job_rules
