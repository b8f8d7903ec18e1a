#include "runtime/train/session.h"

#include <chrono>
#include <random>
#include <system_error>

#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/fence.h"
#include "runtime/checkpoint/rank_state.h"
#include "runtime/model/lora.h"
#include "runtime/model/registry.h"
#include "runtime/parallel/make_strategy.h"
#include "runtime/train/outputs.h"

namespace coxswain {
namespace {

using contract::ExitCode;

constexpr std::chrono::seconds kVolumePatience{30};

Result<void> load_training_model(TrainingSession& session) {
  auto loaded = load_model(session.config.base_model);
  if (!loaded) return tl::unexpected(loaded.error());
  for (const std::string& notice : loaded->notices) session.log.say(notice);
  session.model = loaded->model;
  session.model->train();
  if (!session.config.peft) return {};
  return apply_lora(*session.model, session.config.lora, session.config.seed);
}

ModelParameters parameters_of(const CausalLM& model) {
  ModelParameters parameters{model.units(), {}};
  for (const auto& parameter : model.named_parameters()) {
    parameters.parameters.emplace_back(parameter.key(), parameter.value());
  }
  return parameters;
}

Result<Rendezvous> open_rendezvous(const TrainConfig& config, const RankEnvironment& ranks) {
  RendezvousOptions options;
  options.master_address = ranks.master_addr;
  options.master_port = ranks.master_port;
  options.rank = ranks.rank;
  options.world_size = ranks.world_size;
  options.attempt = ranks.job.attempt;
  options.collective_timeout = std::chrono::seconds(config.ddp_timeout_seconds);
  return Rendezvous::open(options);
}

Result<void> join_ranks(TrainingSession& session, Rendezvous& rendezvous) {
  session.progress.phase(Phase::kRendezvous);
  auto group = rendezvous.join();
  if (!group) return tl::unexpected(group.error());
  session.group = *group;
  session.strategy =
      make_strategy(session.config.distributed_backend, session.group, parameters_of(*session.model));
  session.optimizer = std::make_unique<AdamW>(session.config.optimizer, session.strategy->trainable());
  return {};
}

constexpr const char* kOutputFiles[] = {"README.md",
                                        "adapter_config.json",
                                        "adapter_model.safetensors",
                                        "config.json",
                                        "metrics.jsonl",
                                        "generation_config.json",
                                        "model.safetensors",
                                        "model.safetensors.index.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "train.log",
                                        "trainer_state.json",
                                        "training_params.json"};

// What the results could not be written over is said before the training, not after it.
Result<void> check_nothing_in_the_way(const TrainingSession& session) {
  const std::filesystem::path& project = session.folders.project;
  std::error_code error;
  for (const char* name : kOutputFiles) {
    if (!std::filesystem::is_directory(project / name, error)) continue;
    return bad_input("project_name: " + (project / name).string() +
                     " is a folder, but must be free for a file; move it, or name another folder.");
  }
  if (session.config.save.strategy == SaveStrategy::kNo) return {};
  for (std::filesystem::directory_iterator entry(project, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto checkpoint = parse_checkpoint_name(CheckpointKind::kUser, entry->path());
    if (!checkpoint || checkpoint->step > session.plan.total_steps) continue;
    if (std::filesystem::exists(checkpoint->path / kStateFile)) continue;
    return bad_input(
        "project_name: " + checkpoint->path.string() +
        " was not written by this program, which may have to save under that name; move it, or name another "
        "folder.");
  }
  return {};
}

// Rank 0 takes the folders over for this attempt; then every rank proves that it sees the same ones.
Result<void> take_over_folders(TrainingSession& session) {
  const RunFolders& folders = session.folders;
  auto take_over = [&](int64_t nonce) -> Result<void> {
    if (auto claimed = claim_attempt(folders.recovery, session.ranks.job.attempt); !claimed) return claimed;
    if (auto done = make_folder(folders.project); !done) return done;
    if (auto done = remove_unfinished(folders.recovery, CheckpointKind::kRecovery); !done) return done;
    if (auto done = remove_unfinished(folders.project, CheckpointKind::kUser); !done) return done;
    if (auto done = check_nothing_in_the_way(session); !done) return done;
    std::error_code none_there;
    std::filesystem::remove(folders.recovery / kFinishedMarker, none_there);
    if (auto done = write_nonce(folders.recovery, nonce); !done) return done;
    return write_nonce(folders.project, nonce);
  };
  auto nonce = torch::zeros({1}, torch::kInt64);
  Result<void> mine;
  if (session.leads()) {
    nonce.fill_(static_cast<int64_t>(std::random_device{}()) + 1);
    mine = take_over(nonce.item<int64_t>());
  }
  if (auto all = agree_on_success(*session.strategy, mine); !all) return all;
  session.strategy->all_reduce_sum(nonce);
  for (const auto& folder : {folders.recovery, folders.project}) {
    if (mine) mine = check_nonce(folder, nonce.item<int64_t>(), kVolumePatience);
  }
  if (auto all = agree_on_success(*session.strategy, mine); !all) return all;
  if (session.leads()) {
    for (const auto& folder : {folders.recovery, folders.project}) remove_nonce(folder);
  }
  return {};
}

// The ranks looked for themselves; had they seen different checkpoints, they would train different models.
Result<void> agree_on_resume(TrainingSession& session, const std::optional<ResumePoint>& point) {
  const int64_t mine = point ? point->state.step * 1024 + point->state.attempt + 1 : 0;
  auto sum = torch::tensor({mine, mine * mine}, torch::kInt64);
  session.strategy->all_reduce_sum(sum);
  const int64_t world = session.strategy->world_size();
  if (sum[0].item<int64_t>() == world * mine && sum[1].item<int64_t>() == world * mine * mine) return {};
  return fail(ExitCode::kLostPeer, "The ranks found different checkpoints in " +
                                       session.folders.recovery.string() +
                                       "; they have to start again together.");
}

// Those beyond the step that this run goes on from belong to a run that was given up.
Result<void> discard_later_recovery(const TrainingSession& session, int64_t step) {
  auto complete = complete_checkpoints(session.folders.recovery, CheckpointKind::kRecovery);
  if (!complete) return tl::unexpected(complete.error());
  for (const CheckpointFolder& folder : *complete) {
    if (folder.step <= step) continue;
    if (auto deleted = delete_checkpoint(folder.path); !deleted) return deleted;
  }
  return {};
}

Result<void> resume(TrainingSession& session, const std::optional<ResumePoint>& point) {
  if (auto agreed = agree_on_resume(session, point); !agreed) return agreed;
  Result<void> mine;
  if (session.leads()) mine = discard_later_recovery(session, point ? point->state.step : -1);
  if (auto all = agree_on_success(*session.strategy, mine); !all) return all;
  if (!point) {
    seed_rank(session.config.seed, session.ranks.rank, 0);
    return {};
  }
  mine = load_rank_state(*point, *session.strategy, *session.optimizer, session.config.peft,
                         session.config.seed);
  session.position = {point->state.step, point->state.consumed};
  session.tokens_seen = point->state.tokens_seen;
  session.log.say("Going on from step " + std::to_string(point->state.step) + " (" + point->path.string() +
                  ").");
  return agree_on_success(*session.strategy, mine);
}

Result<void> plan_training(TrainingSession& session) {
  const TrainConfig& config = session.config;
  StepShape shape;
  shape.rows = session.dataset.size();
  shape.world_size = session.ranks.world_size;
  shape.batch_size = config.batch_size;
  shape.gradient_accumulation = config.gradient_accumulation;
  shape.epochs = config.epochs;
  shape.max_steps = config.max_steps;
  auto plan = plan_steps(shape, session.position);
  if (!plan) return tl::unexpected(plan.error());
  session.plan = *plan;
  session.sampler.emplace(session.dataset.size(), config.seed, config.data.shuffle);
  return {};
}

}  // namespace

RunState TrainingSession::state() const {
  RunState state;
  state.step = position.step;
  state.consumed = position.consumed;
  state.tokens_seen = tokens_seen;
  state.world_size = ranks.world_size;
  state.sharded = strategy->sharded();
  state.peft = config.peft;
  state.attempt = ranks.job.attempt;
  state.job_uid = ranks.job.uid;
  return state;
}

Result<void> agree_on_success(ParallelStrategy& strategy, const Result<void>& mine) {
  auto failed = torch::zeros({2}, torch::kInt64);
  if (!mine) failed[mine.error().code == ExitCode::kStorage ? 0 : 1].fill_(1);
  strategy.all_reduce_sum(failed);
  if (!mine) return mine;
  if (failed.sum().item<int64_t>() == 0) return {};
  return fail(failed[0].item<int64_t>() > 0 ? ExitCode::kStorage : ExitCode::kLostPeer,
              "Another rank failed; its own message says why.");
}

Result<std::unique_ptr<TrainingSession>> prepare_session(const TrainConfig& config,
                                                         const RankEnvironment& ranks,
                                                         const RunFolders& folders,
                                                         const ProgressPipe& progress, RunLog& log) {
  auto session = std::unique_ptr<TrainingSession>(
      new TrainingSession{config, ranks, folders, log, progress, {}, {}, {}, {}, {}, {}, {}, {}, 0});
  auto decision =
      decide_resume({folders.project, folders.recovery, ranks.job.uid, config.save.resume_from_checkpoint});
  if (!decision) return tl::unexpected(decision.error());
  for (const std::string& notice : decision->notices) log.say(notice);

  auto rendezvous = open_rendezvous(config, ranks);
  if (!rendezvous) return tl::unexpected(rendezvous.error());

  auto dataset = load_dataset(config);
  if (!dataset) return tl::unexpected(dataset.error());
  session->dataset = std::move(*dataset);
  for (const std::string& notice : session->dataset.notices()) log.say(notice);
  if (decision->point) session->position = {decision->point->state.step, decision->point->state.consumed};
  if (auto done = plan_training(*session); !done) return tl::unexpected(done.error());

  if (auto done = load_training_model(*session); !done) return tl::unexpected(done.error());
  if (auto done = join_ranks(*session, *rendezvous); !done) return tl::unexpected(done.error());
  if (auto done = take_over_folders(*session); !done) return tl::unexpected(done.error());
  if (auto done = resume(*session, decision->point); !done) return tl::unexpected(done.error());
  return session;
}

}  // namespace coxswain
