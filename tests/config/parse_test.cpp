#include "runtime/config/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coxswain {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

EnvironmentLookup no_environment() {
  return [](const std::string&) { return std::nullopt; };
}

Result<TrainConfig> parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_train_config(yaml, "config.yaml", overrides, no_environment());
}

// Five lines that every configuration needs; what a case is about follows from line 6.
const std::string kMinimal =
    "task: llm\n"
    "base_model: models/tiny\n"
    "project_name: run\n"
    "data:\n"
    "  path: data.jsonl\n";

std::string error_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const Result<TrainConfig> config = parse(yaml, overrides);
  if (config) return "accepted";
  EXPECT_EQ(config.error().code, contract::ExitCode::kBadInput);
  return config.error().message;
}

std::string error_of_param(const std::string& param) {
  return error_of(kMinimal + "params:\n  " + param + "\n");
}

TEST(ParseTrainConfig, ReadsTheWholeFileOfAnAiTrainingUser) {
  const Result<TrainConfig> config = parse(R"(
task: llm-sft
base_model: models/SmolLM2-135M-Instruct
project_name: smol
log: tensorboard
backend: local
data:
  path: data
  train_split: training
  valid_split: null
  chat_template: tokenizer
  column_mapping:
    text_column: messages
params:
  block_size: 512
  model_max_length: 1024
  epochs: 2.5
  max_steps: 100
  batch_size: 8
  lr: 1e-5
  peft: true
  lora_r: 8
  lora_alpha: 64
  lora_dropout: 0
  target_modules: q_proj, v_proj
  merge_adapter: false
  padding: right
  optimizer: adamw_torch
  scheduler: cosine
  warmup_ratio: 0.2
  weight_decay: 0.1
  max_grad_norm: 0.5
  adam_beta1: 0.8
  adam_beta2: 0.95
  adam_epsilon: 1.0e-7
  gradient_accumulation: 2
  mixed_precision: none
  quantization: none
  seed: 7
  data_shuffle: false
  add_eos_token: false
  response_only_loss: false
  disable_gradient_checkpointing: true
  distributed_backend: deepspeed
  ddp_timeout: 60
  save_strategy: steps
  save_steps: 10
  save_total_limit: 3
  logging_steps: 5
  resume_from_checkpoint: latest
hub:
  username: ${HF_USERNAME}
  token: ${HF_TOKEN}
  push_to_hub: false
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer, Trainer::kSft);
  EXPECT_EQ(config->base_model, "models/SmolLM2-135M-Instruct");
  EXPECT_EQ(config->project_name, "smol");
  EXPECT_EQ(config->data.path, "data");
  EXPECT_EQ(config->data.train_split, "training");
  EXPECT_EQ(config->data.chat_template, "tokenizer");
  EXPECT_EQ(config->data.text_column, "messages");
  EXPECT_FALSE(config->data.shuffle);
  EXPECT_EQ(config->block_size, 512);
  EXPECT_EQ(config->model_max_length, 1024);
  EXPECT_EQ(config->epochs, 2.5);
  EXPECT_EQ(config->max_steps, 100);
  EXPECT_EQ(config->batch_size, 8);
  EXPECT_EQ(config->gradient_accumulation, 2);
  EXPECT_EQ(config->seed, 7u);
  EXPECT_FALSE(config->add_eos_token);
  EXPECT_FALSE(config->response_only_loss);
  EXPECT_FALSE(config->gradient_checkpointing);
  EXPECT_EQ(config->distributed_backend, DistributedBackend::kZero3);
  EXPECT_EQ(config->ddp_timeout_seconds, 60);
  EXPECT_TRUE(config->peft);
  EXPECT_EQ(config->lora.rank, 8);
  EXPECT_EQ(config->lora.alpha, 64);
  EXPECT_EQ(config->lora.dropout, 0);
  EXPECT_THAT(config->lora.target_modules, ElementsAre("q_proj", "v_proj"));
  EXPECT_FALSE(config->lora.merge_adapter);
  EXPECT_EQ(config->optimizer.learning_rate, 1e-5);
  EXPECT_EQ(config->optimizer.schedule, LrSchedule::kCosine);
  EXPECT_EQ(config->optimizer.warmup_ratio, 0.2);
  EXPECT_EQ(config->optimizer.weight_decay, 0.1);
  EXPECT_EQ(config->optimizer.max_grad_norm, 0.5);
  EXPECT_EQ(config->optimizer.adam_beta1, 0.8);
  EXPECT_EQ(config->optimizer.adam_beta2, 0.95);
  EXPECT_EQ(config->optimizer.adam_epsilon, 1e-7);
  EXPECT_EQ(config->save.strategy, SaveStrategy::kSteps);
  EXPECT_EQ(config->save.steps, 10);
  EXPECT_EQ(config->save.total_limit, 3);
  EXPECT_EQ(config->save.resume_from_checkpoint, "auto");
  EXPECT_EQ(config->logging.steps, 5);
  EXPECT_TRUE(config->logging.tensorboard);
}

TEST(ParseTrainConfig, DefaultsAreAiTrainings) {
  const Result<TrainConfig> config = parse(kMinimal);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer, Trainer::kDefault);
  EXPECT_EQ(config->data.train_split, "train");
  EXPECT_EQ(config->data.text_column, "text");
  EXPECT_EQ(config->data.chat_template, "none");
  EXPECT_EQ(config->optimizer.learning_rate, 3e-5);
  EXPECT_EQ(config->epochs, 1);
  EXPECT_EQ(config->batch_size, 2);
  EXPECT_EQ(config->gradient_accumulation, 4);
  EXPECT_EQ(config->optimizer.warmup_ratio, 0.1);
  EXPECT_EQ(config->optimizer.schedule, LrSchedule::kLinear);
  EXPECT_EQ(config->optimizer.max_grad_norm, 1.0);
  EXPECT_EQ(config->seed, 42u);
  EXPECT_EQ(config->block_size, -1);
  EXPECT_EQ(config->model_max_length, std::nullopt);
  EXPECT_EQ(config->logging.steps, -1);
  EXPECT_EQ(config->save.strategy, SaveStrategy::kEpoch);
  EXPECT_EQ(config->save.total_limit, 1);
  EXPECT_EQ(config->save.resume_from_checkpoint, std::nullopt);
  EXPECT_EQ(config->distributed_backend, DistributedBackend::kNone);
  EXPECT_EQ(config->ddp_timeout_seconds, 7200);
  EXPECT_FALSE(config->peft);
  EXPECT_EQ(config->lora.rank, 16);
  EXPECT_THAT(config->lora.target_modules, ElementsAre("all-linear"));
  EXPECT_TRUE(config->lora.merge_adapter);
  EXPECT_THAT(config->notices, ElementsAre(HasSubstr("log: wandb")));
}

TEST(ParseTrainConfig, TaskSetsTheTrainerAndParamsWinOverIt) {
  const auto trainer_of = [](const std::string& task, const std::string& params) {
    const Result<TrainConfig> config = parse("task: " + task + kMinimal.substr(9) + params);
    EXPECT_TRUE(config) << config.error().message;
    return config->trainer;
  };
  EXPECT_EQ(trainer_of("llm", ""), Trainer::kDefault);
  EXPECT_EQ(trainer_of("llm-sft", ""), Trainer::kSft);
  EXPECT_EQ(trainer_of("llm-pretrain", ""), Trainer::kDefault);
  EXPECT_EQ(trainer_of("llm", "params: {trainer: sft}"), Trainer::kSft);
  EXPECT_EQ(trainer_of("llm-sft", "params: {trainer: default}"), Trainer::kDefault);
}

TEST(ParseTrainConfig, SftWithoutTemplateTakesTheModelsAndSaysSo) {
  const Result<TrainConfig> config = parse(kMinimal + "log: none\nparams: {trainer: sft}");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->data.chat_template, "tokenizer");
  EXPECT_THAT(config->notices, ElementsAre(HasSubstr("data.chat_template is left out")));
}

TEST(ParseTrainConfig, WhatHasNoEffectIsSaidOnce) {
  const Result<TrainConfig> config = parse(
      kMinimal + "backend: local\nlog: wandb\nhub: {username: me, token: hf_secret, push_to_hub: false}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->notices,
              ElementsAre(HasSubstr("wandb"), HasSubstr("backend has no effect"),
                          HasSubstr("hub.username and hub.token have no effect: nothing is uploaded")));
  EXPECT_THAT(config->notices, Not(Contains(HasSubstr("hf_secret"))));
  EXPECT_TRUE(config->logging.tensorboard);
}

TEST(ParseTrainConfig, LoraSettingsWithoutPeftAreSaid) {
  const Result<TrainConfig> config = parse(kMinimal + "log: none\nparams: {lora_r: 8}");
  ASSERT_TRUE(config);
  EXPECT_THAT(config->notices,
              ElementsAre("lora_r has no effect: peft is false, so all weights are trained."));
}

TEST(ParseTrainConfig, AListThatHoldsItselfIsRefused) {
  const Result<TrainConfig> config = parse(kMinimal + "params: {peft: true, target_modules: &t [*t]}");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("params.target_modules is a list, but must be"));
}

TEST(ParseTrainConfig, LogNoneWritesNoEventFiles) {
  const Result<TrainConfig> config = parse(kMinimal + "log: none");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->logging.tensorboard);
  EXPECT_THAT(error_of(kMinimal + "log: mlflow"),
              HasSubstr("log is 'mlflow', but must be wandb, tensorboard or none"));
}

TEST(ParseTrainConfig, NamesTheNearestKeyAndItsLine) {
  EXPECT_EQ(error_of(kMinimal + "params:\n  batchsize: 4\n"),
            "config.yaml, line 7: unknown key params.batchsize; did you mean params.batch_size?");
  EXPECT_EQ(error_of(kMinimal + "params:\n  epoch: 4\n"),
            "config.yaml, line 7: unknown key params.epoch; did you mean params.epochs?");
  EXPECT_EQ(
      error_of(kMinimal + "params:\n  leraning_rate: 1\n"),
      "config.yaml, line 7: unknown key params.leraning_rate; did you mean params.learning_rate? That one is "
      "not supported: the key is called lr.");
  EXPECT_EQ(error_of("base_modle: x\n"),
            "config.yaml, line 1: unknown key base_modle; did you mean base_model?");
  EXPECT_EQ(error_of(kMinimal + "lr: 1\n"), "config.yaml, line 6: unknown key lr; did you mean params.lr?");
  EXPECT_THAT(error_of(kMinimal + "zzzzzzzz: 1\n"),
              HasSubstr("unknown key zzzzzzzz; see docs/configuration.md for all keys"));
}

TEST(ParseTrainConfig, RefusesNumbersOutOfRange) {
  EXPECT_EQ(error_of_param("batch_size: 0"),
            "config.yaml, line 7: params.batch_size is 0, but must be a whole number from 1 to 1000000; "
            "leave it out for the "
            "default (2).");
  const std::vector<std::string> kBad = {"batch_size: 1.5",
                                         "batch_size: two",
                                         "batch_size: -1",
                                         "lr: 0",
                                         "lr: -1e-4",
                                         "lr: .nan",
                                         "lr: inf",
                                         "lr: ten",
                                         "epochs: 0",
                                         "max_steps: 0",
                                         "max_steps: -2",
                                         "gradient_accumulation: 0",
                                         "block_size: 0",
                                         "block_size: 1",
                                         "block_size: [512, 1024]",
                                         "model_max_length: 0",
                                         "seed: -1",
                                         "lora_r: 0",
                                         "lora_alpha: 0",
                                         "lora_dropout: 1",
                                         "lora_dropout: -0.1",
                                         "warmup_ratio: 1.5",
                                         "warmup_ratio: -0.1",
                                         "weight_decay: -1",
                                         "adam_beta1: 1",
                                         "adam_beta2: -0.5",
                                         "adam_epsilon: 0",
                                         "max_grad_norm: much",
                                         "save_steps: 0",
                                         "save_total_limit: 0",
                                         "logging_steps: 0",
                                         "ddp_timeout: 0",
                                         "peft: maybe",
                                         "lora_r: 99999999999",
                                         "target_modules: []",
                                         "batch_size: [1]",
                                         "lr: {a: 1}",
                                         "save_strategy: never",
                                         "scheduler: sine"};
  for (const std::string& param : kBad) {
    const std::string field = param.substr(0, param.find(':'));
    EXPECT_THAT(error_of_param(param), HasSubstr("config.yaml, line 7: params." + field + " is ")) << param;
  }
}

TEST(ParseTrainConfig, RefusesNumbersThatNoTrainingCanCount) {
  for (const char* param : {"batch_size: 9223372036854775807", "gradient_accumulation: 9223372036854775807",
                            "epochs: 1e18", "ddp_timeout: 9223372036854775807"}) {
    EXPECT_THAT(error_of_param(param), HasSubstr("but must be")) << param;
  }
}

TEST(ParseTrainConfig, TakesNumbersAsPeopleWriteThem) {
  const Result<TrainConfig> config = parse(
      kMinimal + "params: {lr: 3e-5, max_steps: 1e3, batch_size: 4.0, max_grad_norm: 0, logging_steps: -1}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->optimizer.learning_rate, 3e-5);
  EXPECT_EQ(config->max_steps, 1000);
  EXPECT_EQ(config->batch_size, 4);
}

TEST(ParseTrainConfig, RefusesWhatIsKnownButNotSupportedAndSaysWhatToDo) {
  EXPECT_EQ(error_of_param("mixed_precision: bf16"),
            "config.yaml, line 7: params.mixed_precision is 'bf16': training is in fp32 for now; use none.");
  EXPECT_THAT(error_of_param("optimizer: sgd"), HasSubstr("only adamw_torch is supported"));
  EXPECT_THAT(error_of_param("quantization: int4"), HasSubstr("use none"));
  EXPECT_THAT(error_of_param("padding: left"), HasSubstr("use right"));
  EXPECT_THAT(error_of_param("packing: true"), HasSubstr("remove it"));
  EXPECT_THAT(error_of_param("trainer: dpo"), HasSubstr("use sft"));
  EXPECT_THAT(error_of_param("unsloth: true"), HasSubstr("remove it"));
  EXPECT_THAT(error_of_param("eval_strategy: steps"), HasSubstr("evaluation is not supported yet"));
  EXPECT_THAT(error_of_param("use_flash_attention_2: yes"), HasSubstr("remove it"));
  EXPECT_THAT(error_of_param("learning_rate: 1e-4"), HasSubstr("the key is called lr"));
  EXPECT_THAT(error_of(kMinimal + "  valid_split: test"), HasSubstr("evaluation is not supported yet"));
  EXPECT_THAT(error_of(kMinimal + "  chat_template: zephyr"), HasSubstr("use tokenizer"));
  EXPECT_THAT(error_of(kMinimal + "hub: {push_to_hub: true}"), HasSubstr("nothing is uploaded"));
  EXPECT_THAT(error_of(kMinimal + "backend: spaces-a10g-large"),
              HasSubstr("put this configuration into a TrainingJob"));
  EXPECT_THAT(error_of("task: image-classification" + kMinimal.substr(9)), HasSubstr("not supported yet"));
  EXPECT_THAT(error_of("task: cooking" + kMinimal.substr(9)),
              HasSubstr("must be llm, llm-sft or llm-pretrain"));
}

TEST(ParseTrainConfig, AcceptsValuesThatAskForNothing) {
  const Result<TrainConfig> config = parse(
      kMinimal +
      "  valid_split: null\n"
      "params: {eval_strategy: epoch, mixed_precision: null, quantization: None, padding: right, packing: "
      "false, unsloth: False, dpo_beta: 0.1, optimizer: adamw_torch, use_flash_attention_2: no, "
      "auto_find_batch_size: false}\n");
  EXPECT_TRUE(config) << config.error().message;
}

TEST(ParseTrainConfig, NamesTheDistributedBackends) {
  EXPECT_THAT(error_of_param("distributed_backend: horovod"),
              testing::AllOf(HasSubstr("Unsupported distributed backend"),
                             HasSubstr("none, ddp, deepspeed, zero3 or fsdp")));
}

TEST(ParseTrainConfig, AsksForWhatIsMissing) {
  EXPECT_EQ(error_of("project_name: p\ndata: {path: d}"),
            "config.yaml: base_model is missing; give a folder with a Hugging Face model.");
  EXPECT_THAT(error_of("base_model: m\ndata: {path: d}"), HasSubstr("project_name is missing"));
  EXPECT_THAT(error_of("base_model: m\nproject_name: p"), HasSubstr("data.path is missing"));
  EXPECT_THAT(error_of(""), HasSubstr("config.yaml is empty"));
  EXPECT_THAT(error_of("- a\n- b"), HasSubstr("must be a mapping"));
  EXPECT_THAT(error_of("base_model: m\nproject_name: .hidden\ndata: {path: d}"),
              HasSubstr("whose name does not start with a dot"));
}

TEST(ParseTrainConfig, TellsWhereTheYamlIsBroken) {
  EXPECT_THAT(error_of("base_model: m\nproject_name: [p\n"), HasSubstr("not valid YAML"));
  EXPECT_EQ(error_of("base_model: m\nbase_model: n\n"),
            "config.yaml, line 2: base_model stands there twice; remove one.");
  EXPECT_THAT(error_of(kMinimal + "params: 3"), HasSubstr("line 6: params is 3, but must be a mapping"));
}

// Partitioning or overriding settings once rewired the YAML nodes behind each other.
TEST(ParseTrainConfig, EachKeyKeepsItsOwnValueWhateverTheOrder) {
  const Result<TrainConfig> config = parse(
      "params: {lr: 1e-4, target_modules: [q_proj, v_proj], peft: yes, seed: 3}\nproject_name: "
      "p\nbase_model: m\n"
      "data: {path: d}\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->optimizer.learning_rate, 1e-4);
  EXPECT_THAT(config->lora.target_modules, ElementsAre("q_proj", "v_proj"));
  EXPECT_TRUE(config->peft);
  EXPECT_EQ(config->seed, 3u);
  EXPECT_EQ(config->base_model, "m");
  EXPECT_EQ(config->data.path, "d");
}

TEST(ParseTrainConfig, OverridesWinInOrder) {
  const Result<TrainConfig> config =
      parse(kMinimal + "params: {lr: bad, seed: 1}",
            {"params.lr=1e-3", "lr=2e-3", "data.path=other", "target_modules=[a, b]"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->optimizer.learning_rate, 2e-3);
  EXPECT_EQ(config->seed, 1u);
  EXPECT_EQ(config->data.path, "other");
  EXPECT_THAT(config->lora.target_modules, ElementsAre("a", "b"));
  EXPECT_EQ(error_of(kMinimal, {"lr=0"}),
            "--set lr is 0, but must be a number greater than 0; leave it out for the default (3e-5).");
  EXPECT_EQ(error_of(kMinimal, {"params.epoch=2"}),
            "--set: unknown key params.epoch; did you mean params.epochs?");
  EXPECT_THAT(error_of(kMinimal, {"lr"}), HasSubstr("write it as key=value"));
}

TEST(ParseTrainConfig, ParamsWinOverTheTopLevelAsInAiTraining) {
  const Result<TrainConfig> config =
      parse(kMinimal + "params: {project_name: other, chat_template: tokenizer}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->project_name, "other");
  EXPECT_EQ(config->data.chat_template, "tokenizer");
}

TEST(ParseTrainConfig, ExpandsTheEnvironment) {
  const EnvironmentLookup environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "DATA") return "/mnt/data";
    if (name == "LR") return "5e-5";
    return std::nullopt;
  };
  const std::string yaml = "base_model: m\nproject_name: p\ndata: {path: '${DATA}/train.jsonl'}\n";
  const Result<TrainConfig> config = parse_train_config(yaml + "params: {lr: '${LR}'}", "c", {}, environment);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->data.path, "/mnt/data/train.jsonl");
  EXPECT_EQ(config->optimizer.learning_rate, 5e-5);
  const Result<TrainConfig> unset =
      parse_train_config(yaml + "params: {lr: '${NONE}'}", "c", {}, environment);
  ASSERT_FALSE(unset);
  EXPECT_THAT(unset.error().message, HasSubstr("the environment variable NONE is not set"));
}

TEST(ParseTrainConfig, NeverPrintsASecret) {
  for (const char* hub : {"{token: [hf_secret]}", "{token: hf_secret, tokn: hf_secret}",
                          "{token: hf_secret, push_to_hub: true}"})
    EXPECT_THAT(error_of(kMinimal + "hub: " + hub + "\nlr: 1"), Not(HasSubstr("hf_secret")));
}

TEST(LoadTrainConfig, AFileThatCannotBeReadIsBadInput) {
  const Result<TrainConfig> config = load_train_config("no/such/file.yaml", {}, no_environment());
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, contract::ExitCode::kBadInput);
  EXPECT_THAT(config.error().message, HasSubstr("no/such/file.yaml"));
  EXPECT_FALSE(load_train_config(".", {}, no_environment()));
}

}  // namespace
}  // namespace coxswain
