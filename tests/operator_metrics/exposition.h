// Prometheus' text format 0.0.4, read strictly: what a scraper would refuse or drop is an error here.
#pragma once

#include <map>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace coxswain {

struct Exposition {
  // By name and labels as written, with sorted labels: `a_total{code="200",verb="get"}`.
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;  // by family
  std::map<std::string, std::string> helps;

  // 0 where there is none.
  double value(const std::string& sample) const;
};

// The failure names the line. Checked: names, escapes, numbers, the final newline; HELP and TYPE once and
// before the family's samples, which are together; no sample twice; histograms with rising buckets, +Inf,
// _sum, _count.
tl::expected<Exposition, std::string> parse_exposition(const std::string& text);

}  // namespace coxswain
