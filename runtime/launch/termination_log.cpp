#include "runtime/launch/termination_log.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "contract/contract.h"

namespace coxswain {

namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

std::optional<std::string> termination_log_path(const EnvironmentLookup& environment) {
  if (std::optional<std::string> path = environment(contract::kEnvTerminationLog); path && !path->empty())
    return path;
  std::error_code error;
  if (std::filesystem::exists(contract::kTerminationLog, error)) return contract::kTerminationLog;
  return std::nullopt;
}

std::string cut_termination_message(const std::string& message, bool keep_end) {
  const size_t limit = contract::kTerminationMessageMaxBytes;
  if (message.size() <= limit) return message;
  if (keep_end) {
    size_t begin = message.size() - limit;
    while (begin < message.size() && is_continuation(message[begin])) ++begin;
    return message.substr(begin);
  }
  size_t end = limit;
  while (end > 0 && is_continuation(message[end])) --end;
  return message.substr(0, end);
}

void write_termination_message(const std::string& path, const std::string& message) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << message;
  file.close();
  if (!file) std::fprintf(stderr, "coxswain: can't write the termination message to %s.\n", path.c_str());
}

}  // namespace coxswain
