#include "runtime/checkpoint/fence.h"

#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "runtime/checkpoint/commit.h"

namespace coxswain {
namespace fs = std::filesystem;
namespace {

constexpr char kAttemptFile[] = "ATTEMPT";
constexpr char kNonceFile[] = ".volume-check";

std::optional<int64_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  int64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

}  // namespace

Result<void> check_attempt(const fs::path& recovery_folder, int64_t attempt) {
  const auto recorded = read_number(recovery_folder / kAttemptFile);
  if (recorded && *recorded > attempt) {
    return fail(contract::ExitCode::kLostPeer, "Attempt " + std::to_string(attempt) +
                                                   " of this job was replaced by attempt " +
                                                   std::to_string(*recorded) + "; it stops without saving.");
  }
  return {};
}

Result<void> claim_attempt(const fs::path& recovery_folder, int64_t attempt) {
  if (auto made = make_folder(recovery_folder); !made) return made;
  if (auto fenced = check_attempt(recovery_folder, attempt); !fenced) return fenced;
  if (read_number(recovery_folder / kAttemptFile) == attempt) return {};
  return write_durably(recovery_folder / kAttemptFile, std::to_string(attempt) + "\n");
}

Result<void> write_nonce(const fs::path& folder, int64_t nonce) {
  if (auto made = make_folder(folder); !made) return made;
  return write_durably(folder / kNonceFile, std::to_string(nonce) + "\n");
}

void remove_nonce(const fs::path& folder) {
  std::error_code stays;
  fs::remove(folder / kNonceFile, stays);
}

Result<void> check_nonce(const fs::path& folder, int64_t nonce, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (read_number(folder / kNonceFile) != nonce) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return bad_input(
          "The folder " + folder.string() +
          " is not the same volume on every node (this rank does not see what rank 0 wrote there); with "
          "several nodes the output needs a shared volume, access mode ReadWriteMany.");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return {};
}

}  // namespace coxswain
