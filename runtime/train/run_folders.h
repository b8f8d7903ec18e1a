// Where a run writes. Torch-free.
#pragma once

#include <filesystem>

#include "contract/result.h"
#include "runtime/config/train_config.h"
#include "runtime/launch/rank_environment.h"

namespace coxswain {

struct RunFolders {
  std::filesystem::path project;   // outputs, user saves, metrics
  std::filesystem::path recovery;  // recovery checkpoints
};

// A relative project_name lies under COXSWAIN_OUTPUT_DIR where that is set. The recovery folder is
// COXSWAIN_RECOVERY_DIR, else .recovery in the project folder. kBadInput when the project folder is the base
// model's: it would be overwritten while it is being read.
Result<RunFolders> settle_folders(const TrainConfig& config, const JobEnvironment& job);

}  // namespace coxswain
