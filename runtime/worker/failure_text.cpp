#include "runtime/worker/failure_text.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <new>

#include "runtime/metrics/step_record.h"
#include "runtime/parallel/parallel_strategy.h"

namespace coxswain {
namespace {

using contract::ExitCode;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

Failure out_of_memory(const TrainConfig& config) {
  std::string advice = config.batch_size > 1 ? fmt::format("batch_size below {}", config.batch_size)
                                             : std::string("a smaller block_size");
  if (!config.gradient_checkpointing) advice += ", disable_gradient_checkpointing: false";
  if (config.distributed_backend != DistributedBackend::kZero3)
    advice += ", distributed_backend: zero3 on several ranks";
  if (!config.peft) advice += ", or peft: true";
  return {ExitCode::kInternal,
          fmt::format("Out of memory, with {} MiB in use by this rank; try {}.", current_rss_mib(), advice)};
}

bool is_out_of_memory(const std::string& message) {
  return message.find("can't allocate memory") != std::string::npos ||
         message.find("not enough memory") != std::string::npos;
}

}  // namespace

Failure describe_current_exception(const TrainConfig& config) {
  try {
    throw;
  } catch (const PeerLost& lost) {
    return {ExitCode::kLostPeer, first_line(lost.what())};
  } catch (const std::bad_alloc&) {
    return out_of_memory(config);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (is_out_of_memory(message)) return out_of_memory(config);
    return {ExitCode::kInternal, "LibTorch failed: " + first_line(message)};
  } catch (const std::exception& error) {
    return {ExitCode::kInternal, "Unexpected failure: " + first_line(error.what())};
  } catch (...) {
    return {ExitCode::kInternal, "Unexpected failure of an unknown kind."};
  }
}

}  // namespace coxswain
