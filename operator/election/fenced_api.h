// An ApiClient whose writes end with the right to write: a leader that was frozen for longer than its lease
// finds its pending writes refused, not carried out beside its successor's.
#pragma once

#include <functional>

#include "operator/client/api_client.h"

namespace coxswain {

class FencedApi : public ApiClient {
 public:
  // `may_write` is asked right before each write, from any thread. What is under way then can't be called
  // back: the API server's own preconditions (resourceVersion, UID, names) are for that.
  FencedApi(ApiClient& inner, std::function<bool()> may_write)
      : inner_(inner), may_write_(std::move(may_write)) {}

  ApiResult<Json> get(const Resource&, const std::string& ns, const std::string& name) override;
  ApiResult<ObjectList> list(const Resource&, const std::string& ns, const ListOptions&) override;
  ApiResult<std::unique_ptr<Watch>> watch(const Resource&, const std::string& ns,
                                          const WatchOptions&) override;
  ApiResult<Json> create(const Resource&, const std::string& ns, const Json& object,
                         const WriteOptions&) override;
  ApiResult<Json> update(const Resource&, const std::string& ns, const Json& object,
                         const WriteOptions&) override;
  ApiResult<Json> update_status(const Resource&, const std::string& ns, const Json& object,
                                const WriteOptions&) override;
  ApiResult<Json> merge_patch(const Resource&, const std::string& ns, const std::string& name,
                              const Json& patch, const WriteOptions&) override;
  ApiResult<Json> remove(const Resource&, const std::string& ns, const std::string& name,
                         const DeleteOptions&) override;

 private:
  ApiClient& inner_;
  const std::function<bool()> may_write_;
};

}  // namespace coxswain
