// The texts about a training that lie beside its result. Torch-free.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/config/train_config.h"

namespace coxswain {

struct CardFacts {
  int world_size = 1;
  int64_t steps = 0;
  int64_t rows = 0;
  int64_t tokens = 0;
  std::optional<double> last_loss;
};

// training_params.json: the settled configuration under AITraining's names. It holds no secret: TrainConfig
// has none.
nlohmann::ordered_json training_params(const TrainConfig& config);

// README.md in the Hub's model card format.
std::string model_card(const TrainConfig& config, const CardFacts& facts);

}  // namespace coxswain
