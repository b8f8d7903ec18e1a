#include "tests/integration/programs.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace coxswain::testing {

namespace {

constexpr char kPrefix[] = "coxswain-test-";

// The kernel kills a child with the thread that made it (PR_SET_PDEATHSIG), not with its process: so one
// thread, which lives as long as the process, makes them all.
class Spawner {
 public:
  static Spawner& instance() {
    static auto* spawner = new Spawner;  // never destroyed: its thread is never joined
    return *spawner;
  }

  pid_t spawn(const std::function<pid_t()>& make) {
    Order order{&make};
    std::unique_lock lock(mutex_);
    orders_.push_back(&order);
    changed_.notify_all();
    changed_.wait(lock, [&] { return order.done; });
    if (order.pid < 0) throw std::system_error(order.error, std::generic_category(), "fork");
    return order.pid;
  }

 private:
  struct Order {
    const std::function<pid_t()>* make;
    pid_t pid = -1;
    int error = 0;
    bool done = false;
  };

  Spawner() {
    std::thread([this] { run(); }).detach();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !orders_.empty(); });
      Order& order = *orders_.front();
      orders_.pop_front();
      order.pid = (*order.make)();
      order.error = errno;
      order.done = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order*> orders_;
};

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) result.push_back(name + "=" + value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// The three file descriptors become the program's; ours stay open.
pid_t start(const Command& command, std::array<int, 3> descriptors) {
  if (::access(command.argv.at(0).c_str(), X_OK) != 0) {
    throw std::runtime_error("there is no program " + command.argv[0]);
  }
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> env = environment_with(command.env);
  const std::vector<char*> argv_pointers = pointers(argv);
  const std::vector<char*> env_pointers = pointers(env);
  const pid_t parent = ::getpid();
  return Spawner::instance().spawn([&] {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    // Only what is safe between fork and exec in a process with threads.
    ::setpgid(0, 0);  // a Ctrl-C at the terminal is the test binary's own affair
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    for (int i = 0; i < 3; ++i) ::dup2(descriptors[i], i);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(argv_pointers[0], argv_pointers.data(), env_pointers.data());
    ::_exit(127);
  });
}

int result_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  explicit Descriptor(int value) : fd(value) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset();
    fd = std::exchange(other.fd, -1);
    return *this;
  }
  void reset() {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
};

struct Pipe {
  Descriptor read;
  Descriptor write;
  Pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    read = Descriptor(fds[0]);
    write = Descriptor(fds[1]);
  }
};

// Takes in both outputs while `input` is given, so that neither side waits for the other.
void converse(Descriptor in, const std::string& input, Descriptor out, Descriptor err, Finished& result) {
  size_t given = 0;
  if (input.empty()) in.reset();
  ::fcntl(in.fd, F_SETFL, O_NONBLOCK);
  while (out.fd >= 0 || err.fd >= 0) {
    pollfd fds[3] = {{out.fd, POLLIN, 0}, {err.fd, POLLIN, 0}, {in.fd, POLLOUT, 0}};
    if (::poll(fds, 3, -1) < 0) continue;
    if (fds[2].revents != 0) {
      const ssize_t sent = ::write(in.fd, input.data() + given, input.size() - given);
      if (sent > 0) given += static_cast<size_t>(sent);
      if (given == input.size() || (sent < 0 && errno != EAGAIN)) in.reset();
    }
    for (int i = 0; i < 2; ++i) {
      if (fds[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t got = ::read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        (i == 0 ? result.out : result.err).append(buffer, static_cast<size_t>(got));
      } else {
        (i == 0 ? out : err).reset();
      }
    }
  }
}

// What a binary left that is no more.
void sweep(const std::filesystem::path& root) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const long pid = std::strtol(name.c_str() + std::strlen(kPrefix), nullptr, 10);
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) {
      std::filesystem::remove_all(entry.path(), ignored);
    }
  }
}

bool can_bind(int port) {
  const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(probe.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(probe.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Daemon::Daemon(Command command, const std::filesystem::path& log) {
  const Descriptor in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  pid_ = start(command, {in.fd, out.fd, out.fd});
}

Daemon::Daemon(Daemon&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}

Daemon& Daemon::operator=(Daemon&& other) noexcept {
  kill();
  pid_ = std::exchange(other.pid_, 0);
  return *this;
}

Daemon::~Daemon() {
  kill();
}

bool Daemon::running() {
  if (pid_ == 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = 0;
  return false;
}

void Daemon::kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, 0), nullptr, 0);
}

int Daemon::stop(std::chrono::seconds patience) {
  if (pid_ == 0) return 0;
  int status = 0;
  ::kill(pid_, SIGTERM);
  const bool ended = eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, patience);
  if (!ended) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = 0;
  return result_of(status);
}

Finished run_program(const Command& command, const std::string& input) {
  Pipe in;
  Pipe out;
  Pipe err;
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  Finished result;
  const pid_t pid = start(command, {in.read.fd, out.write.fd, err.write.fd});
  in.read.reset();
  out.write.reset();
  err.write.reset();
  converse(std::move(in.write), input, std::move(out.read), std::move(err.read), result);
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::signal(SIGPIPE, handler);
  result.exit_code = result_of(status);
  return result;
}

TemporaryFolder::TemporaryFolder() {
  const std::filesystem::path root = std::filesystem::temp_directory_path();
  sweep(root);
  std::string pattern = root / (kPrefix + std::to_string(::getpid()) + "-XXXXXX");
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream(file, std::ios::binary) << text;
  std::filesystem::permissions(file,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return file;
}

std::string tail(const std::filesystem::path& file, size_t lines) {
  std::ifstream stream(file);
  std::deque<std::string> last;
  for (std::string line; std::getline(stream, line);) {
    last.push_back(line);
    if (last.size() > lines) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) text += line + "\n";
  return text;
}

int pick_port() {
  // Below the range from which Linux serves those who ask for any port.
  static thread_local std::mt19937 engine{std::random_device{}()};
  std::uniform_int_distribution<int> some(15'000, 32'000);
  for (int tries = 0; tries < 200; ++tries) {
    const int port = some(engine);
    if (can_bind(port)) return port;
  }
  throw std::runtime_error("no free port found between 15000 and 32000 on 127.0.0.1");
}

bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds bound) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace coxswain::testing
