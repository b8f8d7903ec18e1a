#include "tests/integration_faults/etcd_history.h"

#include <httplib.h>

#include <stdexcept>

#include "operator/client/rest/base64.h"

namespace coxswain::testing {

const char kStoresJson[] = "--storage-media-type=application/json";

namespace {

using Json = nlohmann::json;

// etcd's name for "from the first key", and as an end for "to the last".
constexpr char kAllKeys[] = "AA==";
constexpr const char* kWatched[] = {"/registry/pods/", "/registry/training.coxswain.dev/trainingjobs/"};

bool is_watched(const std::string& key) {
  return std::ranges::any_of(kWatched, [&](const char* prefix) { return key.starts_with(prefix); });
}

std::string decoded(const Json& record, const char* field) {
  return decode_base64(record.value(field, "")).value();
}

Json object_of(const Json& record) {
  const std::string value = decoded(record, "value");
  return value.empty() ? Json() : Json::parse(value);
}

}  // namespace

EtcdHistory::EtcdHistory(const ControlPlane& plane, std::function<void(const Change&)> take)
    : port_(plane.etcd_port()), take_(std::move(take)), seen_(revision_now()) {
  if (seen_ == 0) throw std::runtime_error("etcd does not tell its revision");
  thread_ = std::jthread([this](std::stop_token stop) { follow(std::move(stop)); });
}

EtcdHistory::~EtcdHistory() {
  thread_.request_stop();
  std::lock_guard lock(mutex_);
  if (cut_) cut_();
}

int64_t EtcdHistory::revision_now() const {
  httplib::Client etcd("127.0.0.1", port_);
  const auto now = etcd.Post("/v3/kv/range", R"({"key": "AA==", "limit": "1"})", "application/json");
  if (!now || now->status != 200) return 0;
  return std::stoll(Json::parse(now->body).at("/header/revision"_json_pointer).get<std::string>());
}

bool EtcdHistory::catch_up() {
  int64_t wanted = 0;
  return eventually([&] {
    if (wanted == 0) wanted = revision_now();
    return wanted != 0 && seen_ >= wanted;
  });
}

void EtcdHistory::follow(std::stop_token stop) {
  while (!stop.stop_requested()) {
    watch_once(stop);
    // etcd is away: it may take seconds to come back.
    if (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void EtcdHistory::watch_once(const std::stop_token& stop) {
  httplib::Client etcd("127.0.0.1", port_);
  etcd.set_read_timeout(std::chrono::hours(1));
  {
    std::lock_guard lock(mutex_);
    if (stop.stop_requested()) return;
    cut_ = [&etcd] { etcd.stop(); };
  }
  const Json order = {{"key", kAllKeys},
                      {"range_end", kAllKeys},
                      {"start_revision", std::to_string(seen_ + 1)},
                      {"prev_kv", true}};
  httplib::Request request;
  request.method = "POST";
  request.path = "/v3/watch";
  request.body = Json{{"create_request", order}}.dump();
  request.set_header("Content-Type", "application/json");
  std::string rest;
  request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    rest.append(data, size);
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      take_line(rest.substr(0, end));
      rest.erase(0, end + 1);
    }
    return !stop.stop_requested();
  };
  etcd.send(request);
  std::lock_guard lock(mutex_);
  cut_ = nullptr;
}

void EtcdHistory::take_line(const std::string& line) {
  if (line.empty()) return;
  const Json result = Json::parse(line).value("result", Json::object());
  for (const Json& event : result.value("events", Json::array())) {
    const Json& record = event.at("kv");
    const int64_t revision = std::stoll(record.at("mod_revision").get<std::string>());
    const std::string key = decoded(record, "key");
    if (is_watched(key)) {
      const bool gone = event.value("type", "PUT") == "DELETE";
      take_({key, revision, object_of(event.value("prev_kv", Json::object())),
             gone ? Json() : object_of(record)});
    }
  }
  // Only then: a revision can hold several changes, and its line comes whole.
  if (result.contains("events") && !result["events"].empty()) {
    seen_ = std::stoll(result["events"].back().at("/kv/mod_revision"_json_pointer).get<std::string>());
  }
}

}  // namespace coxswain::testing
