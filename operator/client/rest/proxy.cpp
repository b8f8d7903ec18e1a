#include "operator/client/rest/proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <sstream>
#include <vector>

namespace coxswain {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string trim(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// 4 or 16 bytes; none: no address.
std::vector<unsigned char> address_bytes(const std::string& text) {
  std::array<unsigned char, 16> buffer{};
  if (::inet_pton(AF_INET, text.c_str(), buffer.data()) == 1) return {buffer.begin(), buffer.begin() + 4};
  if (::inet_pton(AF_INET6, text.c_str(), buffer.data()) == 1) return {buffer.begin(), buffer.end()};
  return {};
}

bool is_loopback(const std::string& host) {
  const auto bytes = address_bytes(host);
  if (bytes.size() == 4) return bytes[0] == 127;
  return host == "localhost" || (bytes.size() == 16 && bytes == address_bytes("::1"));
}

bool in_range(const std::string& cidr, const std::string& host) {
  const auto slash = cidr.find('/');
  const auto network = address_bytes(cidr.substr(0, slash));
  const auto address = address_bytes(host);
  const std::string length = cidr.substr(slash + 1);
  if (network.empty() || network.size() != address.size() || length.empty() || length.size() > 3 ||
      !std::ranges::all_of(length, [](unsigned char c) { return std::isdigit(c); })) {
    return false;
  }
  const size_t bits = std::stoul(length);
  if (bits > network.size() * 8) return false;
  for (size_t bit = 0; bit < bits; ++bit) {
    const int shift = 7 - static_cast<int>(bit % 8);
    if (((network[bit / 8] ^ address[bit / 8]) >> shift & 1) != 0) return false;
  }
  return true;
}

bool entry_matches(std::string entry, const std::string& host, int port) {
  if (entry == "*") return true;
  if (entry.find('/') != std::string::npos) return in_range(entry, host);
  if (address_bytes(entry).empty()) {
    const auto colon = entry.rfind(':');
    if (colon != std::string::npos) {
      if (entry.substr(colon + 1) != std::to_string(port)) return false;
      entry.resize(colon);
    }
  }
  if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
  if (const auto bytes = address_bytes(entry); !bytes.empty()) return bytes == address_bytes(host);
  if (entry.starts_with("*.")) entry.erase(0, 1);
  if (entry.starts_with('.')) return host.ends_with(entry);
  return !entry.empty() && (host == entry || host.ends_with("." + entry));
}

Result<std::optional<Url>> http_proxy(const std::string& text, const std::string& field) {
  // Go's programs take a bare host:port for an HTTP proxy.
  auto url = parse_url(text.find("://") == std::string::npos ? "http://" + text : text, field);
  if (!url) return tl::unexpected(url.error());
  if (url->scheme != "http") {
    return bad_input(field +
                     ": only proxies that are reached by http:// are supported (they tunnel TLS to the " +
                     "server by CONNECT); use one, or leave the proxy out.");
  }
  return std::optional<Url>(std::move(*url));
}

}  // namespace

bool bypasses_proxy(const std::string& no_proxy, const std::string& host, int port) {
  const std::string name = lower(host);
  if (is_loopback(name)) return true;
  std::istringstream entries(no_proxy);
  for (std::string entry; std::getline(entries, entry, ',');) {
    if (entry_matches(lower(trim(entry)), name, port)) return true;
  }
  return false;
}

Result<std::optional<Url>> proxy_for(const Url& server, const std::string& proxy_url,
                                     const EnvironmentLookup& environment) {
  if (!proxy_url.empty()) return http_proxy(proxy_url, "proxy-url");
  const auto variable = [&](const std::string& name) -> std::pair<std::string, std::string> {
    for (const std::string& spelling : {name, lower(name)}) {
      const std::string value = environment(spelling).value_or("");
      if (!value.empty()) return {spelling, value};
    }
    return {name, ""};
  };
  const auto [name, value] = variable(server.tls() ? "HTTPS_PROXY" : "HTTP_PROXY");
  if (value.empty() || bypasses_proxy(variable("NO_PROXY").second, server.host, server.port)) {
    return std::nullopt;
  }
  return http_proxy(value, name);
}

}  // namespace coxswain
