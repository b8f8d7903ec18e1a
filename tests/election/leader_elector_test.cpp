#include "operator/election/leader_elector.h"

#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "operator/client/faulty_api.h"
#include "operator/client/memory_api.h"
#include "operator/election/fenced_api.h"

namespace coxswain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Candidates on one API server; each has a wall clock of its own that is wrong by minutes.
class Election : public ::testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  struct Candidate {
    Candidate(Election& election, int index, FaultyApi::Script script)
        : api(election.memory_, std::move(script)),
          elector(api, {"ns", "lease", "candidate-" + std::to_string(index)},
                  {[&election] { return election.now_; },
                   [&election, index] {
                     return TimePoint(election.now_.time_since_epoch()) + std::chrono::minutes(37 * index);
                   }}) {}
    FaultyApi api;
    LeaderElector elector;
    SteadyTime next{};
    SteadyTime frozen_until{};
  };

  Candidate& add(FaultyApi::Script script = {}) {
    return candidates_.emplace_back(*this, static_cast<int>(candidates_.size()), std::move(script));
  }

  void tick(Duration step = milliseconds(100)) {
    now_ += step;
    for (Candidate& candidate : candidates_) {
      if (now_ >= candidate.next && now_ >= candidate.frozen_until) candidate.next = candidate.elector.step();
    }
  }
  void run_for(Duration time) {
    for (const SteadyTime end = now_ + time; now_ < end;) tick();
  }
  // By what each would answer if it were asked now, frozen ones too.
  int leaders() const {
    return static_cast<int>(
        std::ranges::count_if(candidates_, [](const Candidate& c) { return c.elector.leads(); }));
  }

  SteadyTime now_{seconds(1000)};
  MemoryApi memory_{[this] { return TimePoint(now_.time_since_epoch()); }};
  std::deque<Candidate> candidates_;
};

TEST_F(Election, OneOfThreeLeads) {
  for (int i = 0; i < 3; ++i) add();
  run_for(seconds(60));
  EXPECT_EQ(leaders(), 1);
  for (const Candidate& candidate : candidates_) EXPECT_TRUE(candidate.elector.takes_part());
}

TEST_F(Election, AHandedOverLeaseIsTakenWithinOneTry) {
  add();
  tick();
  Candidate& second = add();
  run_for(seconds(5));
  EXPECT_FALSE(second.elector.leads());
  candidates_.front().elector.release();
  EXPECT_FALSE(candidates_.front().elector.leads());
  run_for(milliseconds(2500));
  EXPECT_TRUE(second.elector.leads());
}

TEST_F(Election, ALeaderThatDiedIsReplacedAfterItsLease) {
  add();
  tick();
  add();
  run_for(seconds(5));
  candidates_.front().frozen_until = SteadyTime::max();
  run_for(seconds(12));
  EXPECT_EQ(leaders(), 0);  // neither of them may write
  run_for(seconds(6));
  EXPECT_TRUE(candidates_.back().elector.leads());
}

TEST_F(Election, ALeaderThatWakesUpAgainKnowsThatItHasLost) {
  Candidate& first = add();
  tick();
  add();
  run_for(seconds(5));
  first.frozen_until = now_ + seconds(40);
  run_for(seconds(39));
  EXPECT_FALSE(first.elector.leads());
  first.api.forget_calls();
  run_for(seconds(10));
  EXPECT_EQ(first.elector.leadership(), Leadership::kLost);
  for (const ApiCall& call : first.api.calls()) EXPECT_FALSE(call.is_write());
}

TEST_F(Election, ADeletedLeaseIsMadeAnewByItsLeader) {
  Candidate& first = add();
  run_for(seconds(3));
  ASSERT_TRUE(memory_.remove(resources::kLeases, "ns", "lease", {}));
  run_for(seconds(6));
  EXPECT_TRUE(first.elector.leads());
  EXPECT_TRUE(memory_.get(resources::kLeases, "ns", "lease"));
}

// Refused and unanswered requests, lost answers, frozen candidates, in any order: never two at a time, and
// when the trouble is over somebody leads.
TEST_F(Election, NeverTwoLeadersWhateverHappens) {
  int handovers = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    candidates_.clear();
    memory_.remove(resources::kLeases, "ns", "lease", {});
    std::mt19937 random(seed);
    bool trouble = true;
    const auto chance = [&](unsigned percent) { return trouble && random() % 100 < percent; };
    const auto script = [&](const ApiCall&) -> std::optional<ApiFault> {
      if (!chance(40)) return std::nullopt;
      return ApiFault{{chance(50) ? 503 : 0, "", "trouble", std::nullopt}, chance(50)};
    };
    for (int i = 0; i < 3; ++i) add(script);
    for (int i = 0; i < 1500; ++i) {
      tick();
      ASSERT_LE(leaders(), 1) << "seed " << seed;
      for (Candidate& candidate : candidates_) {
        if (chance(1) && now_ >= candidate.frozen_until)
          candidate.frozen_until = now_ + milliseconds(random() % 30'000);
      }
    }
    trouble = false;
    for (Candidate& candidate : candidates_) candidate.frozen_until = {};
    Candidate& fresh = add();  // for those that have lost and ended
    run_for(seconds(60));
    EXPECT_EQ(leaders(), 1) << "seed " << seed;
    handovers += fresh.elector.leads();
  }
  EXPECT_GT(handovers, 0);
}

TEST_F(Election, TheFenceStopsWritesWithTheLease) {
  Candidate& first = add();
  run_for(seconds(3));
  FencedApi fenced(memory_, [&] { return first.elector.leads(); });
  const Json map = {{"metadata", {{"name", "m"}, {"namespace", "ns"}}}};
  EXPECT_TRUE(fenced.create(resources::kConfigMaps, "ns", map, {}));
  now_ += seconds(11);
  const auto patched = fenced.merge_patch(resources::kConfigMaps, "ns", "m", {{"data", {{"a", "b"}}}}, {});
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().code, 0);
  EXPECT_FALSE(fenced.remove(resources::kConfigMaps, "ns", "m", {}));
  EXPECT_TRUE(fenced.get(resources::kConfigMaps, "ns", "m"));
}

// With real threads and clocks.
TEST(LeaderElector, AcquiresHoldsAndHandsOver) {
  MemoryApi memory(system_time);
  const auto settings = [](const std::string& identity) {
    return ElectionSettings{"ns", "lease", identity, seconds(5), seconds(4), milliseconds(20)};
  };
  LeaderElector first(memory, settings("first"));
  LeaderElector second(memory, settings("second"));
  std::stop_source never, stop_first;
  ASSERT_TRUE(first.acquire(never.get_token()));
  std::jthread holding([&] { EXPECT_TRUE(first.hold(stop_first.get_token())); });
  std::atomic<bool> both = false;
  std::jthread waiting([&] {
    EXPECT_TRUE(second.acquire(never.get_token()));
    both = first.leads();
  });
  while (!second.takes_part()) std::this_thread::yield();
  EXPECT_TRUE(first.leads());
  stop_first.request_stop();
  holding.join();
  first.release();
  waiting.join();
  EXPECT_TRUE(second.leads());
  EXPECT_FALSE(both);
}

TEST(LeaderElector, StopsWaitingWhenAsked) {
  MemoryApi memory(system_time);
  LeaderElector first(memory, {"ns", "lease", "first"});
  LeaderElector second(memory, {"ns", "lease", "second"});
  std::stop_source stop;
  ASSERT_TRUE(first.acquire(stop.get_token()));
  std::jthread waiting([&] { EXPECT_FALSE(second.acquire(stop.get_token())); });
  while (!second.takes_part()) std::this_thread::yield();
  stop.request_stop();
}

}  // namespace
}  // namespace coxswain
