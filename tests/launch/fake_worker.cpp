// Stands in for coxswain-worker in the agent's tests: does what the words in FAKE_WORKER_<RANK>, else
// FAKE_WORKER, say, one after the other.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "contract/contract.h"

namespace {

std::atomic<bool> terminated{false};

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

void sleep_forever() {
  for (;;) ::pause();
}

void touch(const std::string& path) {
  std::ofstream(path) << ::getpid() << std::flush;
}

void wait_for_file(const std::string& path) {
  while (!std::ifstream(path)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// A process of its own that outlives this one, if nobody ends it. Its pid goes to `path`.
void leave_orphan(const std::string& path) {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() == 0) {
      touch(path);
      ::_exit(0);  // to be reaped by whoever is the reaper
    }
    ::_exit(0);
  }
  wait_for_file(path);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string rank = variable("RANK");
  std::string script = variable("FAKE_WORKER_" + rank);
  if (script.empty()) script = variable("FAKE_WORKER");
  std::istringstream words(script);
  std::string word;
  const auto next = [&] {
    std::string argument;
    words >> argument;
    return argument;
  };
  while (words >> word) {
    if (word == "exit") return std::atoi(next().c_str());
    if (word == "say") std::printf("%s\n", next().c_str());
    if (word == "complain") std::fprintf(stderr, "%s\n", next().c_str());
    if (word == "show") {
      const std::string name = next();
      std::printf("%s=%s\n", name.c_str(), variable(name).c_str());
    }
    if (word == "arguments")
      for (int i = 1; i < argc; ++i) std::printf("argument %s\n", argv[i]);
    if (word == "config") {
      std::ifstream file(variable("COXSWAIN_CONFIG"));
      std::ostringstream text;
      text << file.rdbuf();
      std::printf("%s\n", text.str().c_str());
    }
    if (word == "progress") {
      std::string line;
      std::getline(words, line, ';');
      line += "\n";
      if (::write(std::atoi(variable(coxswain::contract::kEnvProgressFd).c_str()), line.data(), line.size()) <
          0)
        return 99;
    }
    if (word == "touch") touch(next());
    if (word == "wait") wait_for_file(next());
    if (word == "orphan") leave_orphan(next());
    if (word == "deaf") std::signal(SIGTERM, SIG_IGN);
    if (word == "listen") std::signal(SIGTERM, [](int) { terminated = true; });
    if (word == "until-term")
      while (!terminated) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (word == "abort") std::abort();
    if (word == "forever") sleep_forever();
    std::fflush(stdout);
  }
  return 0;
}
