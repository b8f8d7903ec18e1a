// Two guards around the shared output volume. Torch-free.
//
// The fence: a node that lost its network may still be training when the operator has already started the
// next attempt. The recovery folder records the highest attempt that was started; a writer of a lower one is
// refused. (Between check and rename a window remains that no shared file system closes; it is microseconds
// wide.)
//
// The nonce: ranks on several nodes must see the same volume. Rank 0 writes a random number, every rank must
// read it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "contract/result.h"

namespace coxswain {

// Rank 0, at start: from now on lower attempts are refused. Refused itself (kLostPeer) when a higher one is
// recorded.
Result<void> claim_attempt(const std::filesystem::path& recovery_folder, int64_t attempt);
Result<void> check_attempt(const std::filesystem::path& recovery_folder, int64_t attempt);

Result<void> write_nonce(const std::filesystem::path& folder, int64_t nonce);
void remove_nonce(const std::filesystem::path& folder);
// Waits up to `patience` for the number to appear (network file systems cache that a file is absent).
Result<void> check_nonce(const std::filesystem::path& folder, int64_t nonce,
                         std::chrono::milliseconds patience);

}  // namespace coxswain
