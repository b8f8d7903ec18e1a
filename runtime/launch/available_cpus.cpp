#include "runtime/launch/available_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace coxswain {

namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<double> quota_from_v1(const std::filesystem::path& folder) {
  std::istringstream quota(read_text(folder / "cpu.cfs_quota_us"));
  std::istringstream period(read_text(folder / "cpu.cfs_period_us"));
  double quota_us = 0;
  double period_us = 0;
  if (!(quota >> quota_us) || !(period >> period_us) || quota_us <= 0 || period_us <= 0) return std::nullopt;
  return quota_us / period_us;
}

bool lists(const std::string& comma_separated, const std::string& name) {
  std::istringstream words(comma_separated);
  for (std::string word; std::getline(words, word, ',');)
    if (word == name) return true;
  return false;
}

struct CgroupPath {
  bool v1_cpu = false;
  std::filesystem::path path;  // relative to the mount
};

// Lines of /proc/self/cgroup: "0::/path" (v2) and "4:cpu,cpuacct:/path" (v1).
std::vector<CgroupPath> own_cgroups(const std::filesystem::path& root) {
  std::vector<CgroupPath> cgroups;
  std::istringstream lines(read_text(root / "proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v1_cpu = lists(controllers, "cpu");
    if (!v1_cpu && !controllers.empty()) continue;
    cgroups.push_back({v1_cpu, std::filesystem::path(line.substr(second + 1)).relative_path()});
  }
  return cgroups;
}

void lower(std::optional<double>& least, std::optional<double> quota) {
  if (quota && (!least || *quota < *least)) least = quota;
}

}  // namespace

std::optional<double> quota_from_cpu_max(const std::string& text) {
  std::istringstream words(text);
  double quota_us = 0;
  double period_us = 0;
  if (!(words >> quota_us >> period_us) || quota_us <= 0 || period_us <= 0) return std::nullopt;
  return quota_us / period_us;
}

std::optional<double> cgroup_cpu_quota(const std::filesystem::path& root) {
  std::optional<double> least;
  for (const CgroupPath& cgroup : own_cgroups(root)) {
    const std::filesystem::path mount = root / (cgroup.v1_cpu ? "sys/fs/cgroup/cpu" : "sys/fs/cgroup");
    // In a container the mount's root may be the process's own cgroup, and the path lead nowhere.
    for (std::filesystem::path path = cgroup.path;; path = path.parent_path()) {
      const std::filesystem::path folder = mount / path;
      lower(least, cgroup.v1_cpu ? quota_from_v1(folder) : quota_from_cpu_max(read_text(folder / "cpu.max")));
      if (path.empty()) break;
    }
  }
  return least;
}

int available_cpus(const std::filesystem::path& root) {
  cpu_set_t mask;
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0) cpus = CPU_COUNT(&mask);
  if (const std::optional<double> quota = cgroup_cpu_quota(root))
    cpus = std::min(cpus, static_cast<int>(std::floor(*quota)));
  return std::max(1, cpus);
}

int threads_per_worker(int cpus, int workers) {
  return std::max(1, cpus / std::max(1, workers));
}

}  // namespace coxswain
