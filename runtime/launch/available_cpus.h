// How many CPUs this process may use: the least of its affinity mask and its cgroup's quota (v2 or v1).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace coxswain {

// CPUs of the quota, from a cgroup v2 `cpu.max` ("max 100000", "150000 100000"); nothing: no quota.
std::optional<double> quota_from_cpu_max(const std::string& text);

// The tightest quota of the process's cgroup and those above it. `root` is "/" but in tests.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& root);

// Whole CPUs, at least 1.
int available_cpus(const std::filesystem::path& root = "/");

// OMP_NUM_THREADS of each of `workers` that share `cpus`, at least 1.
int threads_per_worker(int cpus, int workers);

}  // namespace coxswain
