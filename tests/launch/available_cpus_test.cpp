#include "runtime/launch/available_cpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace coxswain {
namespace {

namespace fs = std::filesystem;

class FakeRoot {
 public:
  FakeRoot() {
    std::string name = (fs::temp_directory_path() / "coxswain-cpus-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~FakeRoot() { fs::remove_all(path_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(AvailableCpus, ReadsCpuMax) {
  EXPECT_EQ(quota_from_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(quota_from_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(quota_from_cpu_max(""), std::nullopt);
}

TEST(AvailableCpus, TakesTheTightestQuotaOfCgroupV2) {
  FakeRoot root;
  EXPECT_EQ(cgroup_cpu_quota(root.path()), std::nullopt);
  root.write("proc/self/cgroup", "0::/pods/mine\n");
  root.write("sys/fs/cgroup/pods/mine/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root.path()), 4.0);
  root.write("sys/fs/cgroup/pods/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root.path()), 2.5);
}

// In a container with a cgroup namespace the path is "/", or leads nowhere.
TEST(AvailableCpus, FallsBackToTheMountsRoot) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/not/visible/here\n");
  root.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root.path()), 1.0);
}

TEST(AvailableCpus, ReadsCgroupV1) {
  FakeRoot root;
  root.write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/mine\n0::/\n");
  root.write("sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us", "300000\n");
  root.write("sys/fs/cgroup/cpu/mine/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root.path()), 3.0);
}

TEST(AvailableCpus, IsAtLeastOneAndSharedAmongWorkers) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(available_cpus(root.path()), 1);
  EXPECT_EQ(threads_per_worker(8, 2), 4);
  EXPECT_EQ(threads_per_worker(8, 3), 2);
  EXPECT_EQ(threads_per_worker(2, 4), 1);
}

}  // namespace
}  // namespace coxswain
