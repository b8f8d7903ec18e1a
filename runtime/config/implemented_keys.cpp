#include <algorithm>
#include <cctype>

#include "runtime/config/key_table.h"
#include "runtime/config/value.h"

// NOLINTBEGIN: a table.
#define FIELD(member)                 \
  [](TrainConfig & config) -> auto& { \
    return config.member;             \
  }

namespace coxswain {

namespace {

using Refusal = std::optional<ValueRefusal>;

ConfigKey implemented(std::string field, std::string section, std::string values, std::string standard,
                      std::string text, ConfigKey::Apply apply) {
  ConfigKey key;
  key.field = field;
  key.section = std::move(section);
  key.yaml_name = std::move(field);
  key.answer = KeyAnswer::kImplemented;
  key.is_boolean = values == "true or false";
  key.values = std::move(values);
  key.standard = std::move(standard);
  key.text = std::move(text);
  key.apply = std::move(apply);
  return key;
}

ConfigKey named(ConfigKey key, std::string yaml_name) {
  key.yaml_name = std::move(yaml_name);
  return key;
}

constexpr int64_t kMillion = 1'000'000;

bool up_to_a_million(double x) {
  return x > 0 && x <= static_cast<double>(kMillion);
}
bool positive(double x) {
  return x > 0;
}
bool not_negative(double x) {
  return x >= 0;
}
bool any(double) {
  return true;
}
bool fraction(double x) {
  return x >= 0 && x <= 1;
}
bool fraction_below_1(double x) {
  return x >= 0 && x < 1;
}

// The words before the first '-' name the task; for language models the part after it names the trainer.
Refusal apply_task(const YAML::Node& value, TrainConfig& config) {
  if (!value.IsScalar()) return ValueRefusal{};
  std::string task = value.Scalar();
  for (char& c : task)
    c = c == '_' || c == ':' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (task == "llm" || task == "llm-training" || task == "llm-finetuning" || task == "lm-training")
    return std::nullopt;
  if (task == "llm-sft") {
    config.trainer = Trainer::kSft;
    return std::nullopt;
  }
  if (task == "llm-pretrain" || task == "llm-generic" || task == "llm-default") {
    config.trainer = Trainer::kDefault;
    return std::nullopt;
  }
  static const char* kKnown[] = {"llm",    "text",    "image",    "object", "token",      "seq2seq",   "vlm",
                                 "recsys", "tabular", "sentence", "st",     "extractive", "dreambooth"};
  for (const std::string known : kKnown)
    if (task == known || task.starts_with(known + "-"))
      return ValueRefusal{
          "this task is not supported yet; use llm-sft for conversations or llm-pretrain for plain text"};
  return ValueRefusal{};
}

Refusal apply_project_name(const YAML::Node& value, TrainConfig& config) {
  if (!value.IsScalar()) return ValueRefusal{};
  std::string name = value.Scalar();
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  const std::string last = name.substr(name.rfind('/') + 1);
  if (last.empty() || last.starts_with('.')) return ValueRefusal{};
  config.project_name = name;
  return std::nullopt;
}

Refusal apply_text_column(const YAML::Node& value, TrainConfig& config) {
  return text(FIELD(data.text_column))(value, config);
}

Refusal apply_chat_template(const YAML::Node& value, TrainConfig& config) {
  if (is_none(value)) {
    config.data.chat_template = "none";
    return std::nullopt;
  }
  if (!value.IsScalar()) return ValueRefusal{};
  if (value.Scalar() == "tokenizer") {
    config.data.chat_template = "tokenizer";
    return std::nullopt;
  }
  return ValueRefusal{
      "only the model's own template is supported: use tokenizer, and put another template into the model "
      "folder "
      "as chat_template.jinja"};
}

Refusal apply_target_modules(const YAML::Node& value, TrainConfig& config) {
  std::vector<std::string> modules;
  const auto add = [&](std::string name) {
    const size_t first = name.find_first_not_of(" \t");
    if (first == std::string::npos) return;
    modules.push_back(name.substr(first, name.find_last_not_of(" \t") - first + 1));
  };
  if (value.IsScalar() && !is_none(value)) {
    const std::string& names = value.Scalar();
    for (size_t begin = 0; begin <= names.size();) {
      const size_t comma = std::min(names.find(',', begin), names.size());
      add(names.substr(begin, comma - begin));
      begin = comma + 1;
    }
  } else if (value.IsSequence()) {
    for (const YAML::Node& name : value) {
      if (!name.IsScalar()) return ValueRefusal{};
      add(name.Scalar());
    }
  } else if (is_none(value)) {
    modules.push_back("all-linear");
  }
  if (modules.empty()) return ValueRefusal{};
  if (modules.size() > 1 && std::find(modules.begin(), modules.end(), "all-linear") != modules.end())
    return ValueRefusal{
        "all-linear stands for all modules and can't be listed with others; leave one of them out"};
  config.lora.target_modules = std::move(modules);
  return std::nullopt;
}

Refusal apply_block_size(const YAML::Node& value, TrainConfig& config) {
  if (value.IsSequence()) return ValueRefusal{"a list of block sizes is not supported; give one number"};
  if (is_none(value)) return std::nullopt;
  return integer(FIELD(block_size), 2, -1)(value, config);
}

Refusal apply_model_max_length(const YAML::Node& value, TrainConfig& config) {
  if (is_none(value)) return std::nullopt;
  return integer([](TrainConfig& c) -> int64_t& { return c.model_max_length.emplace(); }, 2)(value, config);
}

Refusal apply_resume(const YAML::Node& value, TrainConfig& config) {
  config.save.resume_from_checkpoint.reset();
  if (is_none(value)) return std::nullopt;
  if (!value.IsScalar()) return ValueRefusal{};
  if (const std::optional<bool> flag = as_boolean(value)) {
    if (*flag) config.save.resume_from_checkpoint = "auto";
    return std::nullopt;
  }
  config.save.resume_from_checkpoint = value.Scalar() == "latest" ? "auto" : value.Scalar();
  return std::nullopt;
}

Refusal apply_log(const YAML::Node& value, TrainConfig& config) {
  config.logging.tensorboard = true;
  if (!value.IsScalar() && !value.IsNull()) return ValueRefusal{};
  const std::string word = is_none(value) ? "none" : value.Scalar();
  if (word == "none") {
    config.logging.tensorboard = false;
    return std::nullopt;
  }
  if (word == "wandb")
    config.notices.push_back(
        "log: wandb writes metrics.jsonl and TensorBoard event files for now; nothing is sent.");
  else if (word != "tensorboard")
    return ValueRefusal{};
  return std::nullopt;
}

void add_top_level_and_data(std::vector<ConfigKey>& keys) {
  keys.push_back(implemented(
      "task", "", "llm, llm-sft or llm-pretrain", "llm",
      "What is trained. llm-sft sets trainer: sft, llm-pretrain sets trainer: default.", apply_task));
  keys.push_back(
      named(implemented("model", "", "a folder with a Hugging Face model", "required",
                        "The model to start from: a local folder with config.json, tokenizer.json and "
                        "safetensors files.",
                        text(FIELD(base_model))),
            "base_model"));
  keys.push_back(
      implemented("project_name", "", "a folder whose name does not start with a dot", "required",
                  "The output folder. A relative one lies under COXSWAIN_OUTPUT_DIR where that is set (in a "
                  "pod: /output/<job>), else under the present folder.",
                  apply_project_name));
  keys.push_back(
      implemented("log", "", "wandb, tensorboard or none", "wandb",
                  "metrics.jsonl is always written. wandb and tensorboard also write TensorBoard event "
                  "files under runs/; none writes no event files.",
                  apply_log));
  keys.push_back(named(implemented("data_path", "data", "a .jsonl file, or a folder with {train_split}.jsonl",
                                   "required", "The training data.", text(FIELD(data.path))),
                       "path"));
  keys.push_back(implemented("train_split", "data", "the name of a split", "train",
                             "Which file of a data folder is trained on: {train_split}.jsonl. With train, a "
                             "folder's only .jsonl file will do.",
                             text(FIELD(data.train_split))));
  keys.push_back(
      implemented("chat_template", "data", "tokenizer or none", "tokenizer with trainer sft, else none",
                  "tokenizer renders conversations with the model's own chat template; none trains on plain "
                  "text.",
                  apply_chat_template));
  keys.push_back(
      implemented("text_column", "data.column_mapping", "the name of a column", "text",
                  "The column that is trained on: text or conversations. One that is named must be there; "
                  "input_ids, where a row has them, are what is trained on.",
                  apply_text_column));
}

void add_training(std::vector<ConfigKey>& keys) {
  keys.push_back(implemented("trainer", "params", "default or sft", "default",
                             "default: plain text. sft: conversations.",
                             choice(FIELD(trainer),
                                    std::map<std::string, Trainer>{{"default", Trainer::kDefault},
                                                                   {"generic", Trainer::kDefault},
                                                                   {"none", Trainer::kDefault},
                                                                   {"sft", Trainer::kSft}},
                                    {{"dpo", "this trainer is not supported yet; use sft"},
                                     {"orpo", "this trainer is not supported yet; use sft"},
                                     {"ppo", "this trainer is not supported yet; use sft"},
                                     {"grpo", "this trainer is not supported yet; use sft"},
                                     {"reward", "this trainer is not supported yet; use sft"},
                                     {"distillation", "this trainer is not supported yet; use sft"}})));
  keys.push_back(implemented("epochs", "params", "a number greater than 0, up to 1000000", "1",
                             "Passes over the data.", real(FIELD(epochs), up_to_a_million)));
  keys.push_back(implemented("max_steps", "params", "-1 or a whole number from 1", "-1",
                             "Optimizer steps to train; -1: as many as epochs makes.",
                             integer(FIELD(max_steps), 1, -1)));
  keys.push_back(implemented("batch_size", "params", "a whole number from 1 to 1000000", "2",
                             "Rows a process takes at a time.",
                             integer(FIELD(batch_size), 1, std::nullopt, kMillion)));
  keys.push_back(implemented("gradient_accumulation", "params", "a whole number from 1 to 1000000", "4",
                             "Batches a process takes for one optimizer step.",
                             integer(FIELD(gradient_accumulation), 1, std::nullopt, kMillion)));
  keys.push_back(
      implemented("block_size", "params", "-1 or a whole number from 2", "-1",
                  "Longest row in tokens; plain text is packed into rows of this length. -1: the smaller of "
                  "model_max_length and 1024.",
                  apply_block_size));
  keys.push_back(implemented("model_max_length", "params", "a whole number from 2", "the model's, else 2048",
                             "Longest row that the model takes, in tokens.", apply_model_max_length));
  keys.push_back(implemented("add_eos_token", "params", "true or false", "true",
                             "Ends each plain text with the end-of-text token.",
                             boolean(FIELD(add_eos_token))));
  keys.push_back(implemented("response_only_loss", "params", "true or false", "true",
                             "Trains only on what the assistant says in a conversation.",
                             boolean(FIELD(response_only_loss))));
  keys.push_back(
      implemented("data_shuffle", "params", "true or false", "true",
                  "Shuffles the rows anew in each epoch, by seed; false keeps the order of the file.",
                  boolean(FIELD(data.shuffle))));
  keys.push_back(implemented("seed", "params", "a whole number from 0", "42",
                             "Of shuffling, new LoRA weights and dropout.", integer(FIELD(seed), 0)));
  keys.push_back(implemented("disable_gradient_checkpointing", "params", "true or false", "false",
                             "true keeps all activations: quicker, with more memory.",
                             boolean(FIELD(gradient_checkpointing), /*negated=*/true)));
  keys.push_back(implemented("distributed_backend", "params", "none, ddp, deepspeed, zero3 or fsdp", "none",
                             "With several processes: none and ddp keep the whole model in each; deepspeed, "
                             "zero3 and fsdp all shard "
                             "parameters, gradients and optimizer state over them.",
                             choice(FIELD(distributed_backend), std::map<std::string, DistributedBackend>{
                                                                    {"none", DistributedBackend::kNone},
                                                                    {"ddp", DistributedBackend::kDdp},
                                                                    {"deepspeed", DistributedBackend::kZero3},
                                                                    {"zero3", DistributedBackend::kZero3},
                                                                    {"fsdp", DistributedBackend::kZero3}})));
  keys.push_back(implemented("ddp_timeout", "params", "a whole number of seconds from 1 to 100000000", "7200",
                             "How long a process waits for the others in one exchange.",
                             integer(FIELD(ddp_timeout_seconds), 1, std::nullopt, 100 * kMillion)));
  keys.push_back(
      implemented("logging_steps", "params", "-1 or a whole number from 1", "-1",
                  "Steps between printed lines where output is no terminal. -1: a fifth of the batches of an "
                  "epoch, from 1 to 25. metrics.jsonl has every step.",
                  integer(FIELD(logging.steps), 1, -1)));
}

void add_optimizer_and_saving(std::vector<ConfigKey>& keys) {
  keys.push_back(implemented("lr", "params", "a number greater than 0", "3e-5", "Highest learning rate.",
                             real(FIELD(optimizer.learning_rate), positive)));
  keys.push_back(implemented(
      "scheduler", "params", "linear, cosine, constant or constant_with_warmup", "linear",
      "How the learning rate changes over the steps.",
      choice(FIELD(optimizer.schedule),
             std::map<std::string, LrSchedule>{{"linear", LrSchedule::kLinear},
                                               {"cosine", LrSchedule::kCosine},
                                               {"constant", LrSchedule::kConstant},
                                               {"constant_with_warmup", LrSchedule::kConstantWithWarmup}})));
  keys.push_back(
      implemented("warmup_ratio", "params", "a number from 0 to 1", "0.1",
                  "Part of all steps in which the learning rate rises from 0; not with scheduler constant.",
                  real(FIELD(optimizer.warmup_ratio), fraction)));
  keys.push_back(implemented("weight_decay", "params", "a number from 0", "0", "AdamW's.",
                             real(FIELD(optimizer.weight_decay), not_negative)));
  keys.push_back(implemented("adam_beta1", "params", "a number from 0 and below 1", "0.9", "AdamW's.",
                             real(FIELD(optimizer.adam_beta1), fraction_below_1)));
  keys.push_back(implemented("adam_beta2", "params", "a number from 0 and below 1", "0.999", "AdamW's.",
                             real(FIELD(optimizer.adam_beta2), fraction_below_1)));
  keys.push_back(implemented("adam_epsilon", "params", "a number greater than 0", "1e-8", "AdamW's.",
                             real(FIELD(optimizer.adam_epsilon), positive)));
  keys.push_back(implemented("max_grad_norm", "params", "a number", "1.0",
                             "Gradients are scaled down to this global norm; 0 or less: never.",
                             real(FIELD(optimizer.max_grad_norm), any)));
  keys.push_back(implemented(
      "save_strategy", "params", "no, steps or epoch", "epoch",
      "When checkpoint-N folders are saved. Recovery checkpoints of a job are apart from this.",
      choice(FIELD(save.strategy), std::map<std::string, SaveStrategy>{{"no", SaveStrategy::kNo},
                                                                       {"none", SaveStrategy::kNo},
                                                                       {"false", SaveStrategy::kNo},
                                                                       {"steps", SaveStrategy::kSteps},
                                                                       {"epoch", SaveStrategy::kEpoch}})));
  keys.push_back(implemented("save_steps", "params", "a whole number from 1", "500",
                             "Optimizer steps between saves with save_strategy: steps.",
                             integer(FIELD(save.steps), 1)));
  keys.push_back(implemented(
      "save_total_limit", "params", "a whole number from 1", "1", "checkpoint-N folders kept, the newest.",
      integer(FIELD(save.total_limit), 1, std::nullopt, std::numeric_limits<int>::max())));
  keys.push_back(implemented(
      "resume_from_checkpoint", "params", "auto, latest, true, none or a checkpoint folder", "none",
      "Goes on from a checkpoint of an earlier run; auto, latest and true take the latest "
      "complete one in the project folder.",
      apply_resume));
}

void add_lora(std::vector<ConfigKey>& keys) {
  keys.push_back(implemented("peft", "params", "true or false", "false",
                             "true trains a LoRA adapter; false trains all weights.", boolean(FIELD(peft))));
  keys.push_back(implemented("lora_r", "params", "a whole number from 1", "16", "Rank of the adapter.",
                             integer(FIELD(lora.rank), 1, std::nullopt, std::numeric_limits<int>::max())));
  keys.push_back(implemented("lora_alpha", "params", "a number greater than 0", "32",
                             "The adapter's output is scaled by lora_alpha / lora_r.",
                             real(FIELD(lora.alpha), positive)));
  keys.push_back(implemented("lora_dropout", "params", "a number from 0 and below 1", "0.05",
                             "Dropout before the adapter.", real(FIELD(lora.dropout), fraction_below_1)));
  keys.push_back(implemented(
      "target_modules", "params", "all-linear, or names of modules (a list, or with commas)", "all-linear",
      "What gets an adapter: all linear layers but the output layer, or the modules whose names "
      "end in one of these.",
      apply_target_modules));
  keys.push_back(
      implemented("merge_adapter", "params", "true or false", "true",
                  "true saves the whole model with the adapter merged in; false saves the adapter.",
                  boolean(FIELD(lora.merge_adapter))));
}

}  // namespace

std::vector<ConfigKey> implemented_keys() {
  std::vector<ConfigKey> keys;
  add_top_level_and_data(keys);
  add_training(keys);
  add_optimizer_and_saving(keys);
  add_lora(keys);
  return keys;
}

}  // namespace coxswain
// NOLINTEND
