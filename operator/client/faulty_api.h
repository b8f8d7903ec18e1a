// An ApiClient that fails when a script says so: a crash between any two writes, a lost answer, a refusal.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "operator/client/api_client.h"

namespace coxswain {

enum class Verb { kGet, kList, kWatch, kCreate, kUpdate, kUpdateStatus, kMergePatch, kRemove };

struct ApiCall {
  Verb verb;
  std::string plural;
  std::string ns;
  std::string name;  // "" for list and watch

  bool is_write() const { return verb != Verb::kGet && verb != Verb::kList && verb != Verb::kWatch; }
};

struct ApiFault {
  ApiError error;
  bool after = false;  // the call is carried out, only its answer is lost
};

// What becomes of a watch at one of its events.
enum class StreamFault {
  kNone,
  kRepeat,  // it comes twice, and then the one before it once more
  kCut,     // the stream ends before it
  kStall,   // nothing comes any more, not even an end
};

// Thread-safe if the scripts are.
class FaultyApi : public ApiClient {
 public:
  // Asked before each call; no fault: the call goes through.
  using Script = std::function<std::optional<ApiFault>(const ApiCall&)>;

  // Asked for each event of each watch.
  using StreamScript = std::function<StreamFault(const std::string& plural, const WatchEvent&)>;

  explicit FaultyApi(ApiClient& inner, Script script = {}) : inner_(inner), script_(std::move(script)) {}

  // For watches that are opened from now on.
  void set_stream_script(StreamScript script);

  // Lets `writes` more writes through; from then on every call gets no answer, as if the caller's process had
  // died there: what it does afterwards leaves no trace.
  void die_after_writes(int writes);
  bool dead() const;
  std::vector<ApiCall> calls() const;
  void forget_calls();

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
  std::optional<ApiFault> fault(const ApiCall& call);
  template <typename T, typename Do>
  ApiResult<T> run(ApiCall call, Do&& forward);

  ApiClient& inner_;
  Script script_;
  StreamScript stream_script_;
  mutable std::mutex mutex_;
  std::vector<ApiCall> calls_;
  std::optional<int> writes_left_;
  bool dead_ = false;
};

}  // namespace coxswain
