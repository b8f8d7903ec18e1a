#include "operator/client/rest/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace coxswain {

namespace {

bool unreserved(unsigned char c) {
  return std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string without_credentials(const std::string& text) {
  const auto slashes = text.find("://");
  const auto begin = slashes == std::string::npos ? 0 : slashes + 3;
  const auto at = text.substr(begin, text.find('/', begin) - begin).rfind('@');
  return at == std::string::npos ? text : text.substr(0, begin) + text.substr(begin + at + 1);
}

tl::unexpected<Failure> bad_url(const std::string& field, const std::string& text, const std::string& why) {
  return bad_input(field + ": \"" + without_credentials(text) + "\" " + why +
                   "; write it as https://HOST:PORT, an IPv6 address in brackets.");
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535) {
    return std::nullopt;
  }
  return port;
}

bool valid_host(const std::string& host) {
  if (host.find(':') != std::string::npos) return is_ipv6_address(host);
  return !host.empty() &&
         std::ranges::all_of(host, [](unsigned char c) { return unreserved(c) && c != '~'; });
}

struct HostPort {
  std::string host;
  std::string port;  // "": none
};

std::optional<HostPort> split_host_port(const std::string& text) {
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string::npos) return std::nullopt;
    const std::string rest = text.substr(close + 1);
    if (!rest.empty() && (rest.size() < 2 || rest[0] != ':')) return std::nullopt;
    const std::string host = text.substr(1, close - 1);
    if (!is_ipv6_address(host)) return std::nullopt;
    return HostPort{host, rest.empty() ? "" : rest.substr(1)};
  }
  const auto colon = text.find(':');
  if (colon == std::string::npos) return HostPort{text, ""};
  if (text.find(':', colon + 1) != std::string::npos || colon + 1 == text.size()) return std::nullopt;
  return HostPort{text.substr(0, colon), text.substr(colon + 1)};
}

void take_credentials(Url& url, std::string& authority) {
  const auto at = authority.rfind('@');
  if (at == std::string::npos) return;
  const std::string credentials = authority.substr(0, at);
  authority.erase(0, at + 1);
  const auto colon = credentials.find(':');
  url.user = percent_decode(credentials.substr(0, colon));
  if (colon != std::string::npos) url.password = percent_decode(credentials.substr(colon + 1));
}

}  // namespace

std::string Url::authority() const {
  return (is_ipv6_address(host) ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Url> parse_url(const std::string& text, const std::string& field) {
  Url url;
  const auto slashes = text.find("://");
  if (slashes == std::string::npos) return bad_url(field, text, "has no https:// or http:// before the host");
  url.scheme = text.substr(0, slashes);
  std::ranges::transform(url.scheme, url.scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  if (url.scheme != "https" && url.scheme != "http") {
    return bad_url(field, text, "has the scheme " + url.scheme + ", not https or http");
  }
  const auto begin = slashes + 3;
  const auto end = std::min(text.find_first_of("/?#", begin), text.size());
  if (text.find_first_of("?#", begin) != std::string::npos) {
    return bad_url(field, text, "has a query or a fragment");
  }
  std::string authority = text.substr(begin, end - begin);
  url.path = text.substr(end);
  while (url.path.ends_with('/')) url.path.pop_back();
  take_credentials(url, authority);
  const auto parts = split_host_port(authority);
  if (!parts || !valid_host(parts->host)) return bad_url(field, text, "has no valid host");
  url.host = parts->host;
  const auto port = parts->port.empty() ? std::optional<int>(url.tls() ? 443 : 80) : parse_port(parts->port);
  if (!port) return bad_url(field, text, "has a port that is no number from 1 to 65535");
  url.port = *port;
  return url;
}

bool is_ipv6_address(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_ip_address(const std::string& host) {
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || is_ipv6_address(host);
}

std::string percent_encode(std::string_view text) {
  static const char digits[] = "0123456789ABCDEF";
  std::string result;
  for (const unsigned char c : text) {
    if (unreserved(c)) {
      result += static_cast<char>(c);
    } else {
      result += {'%', digits[c >> 4], digits[c & 15]};
    }
  }
  return result;
}

std::string percent_decode(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    if (escape) {
      result += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace coxswain
