#include "runtime/train/model_card.h"

#include <fmt/format.h>

namespace coxswain {
namespace {

const char* name_of(Trainer trainer) {
  return trainer == Trainer::kSft ? "sft" : "default";
}

const char* name_of(DistributedBackend backend) {
  switch (backend) {
    case DistributedBackend::kNone:
      return "none";
    case DistributedBackend::kDdp:
      return "ddp";
    case DistributedBackend::kZero3:
      return "zero3";
  }
  return "";
}

const char* name_of(SaveStrategy strategy) {
  switch (strategy) {
    case SaveStrategy::kNo:
      return "no";
    case SaveStrategy::kSteps:
      return "steps";
    case SaveStrategy::kEpoch:
      return "epoch";
  }
  return "";
}

const char* name_of(LrSchedule schedule) {
  switch (schedule) {
    case LrSchedule::kLinear:
      return "linear";
    case LrSchedule::kCosine:
      return "cosine";
    case LrSchedule::kConstant:
      return "constant";
    case LrSchedule::kConstantWithWarmup:
      return "constant_with_warmup";
  }
  return "";
}

std::string how_to_load(const TrainConfig& config) {
  if (config.peft && !config.lora.merge_adapter) {
    return fmt::format(
        "from peft import PeftModel\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        "base = AutoModelForCausalLM.from_pretrained(\"{}\")\n"
        "model = PeftModel.from_pretrained(base, \"path/to/this/folder\")\n"
        "tokenizer = AutoTokenizer.from_pretrained(\"path/to/this/folder\")\n",
        config.base_model);
  }
  return "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
         "model = AutoModelForCausalLM.from_pretrained(\"path/to/this/folder\")\n"
         "tokenizer = AutoTokenizer.from_pretrained(\"path/to/this/folder\")\n";
}

std::string what_it_is(const TrainConfig& config) {
  if (!config.peft) return "All weights were trained.";
  return config.lora.merge_adapter ? "A LoRA adapter was trained and merged into the weights."
                                   : "This is a LoRA adapter for that model.";
}

}  // namespace

nlohmann::ordered_json training_params(const TrainConfig& config) {
  nlohmann::ordered_json json = {{"model", config.base_model},
                                 {"project_name", config.project_name},
                                 {"data_path", config.data.path},
                                 {"train_split", config.data.train_split},
                                 {"text_column", config.data.text_column},
                                 {"data_shuffle", config.data.shuffle},
                                 {"trainer", name_of(config.trainer)},
                                 {"distributed_backend", name_of(config.distributed_backend)},
                                 {"ddp_timeout", config.ddp_timeout_seconds},
                                 {"batch_size", config.batch_size},
                                 {"gradient_accumulation", config.gradient_accumulation},
                                 {"epochs", config.epochs},
                                 {"max_steps", config.max_steps},
                                 {"block_size", config.block_size},
                                 {"add_eos_token", config.add_eos_token},
                                 {"response_only_loss", config.response_only_loss},
                                 {"disable_gradient_checkpointing", !config.gradient_checkpointing},
                                 {"seed", config.seed},
                                 {"lr", config.optimizer.learning_rate},
                                 {"weight_decay", config.optimizer.weight_decay},
                                 {"adam_beta1", config.optimizer.adam_beta1},
                                 {"adam_beta2", config.optimizer.adam_beta2},
                                 {"adam_epsilon", config.optimizer.adam_epsilon},
                                 {"max_grad_norm", config.optimizer.max_grad_norm},
                                 {"scheduler", name_of(config.optimizer.schedule)},
                                 {"warmup_ratio", config.optimizer.warmup_ratio},
                                 {"save_strategy", name_of(config.save.strategy)},
                                 {"save_steps", config.save.steps},
                                 {"save_total_limit", config.save.total_limit},
                                 {"logging_steps", config.logging.steps},
                                 {"peft", config.peft}};
  if (config.data.chat_template) json["chat_template"] = *config.data.chat_template;
  if (config.model_max_length) json["model_max_length"] = *config.model_max_length;
  if (config.peft) {
    json["lora_r"] = config.lora.rank;
    json["lora_alpha"] = config.lora.alpha;
    json["lora_dropout"] = config.lora.dropout;
    json["target_modules"] = config.lora.target_modules;
    json["merge_adapter"] = config.lora.merge_adapter;
  }
  return json;
}

std::string model_card(const TrainConfig& config, const CardFacts& facts) {
  return fmt::format(
      "---\n"
      "base_model: {0}\n"
      "library_name: {1}\n"
      "pipeline_tag: text-generation\n"
      "tags:\n- coxswain\n- {2}\n"
      "---\n\n"
      "# {3}\n\n"
      "`{0}`, fine-tuned with Coxswain. {4}\n\n"
      "| | |\n|---|---|\n"
      "| data | `{5}`, {6} rows |\n"
      "| steps | {7} |\n"
      "| tokens | {8} |\n"
      "| learning rate | {9} ({10}) |\n"
      "| batch | {11} rows × {12} accumulation × {13} ranks |\n"
      "| seed | {14} |\n"
      "{15}\n"
      "All settings are in `training_params.json`, the loss of every step in `metrics.jsonl`.\n\n"
      "```python\n{16}```\n",
      config.base_model, config.peft && !config.lora.merge_adapter ? "peft" : "transformers",
      name_of(config.trainer), config.project_name, what_it_is(config), config.data.path, facts.rows,
      facts.steps, facts.tokens, config.optimizer.learning_rate, name_of(config.optimizer.schedule),
      config.batch_size, config.gradient_accumulation, facts.world_size, config.seed,
      facts.last_loss ? fmt::format("| last training loss | {:.4f} |\n", *facts.last_loss) : "",
      how_to_load(config));
}

}  // namespace coxswain
