// How far training is, from a worker's line to the status: the lines of the input are told to an agent, whose
// answer the operator reads; and the operator is given the input as an agent's answer, since any program may
// run in a pod and say anything.
#include <limits>

#include "operator/api/json_input.h"
#include "operator/api/parse.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/progress.h"
#include "runtime/launch/progress_board.h"
#include "tests/fuzz/require.h"

namespace {

using namespace coxswain;

constexpr TimePoint kNow{std::chrono::hours(500'000)};

void take(const Json& answer) {
  const Json copy = answer;
  FUZZ_REQUIRE(copy == answer);
  for (const int64_t attempt : {0, 7}) {
    const auto positions = parse_positions(answer, attempt);
    const auto progress = parse_progress(answer, attempt);
    if (!progress) continue;
    FUZZ_REQUIRE(positions.has_value());
    FUZZ_REQUIRE(progress->step >= 0);
    TrainingStatus before;
    before.last_progress_time = kNow - std::chrono::seconds(15);
    for (const auto& earlier : {std::optional<TrainingStatus>(), std::optional(before)}) {
      const TrainingStatus first = training_from(*progress, earlier, std::nullopt, kNow);
      TrainingJobStatus status;
      status.training = training_from(*progress, first, kNow, kNow + std::chrono::seconds(15));
      FUZZ_REQUIRE(parse_status(Json::parse(status_to_json(status).dump())) == status);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ProgressBoard board({"job", 7, 0}, {0, 1});
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    board.update(static_cast<int>(at % 2), text.substr(at, end - at), 1.5);
    at = end + 1;
  }
  const Json told = Json::parse(board.progress_json(), nullptr, false);
  FUZZ_REQUIRE(told.is_object());
  FUZZ_REQUIRE(parse_positions(told, 7).has_value());
  board.metrics_text();
  take(told);
  const Json answer = parse_json(text);
  if (!answer.is_discarded()) take(answer);
  return 0;
}
