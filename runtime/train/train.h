// Trains one model: this is one rank of it.
#pragma once

#include "contract/result.h"
#include "runtime/config/train_config.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/metrics/progress_pipe.h"

namespace coxswain {

enum class TrainOutcome {
  kDone,     // the final outputs are in the project folder
  kStopped,  // asked to stop; a recovery checkpoint was saved
};

// Blocks until done. Throws PeerLost where another rank went away, and whatever LibTorch throws; expected
// failures are values. Call install_stop_handler() before.
Result<TrainOutcome> train(const TrainConfig& config, const RankEnvironment& ranks,
                           const ProgressPipe& progress);

}  // namespace coxswain
