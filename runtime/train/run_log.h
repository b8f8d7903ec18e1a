// What a run tells a person: rank 0 prints it and keeps it in train.log of the project folder; other ranks
// stay silent.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "contract/result.h"

namespace coxswain {

class RunLog {
 public:
  explicit RunLog(int rank) : speaks_(rank == 0) {}

  // From here on what is said is also written to the file (appended), and so is what was said before.
  Result<void> open(const std::filesystem::path& file);
  // How to print; by default to standard output. The progress line puts itself in between.
  void print_through(std::function<void(const std::string&)> print) { print_ = std::move(print); }

  void say(const std::string& sentence);
  // To the file only.
  void note(const std::string& sentence);

 private:
  bool speaks_;
  std::string unwritten_;
  std::ofstream file_;
  std::function<void(const std::string&)> print_;
};

}  // namespace coxswain
