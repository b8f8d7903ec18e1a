// kubeconfig files by kubectl's rules.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "contract/result.h"
#include "operator/client/rest/cluster_access.h"

namespace coxswain {

struct Kubeconfig {
  // A named entry and the file it came from: its relative paths are that file's neighbours.
  struct Entry {
    YAML::Node value;
    std::filesystem::path file;
  };
  std::vector<std::filesystem::path> files;
  std::string current_context;
  std::map<std::string, Entry> clusters;
  std::map<std::string, Entry> users;
  std::map<std::string, Entry> contexts;
};

// YAML or JSON. Errors name file and field.
Result<Kubeconfig> parse_kubeconfig(const std::string& text, const std::filesystem::path& file);

// The first file to set a value or to name an entry wins; an entry is never put together from two files.
void merge_kubeconfig(Kubeconfig& into, Kubeconfig next);

// Parses and merges. Missing files are passed over unless must_exist, but one has to be there.
Result<Kubeconfig> load_kubeconfig(const std::vector<std::filesystem::path>& files, bool must_exist);

// context "": the current one. Errors name files, context and field, and never hold a secret.
Result<ClusterAccess> select_context(const Kubeconfig& config, const std::string& context);

}  // namespace coxswain
