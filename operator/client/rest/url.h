// URLs of API servers and proxies, and the escaping of path segments and query values.
#pragma once

#include <string>
#include <string_view>

#include "contract/result.h"

namespace coxswain {

struct Url {
  std::string scheme;  // "https" or "http"
  std::string user;
  std::string password;
  std::string host;  // an IPv6 address without its brackets
  int port = 0;
  std::string path;  // "" or "/prefix": a server may live below a path of a gateway

  bool tls() const { return scheme == "https"; }
  // "host:port", an IPv6 address in brackets.
  std::string authority() const;
};

// `field` names the URL's place for the error. The error repeats the text only without user and password.
Result<Url> parse_url(const std::string& text, const std::string& field);

bool is_ip_address(const std::string& host);
bool is_ipv6_address(const std::string& host);

// All but unreserved characters as %XX.
std::string percent_encode(std::string_view text);
// A lone % stays.
std::string percent_decode(std::string_view text);

}  // namespace coxswain
