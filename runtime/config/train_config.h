// The training configuration: AITraining's keys, with its defaults, after every derived value that needs
// neither model nor data has been settled. Plain data; torch-free, so that operator and command line refuse a
// bad one too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coxswain {

enum class Trainer { kDefault, kSft };                  // default: plain text; sft: conversations
enum class DistributedBackend { kNone, kDdp, kZero3 };  // none = ddp where there are several ranks
enum class SaveStrategy { kNo, kSteps, kEpoch };
enum class LrSchedule { kLinear, kCosine, kConstant, kConstantWithWarmup };

struct DataConfig {
  std::string path;  // a .jsonl file, or a folder with {train_split}.jsonl
  std::string train_split = "train";
  std::string text_column = "text";  // what column_mapping.text_column names; the column that is trained on
  // `tokenizer`: the model's own chat template; `none`: plain text. Absent: settled by the trainer, and said
  // so.
  std::optional<std::string> chat_template;
  bool shuffle = true;  // data_shuffle; false keeps file order (see data/sampler.h)
};

struct LoraConfig {
  int rank = 16;
  double alpha = 32;
  double dropout = 0.05;
  // PEFT's rule: exactly {"all-linear"}, or suffixes of module names.
  std::vector<std::string> target_modules = {"all-linear"};
  bool merge_adapter = true;  // false keeps the adapter files as the final output
};

struct OptimizerConfig {
  double learning_rate = 3e-5;
  double weight_decay = 0.0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double max_grad_norm = 1.0;  // global norm; 0 or less: no clipping
  LrSchedule schedule = LrSchedule::kLinear;
  double warmup_ratio = 0.1;  // of all optimizer steps, rounded up
};

struct SaveConfig {
  SaveStrategy strategy = SaveStrategy::kEpoch;
  int64_t steps = 500;  // optimizer steps between saves, with kSteps
  int total_limit = 1;  // checkpoint-N folders kept
  // `auto|true|latest`, or a checkpoint folder. Absent: start fresh (recovery of a restarted job is apart
  // from this).
  std::optional<std::string> resume_from_checkpoint;
};

struct LoggingConfig {
  int64_t steps = -1;  // -1: clamp(int(0.2 · samples / batch), 1, 25)
  bool tensorboard = true;
};

struct TrainConfig {
  std::string base_model;    // a local HF folder
  std::string project_name;  // output folder; relative: under COXSWAIN_OUTPUT_DIR where that is set
  Trainer trainer = Trainer::kDefault;
  DistributedBackend distributed_backend = DistributedBackend::kNone;
  int64_t ddp_timeout_seconds = 7200;

  int64_t batch_size = 2;             // rows a rank and micro-batch
  int64_t gradient_accumulation = 4;  // micro-batches an optimizer step
  double epochs = 1;
  int64_t max_steps = -1;                   // optimizer steps; -1: by epochs
  int64_t block_size = -1;                  // -1: min(model_max_length, 1024); see effective_block_size
  std::optional<int64_t> model_max_length;  // the user's; else config.json's; else 2048
  bool add_eos_token = true;
  bool response_only_loss = true;
  bool gradient_checkpointing = true;  // disable_gradient_checkpointing turns it off
  uint64_t seed = 42;

  bool peft = false;
  LoraConfig lora;
  DataConfig data;
  OptimizerConfig optimizer;
  SaveConfig save;
  LoggingConfig logging;

  std::vector<std::string>
      notices;  // one sentence each: what was accepted without effect, settled, or warned of
};

}  // namespace coxswain
