// As whom we ask: what each request and each new connection carries, kept fresh.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "operator/client/clock.h"
#include "operator/client/rest/cluster_access.h"
#include "operator/client/rest/exec_plugin.h"
#include "operator/client/rest/tls.h"

namespace coxswain {

// Thread-safe; a caller may wait for a plugin that another one is running.
class Credentials {
 public:
  using ExecRunner = std::function<Result<std::string>(const ExecPlugin&, const std::string& info)>;
  using Headers = std::vector<std::pair<std::string, std::string>>;

  explicit Credentials(ClusterAccess access, Clock clock = system_time, ExecRunner run = run_with_timeout);

  // Authorization and Impersonate-*, as each request carries them. A token file is read again a minute after
  // the last time; one that can't be read any more leaves its last token in use. A plugin runs again once its
  // credential has expired.
  Result<Headers> headers();
  // What a new connection shows and trusts: files are read at each call.
  Result<TlsMaterial> tls_material();

  struct Refreshed {
    bool again = false;        // the request is worth sending once more
    bool certificate = false;  // on a new connection, since the client certificate is another one
  };
  // The server said 401 to a request that carried `used`: reads the token file or runs the plugin, unless
  // another thread just has. A plugin is not run more than once in 10 s for this.
  Refreshed refresh(const Headers& used);

 private:
  static Result<std::string> run_with_timeout(const ExecPlugin& plugin, const std::string& info);

  Result<void> ensure_token_file();
  Result<void> ensure_exec();
  Result<void> run_exec();
  Headers present_headers() const;

  const ClusterAccess access_;
  const Clock clock_;
  const ExecRunner run_;

  mutable std::mutex mutex_;
  std::string file_token_;
  std::optional<TimePoint> file_read_at_;
  std::optional<ExecCredential> exec_;
  std::optional<TimePoint> exec_run_at_;
};

}  // namespace coxswain
