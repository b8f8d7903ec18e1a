#include "runtime/metrics/step_record.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace coxswain {

std::string to_json(const StepRecord& record) {
  nlohmann::ordered_json json;
  json["step"] = record.step;
  json["epoch"] = record.epoch;
  json["loss"] = record.loss;
  json["grad_norm"] = record.grad_norm;
  json["learning_rate"] = record.learning_rate;
  json["tokens"] = record.tokens;
  json["tokens_per_second"] = record.tokens_per_second;
  json["step_seconds"] = record.step_seconds;
  json["rss_mib"] = record.rss_mib;
  return json.dump();  // nlohmann writes NaN and infinities as null
}

int64_t current_rss_mib() {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) return 0;
  return resident_pages * ::sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

}  // namespace coxswain
