// Chance that is the same each time it is asked: jobs that met the same fate together part, and a plan stays
// a function of its arguments.
#pragma once

#include <cstdint>
#include <string>

namespace coxswain {

// 0 … 999, evenly, by the job and a number (an attempt, a count of tries).
int64_t jitter_thousandths(const std::string& job_uid, int64_t number);

}  // namespace coxswain
