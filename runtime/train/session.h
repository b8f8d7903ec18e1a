// Everything that the training loop works on, made in the order of prepare_session(): folders → data → model
// → ranks → strategy → optimizer → resume. One for each rank; not thread-safe.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "contract/result.h"
#include "runtime/checkpoint/run_state.h"
#include "runtime/config/train_config.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/metrics/progress_pipe.h"
#include "runtime/model/causal_lm.h"
#include "runtime/optim/adamw.h"
#include "runtime/parallel/parallel_strategy.h"
#include "runtime/parallel/process_group.h"
#include "runtime/train/run_folders.h"
#include "runtime/train/run_log.h"

namespace coxswain {

struct TrainingSession {
  TrainConfig config;
  RankEnvironment ranks;
  RunFolders folders;
  RunLog& log;
  const ProgressPipe& progress;

  Dataset dataset;
  std::shared_ptr<CausalLM> model;
  std::shared_ptr<ProcessGroup> group;
  std::unique_ptr<ParallelStrategy> strategy;
  std::unique_ptr<AdamW> optimizer;

  std::optional<Sampler> sampler;
  StepPlan plan;
  TrainPosition position;   // after the last step done
  int64_t tokens_seen = 0;  // of all ranks, padding left out

  bool leads() const { return ranks.rank == 0; }
  RunState state() const;
};

// Blocks until all ranks are there. Whatever fails here fails before the first step.
Result<std::unique_ptr<TrainingSession>> prepare_session(const TrainConfig& config,
                                                         const RankEnvironment& ranks,
                                                         const RunFolders& folders,
                                                         const ProgressPipe& progress, RunLog& log);

// Every rank calls it with what became of its own part: success only if all succeeded. A rank that did well
// gets a failure that says that another one did not.
Result<void> agree_on_success(ParallelStrategy& strategy, const Result<void>& mine);

}  // namespace coxswain
