// What a run keeps between two starts: the job as the API last had it, so that a suspended job goes on under
// its UID.
#pragma once

#include <filesystem>
#include <optional>

#include "contract/result.h"
#include "operator/api/training_job.h"

namespace coxswain {

// Holds the folder's lock as long as it lives.
class JobFolder {
 public:
  // Refuses a folder that another run of the job holds.
  static Result<JobFolder> open(const std::filesystem::path& folder);
  ~JobFolder();
  JobFolder(JobFolder&& other) noexcept;
  JobFolder& operator=(JobFolder&&) = delete;

  // Nothing where no run has been; a file that can't be read is a failure that says how to start afresh.
  Result<std::optional<Json>> load() const;
  Result<void> save(const Json& job) const;
  // Removes what the pods of earlier runs left.
  void clear_pods() const;
  const std::filesystem::path& path() const { return folder_; }

 private:
  JobFolder(std::filesystem::path folder, int lock) : folder_(std::move(folder)), lock_(lock) {}

  std::filesystem::path folder_;
  int lock_;
};

}  // namespace coxswain
