// The ranks of one training attempt and their collectives, over Gloo. The only place that knows Gloo.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "contract/contract.h"
#include "contract/result.h"

namespace coxswain {

struct C10dGroup;
class ProcessGroup;

struct RendezvousOptions {
  std::string master_address = "127.0.0.1";
  int master_port = contract::kMasterPort;
  int rank = 0;
  int world_size = 1;
  // Keeps a straggler of an earlier attempt from joining this one.
  int attempt = 0;
  // How long to wait for the master and for all ranks to join.
  std::chrono::seconds rendezvous_timeout{300};
  // How long a rank waits within one collective (ddp_timeout).
  std::chrono::seconds collective_timeout{7200};
};

// Where the ranks of an attempt meet. Opened first thing, it lets the others come while rank 0 still loads:
// what starts them waits for rank 0's port.
class Rendezvous {
 public:
  // Rank 0 begins to serve the store on master_port; the others do nothing yet, nor does a world of one.
  // Fails with kPortInUse.
  static Result<Rendezvous> open(const RendezvousOptions& options);

  // Connects and blocks until all ranks are here. To be called once. Fails with kRendezvousTimeout.
  Result<std::shared_ptr<ProcessGroup>> join();

 private:
  struct Store;
  Rendezvous(RendezvousOptions options, std::shared_ptr<Store> store);

  RendezvousOptions options_;
  std::shared_ptr<Store> store_;  // rank 0's; null with one rank
};

// Rank 0's process serves the store: before it ends well, all ranks should have met in a barrier().
// Not thread-safe. Tensors are contiguous CPU tensors; every rank calls the same collectives in the same
// order with the same sizes. A lost or silent peer throws PeerLost (parallel_strategy.h), after which the
// group can't be used.
class ProcessGroup {
 public:
  // Rendezvous::open and join at once.
  static Result<std::shared_ptr<ProcessGroup>> connect(const RendezvousOptions& options);
  ~ProcessGroup();

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }

  void all_reduce_sum(torch::Tensor& values);
  void all_reduce_max(torch::Tensor& values);
  void broadcast(torch::Tensor& values, int root);
  // `whole` is one-dimensional, world_size times as long as `part`; rank r's part becomes its r-th piece.
  void all_gather(const torch::Tensor& part, torch::Tensor& whole);
  // Sums the r-th piece of every rank's `whole` into piece r of rank r's `whole`, in place; the other pieces
  // are left with partial sums. The order of summation is fixed by the ranks, so that a run repeats bit for
  // bit.
  void reduce_scatter_sum(torch::Tensor& whole);
  void barrier();

  // For c10d::Reducer (ddp.cpp); null with one rank.
  const std::shared_ptr<C10dGroup>& c10d() const { return c10d_; }

 private:
  friend class Rendezvous;
  ProcessGroup(int rank, int world_size, std::shared_ptr<C10dGroup> c10d);

  int rank_;
  int world_size_;
  std::shared_ptr<C10dGroup> c10d_;
  torch::Tensor incoming_;  // receive buffer of reduce_scatter_sum, two blocks
};

// Calls `collective`, turning an exception that says that a peer is gone or silent into PeerLost; others
// pass.
void translate_lost_peer(const std::function<void()>& collective);

}  // namespace coxswain
