#include "tests/operator_metrics/exposition.h"

#include <cmath>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

namespace coxswain {

namespace {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

std::optional<double> number(const std::string& text) {
  if (text == "+Inf") return INFINITY;
  if (text == "-Inf") return -INFINITY;
  if (text == "NaN" || text == "Nan") return NAN;
  static const std::regex plain(R"([-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?)");
  if (!std::regex_match(text, plain)) return std::nullopt;
  return std::stod(text);
}

std::optional<Sample> parse_sample(const std::string& line) {
  static const std::regex whole(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)( -?\d+)?)re");
  static const std::regex label(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)")re");
  std::smatch match;
  if (!std::regex_match(line, match, whole)) return std::nullopt;
  const auto value = number(match[4]);
  if (!value) return std::nullopt;
  Sample sample{match[1], {}, *value};
  const std::string labels = match[3];
  for (std::sregex_iterator it(labels.begin(), labels.end(), label), end; it != end; ++it) {
    if (!sample.labels.emplace((*it)[1], (*it)[2]).second) return std::nullopt;
  }
  return sample;
}

std::string written(const std::string& name, const Labels& labels) {
  if (labels.empty()) return name;
  std::string text;
  for (const auto& [key, value] : labels) text += (text.empty() ? "" : ",") + key + "=\"" + value + "\"";
  return name + "{" + text + "}";
}

std::string family_of(const std::string& name, const std::map<std::string, std::string>& types) {
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    const std::string end = suffix;
    if (!name.ends_with(end)) continue;
    const std::string family = name.substr(0, name.size() - end.size());
    const auto type = types.find(family);
    if (type != types.end() && type->second == "histogram") return family;
  }
  return name;
}

class Parser {
 public:
  tl::expected<Exposition, std::string> parse(const std::string& text) {
    if (!text.empty() && text.back() != '\n') return tl::unexpected(std::string("no newline at the end"));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (const std::string why = take(line); !why.empty()) return tl::unexpected(why + ": " + line);
    }
    for (const auto& [series, buckets] : buckets_) {
      if (const std::string why = check(series, buckets); !why.empty()) return tl::unexpected(why);
    }
    return out_;
  }

 private:
  std::string take(const std::string& line) {
    static const std::regex meta(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*))");
    std::smatch match;
    if (std::regex_match(line, match, meta)) return take_meta(match[1], match[2], match[3]);
    if (line.empty() || line[0] == '#') return "";
    const auto sample = parse_sample(line);
    if (!sample) return "not a sample";
    const std::string family = family_of(sample->name, out_.types);
    if (family != current_) {
      if (!seen_.insert(family).second) return "the samples of a family are not together";
      current_ = family;
    }
    if (!out_.types.contains(family) || !out_.helps.contains(family)) return "no TYPE or HELP before it";
    if (!out_.samples.emplace(written(sample->name, sample->labels), sample->value).second) return "twice";
    const std::string& type = out_.types[family];
    if (type == "counter" && !(sample->value >= 0)) return "a counter below 0";
    if (type == "counter" && !family.ends_with("_total")) return "a counter without _total";
    if (type == "histogram" && sample->name == family + "_bucket") {
      Labels labels = sample->labels;
      const auto le = labels.extract("le");
      const auto bound = le ? number(le.mapped()) : std::nullopt;
      if (!bound) return "a bucket without a bound";
      buckets_[{family, labels}].emplace_back(*bound, sample->value);
    }
    return "";
  }

  std::string take_meta(const std::string& kind, const std::string& family, const std::string& words) {
    if (seen_.contains(family)) return "after the family's samples";
    auto& known = kind == "TYPE" ? out_.types : out_.helps;
    if (!known.emplace(family, words).second) return "twice";
    static const std::set<std::string> types = {"counter", "gauge", "histogram", "summary", "untyped"};
    return kind == "TYPE" && !types.contains(words) ? "no such type" : "";
  }

  using Series = std::pair<std::string, Labels>;
  using BoundsAndCounts = std::vector<std::pair<double, double>>;

  std::string check(const Series& series, const BoundsAndCounts& buckets) const {
    const auto& [family, labels] = series;
    for (size_t i = 1; i < buckets.size(); ++i) {
      if (buckets[i].first <= buckets[i - 1].first) return family + ": bounds don't rise";
      if (buckets[i].second < buckets[i - 1].second) return family + ": counts fall";
    }
    if (!std::isinf(buckets.back().first)) return family + ": no +Inf";
    if (out_.value(written(family + "_count", labels)) != buckets.back().second) return family + ": _count";
    if (!out_.samples.contains(written(family + "_sum", labels))) return family + ": no _sum";
    return "";
  }

  Exposition out_;
  std::set<std::string> seen_;
  std::string current_;
  std::map<Series, BoundsAndCounts> buckets_;
};

}  // namespace

double Exposition::value(const std::string& sample) const {
  const auto found = samples.find(sample);
  return found == samples.end() ? 0 : found->second;
}

tl::expected<Exposition, std::string> parse_exposition(const std::string& text) {
  return Parser().parse(text);
}

}  // namespace coxswain
