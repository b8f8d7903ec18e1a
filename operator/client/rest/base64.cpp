#include "operator/client/rest/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>

namespace coxswain {

std::string encode_base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(length);
  return text;
}

std::optional<std::string> decode_base64(const std::string& text) {
  std::string packed;
  std::ranges::copy_if(text, std::back_inserter(packed), [](unsigned char c) { return !std::isspace(c); });
  if (packed.size() % 4 != 0) return std::nullopt;
  const size_t padding = packed.size() - std::min(packed.find('='), packed.size());
  if (padding > 2 || !packed.ends_with(std::string(padding, '='))) return std::nullopt;
  std::string bytes(packed.size() / 4 * 3, '\0');
  const int length =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(packed.data()), static_cast<int>(packed.size()));
  if (length < 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(length) - padding);
  return bytes;
}

}  // namespace coxswain
