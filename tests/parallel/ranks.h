// Ranks as threads of one test, joined over loopback.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/parallel/process_group.h"

namespace coxswain::testing {

inline int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

using RankBody = std::function<void(std::shared_ptr<ProcessGroup>)>;

// Runs `body` once for each rank; a failed rendezvous or an exception fails the test.
inline void run_ranks(int world_size, const RankBody& body) {
  RendezvousOptions options;
  options.master_port = free_port();
  options.world_size = world_size;
  options.rendezvous_timeout = std::chrono::seconds(60);
  options.collective_timeout = std::chrono::seconds(60);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back([rank, options, &body]() mutable {
      options.rank = rank;
      try {
        at::set_num_threads(1);
        auto group = ProcessGroup::connect(options);
        ASSERT_TRUE(group) << group.error().message;
        body(*group);
        (*group)->barrier();  // the store goes with rank 0
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
}

}  // namespace coxswain::testing
