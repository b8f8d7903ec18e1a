// The driver on a MemoryApi: that its store is the server's state, whatever happens between them.
#include "operator/client/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "operator/client/faulty_api.h"
#include "operator/client/memory_api.h"
#include "tests/client/objects.h"

namespace coxswain {
namespace {

using namespace resources;
using std::chrono::seconds;
using ::testing::ElementsAre;
constexpr char kNs[] = "ns";

// "+a", "~a", "-a"
std::string sign(const Json& before, const Json& after) {
  return (before.is_null()  ? "+"
          : after.is_null() ? "-"
                            : "~") +
         metadata::name(after.is_null() ? before : after);
}

class InformerTest : public ::testing::Test {
 protected:
  TimePoint now_ = TimePoint(std::chrono::hours(1000));
  MemoryApi api_{[this] { return now_; }};
  FaultyApi::Script script_;
  FaultyApi faulty_{api_, [this](const ApiCall& call) { return script_ ? script_(call) : std::nullopt; }};
  std::vector<std::string> changes_;
  std::unique_ptr<Informer> informer_ = an_informer({});

  std::unique_ptr<Informer> an_informer(WatchSettings watch) {
    return std::make_unique<Informer>(
        faulty_, InformerOptions{.resource = kConfigMaps, .namespace_name = kNs, .watch = watch},
        [this] { return now_; },
        [this](const Json& before, const Json& after) { changes_.push_back(sign(before, after)); },
        std::function<void()>());
  }

  void make(const std::string& name) { ASSERT_TRUE(api_.create(kConfigMaps, kNs, a_config_map(name), {})); }
  void drop(const std::string& name) { ASSERT_TRUE(api_.remove(kConfigMaps, kNs, name, {})); }
  std::string store_state() const {
    std::string out;
    for (const auto& object : informer_->store().all()) out += object->dump() + "\n";
    return out;
  }
  std::string server_state() {
    std::string out;
    const auto list = api_.list(kConfigMaps, kNs, {});
    for (const Json& object : list->items) out += object.dump() + "\n";
    return out;
  }
  // Turns the clock as the informer asks until its store is the server's state; false: it never is.
  bool catches_up(Duration limit = std::chrono::minutes(15)) {
    const TimePoint end = now_ + limit;
    for (;;) {
      const TimePoint next = informer_->poll();
      if (informer_->store().filled() && store_state() == server_state()) return true;
      if (now_ >= end) return false;
      now_ = std::min(std::max(next, now_ + seconds(1)), now_ + seconds(10));
    }
  }
};

TEST_F(InformerTest, FollowsWhatHappens) {
  make("a");
  informer_->poll();
  EXPECT_TRUE(informer_->store().filled());
  make("b");
  drop("a");
  EXPECT_EQ(informer_->poll(), now_ + seconds(150)) << "and would take silence for a dead stream";
  EXPECT_THAT(changes_, ElementsAre("+a", "+b", "-a"));
}

TEST_F(InformerTest, InProcessOnlyOnReadyWakesIt) {
  informer_ = an_informer(in_process_watch_settings());
  EXPECT_EQ(informer_->poll(), TimePoint::max());
}

TEST_F(InformerTest, ListsAgainAfter410AndMissesNothing) {
  make("a");
  make("b");
  informer_->poll();
  changes_.clear();
  api_.end_watches(true);
  drop("a");
  make("c");
  informer_->poll();
  EXPECT_THAT(changes_, ElementsAre("+c", "-a")) << "and nothing of b, which is as it was";
}

TEST_F(InformerTest, GoesOnFromTheLastVersionWhenAStreamJustEnds) {
  make("a");
  informer_->poll();
  api_.end_watches(false);
  make("b");
  faulty_.forget_calls();
  informer_->poll();
  EXPECT_THAT(changes_, ElementsAre("+a", "+b"));
  ASSERT_EQ(faulty_.calls().size(), 1U);
  EXPECT_EQ(faulty_.calls()[0].verb, Verb::kWatch);
}

TEST_F(InformerTest, AWatchRefusedWith410IsListedAgain) {
  make("a");
  informer_->poll();
  api_.end_watches(false);
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kWatch) return std::nullopt;
    return ApiFault{{410, "Expired", "too old", std::nullopt}, false};
  };
  const TimePoint next = informer_->poll();
  EXPECT_GT(next, now_) << "not at once";
  script_ = {};
  drop("a");
  make("b");
  now_ = next;
  informer_->poll();
  EXPECT_THAT(changes_, ElementsAre("+a", "+b", "-a"));
}

TEST_F(InformerTest, BacksOffFromAServerInTrouble) {
  script_ = [](const ApiCall&) { return ApiFault{{503, "ServiceUnavailable", "down", std::nullopt}, false}; };
  int calls = 0;
  const TimePoint end = now_ + std::chrono::minutes(5);
  while (now_ < end) {
    now_ = informer_->poll();
    ++calls;
  }
  EXPECT_LE(calls, 24);
  EXPECT_FALSE(informer_->store().filled());
}

TEST_F(InformerTest, AStreamThatEndsAtOnceIsNoTightLoop) {
  informer_->poll();
  faulty_.forget_calls();
  for (int i = 0; i < 100; ++i) {
    api_.end_watches(false);
    informer_->poll();
  }
  EXPECT_LE(faulty_.calls().size(), 3U);
}

TEST_F(InformerTest, EachWayAServerAnswersAStreamingListFillsTheStore) {
  for (int i = 0; i < 7; ++i) make("m" + std::to_string(i));
  for (const auto mode : {StreamingList::kServed, StreamingList::kRefused, StreamingList::kErrorEvent,
                          StreamingList::kIgnored}) {
    api_.set_streaming_list(mode);
    changes_.clear();
    faulty_.forget_calls();
    WatchSettings watch;
    watch.page_size = 3;
    informer_ = an_informer(watch);
    const TimePoint start = now_;
    TimePoint next = informer_->poll();
    while (!informer_->store().filled() && now_ < start + std::chrono::minutes(2)) {
      now_ = next;
      next = informer_->poll();
    }
    EXPECT_EQ(store_state(), server_state()) << static_cast<int>(mode);
    EXPECT_EQ(changes_.size(), 7U) << "each once";
    EXPECT_LE(now_ - start, watch.initial_silence) << "bounded";
    int lists = 0;
    for (const ApiCall& call : faulty_.calls()) lists += call.verb == Verb::kList;
    EXPECT_EQ(lists, mode == StreamingList::kServed ? 0 : 3) << static_cast<int>(mode);
  }
}

TEST_F(InformerTest, AListIsBegunAgainWhereItsSnapshotIsGone) {
  for (int i = 0; i < 7; ++i) make("m" + std::to_string(i));
  WatchSettings watch;
  watch.streaming_list = false;
  watch.page_size = 3;
  informer_ = an_informer(watch);
  int lists = 0;
  script_ = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb == Verb::kList && ++lists == 2) api_.compact();
    return std::nullopt;
  };
  EXPECT_TRUE(catches_up());
  EXPECT_EQ(changes_.size(), 7U);
}

TEST_F(InformerTest, AStalledStreamIsLeftAndNothingIsMissed) {
  informer_->poll();
  bool stall = true;
  faulty_.set_stream_script([&](const std::string&, const WatchEvent&) {
    return std::exchange(stall, false) ? StreamFault::kStall : StreamFault::kNone;
  });
  api_.end_watches(false);
  informer_->poll();
  make("a");
  informer_->poll();
  EXPECT_TRUE(changes_.empty());
  make("b");
  EXPECT_TRUE(catches_up(seconds(160)));
  EXPECT_THAT(changes_, ElementsAre("+a", "+b"));
}

TEST_F(InformerTest, ForeignPodsAreNeitherListedNorKept) {
  WatchSettings watch;
  Informer pods(api_, {.resource = kPods, .label_selector = contract::kLabelJobName, .watch = watch},
                [this] { return now_; }, {}, {});
  Json ours = a_pod("ours");
  ours["metadata"]["labels"][contract::kLabelJobName] = "j";
  ASSERT_TRUE(api_.create(kPods, kNs, ours, {}));
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(api_.create(kPods, kNs, a_pod("f" + std::to_string(i)), {}));
  pods.poll();
  for (int i = 500; i < 1000; ++i) ASSERT_TRUE(api_.create(kPods, kNs, a_pod("f" + std::to_string(i)), {}));
  pods.poll();
  EXPECT_EQ(pods.store().size(), 1U);
}

// --- Random schedules

// A server that is written to, cut off, compacted and made to repeat itself, at random; a second watch that
// never fails says what really happened.
class Schedule : public InformerTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  std::mt19937 random_{GetParam()};
  std::vector<std::string> seen_;   // "+a@1", …
  std::vector<std::string> truth_;  // the same
  std::unique_ptr<Watch> observer_;
  bool faults_ = true;
  bool own_writes_ = true;

  int one_of(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void SetUp() override {
    observer_ = std::move(*api_.watch(kConfigMaps, kNs, {}));
    faulty_.set_stream_script([this](const std::string&, const WatchEvent&) {
      if (!faults_) return StreamFault::kNone;
      const int dice = one_of(40);
      return dice == 0   ? StreamFault::kCut
             : dice == 1 ? StreamFault::kStall
             : dice <= 6 ? StreamFault::kRepeat
                         : StreamFault::kNone;
    });
    WatchSettings watch;
    watch.page_size = 2;
    watch.streaming_list = one_of(2) == 0;
    informer_ = std::make_unique<Informer>(
        faulty_, InformerOptions{.resource = kConfigMaps, .namespace_name = kNs, .watch = watch},
        [this] { return now_; }, [this](const Json& before, const Json& after) { note(before, after); },
        std::function<void()>());
  }

  void note(const Json& before, const Json& after) {
    if (!before.is_null() && !after.is_null()) {
      EXPECT_EQ(metadata::uid(before), metadata::uid(after)) << "another object is no update";
    }
    const std::string version = metadata::resource_version(after.is_null() ? before : after);
    seen_.push_back(sign(before, after) + (after.is_null() ? "" : "@" + version));
  }

  void look_at_the_truth() {
    while (auto event = observer_->next({})) {
      const bool gone = event->type == WatchEventType::kDeleted;
      const char* sign = event->type == WatchEventType::kAdded ? "+" : gone ? "-" : "~";
      truth_.push_back(sign + metadata::name(event->object) +
                       (gone ? "" : "@" + metadata::resource_version(event->object)));
    }
  }

  // The answer is sometimes taken in as an own write's is.
  void write() {
    const std::string name(1, static_cast<char>('a' + one_of(5)));
    const auto current = api_.get(kConfigMaps, kNs, name);
    const bool own = own_writes_ && one_of(2) == 0;
    if (!current) {
      auto made = api_.create(kConfigMaps, kNs, a_config_map(name), {});
      ASSERT_TRUE(made);
      if (own) informer_->store().remember(*made);
    } else if (one_of(3) == 0) {
      drop(name);
      if (own) informer_->store().forget({kNs, name}, metadata::uid(*current));
    } else {
      const Json patch = {{"data", {{"key", std::to_string(random_())}}}};
      auto changed = api_.merge_patch(kConfigMaps, kNs, name, patch, {});
      ASSERT_TRUE(changed);
      if (own) informer_->store().remember(*changed);
    }
    look_at_the_truth();
  }

  void disturb(bool may_forget) {
    const int dice = one_of(30);
    if (dice == 0) api_.end_watches(false);
    if (dice == 1) api_.send_bookmarks();
    if (dice == 2 && may_forget) api_.end_watches(true);
    if (dice == 3 && may_forget) api_.compact();
    if (dice <= 2) observer_ = std::move(*api_.watch(kConfigMaps, kNs, from_now()));
    if (dice == 4) script_ = [](const ApiCall&) { return ApiFault{{503, "", "down", std::nullopt}, false}; };
    if (dice == 5) script_ = {};
    if (dice == 6) {
      const StreamingList modes[] = {StreamingList::kServed, StreamingList::kRefused,
                                     StreamingList::kErrorEvent, StreamingList::kIgnored};
      api_.set_streaming_list(modes[one_of(4)]);
    }
  }
  WatchOptions from_now() {
    WatchOptions options;
    options.resource_version = api_.list(kConfigMaps, kNs, {})->resource_version;
    return options;
  }

  void go(int steps, bool may_forget) {
    for (int i = 0; i < steps; ++i) {
      for (int writes = one_of(4); writes > 0; --writes) write();
      disturb(may_forget);
      if (one_of(3) != 0) informer_->poll();
      now_ += std::chrono::milliseconds(one_of(20000));
    }
    faults_ = false;
    script_ = {};
    ASSERT_TRUE(catches_up());
    // What came and went meanwhile may still be on its way: longer than a stream may be silent.
    for (const TimePoint end = now_ + std::chrono::minutes(4); now_ < end; now_ += seconds(5))
      informer_->poll();
    look_at_the_truth();
  }
};

// What was said of one object, in its order.
std::vector<std::string> about(const std::string& name, const std::vector<std::string>& all) {
  std::vector<std::string> out;
  for (const std::string& one : all) {
    if (one.substr(1, 1) == name) out.push_back(one);
  }
  return out;
}

using CutSchedule = Schedule;

// The server forgets nothing, so nothing is passed over: each change of each object, once, in order.
TEST_P(CutSchedule, SaysExactlyWhatHappened) {
  own_writes_ = false;
  faults_ = false;
  ASSERT_TRUE(catches_up());
  faults_ = true;
  go(400, false);
  for (const char* name : {"a", "b", "c", "d", "e"})
    EXPECT_EQ(about(name, seen_), about(name, truth_)) << name;
  EXPECT_GE(truth_.size(), 300U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CutSchedule, ::testing::Range(1U, 26U));

using ForgetfulSchedule = Schedule;

// Where the server has forgotten, or an own write was taken in before the watch brought what led to it, steps
// may be passed over; but what is said is true, in order, never twice, and in the end it is all there.
TEST_P(ForgetfulSchedule, SaysNothingTwiceAndEndsAsTheServer) {
  go(400, true);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    const auto happened = about(name, truth_);
    auto from = happened.begin();
    bool there = false;
    for (const std::string& said : about(name, seen_)) {
      EXPECT_EQ(there, said[0] != '+') << said;
      there = said[0] != '-';
      if (!there) continue;
      // An object that is new to the store need not be new to the server.
      const auto same_version = [&](const std::string& real) { return real.substr(1) == said.substr(1); };
      from = std::find_if(from, happened.end(), same_version);
      ASSERT_TRUE(from != happened.end()) << said << " has not happened, or was said before\n"
                                          << ::testing::PrintToString(about(name, seen_)) << "\n"
                                          << ::testing::PrintToString(happened);
      ++from;
    }
    EXPECT_EQ(there, api_.get(kConfigMaps, kNs, name).has_value()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ForgetfulSchedule, ::testing::Range(1U, 51U));

// --- Threads

// Writers, a server that cuts and forgets, and an informer with a thread of its own, on a real clock.
TEST(InformerThreads, TheStoreEndsAsTheServer) {
  MemoryApi api;
  WatchSettings watch;
  watch.backoff_base = watch.backoff_max = std::chrono::milliseconds(1);
  watch.page_size = 3;
  std::atomic<int> balance{0};
  Informer informer(api, {.resource = kConfigMaps, .namespace_name = kNs, .watch = watch}, system_time,
                    [&](const Json& before, const Json& after) {
                      if (before.is_null()) ++balance;
                      if (after.is_null()) --balance;
                    },
                    {});
  std::jthread watching([&](std::stop_token stop) { informer.run(std::move(stop)); });
  std::vector<std::jthread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      std::minstd_rand random(static_cast<unsigned>(w + 1));
      for (int i = 0; i < 400; ++i) {
        const std::string name = "m" + std::to_string(w) + std::to_string(random() % 5);
        const auto current = api.get(kConfigMaps, kNs, name);
        if (!current) {
          informer.store().remember(*api.create(kConfigMaps, kNs, a_config_map(name), {}));
        } else if (random() % 2 == 0) {
          if (api.remove(kConfigMaps, kNs, name, {}))
            informer.store().forget({kNs, name}, metadata::uid(*current));
        } else {
          const Json patch = {{"data", {{"key", std::to_string(i)}}}};
          informer.store().remember(*api.merge_patch(kConfigMaps, kNs, name, patch, {}));
        }
        if (i % 40 == 0) api.end_watches(w == 0);
        if (i % 90 == 0) api.compact();
        informer.store().by_index(kOwnerUidIndex, "nobody");
      }
    });
  }
  writers.clear();
  const auto same = [&] {
    const auto server = api.list(kConfigMaps, kNs, {})->items;
    const auto store = informer.store().all();
    return std::ranges::equal(server, store, {}, {}, [](const auto& object) { return *object; });
  };
  for (int i = 0; i < 3000 && !same(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(same());
  EXPECT_EQ(balance, static_cast<int>(informer.store().size()));
  watching.request_stop();
}

}  // namespace
}  // namespace coxswain
