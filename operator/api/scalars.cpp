// Times and quantities as Kubernetes writes them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>

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

std::optional<TimePoint> parse_time(const std::string& text) {
  static const std::regex form(
      R"((\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d)))");
  constexpr size_t kLongest = 64;  // std::regex recurses over its text
  std::smatch part;
  if (text.size() > kLongest || !std::regex_match(text, part, form)) return std::nullopt;
  auto number = [&part](size_t i) { return std::stoi(part[i].str()); };
  const std::chrono::year_month_day date{std::chrono::year(number(1)), std::chrono::month(number(2)),
                                         std::chrono::day(number(3))};
  if (!date.ok() || number(4) > 23 || number(5) > 59 || number(6) > 60) return std::nullopt;
  TimePoint time = std::chrono::sys_days(date) + std::chrono::hours(number(4)) +
                   std::chrono::minutes(number(5)) + std::chrono::seconds(number(6));
  if (part[7].matched) time += Duration(std::llround(std::stod("0" + part[7].str()) * 1000));
  if (part[8].matched) {
    if (number(9) > 23 || number(10) > 59) return std::nullopt;
    const auto offset = std::chrono::hours(number(9)) + std::chrono::minutes(number(10));
    time += part[8].str() == "+" ? -offset : offset;
  }
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
