#include "operator/reconcile/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace coxswain {
namespace {

std::string number(const std::optional<double>& value, const char* format) {
  if (!value) return "";
  if (std::isnan(*value)) return "NaN";
  if (std::isinf(*value)) return *value > 0 ? "Inf" : "-Inf";
  char text[64];
  constexpr double kLongest = 1e15;  // beyond, fixed notation wouldn't fit
  std::snprintf(text, sizeof text, std::abs(*value) < kLongest ? format : "%.6g", *value);
  return text;
}

std::optional<TimePoint> estimate(const TrainingStatus& next, const std::optional<TrainingStatus>& before) {
  if (!next.total_steps || *next.total_steps <= next.step) return std::nullopt;
  const bool has_pace = before && before->last_progress_time && before->step < next.step &&
                        *before->last_progress_time < *next.last_progress_time;
  if (!has_pace) return before ? before->estimated_completion_time : std::nullopt;
  const double elapsed_ms =
      static_cast<double>((*next.last_progress_time - *before->last_progress_time).count());
  const double per_step_ms = elapsed_ms / static_cast<double>(next.step - before->step);
  const double remaining_ms = per_step_ms * static_cast<double>(*next.total_steps - next.step);
  constexpr double kHundredYearsMs = 3.2e12;
  return std::chrono::floor<std::chrono::seconds>(
      *next.last_progress_time + Duration(std::llround(std::min(remaining_ms, kHundredYearsMs))));
}

// By the operator's clock: the nodes' may be off.
TimePoint last_progress(const TrainingStatus& next, const std::optional<TrainingStatus>& before,
                        const std::optional<TimePoint>& moved, TimePoint now) {
  const bool moves = !before || !before->last_progress_time || before->step != next.step ||
                     before->last_checkpoint_step != next.last_checkpoint_step;
  if (moves) return now;
  return std::max(*before->last_progress_time, moved.value_or(*before->last_progress_time));
}

}  // namespace

TrainingStatus training_from(const Progress& progress, const std::optional<TrainingStatus>& before,
                             const std::optional<TimePoint>& moved, TimePoint now) {
  TrainingStatus next;
  next.step = progress.step;
  next.total_steps = progress.total_steps;
  next.epoch = number(progress.epoch, "%.4g");
  next.loss = number(progress.loss, "%.6g");
  next.tokens_per_second = number(progress.tokens_per_second, "%.1f");
  next.last_checkpoint_step = progress.last_checkpoint_step;
  if (!next.last_checkpoint_step && before) next.last_checkpoint_step = before->last_checkpoint_step;
  next.last_progress_time = std::chrono::floor<std::chrono::seconds>(last_progress(next, before, moved, now));
  next.estimated_completion_time = estimate(next, before);
  return next;
}

bool is_progress_due(const TrainingStatus& next, const std::optional<TrainingStatus>& before,
                     const Settings& settings) {
  if (!before || !before->last_progress_time || next.step < before->step) return true;
  return *next.last_progress_time - *before->last_progress_time >= settings.progress_interval;
}

}  // namespace coxswain
