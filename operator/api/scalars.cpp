// Times and quantities as Kubernetes writes them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string_view>

#include "operator/api/parse.h"

namespace coxswain {

std::string format_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto days = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date{days};
  const std::chrono::hh_mm_ss clock{seconds - days};
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

// By hand: times are read so often that a regular expression was a tenth of what a pass took.
std::optional<TimePoint> parse_time(const std::string& text) {
  constexpr size_t kLongest = 64;
  if (text.size() > kLongest) return std::nullopt;
  size_t at = 0;
  bool fits = true;
  const auto take = [&](std::string_view allowed) {
    const bool is = at < text.size() && allowed.find(text[at]) != std::string_view::npos;
    fits = fits && is;
    return is ? text[at++] : '\0';
  };
  const auto number = [&](int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i) value = value * 10 + (take("0123456789") - '0');
    return fits ? value : 0;
  };
  const int year = number(4);
  take("-");
  const int month = number(2);
  take("-");
  const int day = number(2);
  take("Tt");
  const int hour = number(2);
  take(":");
  const int minute = number(2);
  take(":");
  const int second = number(2);
  std::string fraction;
  if (fits && at < text.size() && text[at] == '.') {
    const size_t end = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
    fraction = text.substr(at, end - at);
    fits = fraction.size() > 1;
    at = end;
  }
  const char zone = take("Zz+-");
  Duration offset{0};
  if (zone == '+' || zone == '-') {
    const int hours = number(2);
    take(":");
    const int minutes = number(2);
    if (hours > 23 || minutes > 59) return std::nullopt;
    offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!fits || at != text.size() || !date.ok() || hour > 23 || minute > 59 || second > 60)
    return std::nullopt;
  TimePoint time = std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                   std::chrono::seconds(second);
  if (!fraction.empty())
    time += Duration(std::llround(std::strtod(("0" + fraction).c_str(), nullptr) * 1000));
  time += zone == '+' ? -offset : offset;
  // By its offset it may lie where no text of this form can name it.
  static const TimePoint first = std::chrono::sys_days(std::chrono::year(0) / 1 / 1);
  static const TimePoint end = std::chrono::sys_days(std::chrono::year(10000) / 1 / 1);
  if (time < first || time >= end) return std::nullopt;
  return time;
}

std::optional<double> parse_quantity(const std::string& text) {
  static const std::regex form(R"(([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE])i|([numkMGTPE])|[eE]([+-]?\d+))?)");
  std::smatch part;
  if (text.size() > 64 || !std::regex_match(text, part, form)) return std::nullopt;
  const double number = std::strtod(part[1].str().c_str(), nullptr);
  double scale = 1;
  if (part[2].matched) {
    scale = std::pow(1024.0, 1 + std::string("KMGTPE").find(part[2].str()));
  } else if (part[3].matched) {
    const auto place = static_cast<int>(std::string("num.kMGTPE").find(part[3].str()));  // the point: 10^0
    scale = std::pow(10.0, place * 3 - 9);
  } else if (part[4].matched) {
    scale = std::pow(10.0, std::strtod(part[4].str().c_str(), nullptr));
  }
  const double value = number * scale;
  // An API server takes none of these either.
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace coxswain
