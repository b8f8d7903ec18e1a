#include "operator/reconcile/jitter.h"

namespace coxswain {

int64_t jitter_thousandths(const std::string& job_uid, int64_t number) {
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : job_uid + "/" + std::to_string(number)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  // The last bytes only reach FNV's low bits: two numbers of one job would be near each other.
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdULL;
  hash ^= hash >> 33;
  return static_cast<int64_t>(hash % 1000);
}

}  // namespace coxswain
