#include "operator/client/event_rules.h"

#include <regex>

#include "operator/client/metadata.h"

namespace coxswain::event_rules {

namespace {

std::string text(const Json& event, const char* field) {
  const auto found = event.find(field);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::string> check_series(const Json& event) {
  if (!event.contains("series") || event["series"].is_null()) return std::nullopt;
  const Json& series = event["series"];
  if (series.value("count", 0) < 2) return "series.count: Invalid value: \"\": should be at least 2";
  if (text(series, "lastObservedTime").empty()) return "series.lastObservedTime: Required value";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check_create(const Json& event) {
  static const std::regex micro_time(R"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[-+]\d{2}:\d{2}))");
  if (!std::regex_match(text(event, "eventTime"), micro_time)) return "eventTime: Required value";
  for (const char* field : {"reportingController", "reportingInstance", "action", "reason"}) {
    const std::string value = text(event, field);
    if (value.empty()) return std::string(field) + ": Required value";
    if (value.size() > 128) {
      return std::string(field) + ": Invalid value: \"\": can have at most 128 characters";
    }
  }
  // Bytes, whatever the server calls them.
  if (text(event, "note").size() > 1024) {
    return "message: Invalid value: \"\": can have at most 1024 characters";
  }
  const std::string type = text(event, "type");
  if (type != "Normal" && type != "Warning") {
    return "type: Invalid value: \"\": has invalid value: " + type;
  }
  return check_series(event);
}

std::optional<std::string> check_update(const Json& current, const Json& next) {
  for (const auto& [field, shown] :
       {std::pair{"regarding", "involvedObject"}, std::pair{"reason", "reason"}, std::pair{"note", "message"},
        std::pair{"type", "type"}, std::pair{"eventTime", "eventTime"}, std::pair{"action", "action"},
        std::pair{"reportingController", "reportingController"},
        std::pair{"reportingInstance", "reportingInstance"}}) {
    if (current.value(field, Json()) == next.value(field, Json())) continue;
    return std::string(shown) + ": Invalid value: \"" + text(next, field) + "\": field is immutable";
  }
  return check_series(next);
}

}  // namespace coxswain::event_rules
