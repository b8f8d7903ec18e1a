#include "runtime/train/run_folders.h"

#include <system_error>

namespace coxswain {
namespace fs = std::filesystem;

Result<RunFolders> settle_folders(const TrainConfig& config, const JobEnvironment& job) {
  RunFolders folders;
  folders.project = config.project_name;
  if (folders.project.is_relative() && job.output_dir)
    folders.project = fs::path(*job.output_dir) / folders.project;
  folders.recovery =
      job.recovery_dir ? fs::path(*job.recovery_dir) : folders.project / contract::kRecoveryFolder;
  std::error_code not_there;
  if (fs::equivalent(folders.project, config.base_model, not_there)) {
    return bad_input(
        "project_name: " + folders.project.string() +
        " is the folder of base_model; training would overwrite the model it starts from. Name another "
        "folder.");
  }
  return folders;
}

}  // namespace coxswain
