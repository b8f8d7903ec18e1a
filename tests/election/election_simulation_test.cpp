// Elections on a virtual clock under everything at once: requests refused, answers late or lost, candidates
// frozen between and within requests, clocks that are wrong and run at other speeds, and a person at work on
// the lease. At each moment of true time at most one candidate believes that it leads.
#include <gmock/gmock.h>

#include <deque>
#include <random>

#include "operator/client/faulty_api.h"
#include "operator/client/memory_api.h"
#include "operator/election/leader_elector.h"

namespace coxswain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Time passes on the way of a request and on the way of its answer.
class SlowApi : public FaultyApi {
 public:
  SlowApi(ApiClient& inner, Script script, std::function<void()> travel)
      : FaultyApi(inner, std::move(script)), travel_(std::move(travel)) {}

  ApiResult<Json> get(const Resource& r, const std::string& ns, const std::string& name) override {
    return slowly([&] { return FaultyApi::get(r, ns, name); });
  }
  ApiResult<Json> create(const Resource& r, const std::string& ns, const Json& object,
                         const WriteOptions& options) override {
    return slowly([&] { return FaultyApi::create(r, ns, object, options); });
  }
  ApiResult<Json> update(const Resource& r, const std::string& ns, const Json& object,
                         const WriteOptions& options) override {
    return slowly([&] { return FaultyApi::update(r, ns, object, options); });
  }

 private:
  template <typename Do>
  ApiResult<Json> slowly(Do&& request) {
    travel_();
    ApiResult<Json> answer = request();
    travel_();
    return answer;
  }
  const std::function<void()> travel_;
};

class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {}

  void add() { candidates_.emplace_back(*this, static_cast<int>(candidates_.size())); }

  void run_for(Duration time) {
    for (const SteadyTime end = now_ + time; now_ < end;) tick();
  }

  // Of 1000.
  bool chance(unsigned per_mille) { return random_() % 1000 < per_mille; }
  Duration up_to(Duration longest) {
    return Duration(static_cast<Duration::rep>(random_() % longest.count()));
  }

  int leaders() const {
    return static_cast<int>(
        std::ranges::count_if(candidates_, [](const auto& c) { return c.elector.leads(); }));
  }

  void touch(const Json& spec) {
    memory_.merge_patch(resources::kLeases, "ns", "lease", {{"spec", spec}}, {});
  }
  void remove() { memory_.remove(resources::kLeases, "ns", "lease", {}); }
  bool all_take_part() const {
    return std::ranges::all_of(candidates_, [](const auto& c) { return c.elector.takes_part(); });
  }

  bool trouble = false;
  int most_leaders = 0;

 private:
  struct Candidate {
    Candidate(Simulation& simulation, int index)
        : api(
              simulation.memory_, [&simulation](const ApiCall&) { return simulation.fault(); },
              [this, &simulation] { simulation.travel(*this); }),
          elector(api, {"ns", "lease", "candidate-" + std::to_string(index)},
                  {[&simulation, index] { return simulation.clock_of(index); },
                   [&simulation, index] {
                     return TimePoint(simulation.now_.time_since_epoch()) + std::chrono::minutes(37 * index);
                   }}) {}
    SlowApi api;
    LeaderElector elector;
    bool busy = false;  // within step(): a request is on its way
    SteadyTime frozen_until{};
    SteadyTime next{};  // by its own clock
    int index = 0;
  };

  // Started at another time, and up to a tenth too quick or too slow.
  SteadyTime clock_of(int index) const {
    const auto rate = static_cast<Duration::rep>(100 + (index % 3 - 1) * 10);
    return SteadyTime(now_.time_since_epoch() * rate / 100 + std::chrono::hours(index));
  }

  std::optional<ApiFault> fault() {
    if (!trouble || !chance(250)) return std::nullopt;
    return ApiFault{{chance(500) ? 503 : 0, "", "trouble", std::nullopt}, chance(500)};
  }

  void travel(Candidate& candidate) {
    const Duration slow = up_to(milliseconds(200));
    const Duration takes = trouble && chance(60) ? up_to(seconds(40)) : slow;
    const SteadyTime end = std::max(now_ + takes, candidate.frozen_until);
    while (now_ < end) tick();
  }

  void tick() {
    now_ += milliseconds(100);
    most_leaders = std::max(most_leaders, leaders());
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      if (trouble && chance(3)) candidate.frozen_until = now_ + up_to(seconds(30));
      if (candidate.busy || now_ < candidate.frozen_until || clock_of(static_cast<int>(i)) < candidate.next) {
        continue;
      }
      candidate.busy = true;
      candidate.next = candidate.elector.step();
      candidate.busy = false;
    }
  }

  std::mt19937 random_;
  SteadyTime now_{seconds(100'000)};
  MemoryApi memory_{[this] { return TimePoint(now_.time_since_epoch()); }};
  std::deque<Candidate> candidates_;
};

TEST(ElectionSimulation, NeverTwoLeadersAndSomebodyInTheEnd) {
  int elections = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Simulation simulation(seed);
    for (int i = 0; i < 2 + static_cast<int>(seed % 2); ++i) simulation.add();
    simulation.trouble = true;
    simulation.run_for(std::chrono::minutes(3));
    ASSERT_LE(simulation.most_leaders, 1) << "seed " << seed;
    elections += simulation.most_leaders;
    simulation.trouble = false;
    simulation.add();  // for those that have lost and ended
    simulation.run_for(seconds(90));
    ASSERT_EQ(simulation.leaders(), 1) << "seed " << seed;
    ASSERT_LE(simulation.most_leaders, 1) << "seed " << seed;
  }
  EXPECT_GT(elections, 50);
}

TEST(ElectionSimulation, NorWhenAPersonDeletesAndEditsTheLease) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Simulation simulation(seed);
    for (int i = 0; i < 3; ++i) simulation.add();
    simulation.run_for(seconds(10));
    ASSERT_TRUE(simulation.all_take_part());
    simulation.trouble = true;
    for (int i = 0; i < 60; ++i) {
      simulation.run_for(simulation.up_to(seconds(6)) + milliseconds(1));
      if (simulation.chance(250)) simulation.remove();
      if (simulation.chance(250)) simulation.touch({{"holderIdentity", nullptr}});
      if (simulation.chance(250)) simulation.touch({{"leaseDurationSeconds", 2}, {"leaseTransitions", -3}});
      if (simulation.chance(250))
        simulation.touch({{"renewTime", "1999-01-01T00:00:00.000000Z"}, {"strategy", 5}});
      ASSERT_LE(simulation.most_leaders, 1) << "seed " << seed << ", turn " << i;
    }
  }
}

}  // namespace
}  // namespace coxswain
