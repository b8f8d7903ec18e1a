// Runs the real `coxswain` in a folder of its own, as a person would.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace coxswain {

inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Far longer than anything takes: only a hang reaches it.
inline bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "coxswain-cli-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

// One running `coxswain`; killed when it goes out of scope.
class Program {
 public:
  Program(const std::filesystem::path& folder, std::vector<std::string> arguments)
      : output_file_(folder / ("output-" + std::to_string(++count()))) {
    const char* binary_dir = std::getenv("COXSWAIN_BINARY_DIR");
    const std::string binary = std::string(binary_dir != nullptr ? binary_dir : "build") + "/bin/coxswain";
    arguments.insert(arguments.begin(), binary);
    pid_ = fork();
    if (pid_ != 0) return;
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (chdir(folder.c_str()) == 0 && freopen(output_file_.c_str(), "w", stdout) != nullptr) {
      dup2(STDOUT_FILENO, STDERR_FILENO);
      execv(binary.c_str(), argv.data());
    }
    _exit(99);
  }
  ~Program() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;

  void signal(int number) const { kill(pid_, number); }
  std::string output() const { return read_file(output_file_); }
  bool says(const std::string& text) const {
    return eventually([&] { return output().find(text) != std::string::npos; });
  }
  // The exit status; 128 + the signal that ended it; -1 if it hangs.
  int wait() {
    int status = 0;
    if (!eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  static int& count() {
    static int runs = 0;
    return runs;
  }
  std::filesystem::path output_file_;
  pid_t pid_ = -1;
};

}  // namespace coxswain
