// Keys of AITraining that do nothing here or aren't supported yet.
#include "runtime/config/key_table.h"
#include "runtime/config/value.h"

namespace coxswain {

namespace {

struct Unsupported {
  const char* field;
  const char* section;
  std::vector<std::string> asks_nothing;  // null and none always do
  const char* instead;
};

const std::vector<Unsupported>& unsupported() {
  static const char* kEvaluation = "evaluation is not supported yet; remove it and evaluate the saved model";
  static const char* kPreference = "preference training is not supported yet; use trainer: sft and remove it";
  static const char* kReinforcement =
      "reinforcement learning is not supported yet; use trainer: sft and remove it";
  static const char* kDistillation = "distillation is not supported yet; use trainer: sft and remove it";
  static const char* kSweep = "sweeps are not supported; run one job for each setting and remove it";
  static const char* kConversion =
      "converting data sets is not supported yet; bring rows with text, messages or input_ids and remove it";
  static const char* kLoss = "only the cross-entropy loss is supported; remove it";
  static const char* kManual = "the training loop is not controlled by hand here; remove it";
  static const char* kSampling =
      "sampling while training is not supported; try the saved model, and remove it";
  static const char* kInference = "this program only trains; remove it";
  static const char* kFlash = "attention is chosen by the runtime; remove it";
  static const std::vector<Unsupported> kTable = {
      {"valid_split", "data", {}, kEvaluation},
      {"eval_strategy", "params", {"epoch", "no"}, kEvaluation},
      {"eval_steps", "params", {}, kEvaluation},
      {"use_enhanced_eval", "params", {"false"}, kEvaluation},
      {"eval_metrics", "params", {"perplexity"}, kEvaluation},
      {"eval_dataset_path", "params", {}, kEvaluation},
      {"eval_batch_size", "params", {"8"}, kEvaluation},
      {"eval_save_predictions", "params", {"false"}, kEvaluation},
      {"eval_benchmark", "params", {}, kEvaluation},
      {"custom_metrics", "params", {}, kEvaluation},
      {"mixed_precision", "params", {"no"}, "training is in fp32 for now; use none"},
      {"quantization",
       "params",
       {},
       "quantized training is not supported yet; use none, with peft: true to save memory"},
      {"optimizer", "params", {"adamw_torch"}, "only adamw_torch is supported for now"},
      {"packing",
       "params",
       {"false"},
       "conversations are not packed; remove it (plain text is packed by block_size)"},
      {"padding", "params", {"right"}, "rows are padded on the right; use right"},
      {"max_samples", "params", {}, "it is not supported; use max_steps, or a shorter file"},
      {"warmup_steps", "params", {"0"}, "use warmup_ratio, the part of all steps"},
      {"learning_rate", "params", {}, "the key is called lr"},
      {"num_epochs", "params", {}, "the key is called epochs"},
      {"gradient_accumulation_steps", "params", {"1"}, "the key is called gradient_accumulation"},
      {"auto_find_batch_size", "params", {"false"}, "set batch_size"},
      {"use_flash_attention_2", "params", {"false"}, kFlash},
      {"attn_implementation", "params", {}, kFlash},
      {"unsloth", "params", {"false"}, "remove it: training does not go through unsloth"},
      {"push_to_hub",
       "hub",
       {"false"},
       "nothing is uploaded; take the model from the project folder and remove it"},
      {"model_ref", "params", {}, kPreference},
      {"dpo_beta", "params", {"0.1"}, kPreference},
      {"max_prompt_length", "params", {"128"}, kPreference},
      {"max_completion_length", "params", {}, kPreference},
      {"prompt_text_column", "data.column_mapping", {}, kPreference},
      {"rejected_text_column", "data.column_mapping", {}, kPreference},
      {"auto_convert_dataset", "params", {"false"}, kConversion},
      {"use_sharegpt_mapping", "params", {"false"}, kConversion},
      {"sharegpt_mapping_enabled", "params", {"false"}, kConversion},
      {"suggested_chat_template", "params", {}, kConversion},
      {"column_mapping", "params", {}, "put data.column_mapping.text_column in its place"},
      {"runtime_mapping", "params", {}, kConversion},
      {"map_eos_token", "params", {"false"}, kConversion},
      {"conversation_extension", "params", {"1"}, kConversion},
      {"apply_chat_template", "params", {"true"}, "set data.chat_template: none"},
      {"save_processed_data", "params", {"auto"}, "prepared data is not saved; remove it"},
      {"chat_format", "params", {}, "use data.chat_template: tokenizer"},
      {"token_weights", "params", {}, kLoss},
      {"use_distillation", "params", {"false"}, kDistillation},
      {"teacher_model", "params", {}, kDistillation},
      {"teacher_prompt_template", "params", {}, kDistillation},
      {"student_prompt_template", "params", {"{input}"}, kDistillation},
      {"distill_temperature", "params", {"3", "3.0"}, kDistillation},
      {"distill_alpha", "params", {"0.7"}, kDistillation},
      {"distill_max_teacher_length", "params", {"512"}, kDistillation},
      {"use_sweep", "params", {"false"}, kSweep},
      {"sweep_backend", "params", {"optuna"}, kSweep},
      {"sweep_n_trials", "params", {"10"}, kSweep},
      {"sweep_metric", "params", {"eval_loss"}, kSweep},
      {"sweep_direction", "params", {"minimize"}, kSweep},
      {"sweep_params", "params", {}, kSweep},
      {"post_trial_script", "params", {}, kSweep},
      {"wandb_sweep", "params", {"false"}, kSweep},
      {"wandb_sweep_project", "params", {}, kSweep},
      {"wandb_sweep_entity", "params", {}, kSweep},
      {"wandb_sweep_id", "params", {}, kSweep},
      {"wandb_run_id", "params", {}, kSweep},
      {"rl_gamma", "params", {"0.99"}, kReinforcement},
      {"rl_gae_lambda", "params", {"0.95"}, kReinforcement},
      {"rl_kl_coef", "params", {"0.1"}, kReinforcement},
      {"rl_value_loss_coef", "params", {"1", "1.0"}, kReinforcement},
      {"rl_clip_range", "params", {"0.2"}, kReinforcement},
      {"rl_reward_fn", "params", {}, kReinforcement},
      {"rl_multi_objective", "params", {"false"}, kReinforcement},
      {"rl_reward_weights", "params", {}, kReinforcement},
      {"rl_env_type", "params", {}, kReinforcement},
      {"rl_env_config", "params", {}, kReinforcement},
      {"rl_env_module", "params", {}, kReinforcement},
      {"rl_env_class", "params", {}, kReinforcement},
      {"rl_reward_model_path", "params", {}, kReinforcement},
      {"rl_num_ppo_epochs", "params", {"4"}, kReinforcement},
      {"rl_num_generations", "params", {"4"}, kReinforcement},
      {"rl_chunk_size", "params", {"128"}, kReinforcement},
      {"rl_mini_batch_size", "params", {"8"}, kReinforcement},
      {"rl_optimize_device_cache", "params", {"true"}, kReinforcement},
      {"rl_value_clip_range", "params", {"0.2"}, kReinforcement},
      {"rl_max_new_tokens", "params", {"128"}, kReinforcement},
      {"rl_top_k", "params", {"50"}, kReinforcement},
      {"rl_top_p", "params", {"1", "1.0"}, kReinforcement},
      {"rl_temperature", "params", {"1", "1.0"}, kReinforcement},
      {"use_vllm", "params", {"false"}, kReinforcement},
      {"vllm_mode", "params", {"colocate"}, kReinforcement},
      {"vllm_gpu_memory_utilization", "params", {"0.3"}, kReinforcement},
      {"custom_loss", "params", {}, kLoss},
      {"custom_loss_weights", "params", {}, kLoss},
      {"use_forward_backward", "params", {"false"}, kManual},
      {"forward_backward_loss_fn", "params", {}, kManual},
      {"forward_backward_custom_fn", "params", {}, kManual},
      {"manual_optimizer_control", "params", {"false"}, kManual},
      {"optimizer_step_frequency", "params", {"1"}, kManual},
      {"grad_clip_value", "params", {"1", "1.0"}, "use max_grad_norm"},
      {"manual_checkpoint_control", "params", {"false"}, kManual},
      {"save_state_every_n_steps", "params", {"0"}, "use save_strategy: steps and save_steps"},
      {"load_state_from", "params", {}, "use resume_from_checkpoint"},
      {"sample_every_n_steps", "params", {"0"}, kSampling},
      {"sample_prompts", "params", {}, kSampling},
      {"sample_temperature", "params", {"1", "1.0"}, kSampling},
      {"sample_top_k", "params", {"50"}, kSampling},
      {"sample_top_p", "params", {"1", "1.0"}, kSampling},
      {"inference_prompts", "params", {}, kInference},
      {"inference_max_tokens", "params", {"256"}, kInference},
      {"inference_temperature", "params", {"1", "1.0"}, kInference},
      {"inference_top_p", "params", {"1", "1.0"}, kInference},
      {"inference_top_k", "params", {"50"}, kInference},
      {"inference_output", "params", {}, kInference},
  };
  return kTable;
}

ConfigKey no_effect(std::string field, std::string section, std::string why, bool secret = false) {
  ConfigKey key;
  key.field = key.yaml_name = std::move(field);
  key.section = std::move(section);
  key.answer = KeyAnswer::kNoEffect;
  key.text = std::move(why);
  key.is_secret = secret;
  return key;
}

ConfigKey backend() {
  ConfigKey key = no_effect("backend", "", "training runs where this program, or its TrainingJob, runs");
  key.values = "local; to train on a cluster put this configuration into a TrainingJob";
  key.apply = [](const YAML::Node& value, TrainConfig&) -> std::optional<ValueRefusal> {
    if (is_none(value) ||
        (value.IsScalar() && (value.Scalar() == "local" || value.Scalar().starts_with("local-"))))
      return std::nullopt;
    return ValueRefusal{};
  };
  return key;
}

}  // namespace

std::vector<ConfigKey> other_keys() {
  std::vector<ConfigKey> keys;
  keys.push_back(backend());
  const std::string nothing_uploaded = "nothing is uploaded";
  keys.push_back(no_effect("username", "hub", nothing_uploaded, true));
  keys.push_back(no_effect("token", "hub", nothing_uploaded, true));
  keys.push_back(no_effect("repo_id", "hub", nothing_uploaded));
  keys.push_back(no_effect("hub_private", "hub", nothing_uploaded));
  keys.push_back(no_effect("wandb_token", "params", nothing_uploaded, true));
  keys.push_back(no_effect("wandb_visualizer", "params", "progress is shown on the terminal"));
  for (const Unsupported& row : unsupported()) {
    ConfigKey key;
    key.field = key.yaml_name = row.field;
    key.section = row.section;
    key.answer = KeyAnswer::kUnsupported;
    key.text = row.instead;
    key.asks_nothing = row.asks_nothing;
    const auto is = [&](const char* word) {
      return row.asks_nothing.size() == 1 && row.asks_nothing.front() == word;
    };
    key.is_boolean = is("false") || is("true");
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace coxswain
