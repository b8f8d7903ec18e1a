// Each fault that a watch meets, as a script of what came and what the machine then asks for.
#include "operator/client/watch_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/client/metadata.h"
#include "operator/client/resource_version.h"

namespace coxswain {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

Json an_object(const std::string& name, int version) {
  return {{"metadata", {{"name", name}, {"namespace", "ns"}, {"resourceVersion", std::to_string(version)}}}};
}

Json a_bookmark(int version, bool end = false) {
  Json object = {{"metadata", {{"resourceVersion", std::to_string(version)}}}};
  if (end) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  return object;
}

Json a_status(int code) {
  return {{"kind", "Status"}, {"status", "Failure"}, {"code", code}};
}

ApiError an_error(int code, std::optional<seconds> retry_after = std::nullopt) {
  return {code, "", "", retry_after};
}

ObjectList a_page(std::vector<Json> items, int version, std::string continue_token = "") {
  return {std::move(items), std::to_string(version), std::move(continue_token), 0};
}

// "+a@1" listed, "=a@1" written, "-a@1" deleted, "[" a list begins, "]9" it ends, ">9" reached.
std::string words(const std::vector<StoreChange>& changes) {
  std::string out;
  const auto object = [](const char* sign, const Json& one) {
    return sign + metadata::name(one) + "@" + metadata::resource_version(one);
  };
  for (const StoreChange& change : changes) {
    out += out.empty() ? "" : " ";
    if (std::holds_alternative<ListBegins>(change)) out += "[";
    if (const auto* listed = std::get_if<Listed>(&change)) out += object("+", listed->object);
    if (const auto* end = std::get_if<ListEnds>(&change)) out += "]" + end->version;
    if (const auto* written = std::get_if<Written>(&change)) out += object("=", written->object);
    if (const auto* deleted = std::get_if<Deleted>(&change)) out += object("-", deleted->object);
    if (const auto* reached = std::get_if<Reached>(&change)) out += ">" + reached->version;
  }
  return out;
}

class WatchMachineTest : public ::testing::Test {
 protected:
  TimePoint now_{std::chrono::hours(1)};
  WatchSettings settings_;
  std::unique_ptr<WatchMachine> machine_ = std::make_unique<WatchMachine>(settings_, "app", false, 1);

  void lists_only() {
    settings_.streaming_list = false;
    machine_ = std::make_unique<WatchMachine>(settings_, "app", false, 1);
  }

  std::string give(WatchInput input) { return words(machine_->handle(std::move(input), now_)); }
  std::string give(WatchEventType type, Json object) { return give(WatchEvent{type, std::move(object)}); }
  std::string added(const std::string& name, int v) {
    return give(WatchEventType::kAdded, an_object(name, v));
  }
  std::string bookmark(int v, bool end = false) {
    return give(WatchEventType::kBookmark, a_bookmark(v, end));
  }
  std::string error(int code) { return give(WatchEventType::kError, a_status(code)); }

  // What it asks for: "stream", "list", "list TOKEN", "list whole", "watch V", "receive", "rest".
  std::string asks() {
    const WatchAction action = machine_->next(now_);
    if (const auto* list = std::get_if<ListNextPage>(&action)) {
      if (list->options.limit == 0) return "list whole";
      return list->options.continue_token.empty() ? "list" : "list " + list->options.continue_token;
    }
    if (const auto* watch = std::get_if<OpenWatch>(&action)) {
      return watch->options.send_initial_events ? "stream" : "watch " + watch->options.resource_version;
    }
    return std::holds_alternative<Receive>(action) ? "receive" : "rest";
  }

  // How long it rests, and then goes there.
  Duration rest() {
    const WatchAction action = machine_->next(now_);
    const auto* rest = std::get_if<Rest>(&action);
    if (rest == nullptr) return Duration(0);
    const Duration wait = rest->until - now_;
    now_ = rest->until;
    return wait;
  }

  void watching(int version) {
    ASSERT_EQ(asks(), "stream");
    give(WatchOpened{});
    bookmark(version, true);
    ASSERT_EQ(asks(), "receive");
  }

  TimePoint until() {
    const WatchAction action = machine_->next(now_);
    return std::get<Receive>(action).until;
  }
};

TEST_F(WatchMachineTest, AStreamingListBecomesTheWatch) {
  EXPECT_EQ(asks(), "stream");
  EXPECT_EQ(give(WatchOpened{}), "[");
  EXPECT_EQ(added("a", 3), "+a@3");
  EXPECT_EQ(bookmark(4), "") << "an ordinary bookmark ends nothing";
  EXPECT_EQ(give(WatchEventType::kModified, an_object("a", 6)), "+a@6");
  EXPECT_EQ(give(WatchEventType::kDeleted, an_object("b", 7)), "-b@7");
  EXPECT_EQ(bookmark(7, true), "]7");
  EXPECT_EQ(asks(), "receive");
  EXPECT_EQ(added("c", 8), "=c@8");
  EXPECT_EQ(give(WatchEventType::kDeleted, an_object("c", 9)), "-c@9");
  EXPECT_EQ(bookmark(20), ">20");
}

TEST_F(WatchMachineTest, RepeatedEventsAreDroppedFromAStreamingListToo) {
  give(WatchOpened{});
  EXPECT_EQ(added("b", 5), "+b@5");
  EXPECT_EQ(added("a", 3), "+a@3") << "what there was comes in any order";
  EXPECT_EQ(give(WatchEventType::kDeleted, an_object("a", 6)), "-a@6");
  EXPECT_EQ(added("a", 3), "");
  EXPECT_EQ(added("c", 7), "+c@7");
  EXPECT_EQ(give(WatchEventType::kDeleted, an_object("a", 6)), "");
}

TEST_F(WatchMachineTest, Fallback422IsListedByPagesAtOnceAndForGood) {
  give(an_error(422));
  EXPECT_EQ(asks(), "list");
  EXPECT_EQ(give(a_page({an_object("a", 3)}, 9, "t1")), "[ +a@3");
  EXPECT_EQ(asks(), "list t1");
  EXPECT_EQ(give(a_page({an_object("b", 4)}, 9, "t2")), "+b@4");
  EXPECT_EQ(asks(), "list t2");
  EXPECT_EQ(give(a_page({}, 9)), "]9");
  EXPECT_EQ(asks(), "watch 9");
  give(WatchOpened{});
  error(410);
  EXPECT_EQ(asks(), "list");
}

TEST_F(WatchMachineTest, FallbackErrorEvent500IsListedByPages) {
  give(WatchOpened{});
  EXPECT_EQ(error(500), "");
  EXPECT_FALSE(machine_->receiving());
  EXPECT_EQ(asks(), "list");
}

TEST_F(WatchMachineTest, FallbackIgnoredIsNoticedBySilence) {
  give(WatchOpened{});
  now_ += seconds(5);
  EXPECT_EQ(added("a", 1), "+a@1");
  EXPECT_EQ(until(), now_ + settings_.initial_silence);
  EXPECT_EQ(give(TimePassed{}), "");
  EXPECT_EQ(asks(), "receive") << "it wasn't that late";
  now_ = until();
  give(TimePassed{});
  EXPECT_EQ(asks(), "list");
}

TEST_F(WatchMachineTest, FallbackIgnoredIsBoundedThoughEventsKeepComing) {
  give(WatchOpened{});
  const TimePoint start = now_;
  int version = 1;
  while (asks() == "receive" && now_ < start + minutes(10)) {
    now_ += seconds(1);
    give(WatchEventType::kModified, an_object("a", version++));
    give(TimePassed{});
  }
  EXPECT_EQ(asks(), "list");
  EXPECT_EQ(now_ - start, settings_.initial_limit);
}

TEST_F(WatchMachineTest, AStreamingListThatIsAlwaysCutIsLeftForPages) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(asks(), "stream") << i;
    EXPECT_EQ(give(WatchOpened{}), "[");
    EXPECT_EQ(added("a", 1), "+a@1");
    give(StreamEnded{});
    EXPECT_GT(rest(), Duration(0));
  }
  EXPECT_EQ(asks(), "list");
}

TEST_F(WatchMachineTest, PassingTroubleIsNoReasonToLeaveStreamingLists) {
  for (const int code : {429, 503, 504, 410}) {
    give(WatchOpened{});
    error(code);
    EXPECT_GT(rest(), Duration(0)) << code;
    EXPECT_EQ(asks(), "stream") << code;
  }
  for (const int code : {0, 403, 404, 500, 503}) {
    give(an_error(code));
    EXPECT_GT(rest(), Duration(0)) << code;
    EXPECT_EQ(asks(), "stream") << code;
  }
}

TEST_F(WatchMachineTest, APageThatHasExpiredIsListedAgainInOne) {
  lists_only();
  give(a_page({an_object("a", 3)}, 9, "t1"));
  give(an_error(410));
  rest();
  EXPECT_EQ(asks(), "list whole");
  EXPECT_EQ(give(a_page({an_object("a", 3)}, 12)), "[ +a@3 ]12") << "from the start";
}

TEST_F(WatchMachineTest, APageThatFailsIsAskedForAgain) {
  lists_only();
  give(a_page({an_object("a", 3)}, 9, "t1"));
  give(an_error(503));
  EXPECT_GT(rest(), Duration(0));
  EXPECT_EQ(asks(), "list t1");
}

TEST_F(WatchMachineTest, AListWithoutAVersionIsNoList) {
  lists_only();
  EXPECT_EQ(give(ObjectList{{an_object("a", 3)}, "", "", 0}), "");
  EXPECT_GT(rest(), Duration(0));
  EXPECT_EQ(asks(), "list");
}

TEST_F(WatchMachineTest, ACutStreamGoesOnFromTheLastEvent) {
  watching(10);
  added("a", 12);
  give(StreamEnded{});
  EXPECT_EQ(asks(), "watch 12");
}

TEST_F(WatchMachineTest, ACutStreamGoesOnFromTheLastBookmark) {
  watching(10);
  added("a", 12);
  bookmark(40);
  now_ += minutes(5);
  give(StreamEnded{});
  EXPECT_EQ(asks(), "watch 40");
}

TEST_F(WatchMachineTest, A410InTheStreamIsListedAgainAtOnce) {
  watching(10);
  now_ += minutes(1);
  error(410);
  EXPECT_EQ(asks(), "stream");
}

TEST_F(WatchMachineTest, A410AsStatusIsListedAgain) {
  watching(10);
  give(StreamEnded{});
  EXPECT_EQ(asks(), "watch 10");
  give(an_error(410));
  EXPECT_GT(rest(), Duration(0));
  EXPECT_EQ(asks(), "stream");
}

TEST_F(WatchMachineTest, A410AfterEachListBacksOff) {
  Duration total{};
  for (int i = 0; i < 8; ++i) {
    total += rest();
    watching(10);
    error(410);
  }
  EXPECT_GE(total, seconds(8));
}

TEST_F(WatchMachineTest, AVersionThatTheServerCallsInvalidIsListedAgain) {
  watching(10);
  give(StreamEnded{});
  give(an_error(400));
  rest();
  EXPECT_EQ(asks(), "stream");
}

TEST_F(WatchMachineTest, AServerThatIsAwayIsNotListedAgain) {
  watching(10);
  give(StreamEnded{});
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(asks(), "watch 10");
    give(an_error(i % 2 == 0 ? 0 : 503));
    EXPECT_GT(rest(), Duration(0));
  }
}

TEST_F(WatchMachineTest, AnOverloadedServerIsLeftAloneForAsLongAsItAsks) {
  watching(10);
  give(StreamEnded{});
  give(an_error(429, seconds(77)));
  EXPECT_GE(rest(), seconds(77));
  EXPECT_EQ(asks(), "watch 10");
  give(WatchOpened{});
  Json busy = a_status(429);
  busy["details"]["retryAfterSeconds"] = 55;
  give(WatchEventType::kError, busy);
  EXPECT_GE(rest(), seconds(55));
  EXPECT_EQ(asks(), "watch 10");
}

TEST_F(WatchMachineTest, ErrorEventsWithoutEndAreListedAgain) {
  watching(10);
  for (int i = 0; i < 6 && asks() != "stream"; ++i) {
    error(500);
    EXPECT_GT(rest(), Duration(0));
    if (asks() == "watch 10") give(WatchOpened{});
  }
  EXPECT_EQ(asks(), "stream");
}

TEST_F(WatchMachineTest, BackOffDoublesToItsLimit) {
  Duration last{};
  for (int i = 0; i < 7; ++i) {
    give(an_error(503));
    const Duration wait = rest();
    EXPECT_GT(wait, last) << i;
    last = wait;
  }
  for (int i = 0; i < 20; ++i) {
    give(an_error(503));
    EXPECT_LE(rest(), settings_.backoff_max * 5 / 4);
  }
}

TEST_F(WatchMachineTest, AStreamThatEndsAtOnceIsNoTightLoop) {
  watching(10);
  const TimePoint start = now_;
  int streams = 0;
  while (now_ < start + minutes(10)) {
    bookmark(10 + streams);
    give(StreamEnded{});
    rest();
    give(WatchOpened{});
    ++streams;
  }
  EXPECT_LE(streams, 60);
}

TEST_F(WatchMachineTest, AStreamThatLastedIsFollowedAtOnce) {
  watching(10);
  for (int i = 0; i < 10; ++i) {
    now_ += minutes(5);
    give(StreamEnded{});
    EXPECT_EQ(asks(), "watch 10") << i;
    give(WatchOpened{});
  }
}

TEST_F(WatchMachineTest, AStalledStreamIsOpenedAnewFromWhereItWas) {
  watching(10);
  now_ += seconds(60);
  bookmark(30);
  EXPECT_EQ(until(), now_ + settings_.max_silence);
  now_ = until();
  give(TimePassed{});
  EXPECT_FALSE(machine_->receiving()) << "the driver closes it";
  EXPECT_EQ(asks(), "watch 30");
}

TEST_F(WatchMachineTest, ASlowStreamIsKept) {
  watching(10);
  for (int i = 0; i < 2; ++i) {
    now_ += settings_.max_silence - seconds(1);
    give(TimePassed{});
    EXPECT_EQ(asks(), "receive");
    EXPECT_EQ(added("a", 11 + i), "=a@" + std::to_string(11 + i));
  }
}

TEST_F(WatchMachineTest, AServerThatForgetsToEndTheStreamIsLeft) {
  watching(10);
  const TimePoint start = now_;
  int version = 10;
  while (asks() == "receive" && now_ < start + minutes(60)) {
    now_ += seconds(60);
    bookmark(++version);
    give(TimePassed{});
  }
  EXPECT_EQ(asks(), "watch " + std::to_string(version));
  EXPECT_LE(now_ - start, minutes(12));
}

TEST_F(WatchMachineTest, InProcessNothingIsTimed) {
  machine_ = std::make_unique<WatchMachine>(in_process_watch_settings(), "", false, 1);
  watching(10);
  EXPECT_EQ(until(), TimePoint::max());
}

TEST_F(WatchMachineTest, StreamsOfManyClientsDontEndTogether) {
  std::set<int64_t> timeouts;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    machine_ = std::make_unique<WatchMachine>(settings_, "", false, seed);
    watching(10);
    give(StreamEnded{});
    const auto timeout = std::get<OpenWatch>(machine_->next(now_)).options.server_timeout;
    EXPECT_GE(timeout, settings_.server_timeout);
    EXPECT_LE(timeout, 2 * settings_.server_timeout);
    timeouts.insert(timeout.count());
  }
  EXPECT_GE(timeouts.size(), 10U);
}

TEST_F(WatchMachineTest, RepeatedEventsAreDropped) {
  watching(10);
  EXPECT_EQ(added("a", 12), "=a@12");
  EXPECT_EQ(give(WatchEventType::kDeleted, an_object("a", 13)), "-a@13");
  EXPECT_EQ(added("a", 12), "") << "it would come back to life";
  EXPECT_EQ(give(WatchEventType::kDeleted, an_object("a", 13)), "");
  EXPECT_EQ(added("a", 9), "") << "from before the list";
  EXPECT_EQ(added("a", 14), "=a@14");
}

TEST_F(WatchMachineTest, ABookmarkAheadOfOlderEventsLosesNone) {
  watching(10);
  EXPECT_EQ(bookmark(20), ">20");
  EXPECT_EQ(added("a", 15), "=a@15");
  give(StreamEnded{});
  EXPECT_EQ(asks(), "watch 20");
}

TEST_F(WatchMachineTest, VersionsThatAreNoNumbersAreTakenAsTheyCome) {
  give(WatchOpened{});
  Json end = a_bookmark(0, true);
  end["metadata"]["resourceVersion"] = "x";
  EXPECT_EQ(give(WatchEventType::kBookmark, end), "]x");
  Json object = an_object("a", 1);
  object["metadata"]["resourceVersion"] = "b";
  EXPECT_EQ(give(WatchEventType::kAdded, object), "=a@b");
  give(StreamEnded{});
  EXPECT_EQ(asks(), "watch b");
}

TEST_F(WatchMachineTest, AnEventThatSaysNothingIsAnsweredByAList) {
  for (const Json& nonsense : {Json(), Json(7), Json::array(), Json{{"metadata", 7}},
                               Json{{"metadata", {{"name", "a"}}}}, Json{{"metadata", {{"name", 1}}}}}) {
    rest();
    watching(10);
    EXPECT_EQ(give(WatchEventType::kModified, nonsense), "") << nonsense;
    EXPECT_FALSE(machine_->receiving()) << nonsense;
    now_ += minutes(1);
    EXPECT_EQ(asks(), "stream") << nonsense;
  }
}

TEST_F(WatchMachineTest, AnAnswerThatWasNotAskedForChangesNothing) {
  EXPECT_EQ(give(StreamEnded{}), "");
  EXPECT_EQ(give(a_page({an_object("a", 1)}, 2)), "");
  EXPECT_EQ(added("a", 1), "");
  EXPECT_EQ(give(TimePassed{}), "");
  EXPECT_EQ(asks(), "stream");
}

TEST_F(WatchMachineTest, AsksForWhatItWasMadeFor) {
  machine_ = std::make_unique<WatchMachine>(settings_, "a=b", true, 1);
  const auto stream = std::get<OpenWatch>(machine_->next(now_)).options;
  EXPECT_EQ(stream.label_selector, "a=b");
  EXPECT_TRUE(stream.metadata_only);
  EXPECT_TRUE(stream.allow_bookmarks);
  give(an_error(422));
  const auto list = std::get<ListNextPage>(machine_->next(now_)).options;
  EXPECT_EQ(list.label_selector, "a=b");
  EXPECT_TRUE(list.metadata_only);
  EXPECT_EQ(list.limit, settings_.page_size);
}

TEST(ResourceVersion, IsComparedAsAWholeNumberOfAnyLength) {
  EXPECT_TRUE(compare_versions("9", "10") < 0);
  EXPECT_TRUE(compare_versions("100000000000000000000000", "99999999999999999999999") > 0);
  EXPECT_TRUE(compare_versions("7", "7") == 0);
  EXPECT_TRUE(compare_versions("x", "x") == 0);
  for (const char* opaque : {"", "0", "07", "x", "-1", "1a"}) {
    EXPECT_EQ(compare_versions(opaque, "7"), std::partial_ordering::unordered) << opaque;
  }
}

}  // namespace
}  // namespace coxswain
