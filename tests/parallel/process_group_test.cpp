#include "runtime/parallel/process_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/parallel/parallel_strategy.h"
#include "tests/parallel/ranks.h"

namespace coxswain {
namespace {

using contract::ExitCode;
using testing::free_port;
using testing::run_ranks;

TEST(ProcessGroup, OneRankNeedsNoNetwork) {
  RendezvousOptions options;
  options.master_address = "nowhere.invalid";
  auto group = ProcessGroup::connect(options);
  ASSERT_TRUE(group);
  torch::Tensor values = torch::tensor({1.0, 2.0});
  (*group)->all_reduce_sum(values);
  (*group)->barrier();
  EXPECT_TRUE(torch::equal(values, torch::tensor({1.0, 2.0})));
}

class Collectives : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(2, 3, 4));

TEST_P(Collectives, GiveEveryRankTheSame) {
  const int world = GetParam();
  run_ranks(world, [world](const std::shared_ptr<ProcessGroup>& group) {
    torch::Tensor sum = torch::full({3}, group->rank() + 1.0);
    group->all_reduce_sum(sum);
    EXPECT_EQ(sum[0].item<double>(), world * (world + 1) / 2);
    torch::Tensor largest = torch::full({1}, group->rank(), torch::kInt64);
    group->all_reduce_max(largest);
    EXPECT_EQ(largest.item<int64_t>(), world - 1);
    torch::Tensor sent = torch::full({2}, group->rank());
    group->broadcast(sent, 1);
    EXPECT_EQ(sent[1].item<int64_t>(), 1);
    torch::Tensor whole = torch::empty({2 * world});
    group->all_gather(torch::full({2}, static_cast<float>(group->rank())), whole);
    for (int rank = 0; rank < world; ++rank) {
      EXPECT_EQ(whole[2 * rank + 1].item<int>(), rank);
    }
  });
}

// More than one ring block, and a last one that isn't full.
TEST_P(Collectives, ReduceScatterSumsEachPieceOnItsRank) {
  const int world = GetParam();
  run_ranks(world, [world](const std::shared_ptr<ProcessGroup>& group) {
    const int64_t size = 700'001;
    const torch::Tensor ramp = torch::arange(size * world, torch::kFloat).remainder(1000);
    torch::Tensor whole = ramp * (group->rank() + 1);
    group->reduce_scatter_sum(whole);
    const auto mine = [&](const torch::Tensor& tensor) {
      return tensor.narrow(0, group->rank() * size, size);
    };
    EXPECT_TRUE(torch::equal(mine(whole), mine(ramp) * (world * (world + 1) / 2)));
  });
}

TEST(ProcessGroup, LargeTensors) {
  run_ranks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    const int64_t size = 20'000'000;  // 80 MB a part
    torch::Tensor whole = torch::empty({2 * size});
    group->all_gather(torch::full({size}, group->rank() + 1.0F), whole);
    EXPECT_EQ(whole.sum(torch::kDouble).item<double>(), 3.0 * size);
    group->reduce_scatter_sum(whole);
    EXPECT_EQ(whole.narrow(0, group->rank() * size, size).sum(torch::kDouble).item<double>(),
              2.0 * (group->rank() + 1) * size);
    group->all_reduce_sum(whole);
  });
}

TEST(ProcessGroup, MastersPortInUse) {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  RendezvousOptions options;
  options.world_size = 2;
  options.master_port = ntohs(address.sin6_port);
  const auto group = ProcessGroup::connect(options);
  close(fd);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, ExitCode::kPortInUse);
  EXPECT_NE(group.error().message.find(std::to_string(options.master_port)), std::string::npos);
}

TEST(ProcessGroup, NoMaster) {
  RendezvousOptions options;
  options.rank = 1;
  options.world_size = 2;
  options.master_port = free_port();
  options.rendezvous_timeout = std::chrono::seconds(1);
  const auto group = ProcessGroup::connect(options);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, ExitCode::kRendezvousTimeout);
}

TEST(ProcessGroup, MissingRankIsCounted) {
  RendezvousOptions options;
  options.world_size = 3;
  options.master_port = free_port();
  options.rendezvous_timeout = std::chrono::seconds(1);
  const auto group = ProcessGroup::connect(options);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, ExitCode::kRendezvousTimeout);
  EXPECT_NE(group.error().message.find("1 of 3"), std::string::npos) << group.error().message;
}

TEST(TranslateLostPeer, LeavesOurOwnFaultsAlone) {
  EXPECT_THROW(
      translate_lost_peer([] { throw std::runtime_error("Connection closed by peer [127.0.0.1]:1"); }),
      PeerLost);
  EXPECT_THROW(translate_lost_peer([] { TORCH_CHECK_VALUE(false, "sizes differ"); }), c10::ValueError);
  EXPECT_THROW(
      translate_lost_peer([] {
        throw std::runtime_error("[gloo/transport/tcp/pair.cc:1] op.preamble.length <= op.nbytes. 8 vs 4");
      }),
      std::runtime_error);
}

// --- A peer that dies: ranks as processes, this binary started again
// -----------------------------------------

constexpr char kRankEnv[] = "COXSWAIN_TEST_RANK";
constexpr char kPortEnv[] = "COXSWAIN_TEST_PORT";
constexpr char kCollectiveEnv[] = "COXSWAIN_TEST_COLLECTIVE";
constexpr char kTimeoutEnv[] = "COXSWAIN_TEST_TIMEOUT";

[[noreturn]] void repeat_collective(ProcessGroup& group, const std::string& collective) {
  torch::Tensor values = torch::ones({3 * 500'000});
  for (int round = 0;; ++round) {
    if (group.rank() == 1 && round == 20) {
      if (collective == "silent") {
        for (;;) {
          pause();
        }
      }
      std::raise(SIGKILL);
    }
    if (collective == "all_gather") {
      torch::Tensor whole = torch::empty({3 * values.numel()});
      group.all_gather(values, whole);
    } else if (collective == "reduce_scatter") {
      group.reduce_scatter_sum(values);
    } else {
      group.all_reduce_sum(values);
    }
  }
}

// Not a test of its own: what a process of LostPeer runs.
TEST(LostPeerRank, DISABLED_Body) {
  RendezvousOptions options;
  options.rank = std::atoi(std::getenv(kRankEnv));
  options.master_port = std::atoi(std::getenv(kPortEnv));
  options.world_size = 3;
  options.rendezvous_timeout = std::chrono::seconds(60);
  options.collective_timeout = std::chrono::seconds(std::atoi(std::getenv(kTimeoutEnv)));
  auto group = ProcessGroup::connect(options);
  ASSERT_TRUE(group) << group.error().message;
  try {
    repeat_collective(**group, std::getenv(kCollectiveEnv));
  } catch (const PeerLost& lost) {
    std::fprintf(stderr, "rank %d: %s\n", options.rank, lost.what());
    _exit(static_cast<int>(ExitCode::kLostPeer));
  }
}

pid_t start_rank(int rank, int port, const std::string& collective, int timeout) {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv(kRankEnv, std::to_string(rank).c_str(), 1);
    setenv(kPortEnv, std::to_string(port).c_str(), 1);
    setenv(kCollectiveEnv, collective.c_str(), 1);
    setenv(kTimeoutEnv, std::to_string(timeout).c_str(), 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    execl("/proc/self/exe", "rank", "--gtest_filter=LostPeerRank.*", "--gtest_also_run_disabled_tests",
          nullptr);
    _exit(127);
  }
  return pid;
}

class LostPeer : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(During, LostPeer,
                         ::testing::Values("all_reduce", "all_gather", "reduce_scatter", "silent"));

TEST_P(LostPeer, EndsTheOthers) {
  const bool silent = std::string(GetParam()) == "silent";
  const int port = free_port();
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    // Where the peer dies its closed connections end the others, long before this time-out would.
    ranks.push_back(start_rank(rank, port, GetParam(), silent ? 3 : 3600));
  }
  for (const int rank : {0, 2, 1}) {
    if (rank == 1 && silent) {
      kill(ranks[1], SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(ranks[rank], &status, 0), ranks[rank]);
    if (rank == 1) {
      EXPECT_TRUE(WIFSIGNALED(status));
    } else {
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::kLostPeer)) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace coxswain
