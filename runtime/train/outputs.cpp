#include "runtime/train/outputs.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "runtime/checkpoint/commit.h"
#include "runtime/model/lora.h"
#include "runtime/model/registry.h"
#include "runtime/model/safetensors_header.h"
#include "runtime/train/model_card.h"

namespace coxswain {
namespace fs = std::filesystem;
namespace {

int64_t peak_rss_mib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

std::vector<int64_t> integers(const torch::Tensor& column) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < column.size(0); ++i) out.push_back(static_cast<int64_t>(column[i].item<double>()));
  return out;
}

std::vector<double> numbers(const torch::Tensor& column) {
  const auto contiguous = column.contiguous();
  return {contiguous.data_ptr<double>(), contiguous.data_ptr<double>() + contiguous.numel()};
}

Result<void> remove_files(const fs::path& folder, const std::function<bool(const std::string&)>& unwanted) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file() && unwanted(entry.path().filename().string()))
      fs::remove(entry.path(), error);
  }
  if (error) {
    return fail(contract::ExitCode::kStorage, "Cannot remove an earlier run's files from " + folder.string() +
                                                  ": " + error.message() + ".");
  }
  return {};
}

// Exactly what this program writes: the folder may hold other things.
bool is_adapter_file(const std::string& name) {
  return name == "adapter_config.json" || name == "adapter_model.safetensors";
}

bool is_model_file(const std::string& name) {
  return name == "config.json" || name == "generation_config.json" || is_weight_file_name(name);
}

Result<void> write_final_model(const TrainConfig& config, const fs::path& project, TensorMap parameters) {
  const bool keeps_adapter = config.peft && !config.lora.merge_adapter;
  if (keeps_adapter) {
    if (auto removed = remove_files(project, is_model_file); !removed) return removed;
    return write_model_or_adapter(config, project, parameters);
  }
  if (config.peft) {
    if (auto merged = merge_lora(parameters, config.lora); !merged) return merged;
  }
  if (auto written = save_model_folder(project.string(), config.base_model, parameters); !written)
    return written;
  return remove_files(project, is_adapter_file);
}

Result<void> finish_recovery(const fs::path& recovery) {
  if (auto marked = write_durably(recovery / kFinishedMarker, ""); !marked) return marked;
  auto complete = complete_checkpoints(recovery, CheckpointKind::kRecovery);
  if (!complete) return tl::unexpected(complete.error());
  for (const CheckpointFolder& folder : *complete) {
    if (auto deleted = delete_checkpoint(folder.path); !deleted) return deleted;
  }
  return {};
}

Result<void> write_as_leader(TrainingSession& session, const RunStatistics& statistics,
                             std::optional<double> last_loss, TensorMap parameters) {
  const TrainConfig& config = session.config;
  const fs::path& project = session.folders.project;
  if (auto done = write_final_model(config, project, std::move(parameters)); !done) return done;
  if (auto done = write_durably(project / "training_params.json", training_params(config).dump(2) + "\n");
      !done) {
    return done;
  }
  const CardFacts facts{session.ranks.world_size, session.position.step, session.dataset.size(),
                        session.tokens_seen, last_loss};
  if (auto done = write_durably(project / "README.md", model_card(config, facts)); !done) return done;
  if (auto done = write_trainer_state(session, project, &statistics); !done) return done;
  return finish_recovery(session.folders.recovery);
}

}  // namespace

RunStatistics gather_statistics(TrainingSession& session, double first_forward_unix_seconds) {
  const ParameterMemory memory = session.strategy->memory();
  auto table = torch::zeros({6, session.ranks.world_size}, torch::kFloat64);
  const double mine[] = {static_cast<double>(peak_rss_mib()),
                         static_cast<double>(memory.parameter_bytes),
                         static_cast<double>(memory.peak_parameter_bytes),
                         static_cast<double>(memory.peak_gradient_bytes),
                         static_cast<double>(session.optimizer->state_bytes()),
                         first_forward_unix_seconds};
  for (int i = 0; i < 6; ++i) table[i][session.ranks.rank].fill_(mine[i]);
  session.strategy->all_reduce_sum(table);
  return {integers(table[0]), integers(table[1]), integers(table[2]),
          integers(table[3]), integers(table[4]), numbers(table[5])};
}

Result<void> write_model_or_adapter(const TrainConfig& config, const fs::path& folder,
                                    const std::map<std::string, torch::Tensor>& parameters) {
  if (!config.peft) return save_model_folder(folder.string(), config.base_model, parameters);
  if (auto saved = save_adapter(folder.string(), config.lora, config.base_model, parameters); !saved)
    return saved;
  return copy_tokenizer_files(folder.string(), config.base_model);
}

Result<void> write_trainer_state(const TrainingSession& session, const fs::path& folder,
                                 const RunStatistics* statistics) {
  nlohmann::ordered_json state = {{"global_step", session.position.step},
                                  {"max_steps", session.plan.total_steps},
                                  {"epoch", session.plan.epoch(session.position.consumed)},
                                  {"num_input_tokens_seen", session.tokens_seen},
                                  {"train_batch_size", session.config.batch_size},
                                  {"world_size", session.ranks.world_size}};
  if (statistics != nullptr) {
    state["peak_rss_mib"] = statistics->peak_rss_mib;
    state["parameter_bytes"] = statistics->parameter_bytes;
    state["peak_parameter_bytes"] = statistics->peak_parameter_bytes;
    state["peak_gradient_bytes"] = statistics->peak_gradient_bytes;
    state["optimizer_bytes"] = statistics->optimizer_bytes;
    state["first_forward_unix_seconds"] = statistics->first_forward_unix_seconds;
  }
  return write_durably(folder / "trainer_state.json", state.dump(2) + "\n");
}

Result<void> write_final_outputs(TrainingSession& session, const RunStatistics& statistics,
                                 std::optional<double> last_loss) {
  const bool keeps_adapter = session.config.peft && !session.config.lora.merge_adapter;
  auto parameters = session.strategy->full_parameters(keeps_adapter);
  Result<void> mine;
  if (session.leads()) mine = write_as_leader(session, statistics, last_loss, std::move(parameters));
  return agree_on_success(*session.strategy, mine);
}

}  // namespace coxswain
