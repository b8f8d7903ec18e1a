#include "runtime/worker/failure_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <new>
#include <stdexcept>

#include "runtime/parallel/parallel_strategy.h"

namespace coxswain {
namespace {

using contract::ExitCode;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename Function>
Failure failure_of(const Function& function, const TrainConfig& config = {}) {
  auto result = failures_of(
      [&]() -> Result<int> {
        function();
        return 0;
      },
      config);
  EXPECT_FALSE(result);
  return result.error();
}

TEST(FailureText, ALostPeerIsCollateral) {
  EXPECT_EQ(failure_of([] { throw PeerLost("rank 1 is gone"); }).code, ExitCode::kLostPeer);
}

TEST(FailureText, MemoryThatRanOutNamesTheSettingsThatHelp) {
  TrainConfig config;
  config.batch_size = 16;
  for (const Failure& failure : {failure_of([] { throw std::bad_alloc(); }, config),
                                 failure_of([] { torch::empty({int64_t{1} << 55}); }, config)}) {
    EXPECT_EQ(failure.code, ExitCode::kInternal);
    EXPECT_THAT(failure.message, HasSubstr("batch_size below 16"));
    EXPECT_THAT(failure.message, HasSubstr("zero3"));
    EXPECT_THAT(failure.message, HasSubstr("peft: true"));
  }
}

TEST(FailureText, AFaultOfALibraryIsOneLineWithoutItsStack) {
  const Failure failure = failure_of([] { (void)torch::ones({2, 3}).matmul(torch::ones({2, 3})); });
  EXPECT_EQ(failure.code, ExitCode::kInternal);
  EXPECT_THAT(failure.message, Not(HasSubstr("\n")));
  EXPECT_THAT(failure.message, HasSubstr("2x3"));
}

}  // namespace
}  // namespace coxswain
