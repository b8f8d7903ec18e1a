#include "runtime/train/environment_report.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/utsname.h>
#include <torch/torch.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

namespace coxswain {
namespace {

constexpr char kNoGpu[] = "no GPU: training runs on the CPU, which is slow for all but small models";

// The value of the first line that starts with `key`, behind `separator`.
std::string value_in(const std::string& file, const std::string& key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t\"", at + 1);
    const size_t end = line.find_last_not_of(" \t\"");
    if (begin != std::string::npos) return line.substr(begin, end - begin + 1);
  }
  return "unknown";
}

std::optional<double> cpu_quota() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period) return quota == "max" ? std::nullopt : std::optional(std::stod(quota) / period);
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double microseconds = -1;
  if (v1_quota >> microseconds && v1_period >> period && microseconds > 0) return microseconds / period;
  return std::nullopt;
}

std::optional<int64_t> memory_limit_mib() {
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    uint64_t bytes = 0;
    if (in >> bytes && bytes < (uint64_t{1} << 60)) return static_cast<int64_t>(bytes >> 20);
  }
  return std::nullopt;
}

int64_t memory_mib() {
  return std::atoll(value_in("/proc/meminfo", "MemTotal", ':').c_str()) / 1024;
}

std::string cpu() {
  const auto quota = cpu_quota();
  return fmt::format("{}, {} cores{}", value_in("/proc/cpuinfo", "model name", ':'),
                     std::thread::hardware_concurrency(), quota ? fmt::format(", quota {:.1f}", *quota) : "");
}

std::string memory() {
  const auto limit = memory_limit_mib();
  return fmt::format("{} MiB{}", memory_mib(), limit ? fmt::format(", limit {} MiB", *limit) : "");
}

std::string interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "unknown";
  std::string out;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_UP) == 0)
      continue;
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, address,
              sizeof address);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", each->ifa_name, address);
  }
  freeifaddrs(list);
  const char* chosen = std::getenv("GLOO_SOCKET_IFNAME");
  return chosen ? fmt::format("{} (GLOO_SOCKET_IFNAME={})", out, chosen) : out;
}

// LibTorch's own description, a bullet a line; only what tells builds apart.
std::string libtorch_build() {
  std::istringstream config(at::show_config());
  std::string out;
  for (std::string line; std::getline(config, line);) {
    const size_t begin = line.find_first_not_of(" -");
    if (begin == std::string::npos) continue;
    line = line.substr(begin);
    if (line.starts_with("Intel") || line.starts_with("CPU capability") || line.starts_with("OpenMP")) {
      out += "\n                    " + line;
    }
  }
  return out;
}

}  // namespace

std::string environment_report() {
  utsname kernel = {};
  uname(&kernel);
  const char* omp = std::getenv("OMP_NUM_THREADS");
  return fmt::format(
      "system              {}, Linux {} {}\n"
      "CPU                 {}\n"
      "memory              {}\n"
      "LibTorch            {}{}\n"
      "threads             {} in an operation{}\n"
      "collectives         Gloo\n"
      "interfaces          {}\n"
      "devices             {}\n",
      value_in("/etc/os-release", "PRETTY_NAME", '='), kernel.release, kernel.machine, cpu(), memory(),
      TORCH_VERSION, libtorch_build(), at::get_num_threads(),
      omp ? fmt::format(" (OMP_NUM_THREADS={})", omp) : "", interfaces(), kNoGpu);
}

std::string short_environment_report() {
  return fmt::format("LibTorch {}, {}, {} thread{} a rank, {} memory; {}.", TORCH_VERSION, cpu(),
                     at::get_num_threads(), at::get_num_threads() == 1 ? "" : "s", memory(), kNoGpu);
}

}  // namespace coxswain
