#include "operator/client/faulty_api.h"

#include <deque>

namespace coxswain {

namespace {

class FaultyWatch : public Watch {
 public:
  FaultyWatch(std::unique_ptr<Watch> inner, std::string plural, FaultyApi::StreamScript script)
      : inner_(std::move(inner)), plural_(std::move(plural)), script_(std::move(script)) {}

  std::optional<WatchEvent> next(std::chrono::milliseconds wait) override {
    if (repeats_.empty()) take(wait);
    if (repeats_.empty()) return std::nullopt;
    WatchEvent event = std::move(repeats_.front());
    repeats_.pop_front();
    return event;
  }
  bool ended() const override { return repeats_.empty() && !stalled_ && (cut_ || inner_->ended()); }

 private:
  void take(std::chrono::milliseconds wait) {
    if (cut_ || stalled_) return;
    auto event = inner_->next(wait);
    if (!event) return;
    const StreamFault fault = script_(plural_, *event);
    cut_ = fault == StreamFault::kCut;
    stalled_ = fault == StreamFault::kStall;
    if (cut_ || stalled_) return;
    repeats_.push_back(*event);
    if (fault == StreamFault::kRepeat) {
      repeats_.push_back(*event);
      if (before_) repeats_.push_back(*before_);
    }
    before_ = std::move(event);
  }

  std::unique_ptr<Watch> inner_;
  const std::string plural_;
  const FaultyApi::StreamScript script_;
  std::deque<WatchEvent> repeats_;
  std::optional<WatchEvent> before_;
  bool cut_ = false;
  bool stalled_ = false;
};

}  // namespace

void FaultyApi::set_stream_script(StreamScript script) {
  std::lock_guard lock(mutex_);
  stream_script_ = std::move(script);
}

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
  auto watch = run<std::unique_ptr<Watch>>({Verb::kWatch, resource.plural, ns, ""},
                                           [&] { return inner_.watch(resource, ns, options); });
  std::lock_guard lock(mutex_);
  if (!watch || !stream_script_) return watch;
  return std::make_unique<FaultyWatch>(std::move(*watch), resource.plural, stream_script_);
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
