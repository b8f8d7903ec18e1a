#include "operator/election/election_machine.h"

#include <gmock/gmock.h>

namespace coxswain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr TimePoint kWall{seconds(1'800'000'000)};

Json lease_of(const std::string& holder, int version, int duration = 15) {
  return {
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata",
       {{"name", "lease"}, {"namespace", "ns"}, {"uid", "u"}, {"resourceVersion", std::to_string(version)}}},
      {"spec",
       {{"holderIdentity", holder},
        {"leaseDurationSeconds", duration},
        {"leaseTransitions", 4},
        {"acquireTime", "2020-01-01T00:00:00.000000Z"},
        {"renewTime", "2020-01-01T00:00:00.000000Z"}}}};
}

// The machine of candidate "me", told answers by hand.
class Candidate : public ::testing::Test {
 protected:
  static ElectionSettings settings() { return {"ns", "lease", "me"}; }

  // "read", "create", "update", or for how many milliseconds it rests.
  std::string turn() {
    action_ = machine_.turn(now_, kWall);
    if (std::holds_alternative<ReadLease>(action_)) return "read";
    if (std::holds_alternative<CreateLease>(action_)) return "create";
    if (std::holds_alternative<UpdateLease>(action_)) return "update";
    const SteadyTime until = std::get<RestElection>(action_).until;
    return until == SteadyTime::max() ? "rest for ever" : "rest " + std::to_string((until - now_).count());
  }
  void answer(ApiResult<Json> result) { machine_.handle(std::move(result), now_, 0); }
  void refuse(int code, const std::string& reason = "") { answer(api_error(code, reason, "no")); }
  Json written() const {
    if (const auto* create = std::get_if<CreateLease>(&action_)) return create->lease;
    return std::get<UpdateLease>(action_).lease;
  }
  // As the API server takes a write in.
  void accept(int version) {
    Json lease = written();
    lease["metadata"]["uid"] = "u";
    lease["metadata"]["resourceVersion"] = std::to_string(version);
    answer(std::move(lease));
  }
  void pass(Duration time) { now_ += time; }
  void lead() {
    ASSERT_EQ(turn(), "read");
    refuse(404);
    ASSERT_EQ(turn(), "create");
    accept(1);
    ASSERT_EQ(machine_.leadership(), Leadership::kLeading);
  }

  SteadyTime now_{seconds(1000)};
  ElectionMachine machine_{settings()};
  ElectionAction action_ = ReadLease{};
};

TEST_F(Candidate, MakesTheLeaseWhereThereIsNone) {
  lead();
  const Json spec = written()["spec"];
  EXPECT_EQ(spec["holderIdentity"], "me");
  EXPECT_EQ(spec["leaseDurationSeconds"], 15);
  EXPECT_EQ(spec["leaseTransitions"], 0);
  EXPECT_EQ(spec["acquireTime"], "2027-01-15T08:00:00.000000Z");
  EXPECT_EQ(spec["renewTime"], "2027-01-15T08:00:00.000000Z");
}

TEST_F(Candidate, RenewsWithoutReadingEachTimeAndKeepsWhenItBegan) {
  lead();
  EXPECT_EQ(turn(), "rest 2000");
  pass(seconds(2));
  EXPECT_EQ(turn(), "update");
  EXPECT_EQ(written()["metadata"]["resourceVersion"], "1");
  EXPECT_EQ(written()["spec"]["leaseTransitions"], 0);
  accept(2);
  EXPECT_EQ(turn(), "rest 2000");
}

TEST_F(Candidate, WaitsForAnotherLeaderByItsOwnClock) {
  // What the other one wrote of the time is years old, or from the future: it doesn't count.
  EXPECT_EQ(turn(), "read");
  answer(lease_of("other", 7));
  for (int waited = 0; waited < 14; waited += 2) {
    EXPECT_EQ(turn(), "rest 2000");
    pass(seconds(2));
    EXPECT_EQ(turn(), "read");
    answer(lease_of("other", 7));
  }
  pass(seconds(2));  // 16 s unchanged
  EXPECT_EQ(turn(), "read");
  answer(lease_of("other", 7));
  EXPECT_EQ(turn(), "update");
  EXPECT_EQ(written()["spec"]["leaseTransitions"], 5);
  EXPECT_EQ(written()["spec"]["acquireTime"], "2027-01-15T08:00:00.000000Z");
  accept(8);
  EXPECT_EQ(machine_.leadership(), Leadership::kLeading);
}

TEST_F(Candidate, ARenewalOfTheOtherBeginsTheWaitAnew) {
  for (int version = 1; version < 50; ++version) {
    EXPECT_EQ(turn(), "read");
    answer(lease_of("other", version));
    pass(seconds(14));
  }
  EXPECT_EQ(machine_.leadership(), Leadership::kWaiting);
}

TEST_F(Candidate, WaitsAsLongAsTheHolderSaid) {
  EXPECT_EQ(turn(), "read");
  answer(lease_of("other", 7, 60));
  pass(seconds(59));
  EXPECT_EQ(turn(), "read");
  answer(lease_of("other", 7, 60));
  EXPECT_EQ(turn(), "rest 2000");
}

TEST_F(Candidate, TakesALeaseThatWasHandedOverAtOnce) {
  EXPECT_EQ(turn(), "read");
  answer(lease_of("", 9, 1));
  EXPECT_EQ(turn(), "update");
}

TEST_F(Candidate, AnotherIsQuicker) {
  EXPECT_EQ(turn(), "read");
  answer(lease_of("", 9));
  EXPECT_EQ(turn(), "update");
  refuse(409, "Conflict");
  EXPECT_EQ(turn(), "rest 2000");
  pass(seconds(2));
  EXPECT_EQ(turn(), "read");
  answer(lease_of("other", 10));
  EXPECT_EQ(turn(), "rest 2000");
  EXPECT_EQ(machine_.leadership(), Leadership::kWaiting);
}

TEST_F(Candidate, ALostAnswerOfARenewalIsFoundOut) {
  lead();
  pass(seconds(2));
  EXPECT_EQ(turn(), "update");
  refuse(0);
  pass(seconds(2));
  EXPECT_EQ(turn(), "read");
  answer(lease_of("me", 2));  // it was carried out
  EXPECT_EQ(turn(), "update");
  EXPECT_EQ(written()["metadata"]["resourceVersion"], "2");
  accept(3);
  EXPECT_EQ(machine_.leadership(), Leadership::kLeading);
}

TEST_F(Candidate, LeadsFromWhenItAskedNotFromWhenItWasAnswered) {
  lead();
  pass(seconds(2));
  EXPECT_EQ(turn(), "update");
  const SteadyTime asked = now_;
  pass(seconds(4));
  accept(2);
  EXPECT_EQ(machine_.leads_until(), asked + seconds(10));
}

TEST_F(Candidate, ALeaderThatCantRenewIsLostForEver) {
  lead();
  const SteadyTime until = machine_.leads_until();
  while (now_ < until) {
    const std::string next = turn();
    if (next.starts_with("rest")) {
      now_ = std::get<RestElection>(action_).until;
    } else {
      refuse(503);
    }
  }
  EXPECT_EQ(now_, until);
  EXPECT_EQ(turn(), "rest for ever");
  EXPECT_EQ(machine_.leadership(), Leadership::kLost);
  EXPECT_EQ(machine_.release(kWall), std::nullopt);
}

TEST_F(Candidate, ALeaderThatSleptTooLongIsLostBeforeItAsksAnything) {
  lead();
  pass(seconds(3600));
  EXPECT_EQ(turn(), "rest for ever");
  EXPECT_EQ(machine_.leadership(), Leadership::kLost);
}

TEST_F(Candidate, AHolderThatAPersonWroteEndsIt) {
  lead();
  pass(seconds(2));
  EXPECT_EQ(turn(), "update");
  refuse(409, "Conflict");
  pass(seconds(2));
  EXPECT_EQ(turn(), "read");
  answer(lease_of("other", 5));
  EXPECT_EQ(machine_.leadership(), Leadership::kLost);
}

TEST_F(Candidate, ALeaseThatWasTouchedOrDeletedIsKept) {
  lead();
  pass(seconds(2));
  EXPECT_EQ(turn(), "update");
  refuse(404, "NotFound");
  pass(seconds(2));
  EXPECT_EQ(turn(), "read");
  refuse(404, "NotFound");
  EXPECT_EQ(turn(), "create");
  EXPECT_FALSE(written()["metadata"].contains("resourceVersion"));
  accept(20);
  EXPECT_EQ(machine_.leadership(), Leadership::kLeading);
}

TEST_F(Candidate, HandsOverWhatItHolds) {
  lead();
  const auto handover = machine_.release(kWall);
  ASSERT_TRUE(handover);
  EXPECT_EQ(handover->lease["spec"]["holderIdentity"], "");
  EXPECT_EQ(handover->lease["spec"]["leaseDurationSeconds"], 1);
  EXPECT_EQ(handover->lease["metadata"]["resourceVersion"], "1");
  EXPECT_EQ(turn(), "rest for ever");
}

TEST_F(Candidate, NonsenseInTheLeaseIsAFreeLease) {
  for (const Json& spec : {Json(), Json("x"), Json{{"holderIdentity", 3}, {"leaseTransitions", "many"}}}) {
    machine_ = ElectionMachine(settings());
    EXPECT_EQ(turn(), "read");
    Json lease = lease_of("other", 3);
    lease["spec"] = spec;
    answer(lease);
    EXPECT_EQ(turn(), "update") << spec;
    EXPECT_EQ(written()["spec"]["holderIdentity"], "me");
  }
}

TEST(ElectionSettings, TimesThatCouldNotKeepThePromiseAreRefused) {
  ElectionSettings settings{"ns", "lease", "me"};
  EXPECT_TRUE(check(settings));
  settings.renew_deadline = seconds(15);
  EXPECT_THAT(check(settings).error().message,
              HasSubstr("--leader-election-lease-duration is 15s; it must be longer"));
  settings.renew_deadline = milliseconds(2400);
  EXPECT_THAT(check(settings).error().message, HasSubstr("--leader-election-renew-deadline is 2400ms"));
  settings.lease_duration = milliseconds(900);
  EXPECT_THAT(check(settings).error().message, HasSubstr("1s or more"));
}

TEST(ElectionSettings, NoTwoIdentitiesAreEqual) {
  EXPECT_NE(make_identity(), make_identity());
}

}  // namespace
}  // namespace coxswain
