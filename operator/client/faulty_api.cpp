#include "operator/client/faulty_api.h"

namespace coxswain {

void FaultyApi::die_after_writes(int writes) {
  std::lock_guard lock(mutex_);
  writes_left_ = writes;
}

bool FaultyApi::dead() const {
  std::lock_guard lock(mutex_);
  return dead_;
}

std::vector<ApiCall> FaultyApi::calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

void FaultyApi::forget_calls() {
  std::lock_guard lock(mutex_);
  calls_.clear();
}

std::optional<ApiFault> FaultyApi::fault(const ApiCall& call) {
  {
    std::lock_guard lock(mutex_);
    if (writes_left_ && call.is_write() && (*writes_left_)-- <= 0) dead_ = true;
    if (dead_) return ApiFault{{0, "", "the caller is dead", std::nullopt}, false};
    calls_.push_back(call);
  }
  return script_ ? script_(call) : std::nullopt;
}

template <typename T, typename Do>
ApiResult<T> FaultyApi::run(ApiCall call, Do&& forward) {
  const auto planned = fault(call);
  if (planned && !planned->after) return tl::unexpected(planned->error);
  ApiResult<T> result = forward();
  if (planned) return tl::unexpected(planned->error);
  return result;
}

namespace {
std::string object_name(const Json& object) {
  return object.value("/metadata/name"_json_pointer, "");
}
}  // namespace

ApiResult<Json> FaultyApi::get(const Resource& resource, const std::string& ns, const std::string& name) {
  return run<Json>({Verb::kGet, resource.plural, ns, name}, [&] { return inner_.get(resource, ns, name); });
}

ApiResult<ObjectList> FaultyApi::list(const Resource& resource, const std::string& ns,
                                      const ListOptions& options) {
  return run<ObjectList>({Verb::kList, resource.plural, ns, ""},
                         [&] { return inner_.list(resource, ns, options); });
}

ApiResult<std::unique_ptr<Watch>> FaultyApi::watch(const Resource& resource, const std::string& ns,
                                                   const WatchOptions& options) {
  return run<std::unique_ptr<Watch>>({Verb::kWatch, resource.plural, ns, ""},
                                     [&] { return inner_.watch(resource, ns, options); });
}

ApiResult<Json> FaultyApi::create(const Resource& resource, const std::string& ns, const Json& object,
                                  const WriteOptions& options) {
  return run<Json>({Verb::kCreate, resource.plural, ns, object_name(object)},
                   [&] { return inner_.create(resource, ns, object, options); });
}

ApiResult<Json> FaultyApi::update(const Resource& resource, const std::string& ns, const Json& object,
                                  const WriteOptions& options) {
  return run<Json>({Verb::kUpdate, resource.plural, ns, object_name(object)},
                   [&] { return inner_.update(resource, ns, object, options); });
}

ApiResult<Json> FaultyApi::update_status(const Resource& resource, const std::string& ns, const Json& object,
                                         const WriteOptions& options) {
  return run<Json>({Verb::kUpdateStatus, resource.plural, ns, object_name(object)},
                   [&] { return inner_.update_status(resource, ns, object, options); });
}

ApiResult<Json> FaultyApi::merge_patch(const Resource& resource, const std::string& ns,
                                       const std::string& name, const Json& patch,
                                       const WriteOptions& options) {
  return run<Json>({Verb::kMergePatch, resource.plural, ns, name},
                   [&] { return inner_.merge_patch(resource, ns, name, patch, options); });
}

ApiResult<Json> FaultyApi::remove(const Resource& resource, const std::string& ns, const std::string& name,
                                  const DeleteOptions& options) {
  return run<Json>({Verb::kRemove, resource.plural, ns, name},
                   [&] { return inner_.remove(resource, ns, name, options); });
}

}  // namespace coxswain
