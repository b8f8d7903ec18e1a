#include "operator/election/fenced_api.h"

namespace coxswain {

namespace {

// No answer, as far as anyone can know: it is not a refusal by the API server.
ApiResult<Json> refused() {
  return api_error(0, "LeaseLost", "not sent: the lease has run out, another operator may be working");
}

}  // namespace

ApiResult<Json> FencedApi::get(const Resource& resource, const std::string& ns, const std::string& name) {
  return inner_.get(resource, ns, name);
}

ApiResult<ObjectList> FencedApi::list(const Resource& resource, const std::string& ns,
                                      const ListOptions& options) {
  return inner_.list(resource, ns, options);
}

ApiResult<std::unique_ptr<Watch>> FencedApi::watch(const Resource& resource, const std::string& ns,
                                                   const WatchOptions& options) {
  return inner_.watch(resource, ns, options);
}

ApiResult<Json> FencedApi::create(const Resource& resource, const std::string& ns, const Json& object,
                                  const WriteOptions& options) {
  return may_write_() ? inner_.create(resource, ns, object, options) : refused();
}

ApiResult<Json> FencedApi::update(const Resource& resource, const std::string& ns, const Json& object,
                                  const WriteOptions& options) {
  return may_write_() ? inner_.update(resource, ns, object, options) : refused();
}

ApiResult<Json> FencedApi::update_status(const Resource& resource, const std::string& ns, const Json& object,
                                         const WriteOptions& options) {
  return may_write_() ? inner_.update_status(resource, ns, object, options) : refused();
}

ApiResult<Json> FencedApi::merge_patch(const Resource& resource, const std::string& ns,
                                       const std::string& name, const Json& patch,
                                       const WriteOptions& options) {
  return may_write_() ? inner_.merge_patch(resource, ns, name, patch, options) : refused();
}

ApiResult<Json> FencedApi::remove(const Resource& resource, const std::string& ns, const std::string& name,
                                  const DeleteOptions& options) {
  return may_write_() ? inner_.remove(resource, ns, name, options) : refused();
}

}  // namespace coxswain
