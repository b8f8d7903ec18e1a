// Does one thing with a model, as a JSON request on the command line says, so that Python programs can judge
// it:
//   model_tool '{"do": …, "model": FOLDER, …}'
// "gradients": rows → out (safetensors: loss, count, logits, grad.<parameter>); with "lora" also the LoRA
// parameters' "rewrite":   → folder out, written by us "generate":  ids, tokens → prints a JSON list "lora":
// lora, rows → prints the loss; writes adapter and merged model under out; "adapter": loads it first "load":
// only loads "time":      rows, repeat, recompute → prints seconds of forward and of forward with backward,
// the best of repeat
#include <sys/resource.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/model/generate.h"
#include "runtime/model/lora.h"
#include "runtime/model/registry.h"

namespace coxswain {
namespace {

using nlohmann::json;

// Rows padded to the longest, with 0.
Batch read_batch(const json& rows) {
  Batch batch;
  batch.rows = static_cast<int64_t>(rows.size());
  for (const json& row : rows)
    batch.length = std::max<int64_t>(batch.length, static_cast<int64_t>(row["ids"].size()));
  for (const json& row : rows) {
    auto ids = row["ids"].get<std::vector<int64_t>>();
    auto labels = row["labels"].get<std::vector<int64_t>>();
    batch.lengths.push_back(static_cast<int64_t>(ids.size()));
    batch.segments.push_back(row.value("segments", std::vector<int64_t>{batch.lengths.back()}));
    ids.resize(static_cast<size_t>(batch.length), 0);
    labels.resize(static_cast<size_t>(batch.length), kIgnoredLabel);
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  }
  return batch;
}

LoraConfig read_lora(const json& request) {
  LoraConfig config;
  config.rank = request.value("rank", config.rank);
  config.alpha = request.value("alpha", config.alpha);
  config.dropout = request.value("dropout", 0.0);
  config.target_modules = request.value("target_modules", config.target_modules);
  return config;
}

TensorMap parameters_of(const CausalLM& model) {
  TensorMap map;
  for (const auto& parameter : model.named_parameters()) map[parameter.key()] = parameter.value().detach();
  return map;
}

[[noreturn]] void stop(const Failure& failure) {
  std::cerr << failure.message << "\n";
  std::exit(static_cast<int>(failure.code));
}

template <typename T>
T must(Result<T> result) {
  if (!result) stop(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void write_gradients(CausalLM& model, const json& request) {
  DirectRunner runner;
  const TokenBatch batch = to_token_batch(read_batch(request["rows"]));
  torch::Tensor loss = model.loss_sum(batch, runner, false);
  loss.backward();
  TensorMap out;
  out["loss"] = loss.detach();
  out["count"] = (batch.targets != kIgnoredLabel).sum();
  for (const auto& parameter : model.named_parameters()) {
    if (parameter.value().grad().defined()) out["grad." + parameter.key()] = parameter.value().grad();
  }
  const torch::NoGradGuard no_grad;
  out["logits"] = model.logits(batch, runner);
  must(write_safetensors(request["out"], out));
}

void run_lora(CausalLM& model, const json& request) {
  const LoraConfig config = read_lora(request["lora"]);
  must(apply_lora(model, config, request.value("seed", 1)));
  if (request.contains("adapter")) {
    must(load_adapter(model, request["adapter"]));
  } else {
    // B is zero at the start, where an adapter that did nothing would pass for a good one.
    const torch::NoGradGuard no_grad;
    torch::manual_seed(3);
    for (auto& parameter : model.named_parameters()) {
      if (parameter.key().ends_with("lora_B.weight")) parameter.value().normal_(0, 0.1);
    }
  }
  model.eval();
  if (request.contains("out")) {
    const std::string out = request["out"];
    must(save_adapter(out + "/adapter", config, request["model"], parameters_of(model)));
    TensorMap merged = parameters_of(model);
    must(merge_lora(merged, config));
    must(save_model_folder(out + "/merged", request["model"], merged));
  }
  DirectRunner runner;
  const TokenBatch batch = to_token_batch(read_batch(request["rows"]));
  std::printf("%.9g\n", model.loss_sum(batch, runner, false).item<double>());
}

void time_passes(CausalLM& model, const json& request) {
  torch::set_num_threads(request.value("threads", 1));
  if (request.contains("lora")) must(apply_lora(model, read_lora(request["lora"]), 1));
  DirectRunner runner;
  const TokenBatch batch = to_token_batch(read_batch(request["rows"]));
  double forward = 1e9, both = 1e9;
  for (int i = 0; i < request.value("repeat", 3); ++i) {
    const auto start = std::chrono::steady_clock::now();
    torch::Tensor loss = model.loss_sum(batch, runner, false);
    const auto middle = std::chrono::steady_clock::now();
    loss.backward();
    const auto end = std::chrono::steady_clock::now();
    model.zero_grad();
    forward = std::min(forward, std::chrono::duration<double>(middle - start).count());
    both = std::min(both, std::chrono::duration<double>(end - start).count());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"forward_s\": %.3f, \"step_s\": %.3f, \"tokens_per_s\": %.1f, \"peak_rss_mib\": %ld}\n",
              forward, both, static_cast<double>(batch.ids.size(0)) / both, usage.ru_maxrss / 1024);
}

void serve(const json& request) {
  LoadedModel loaded = must(load_model(request["model"]));
  for (const auto& notice : loaded.notices) std::cerr << notice << "\n";
  CausalLM& model = *loaded.model;
  const std::string what = request["do"];
  if (what == "gradients") {
    if (request.contains("lora"))
      must(apply_lora(model, read_lora(request["lora"]), request.value("seed", 1)));
    write_gradients(model, request);
  } else if (what == "rewrite") {
    must(save_model_folder(request["out"], request["model"], parameters_of(model)));
  } else if (what == "generate") {
    std::cout << json(generate_greedy(model, request["ids"], request["tokens"], loaded.eos_ids)) << "\n";
  } else if (what == "lora") {
    run_lora(model, request);
  } else if (what == "time") {
    time_passes(model, request);
  } else if (what != "load") {
    stop({contract::ExitCode::kInternal, "unknown request: " + what});
  }
}

}  // namespace
}  // namespace coxswain

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  coxswain::serve(nlohmann::json::parse(argv[1]));
  return 0;
}
