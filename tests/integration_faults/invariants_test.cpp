// The judge itself: each rule, broken once.
#include "tests/integration_faults/invariants.h"

#include <gmock/gmock.h>

#include "tests/integration_faults/request_parser.h"

namespace coxswain::testing {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TheJudge : public ::testing::Test {
 protected:
  void job(const Json& status) {
    const Json object = {{"metadata", {{"name", "j"}, {"uid", "job-uid"}}}, {"status", status}};
    write("/registry/training.coxswain.dev/trainingjobs/ns/j", object);
  }
  void pod(const std::string& uid, const std::string& name, int attempt, const std::string& rank = "0",
           const Json& patch = Json::object()) {
    Json object = {{"metadata",
                    {{"name", name},
                     {"uid", uid},
                     {"labels",
                      {{"training.coxswain.dev/attempt", std::to_string(attempt)},
                       {"training.coxswain.dev/node-rank", rank}}},
                     {"ownerReferences", {{{"kind", "TrainingJob"}, {"uid", "job-uid"}}}}}},
                   {"status", {{"phase", "Running"}}}};
    object.merge_patch(patch);
    write("/registry/pods/ns/" + name, object);
  }
  void gone(const std::string& name) { write("/registry/pods/ns/" + name, Json()); }
  void write(const std::string& key, const Json& after) { invariants.take({key, ++revision, Json(), after}); }

  Invariants invariants;
  int64_t revision = 0;
};

const Json kDying = {{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}}};
Json ended(const char* type, const char* time) {
  return {{{"type", type}, {"status", "True"}, {"lastTransitionTime", time}}};
}

TEST_F(TheJudge, HasNothingAgainstARestart) {
  job({{"attempt", 0}});
  pod("a", "j-0", 0);
  job({{"attempt", 1}, {"restarts", {{"counted", 1}}}});
  pod("a", "j-0", 0, "0", kDying);
  gone("j-0");
  pod("b", "j-0", 1);
  job({{"attempt", 1}, {"restarts", {{"counted", 1}}}, {"conditions", ended("Complete", "t")}});
  gone("j-0");
  EXPECT_THAT(invariants.violations(), IsEmpty());
}

TEST_F(TheJudge, SeesTwoLivePodsOfARank) {
  job({{"attempt", 0}});
  pod("a", "j-0", 0);
  pod("b", "other", 0);
  EXPECT_THAT(invariants.violations(), ElementsAre(HasSubstr("second live pod")));
}

TEST_F(TheJudge, SeesPodsOfTwoAttempts) {
  job({{"attempt", 1}});
  pod("a", "j-0", 1);
  job({{"attempt", 2}});
  pod("b", "j-1", 2, "1");
  EXPECT_THAT(invariants.violations(), ElementsAre(HasSubstr("while j-0 of attempt 1 was there")));
}

TEST_F(TheJudge, SeesPodsThatTheStatusDoesNotKnowOf) {
  job({{"attempt", 0}});
  pod("a", "j-0", 1);
  EXPECT_THAT(invariants.violations(), ElementsAre(HasSubstr("while the status said 0")));
}

TEST_F(TheJudge, SeesADestructionBeforeItsStatus) {
  job({{"attempt", 0}});
  pod("a", "j-0", 0);
  pod("a", "j-0", 0, "0", kDying);
  pod("b", "j-1", 0, "1");
  gone("j-1");
  EXPECT_THAT(invariants.violations(), ElementsAre(HasSubstr("still ran"), HasSubstr("still ran")));
}

TEST_F(TheJudge, LetsTheTestDeleteWhatItSaysItDeletes) {
  job({{"attempt", 0}});
  pod("a", "j-0", 0);
  invariants.excuse_deletion("a");
  gone("j-0");
  EXPECT_THAT(invariants.violations(), IsEmpty());
}

TEST_F(TheJudge, SeesCountsThatGoBackOrDouble) {
  job({{"attempt", 1}, {"restarts", {{"counted", 1}}}});
  job({{"attempt", 2}, {"restarts", {{"counted", 3}}}});
  job({{"attempt", 1}, {"restarts", {{"counted", 3}}}});
  job({{"attempt", 1}, {"restarts", {{"counted", 2}}}});
  EXPECT_THAT(invariants.violations(),
              ElementsAre(HasSubstr("counted went on by 2"), HasSubstr("attempt went on by -1"),
                          HasSubstr("counted went on by -1")));
}

TEST_F(TheJudge, SeesWhatHappensAfterTheEnd) {
  job({{"attempt", 0}, {"conditions", ended("Failed", "t")}});
  pod("a", "j-0", 0);
  job({{"attempt", 0}, {"conditions", ended("Failed", "later")}});
  EXPECT_THAT(invariants.violations(),
              ElementsAre(HasSubstr("after the end of its job"), HasSubstr("Failed changed after the end")));
}

TEST(RequestParser, FindsRequestsWhereverTheBytesAreCut) {
  const std::string post = "POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nGET ";
  const std::string get = "GET /b?watch=true HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string all = post + get;
  for (size_t cut = 1; cut < all.size(); ++cut) {
    RequestParser parser;
    std::vector<std::string> seen;
    std::string passed;
    for (const std::string& part : {all.substr(0, cut), all.substr(cut)}) {
      for (const auto& piece : parser.feed(part)) {
        if (piece.head) seen.push_back(piece.head->method + " " + piece.head->target);
        passed += piece.bytes;
      }
    }
    EXPECT_THAT(seen, ElementsAre("POST /a", "GET /b?watch=true")) << cut;
    EXPECT_EQ(passed, all);
  }
}

}  // namespace
}  // namespace coxswain::testing
