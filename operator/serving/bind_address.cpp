#include "operator/serving/bind_address.h"

#include <charconv>
#include <string_view>

namespace coxswain {

namespace {

std::optional<int> port_in(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size();
  if (!whole || port < 0 || port > 65535) return std::nullopt;
  return port;
}

// The host before the port; an IPv6 address is in brackets, as otherwise its end looks like a port.
std::optional<std::string> host_in(std::string_view text) {
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (bracketed) text = text.substr(1, text.size() - 2);
  const std::string_view never = "[]/ \t";
  if (text.find_first_of(never) != std::string_view::npos) return std::nullopt;
  if ((text.find(':') != std::string_view::npos) != bracketed) return std::nullopt;
  return std::string(text);
}

}  // namespace

Result<std::optional<BindAddress>> parse_bind_address(const std::string& flag, const std::string& text) {
  if (text.empty() || text == "0") return std::optional<BindAddress>();
  const std::string_view whole(text);
  const size_t colon = whole.rfind(':');
  if (colon != std::string_view::npos) {
    const auto port = port_in(whole.substr(colon + 1));
    const auto host = host_in(whole.substr(0, colon));
    if (port && host) return std::optional<BindAddress>({*host, *port});
  }
  return bad_input(flag + ": \"" + text +
                   "\" is no address to listen on: use :PORT, HOST:PORT or [IPV6]:PORT with a port from 0 to "
                   "65535 (0: any free one), or 0 to switch it off.");
}

}  // namespace coxswain
