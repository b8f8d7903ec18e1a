#include "runtime/train/step.h"

#include <algorithm>
#include <numeric>

namespace coxswain {
namespace {

Batch fetch_micro_batch(TrainingSession& session, int64_t consumed) {
  std::vector<Row> rows;
  for (int64_t row : session.sampler->micro_batch(consumed, session.ranks.rank, session.config.batch_size)) {
    rows.push_back(session.dataset.row(row));
  }
  std::vector<const Row*> pointers;
  for (const Row& row : rows) pointers.push_back(&row);
  return collate(pointers, session.dataset.pad_id());
}

}  // namespace

StepBatches fetch_step(TrainingSession& session) {
  StepBatches step;
  int64_t consumed = session.position.consumed;
  const int64_t micro_batches = session.plan.micro_batches(consumed);
  for (int64_t i = 0; i < micro_batches; ++i, consumed += session.plan.rows_per_micro_step) {
    Batch batch = fetch_micro_batch(session, consumed);
    step.targets += count_targets(batch);
    step.tokens += std::accumulate(batch.lengths.begin(), batch.lengths.end(), int64_t{0});
    step.micro_batches.push_back(std::move(batch));
  }
  return step;
}

StepAgreement agree_on_step(ParallelStrategy& strategy, const StepBatches& batches, bool stop,
                            bool save_recovery) {
  auto values =
      torch::tensor({batches.targets, batches.tokens, int64_t{stop}, int64_t{save_recovery}}, torch::kInt64);
  strategy.all_reduce_sum(values);
  const int64_t* sums = values.data_ptr<int64_t>();
  return {sums[0], sums[1], sums[2] > 0, sums[3] > 0};
}

double forward_backward(TrainingSession& session, const StepBatches& batches, int64_t global_targets) {
  ParallelStrategy& strategy = *session.strategy;
  const double divisor = static_cast<double>(std::max<int64_t>(global_targets, 1));
  auto loss_of_step = torch::zeros({1}, torch::kFloat64);
  for (size_t i = 0; i < batches.micro_batches.size(); ++i) {
    strategy.begin_micro_batch(i + 1 == batches.micro_batches.size());
    const TokenBatch tokens = to_token_batch(batches.micro_batches[i]);
    const auto loss =
        session.model->loss_sum(tokens, strategy.runner(), session.config.gradient_checkpointing) / divisor;
    loss_of_step += loss.detach().to(torch::kFloat64);
    strategy.backward(loss);
  }
  strategy.all_reduce_sum(loss_of_step);
  return loss_of_step.item<double>();
}

}  // namespace coxswain
