#include "operator/logging/job_log.h"

namespace coxswain {

std::string log_prefix(const JobRef& job) {
  if (!job.attempt) return fmt::format("{}/{}: ", job.namespace_name, job.name);
  return fmt::format("{}/{} attempt {}: ", job.namespace_name, job.name, *job.attempt);
}

namespace log_detail {

namespace {

thread_local const AboutJob* about_job = nullptr;

}  // namespace

AboutJob::AboutJob(const JobRef& job, size_t prefix_bytes) : job(job), prefix_bytes(prefix_bytes) {
  about_job = this;
}

AboutJob::~AboutJob() {
  about_job = nullptr;
}

const AboutJob* AboutJob::current() {
  return about_job;
}

}  // namespace log_detail
}  // namespace coxswain
