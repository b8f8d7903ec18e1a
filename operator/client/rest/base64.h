// Base64 of RFC 4648, by OpenSSL.
#pragma once

#include <optional>
#include <string>

namespace coxswain {

std::string encode_base64(const std::string& bytes);
// White space is passed over; none where the rest is no Base64.
std::optional<std::string> decode_base64(const std::string& text);

}  // namespace coxswain
