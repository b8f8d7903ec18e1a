#include "operator/client/watch_machine.h"

#include <algorithm>

#include "operator/api/json_input.h"
#include "operator/client/metadata.h"
#include "operator/client/resource_version.h"

namespace coxswain {

namespace {

constexpr char kInitialEventsEnd[] = "k8s.io/initial-events-end";
// A connection that is always cut before a long list is over may still do for pages.
constexpr int kStreamFailuresMax = 3;

bool ends_initial_events(const Json& object) {
  const auto path = Json::json_pointer("/metadata/annotations");
  if (!object.contains(path)) return false;
  const Json& annotations = object.at(path);
  return annotations.is_object() && annotations.contains(kInitialEventsEnd) &&
         annotations[kInitialEventsEnd] == "true";
}

ApiError error_of(const Json& status) {
  ApiError error{500, "", "", std::nullopt};
  if (!status.is_object()) return error;
  if (const auto code = status.find("code"); code != status.end()) {
    const int64_t number = whole_number(*code).value_or(0);
    if (number >= 100 && number <= 599) error.code = static_cast<int>(number);
  }
  const auto retry = Json::json_pointer("/details/retryAfterSeconds");
  if (const auto asked = whole_number(status.value(retry, Json()))) {
    error.retry_after = std::chrono::seconds(std::clamp<int64_t>(*asked, 0, 3600));
  }
  return error;
}

bool is_whole(const WatchEvent& event) {
  const bool has_version = !metadata::resource_version(event.object).empty();
  return has_version && (event.type == WatchEventType::kBookmark || !metadata::name(event.object).empty());
}

// The request itself isn't understood.
bool unsupported(const ApiError& error) {
  return error.code == 400 || error.code == 405 || error.code == 422;
}

bool is_old(const std::string& version, const std::string& than) {
  const auto order = compare_versions(version, than);
  return order == std::partial_ordering::less || order == std::partial_ordering::equivalent;
}

}  // namespace

WatchSettings in_process_watch_settings() {
  WatchSettings settings;
  settings.server_timeout = std::chrono::seconds(0);
  settings.max_silence = Duration(0);
  return settings;
}

WatchMachine::WatchMachine(WatchSettings settings, std::string label_selector, bool metadata_only,
                           uint64_t seed)
    : settings_(settings),
      label_selector_(std::move(label_selector)),
      metadata_only_(metadata_only),
      engine_(static_cast<std::minstd_rand::result_type>(seed)),
      state_(start()) {}

WatchMachine::State WatchMachine::start() const {
  if (settings_.streaming_list && stream_failures_ < kStreamFailuresMax) return NeedsStream{};
  return NeedsList{};
}

double WatchMachine::random() {
  return std::uniform_real_distribution<double>(0, 1)(engine_);
}

bool WatchMachine::receiving() const {
  return std::holds_alternative<InitialEvents>(state_) || std::holds_alternative<Watching>(state_);
}

WatchMachine::NeedsWatch WatchMachine::watch_from(std::string version, std::string last_event) {
  const auto timeout = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::duration<double>(settings_.server_timeout) * (1 + random()));
  return {std::move(version), std::move(last_event), timeout};
}

WatchAction WatchMachine::next(TimePoint now) const {
  if (receiving()) return Receive{silent_at()};
  if (now < not_before_) return Rest{not_before_};
  if (const auto* list = std::get_if<NeedsList>(&state_)) {
    return ListNextPage{{.label_selector = label_selector_,
                         .limit = list->whole ? 0 : settings_.page_size,
                         .continue_token = list->continue_token,
                         .metadata_only = metadata_only_}};
  }
  WatchOptions options{
      .label_selector = label_selector_, .resource_version = "", .metadata_only = metadata_only_};
  if (const auto* watch = std::get_if<NeedsWatch>(&state_)) {
    options.resource_version = watch->version;
    options.server_timeout = watch->server_timeout;
  } else {
    options.send_initial_events = true;
    options.server_timeout = 2 * settings_.server_timeout;
  }
  return OpenWatch{std::move(options)};
}

TimePoint WatchMachine::silent_at() const {
  if (const auto* initial = std::get_if<InitialEvents>(&state_)) {
    return std::min(initial->last_event + settings_.initial_silence,
                    initial->opened + settings_.initial_limit);
  }
  const auto& watching = std::get<Watching>(state_);
  if (settings_.max_silence == Duration(0)) return watching.ends;
  return std::min(watching.ends, watching.heard + settings_.max_silence);
}

std::vector<StoreChange> WatchMachine::handle(WatchInput input, TimePoint now) {
  return std::visit([&](auto& one) { return on(one, now); }, input);
}

void WatchMachine::back_off(TimePoint now, std::optional<std::chrono::seconds> at_least) {
  const double doubled =
      static_cast<double>(settings_.backoff_base.count()) * static_cast<double>(1 << std::min(failures_, 16));
  const double longest = static_cast<double>(settings_.backoff_max.count());
  ++failures_;
  const Duration wait(static_cast<Duration::rep>(std::min(doubled, longest) * (0.75 + random() / 2)));
  not_before_ = now + std::max(wait, Duration(at_least.value_or(std::chrono::seconds(0))));
}

void WatchMachine::stumble(TimePoint now) {
  if (failures_ == 0) {
    ++failures_;
  } else {
    back_off(now);
  }
}

void WatchMachine::start_again(TimePoint now) {
  stumble(now);
  state_ = start();
}

void WatchMachine::give_up_streaming() {
  stream_failures_ = kStreamFailuresMax;
  state_ = NeedsList{};
}

// --- Lists

WatchMachine::Changes WatchMachine::on(ObjectList& list, TimePoint now) {
  auto* state = std::get_if<NeedsList>(&state_);
  if (state == nullptr) return {};
  const bool last = list.continue_token.empty();
  if (last && (list.resource_version.empty() || list.resource_version == "0")) {
    back_off(now);  // nothing to watch from
    state_ = start();
    return {};
  }
  Changes changes;
  if (state->continue_token.empty()) changes.push_back(ListBegins{});
  for (Json& object : list.items) changes.push_back(Listed{std::move(object)});
  if (last) {
    changes.push_back(ListEnds{list.resource_version});
    state_ = watch_from(list.resource_version, list.resource_version);
  } else {
    state->continue_token = list.continue_token;
  }
  return changes;
}

// --- Streams

WatchMachine::Changes WatchMachine::on(const WatchOpened&, TimePoint now) {
  if (std::holds_alternative<NeedsStream>(state_)) {
    state_ = InitialEvents{.opened = now, .last_event = now};
    return {ListBegins{}};
  }
  if (auto* state = std::get_if<NeedsWatch>(&state_)) {
    // The server's own end comes first; half a minute later it is not going to come.
    const TimePoint ends = state->server_timeout.count() == 0
                               ? TimePoint::max()
                               : now + state->server_timeout + std::chrono::seconds(30);
    state_ = Watching{std::move(state->version), std::move(state->last_event), now, now, ends};
  }
  return {};
}

WatchMachine::Changes WatchMachine::on(const ApiError& error, TimePoint now) {
  if (std::holds_alternative<NeedsStream>(state_) && unsupported(error)) {
    give_up_streaming();
    return {};
  }
  if (auto* list = std::get_if<NeedsList>(&state_); list != nullptr && error.expired()) {
    // The snapshot that the pages are of is gone: a list in one page needs none.
    *list = NeedsList{"", true};
  } else if (std::holds_alternative<NeedsWatch>(state_) && (error.expired() || error.permanent())) {
    state_ = start();
  } else if (receiving()) {
    return {};
  }
  back_off(now, error.retry_after);
  return {};
}

WatchMachine::Changes WatchMachine::on(WatchEvent& event, TimePoint now) {
  if (auto* initial = std::get_if<InitialEvents>(&state_)) return on_initial(*initial, event, now);
  if (auto* watching = std::get_if<Watching>(&state_)) return on_live(*watching, event, now);
  return {};
}

WatchMachine::Changes WatchMachine::on_initial(InitialEvents& state, WatchEvent& event, TimePoint now) {
  if (event.type == WatchEventType::kError) {
    const ApiError error = error_of(event.object);
    const bool passing = error.expired() || error.code == 429 || error.code == 503 || error.code == 504;
    if (passing) {
      back_off(now, error.retry_after);
      state_ = start();
    } else {
      give_up_streaming();
    }
    return {};
  }
  if (!is_whole(event)) {
    back_off(now);
    give_up_streaming();
    return {};
  }
  state.last_event = now;
  if (event.type != WatchEventType::kBookmark) {
    const std::string version = metadata::resource_version(event.object);
    const bool follows_change = !state.last_change.empty();
    if (follows_change && is_old(version, state.last_change)) return {};
    if (follows_change || event.type != WatchEventType::kAdded) state.last_change = version;
  }
  switch (event.type) {
    case WatchEventType::kDeleted:
      return {Deleted{std::move(event.object)}};
    case WatchEventType::kBookmark:
      break;
    default:
      return {Listed{std::move(event.object)}};
  }
  if (!ends_initial_events(event.object)) return {};
  const std::string version = metadata::resource_version(event.object);
  stream_failures_ = 0;
  // The same stream goes on.
  const TimePoint ends =
      settings_.server_timeout.count() == 0
          ? TimePoint::max()
          : state.opened + 2 * Duration(settings_.server_timeout) + std::chrono::seconds(30);
  state_ = Watching{version, version, state.opened, now, ends};
  return {ListEnds{version}};
}

WatchMachine::Changes WatchMachine::on_live(Watching& state, WatchEvent& event, TimePoint now) {
  if (event.type == WatchEventType::kError) {
    on_stream_error(error_of(event.object), now);
    return {};
  }
  if (!is_whole(event)) {
    back_off(now);  // what it was meant to say isn't known
    state_ = start();
    return {};
  }
  state.heard = now;
  const std::string version = metadata::resource_version(event.object);
  if (event.type == WatchEventType::kBookmark) {
    if (is_old(version, state.version)) return {};
    state.version = version;
    return {Reached{version}};
  }
  // Not compared with bookmarks: etcd before 3.4.25 can send one ahead of events that are older.
  if (is_old(version, state.last_event)) return {};
  state.last_event = version;
  if (!is_old(version, state.version)) state.version = version;
  failures_ = std::min(failures_, 1);
  if (event.type == WatchEventType::kDeleted) return {Deleted{std::move(event.object)}};
  return {Written{std::move(event.object)}};
}

void WatchMachine::on_stream_error(const ApiError& error, TimePoint now) {
  auto& state = std::get<Watching>(state_);
  if (now - state.opened >= settings_.healthy_after) failures_ = 0;
  const bool passing = error.code == 429 || error.code >= 500;
  if (error.expired()) {
    start_again(now);
  } else if (passing && failures_ < kStreamFailuresMax) {
    state_ = watch_from(std::move(state.version), std::move(state.last_event));
    back_off(now, error.retry_after);
  } else {
    back_off(now, error.retry_after);
    state_ = start();
  }
}

WatchMachine::Changes WatchMachine::on(const StreamEnded&, TimePoint now) {
  if (std::holds_alternative<InitialEvents>(state_)) {
    ++stream_failures_;
    back_off(now);
    state_ = start();
  } else if (auto* state = std::get_if<Watching>(&state_)) {
    if (now - state->opened >= settings_.healthy_after) failures_ = 0;
    stumble(now);
    state_ = watch_from(std::move(state->version), std::move(state->last_event));
  }
  return {};
}

WatchMachine::Changes WatchMachine::on(const TimePassed&, TimePoint now) {
  if (!receiving() || now < silent_at()) return {};
  if (std::holds_alternative<InitialEvents>(state_)) {
    give_up_streaming();
    return {};
  }
  return on(StreamEnded{}, now);
}

}  // namespace coxswain
