#include "operator/client/rest/credentials.h"

#include <fstream>
#include <sstream>

#include "operator/client/rest/base64.h"

namespace coxswain {

namespace {

// The kubelet rotates a token long before it expires.
constexpr std::chrono::minutes kTokenFileAge{1};
constexpr std::chrono::seconds kMinExecInterval{10};
// A plugin may ask a slow identity provider.
constexpr std::chrono::seconds kExecTimeout{60};

std::string trim(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

Credentials::Credentials(ClusterAccess access, Clock clock, ExecRunner run)
    : access_(std::move(access)), clock_(std::move(clock)), run_(std::move(run)) {}

Result<std::string> Credentials::run_with_timeout(const ExecPlugin& plugin, const std::string& info) {
  return run_exec_plugin(plugin, info, kExecTimeout);
}

Result<void> Credentials::ensure_token_file() {
  if (access_.token_file.empty()) return {};
  if (file_read_at_ && clock_() < *file_read_at_ + kTokenFileAge) return {};
  std::ifstream in(access_.token_file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string token = in.is_open() ? trim(text.str()) : "";
  if (!token.empty()) {
    file_token_ = token;
    file_read_at_ = clock_();
  } else if (file_token_.empty() && access_.token.empty()) {
    return bad_input(access_.source + ": the token file " + access_.token_file.string() +
                     " can't be read or is empty; check that it exists and who may read it.");
  }
  return {};
}

Result<void> Credentials::ensure_exec() {
  if (!access_.exec) return {};
  if (exec_ && (!exec_->expires_at || clock_() < *exec_->expires_at)) return {};
  return run_exec();
}

Result<void> Credentials::run_exec() {
  exec_run_at_ = clock_();
  const auto output = run_(*access_.exec, exec_info(*access_.exec, access_));
  if (!output) return bad_input(access_.source + ": " + output.error().message);
  auto credential = parse_exec_credential(*output, *access_.exec);
  if (!credential) return bad_input(access_.source + ": " + credential.error().message);
  exec_ = std::move(*credential);
  return {};
}

Credentials::Headers Credentials::present_headers() const {
  Headers headers;
  const auto bearer = [&](const std::string& token) {
    headers.emplace_back("Authorization", "Bearer " + token);
  };
  if (!file_token_.empty()) {
    bearer(file_token_);
  } else if (!access_.token.empty()) {
    bearer(access_.token);
  } else if (!access_.username.empty()) {
    headers.emplace_back("Authorization",
                         "Basic " + encode_base64(access_.username + ":" + access_.password));
  } else if (exec_ && !exec_->token.empty()) {
    bearer(exec_->token);
  }
  const Impersonation& as = access_.impersonate;
  if (!as.user.empty()) headers.emplace_back("Impersonate-User", as.user);
  if (!as.uid.empty()) headers.emplace_back("Impersonate-Uid", as.uid);
  for (const std::string& group : as.groups) headers.emplace_back("Impersonate-Group", group);
  return headers;
}

Result<Credentials::Headers> Credentials::headers() {
  std::lock_guard lock(mutex_);
  if (auto ready = ensure_token_file(); !ready) return tl::unexpected(ready.error());
  if (auto ready = ensure_exec(); !ready) return tl::unexpected(ready.error());
  return present_headers();
}

Result<TlsMaterial> Credentials::tls_material() {
  TlsMaterial material;
  const auto take = [&](std::string& into, const PemSource& source,
                        const std::string& field) -> Result<void> {
    auto text = source.read(access_.source + ": " + field);
    if (!text) return tl::unexpected(text.error());
    into = std::move(*text);
    return {};
  };
  if (auto read = take(material.ca_pem, access_.ca, "certificate-authority"); !read) {
    return tl::unexpected(read.error());
  }
  if (!access_.ca.empty() && material.ca_pem.empty()) {
    return bad_input(access_.source + ": certificate-authority: " + access_.ca.file.string() + " is empty.");
  }
  if (auto read = take(material.certificate_pem, access_.client_certificate, "client-certificate"); !read) {
    return tl::unexpected(read.error());
  }
  if (auto read = take(material.key_pem, access_.client_key, "client-key"); !read) {
    return tl::unexpected(read.error());
  }
  std::lock_guard lock(mutex_);
  if (auto ready = ensure_exec(); !ready) return tl::unexpected(ready.error());
  if (exec_ && !exec_->certificate_pem.empty()) {
    material.certificate_pem = exec_->certificate_pem;
    material.key_pem = exec_->key_pem;
  }
  return material;
}

Credentials::Refreshed Credentials::refresh(const Headers& used) {
  std::lock_guard lock(mutex_);
  if (present_headers() != used) return {true, false};
  if (!access_.token_file.empty()) {
    file_read_at_.reset();
    return {ensure_token_file().has_value() && present_headers() != used, false};
  }
  if (!access_.exec) return {};
  if (exec_run_at_ && clock_() < *exec_run_at_ + kMinExecInterval) return {};
  const std::string certificate = exec_ ? exec_->certificate_pem : "";
  if (!run_exec()) return {};
  const bool certificate_changed = exec_->certificate_pem != certificate;
  return {certificate_changed || present_headers() != used, certificate_changed};
}

}  // namespace coxswain
