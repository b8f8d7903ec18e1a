#include "tests/integration_field/audit.h"

#include <fstream>

namespace coxswain::testing {

AuditLog::AuditLog(std::filesystem::path file, std::string user_agent)
    : file_(std::move(file)), user_agent_(std::move(user_agent)) {
  forget();
}

void AuditLog::forget() {
  std::error_code missing;
  from_ = std::filesystem::file_size(file_, missing);
  if (missing) from_ = 0;
}

std::vector<AuditedCall> AuditLog::calls(const std::string& ns) const {
  std::ifstream log(file_);
  log.seekg(static_cast<std::streamoff>(from_));
  std::vector<AuditedCall> result;
  for (std::string line; std::getline(log, line) && !log.eof();) {
    if (line.find(ns) == std::string::npos || line.find(user_agent_) == std::string::npos) continue;
    const Json entry = Json::parse(line);
    const Json object = entry.value("objectRef", Json::object());
    if (object.value("namespace", "") != ns || !entry.value("userAgent", "").starts_with(user_agent_))
      continue;
    // A watch is told of twice: when it starts and when it ends.
    if (entry["verb"] == "watch" && entry["stage"] == "ResponseComplete") continue;
    const std::string sub = object.value("subresource", "");
    result.push_back({entry["verb"], object.value("resource", "") + (sub.empty() ? "" : "/" + sub), ns,
                      object.value("name", ""), entry["requestURI"],
                      entry.value("/responseStatus/code"_json_pointer, 0)});
  }
  return result;
}

}  // namespace coxswain::testing
