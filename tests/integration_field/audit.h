// What the API server's audit log says of one client.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/client/api_client.h"

namespace coxswain::testing {

struct AuditedCall {
  std::string verb;      // get, list, watch, create, update, patch, delete
  std::string resource;  // plural, with its subresource: "trainingjobs/status"
  std::string ns;
  std::string name;
  std::string uri;
  int code = 0;

  bool is_write() const { return verb != "get" && verb != "list" && verb != "watch"; }
};

class AuditLog {
 public:
  // Of what is written from now on by clients whose user agent begins so.
  AuditLog(std::filesystem::path file, std::string user_agent);

  void forget();
  // In order. A watch is there from its start; one that is refused isn't.
  std::vector<AuditedCall> calls(const std::string& ns) const;

 private:
  const std::filesystem::path file_;
  const std::string user_agent_;
  std::uintmax_t from_ = 0;
};

}  // namespace coxswain::testing
