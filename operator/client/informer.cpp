#include "operator/client/informer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

namespace coxswain {

namespace {

// So that a stream which brings events faster than they are taken in can't hold a thread that does other
// things too.
constexpr int kStepsPerPoll = 10000;
// Clocks can be set: no sleep trusts one for longer.
constexpr Duration kLongestSleep = std::chrono::seconds(30);

}  // namespace

Informer::Informer(ApiClient& api, InformerOptions options, Clock clock, ObjectStore::OnChange on_change,
                   std::function<void()> on_ready)
    : api_(api),
      options_(std::move(options)),
      clock_(std::move(clock)),
      on_ready_(std::move(on_ready)),
      store_(options_.trim, options_.indexers, std::move(on_change)),
      machine_(options_.watch, options_.label_selector, options_.metadata_only, std::random_device{}()) {}

void Informer::signal() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_up_.notify_all();
  if (on_ready_) on_ready_();
}

TimePoint Informer::poll() {
  for (int i = 0; i < kStepsPerPoll; ++i) {
    const WatchAction action = machine_.next(clock_());
    if (const auto* rest = std::get_if<Rest>(&action)) return rest->until;
    if (const auto* page = std::get_if<ListNextPage>(&action)) list(page->options);
    if (const auto* watch = std::get_if<OpenWatch>(&action)) open(watch->options);
    if (const auto* stream = std::get_if<Receive>(&action); stream != nullptr && !receive(stream->until)) {
      return stream->until;
    }
  }
  return clock_();
}

void Informer::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    {
      std::lock_guard lock(mutex_);
      woken_ = false;
    }
    const TimePoint next = poll();
    const TimePoint now = clock_();
    const Duration wait = next > now + kLongestSleep ? kLongestSleep : std::max(Duration(0), next - now);
    std::unique_lock lock(mutex_);
    wake_up_.wait_for(lock, stop, wait, [this] { return woken_; });
  }
  if (watch_ != nullptr) feed(StreamEnded{});
}

void Informer::feed(WatchInput input) {
  for (StoreChange& change : machine_.handle(std::move(input), clock_())) store_.apply(std::move(change));
  if (!machine_.receiving()) watch_.reset();
}

void Informer::list(ListOptions options) {
  options.unread = options_.unread;
  auto page = api_.list(options_.resource, options_.namespace_name, options);
  if (page) return feed(std::move(*page));
  spdlog::warn("{} could not be listed: {} {}", options_.resource.plural, page.error().code,
               page.error().message);
  feed(std::move(page.error()));
}

void Informer::open(WatchOptions options) {
  options.on_ready = [this] { signal(); };
  options.unread = options_.unread;
  auto watch = api_.watch(options_.resource, options_.namespace_name, options);
  if (watch) {
    watch_ = std::move(*watch);
    return feed(WatchOpened{});
  }
  spdlog::info("a watch of {} could not be opened: {} {}", options_.resource.plural, watch.error().code,
               watch.error().message);
  feed(std::move(watch.error()));
}

// False when there is nothing to take.
bool Informer::receive(TimePoint until) {
  if (auto event = watch_->next(std::chrono::milliseconds(0))) {
    feed(std::move(*event));
  } else if (watch_->ended()) {
    feed(StreamEnded{});
  } else if (clock_() >= until) {
    feed(TimePassed{});
  } else {
    return false;
  }
  return true;
}

}  // namespace coxswain
