// What the process node is told about this machine.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace coxswain {

struct NodeOptions {
  std::filesystem::path state_folder;  // pods/ and logs/ are made in it
  // --volume NAME=DIR: claims by claim name; a hostPath volume by its volume name (else it is its own path).
  std::map<std::string, std::filesystem::path> volumes;
  // What stands for an emptyDir mounted at contract::kOutputMount: the pods share it, and it outlives them.
  std::filesystem::path output_folder;
  // Searched for programs before PATH: where coxswain-runtime is.
  std::vector<std::filesystem::path> program_folders;
};

}  // namespace coxswain
