// From what a person wrote (AITraining's YAML, or flags) to a TrainConfig. Pure: reads no file but the one it
// is given, and never looks whether a model or data path exists. A refusal is one sentence with exit code 2
// that names the key, its value, where it stands, what is allowed, and what to do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "contract/result.h"
#include "runtime/config/environment.h"
#include "runtime/config/train_config.h"

namespace coxswain {

// `yaml` is the text of the file; `origin` is what messages call it ("config.yaml", "spec.config").
// `overrides` are "key=value" in order, the last one wins: the key as in the file with dots ("params.lr",
// "data.path") or a bare key
// ("lr"); the value is a YAML scalar or flow sequence. `${NAME}` in any value is replaced from `environment`;
// a name that isn't set is a refusal, except under `hub`.
Result<TrainConfig> parse_train_config(const std::string& yaml, const std::string& origin,
                                       const std::vector<std::string>& overrides,
                                       const EnvironmentLookup& environment);

// The same from a file. A file that can't be read is bad input.
Result<TrainConfig> load_train_config(const std::filesystem::path& path,
                                      const std::vector<std::string>& overrides,
                                      const EnvironmentLookup& environment);

// A checked configuration and the YAML text that gives the same one, for other processes to read: `${NAME}`
// replaced, a token or user name by the word "hidden".
struct ResolvedTrainConfig {
  TrainConfig config;
  std::string yaml;
};

// A file with overrides.
Result<ResolvedTrainConfig> resolve_train_config(const std::filesystem::path& path,
                                                 const std::vector<std::string>& overrides,
                                                 const EnvironmentLookup& environment);

// The flag form, `llm --train --model M --batch-size 4 --no-merge-adapter …`; `arguments` are those after
// `llm`. Flags are the kebab-case (or snake_case) of the keys; `--flag value` or `--flag=value`; a boolean is
// `--flag` or `--no-flag`.
Result<ResolvedTrainConfig> parse_llm_flags(const std::vector<std::string>& arguments,
                                            const EnvironmentLookup& environment);

}  // namespace coxswain
