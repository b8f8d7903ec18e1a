#include "runtime/parallel/process_group.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "runtime/parallel/c10d_group.h"
#include "runtime/parallel/parallel_strategy.h"

namespace coxswain {
namespace {

// Elements a message of the reduce-scatter ring carries: large enough to hide a message's cost, small enough
// that adding it is still in cache.
constexpr int64_t kRingBlock = 256 * 1024;
constexpr int kRingTag = 1;

std::string where(const RendezvousOptions& options) {
  return options.master_address + ":" + std::to_string(options.master_port);
}

std::string seconds(std::chrono::seconds time) {
  return std::to_string(time.count()) + " s";
}

// What a person can use of a c10d or Gloo message: its first line, without the source location before it and
// the guesses after it.
std::string first_line(const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  if (const size_t location = line.find("] "); line.starts_with("[") && location != std::string::npos) {
    line.erase(0, location + 2);
  }
  return line.substr(0, line.find(". This is typically"));
}

bool contains_any(const std::string& text, std::initializer_list<const char*> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](const char* phrase) { return text.find(phrase) != std::string::npos; });
}

bool says_lost_peer(const std::string& what) {
  return contains_any(
      what, {"onnection closed", "onnection reset", "onnection refused", "onnection aborted", "Broken pipe",
             "imed out", "imeout", "Socket closed", "socket closed", "recv failed", "send failed", "readv",
             "writev", "No route to host", "Network is unreachable", "Host is unreachable", "Failed to recv",
             "failed to recv", "Failed to send"});
}

using Interface = std::shared_ptr<::gloo::transport::Device>;

// The numeric address that this host would use to reach the master; connecting a datagram socket sends
// nothing.
std::optional<std::string> address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return std::nullopt;
  }
  std::optional<std::string> address;
  for (const addrinfo* at = found; at != nullptr && !address; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    char text[NI_MAXHOST];
    if (fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      address = text;
    }
    if (fd >= 0) {
      close(fd);
    }
  }
  freeaddrinfo(found);
  return address;
}

Interface network_interface(const RendezvousOptions& options) {
  if (const char* names = std::getenv("GLOO_SOCKET_IFNAME"); names != nullptr && *names != '\0') {
    const std::string all = names;
    return c10d::ProcessGroupGloo::createDeviceForInterface(all.substr(0, all.find(',')));
  }
  if (const auto address = address_towards(options.master_address, options.master_port)) {
    return c10d::ProcessGroupGloo::createDeviceForHostname(*address);
  }
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

Result<c10::intrusive_ptr<c10d::Store>> connect_store(const RendezvousOptions& options) {
  c10d::TCPStoreOptions store;
  store.port = static_cast<uint16_t>(options.master_port);
  store.isServer = options.rank == 0;
  // Counting who joins is done below, apart for each attempt.
  store.waitWorkers = false;
  store.timeout = options.rendezvous_timeout;
  try {
    return c10::make_intrusive<c10d::PrefixStore>(
        "attempt-" + std::to_string(options.attempt),
        c10::make_intrusive<c10d::TCPStore>(options.master_address, store));
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (options.rank == 0 && contains_any(what, {"EADDRINUSE", "ddress already in use"})) {
      return fail(contract::ExitCode::kPortInUse,
                  "Port " + std::to_string(options.master_port) +
                      " of the master (MASTER_PORT) is already in use on this host; "
                      "choose another or stop what listens on it.");
    }
    return fail(contract::ExitCode::kRendezvousTimeout,
                "Rank " + std::to_string(options.rank) + " could not reach the master at " + where(options) +
                    " within " + seconds(options.rendezvous_timeout) + ": " + first_line(what));
  }
}

Result<void> wait_for_all(c10d::Store& store, const RendezvousOptions& options) {
  try {
    if (store.add("joined", 1) == options.world_size) {
      store.set("complete", std::vector<uint8_t>{1});
    }
    store.wait({"complete"}, options.rendezvous_timeout);
    return {};
  } catch (const std::exception& error) {
    std::string joined = first_line(error.what());
    try {
      joined = std::to_string(store.add("joined", 0)) + " of " + std::to_string(options.world_size) +
               " had joined";
    } catch (const std::exception&) {
      joined = "the master went away";
    }
    return fail(contract::ExitCode::kRendezvousTimeout, "Not all ranks joined at " + where(options) +
                                                            " within " + seconds(options.rendezvous_timeout) +
                                                            ": " + joined + ".");
  }
}

Result<std::shared_ptr<C10dGroup>> connect_group(c10::intrusive_ptr<c10d::Store> store,
                                                 const RendezvousOptions& options) {
  try {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(options.rendezvous_timeout);
    gloo_options->devices.push_back(network_interface(options));
    auto gloo =
        c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size, gloo_options);
    gloo->setTimeout(options.collective_timeout);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, options.rank, options.world_size);
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    return std::make_shared<C10dGroup>(C10dGroup{std::move(store), std::move(gloo), std::move(group)});
  } catch (const std::exception& error) {
    return fail(
        contract::ExitCode::kRendezvousTimeout,
        "Rank " + std::to_string(options.rank) +
            " could not connect to the other ranks (GLOO_SOCKET_IFNAME chooses the network interface): " +
            first_line(error.what()));
  }
}

}  // namespace

void translate_lost_peer(const std::function<void()>& collective) {
  try {
    collective();
  } catch (const PeerLost&) {
    throw;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (dynamic_cast<const c10::DistError*>(&error) != nullptr || says_lost_peer(what)) {
      throw PeerLost("A collective failed because another rank is gone or silent: " + first_line(what));
    }
    throw;
  }
}

struct Rendezvous::Store {
  c10::intrusive_ptr<c10d::Store> c10d;
};

Rendezvous::Rendezvous(RendezvousOptions options, std::shared_ptr<Store> store)
    : options_(std::move(options)), store_(std::move(store)) {}

Result<Rendezvous> Rendezvous::open(const RendezvousOptions& options) {
  if (options.world_size == 1 || options.rank != 0) {
    return Rendezvous(options, nullptr);
  }
  auto store = connect_store(options);
  if (!store) {
    return tl::unexpected(store.error());
  }
  return Rendezvous(options, std::make_shared<Store>(Store{std::move(*store)}));
}

Result<std::shared_ptr<ProcessGroup>> Rendezvous::join() {
  if (options_.world_size == 1) {
    return std::shared_ptr<ProcessGroup>(new ProcessGroup(options_.rank, 1, nullptr));
  }
  auto store = store_ ? Result<c10::intrusive_ptr<c10d::Store>>(store_->c10d) : connect_store(options_);
  if (!store) {
    return tl::unexpected(store.error());
  }
  if (auto joined = wait_for_all(**store, options_); !joined) {
    return tl::unexpected(joined.error());
  }
  auto group = connect_group(std::move(*store), options_);
  if (!group) {
    return tl::unexpected(group.error());
  }
  return std::shared_ptr<ProcessGroup>(
      new ProcessGroup(options_.rank, options_.world_size, std::move(*group)));
}

Result<std::shared_ptr<ProcessGroup>> ProcessGroup::connect(const RendezvousOptions& options) {
  auto rendezvous = Rendezvous::open(options);
  if (!rendezvous) {
    return tl::unexpected(rendezvous.error());
  }
  return rendezvous->join();
}

ProcessGroup::ProcessGroup(int rank, int world_size, std::shared_ptr<C10dGroup> c10d)
    : rank_(rank), world_size_(world_size), c10d_(std::move(c10d)) {}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::all_reduce_sum(torch::Tensor& values) {
  if (world_size_ == 1) {
    return;
  }
  std::vector<at::Tensor> tensors{values};
  translate_lost_peer([&] { c10d_->gloo->allreduce(tensors)->wait(); });
}

void ProcessGroup::all_reduce_max(torch::Tensor& values) {
  if (world_size_ == 1) {
    return;
  }
  std::vector<at::Tensor> tensors{values};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  translate_lost_peer([&] { c10d_->gloo->allreduce(tensors, options)->wait(); });
}

void ProcessGroup::broadcast(torch::Tensor& values, int root) {
  if (world_size_ == 1) {
    return;
  }
  std::vector<at::Tensor> tensors{values};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  translate_lost_peer([&] { c10d_->gloo->broadcast(tensors, options)->wait(); });
}

void ProcessGroup::all_gather(const torch::Tensor& part, torch::Tensor& whole) {
  const int64_t size = part.numel();
  TORCH_CHECK(whole.numel() == size * world_size_, "all_gather: ", whole.numel(), " elements for ",
              world_size_, " parts of ", size);
  const auto piece = [&](int index) { return whole.narrow(0, index * size, size); };
  piece(rank_).copy_(part);
  if (world_size_ == 1) {
    return;
  }
  const int next = (rank_ + 1) % world_size_;
  const int previous = (rank_ + world_size_ - 1) % world_size_;
  translate_lost_peer([&] {
    for (int step = 0; step + 1 < world_size_; ++step) {
      std::vector<at::Tensor> out{piece((rank_ - step + world_size_) % world_size_)};
      std::vector<at::Tensor> in{piece((rank_ - step - 1 + 2 * world_size_) % world_size_)};
      const auto received = c10d_->gloo->recv(in, previous, kRingTag);
      const auto sent = c10d_->gloo->send(out, next, kRingTag);
      received->wait();
      sent->wait();
    }
  });
}

// Gloo's own reduce-scatter clones its input and reduces all of it for everybody: twice the bytes of this
// ring.
void ProcessGroup::reduce_scatter_sum(torch::Tensor& whole) {
  if (world_size_ == 1) {
    return;
  }
  const int64_t size = whole.numel() / world_size_;
  TORCH_CHECK(size * world_size_ == whole.numel(), "reduce_scatter_sum: ", whole.numel(),
              " elements can't be split over ", world_size_, " ranks");
  const int next = (rank_ + 1) % world_size_;
  const int previous = (rank_ + world_size_ - 1) % world_size_;
  const int64_t blocks = (size + kRingBlock - 1) / kRingBlock;
  if (!incoming_.defined() || incoming_.scalar_type() != whole.scalar_type()) {
    incoming_ = torch::empty({2, kRingBlock}, whole.options());
  }
  using Work = c10::intrusive_ptr<c10d::Work>;
  std::vector<Work> sent;
  const auto block_of = [&](int64_t piece, int64_t block) {
    const int64_t begin = block * kRingBlock;
    return whole.narrow(0, piece * size + begin, std::min(kRingBlock, size - begin));
  };
  const auto receive = [&](int64_t block) {
    const int64_t length = std::min(kRingBlock, size - block * kRingBlock);
    std::vector<at::Tensor> in{incoming_[block % 2].narrow(0, 0, length)};
    return c10d_->gloo->recv(in, previous, kRingTag);
  };
  translate_lost_peer([&] {
    for (int step = 0; step + 1 < world_size_; ++step) {
      const int64_t out = (rank_ - step - 1 + 2 * world_size_) % world_size_;
      const int64_t in = (rank_ - step - 2 + 2 * world_size_) % world_size_;
      Work pending = blocks > 0 ? receive(0) : Work{};
      for (int64_t block = 0; block < blocks; ++block) {
        std::vector<at::Tensor> part{block_of(out, block)};
        sent.push_back(c10d_->gloo->send(part, next, kRingTag));
        pending->wait();
        if (block + 1 < blocks) {
          pending = receive(block + 1);
        }
        block_of(in, block).add_(incoming_[block % 2].narrow(0, 0, part[0].numel()));
      }
    }
    for (const Work& work : sent) {
      work->wait();
    }
  });
}

void ProcessGroup::barrier() {
  if (world_size_ == 1) {
    return;
  }
  translate_lost_peer([&] { c10d_->gloo->barrier()->wait(); });
}

}  // namespace coxswain
