// The informer over HTTP on a real API server, on both etcds (COXSWAIN_TEST_OLD_ETCD=1).
#include "operator/client/informer.h"

#include <gmock/gmock.h>

#include <atomic>

#include "operator/client/resource_version.h"
#include "tests/client/objects.h"
#include "tests/integration/fixture.h"

namespace coxswain::testing {
namespace {

using coxswain::resources::kConfigMaps;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// What a client asked for, by verb.
class Requests {
 public:
  RestClientOptions options() {
    RestClientOptions options = ControlPlane::unlimited();
    options.on_request = [this](const RequestRecord& record) {
      if (record.verb == "list") ++lists;
      if (record.verb == "watch") ++watches;
    };
    return options;
  }
  std::atomic<int> lists{0};
  std::atomic<int> watches{0};
};

class OnServer : public ControlPlaneTest {
 protected:
  void create(const std::string& name) {
    const auto created = api().create(kConfigMaps, ns(), a_config_map(name), {});
    ASSERT_TRUE(created) << created.error().message;
  }
  void patch(const std::string& name) {
    ASSERT_TRUE(api().merge_patch(kConfigMaps, ns(), name, {{"data", {{"key", "changed"}}}}, {}));
  }
  void remove(const std::string& name) { ASSERT_TRUE(api().remove(kConfigMaps, ns(), name, {})); }

  std::unique_ptr<Informer> informer(ApiClient& client, WatchSettings settings = {}) {
    return std::make_unique<Informer>(
        client,
        InformerOptions{
            .resource = kConfigMaps, .namespace_name = ns(), .label_selector = "app=test", .watch = settings},
        system_time,
        [this](const Json& before, const Json& after) {
          const Json& object = after.is_null() ? before : after;
          const char sign = before.is_null() ? '+' : after.is_null() ? '-' : '~';
          changes_.push_back(sign + object["metadata"]["name"].get<std::string>());
        },
        std::function<void()>());
  }
  static std::vector<std::string> names(const Informer& informer) {
    std::vector<std::string> result;
    for (const auto& object : informer.store().all()) result.push_back((*object)["metadata"]["name"]);
    return result;
  }
  // Drives it by hand until that holds.
  static bool polls_until(Informer& informer, const std::function<bool()>& holds) {
    return eventually([&] {
      informer.poll();
      return holds();
    });
  }
  static bool fills(Informer& informer) {
    return polls_until(informer, [&] { return informer.store().filled(); });
  }
  bool old_etcd() { return plane().owned() && plane().options().etcd == Etcd::kOld; }

  std::vector<std::string> changes_;
};

TEST_F(OnServer, AListStreamsWhereTheServerCanAndComesByPagesWhereItCannot) {
  create("a");
  create("b");
  Requests requests;
  const auto client = plane().connect(requests.options());
  const auto informer = this->informer(*client);
  ASSERT_TRUE(fills(*informer));
  EXPECT_THAT(names(*informer), ElementsAre("a", "b"));
  if (plane().owned()) {
    EXPECT_EQ(requests.lists, old_etcd() ? 1 : 0);
  }
  create("c");
  patch("a");
  remove("b");
  EXPECT_TRUE(polls_until(*informer, [&] { return changes_.size() >= 5; }));
  EXPECT_THAT(changes_, ElementsAre("+a", "+b", "+c", "~a", "-b"));
}

TEST_F(OnServer, PagesAreTakenInWhole) {
  for (const char* name : {"a", "b", "c", "d", "e"}) create(name);
  Requests requests;
  const auto client = plane().connect(requests.options());
  const auto informer = this->informer(*client, {.streaming_list = false, .page_size = 2});
  ASSERT_TRUE(fills(*informer));
  EXPECT_THAT(names(*informer), ElementsAre("a", "b", "c", "d", "e"));
  create("f");
  EXPECT_TRUE(polls_until(*informer, [&] { return names(*informer).size() == 6; }));
  EXPECT_EQ(requests.lists, 3);
  EXPECT_EQ(requests.watches, 1);
}

// It says how far the rest of the kind has got; where nothing has happened at all, none comes.
TEST_F(OnServer, ABookmarkComesBeforeTheServerEndsTheStream) {
  create("a");
  const auto list = api().list(kConfigMaps, ns(), {.label_selector = "app=test"});
  ASSERT_TRUE(list);
  auto watch = api().watch(
      kConfigMaps, ns(),
      {.label_selector = "app=test", .resource_version = list->resource_version, .server_timeout = 4s});
  ASSERT_TRUE(watch);
  Json foreign = a_config_map("foreign");
  foreign["metadata"]["labels"] = {{"app", "other"}};
  ASSERT_TRUE(api().create(kConfigMaps, ns(), foreign, {}));
  const auto event = (*watch)->next(30s);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, WatchEventType::kBookmark) << event->object;
  const std::string version = event->object["metadata"]["resourceVersion"];
  EXPECT_TRUE(compare_versions(version, list->resource_version) > 0) << version;
  while ((*watch)->next(30s)) continue;
  EXPECT_TRUE((*watch)->ended());
}

// Whoever sleeps through a compaction has to begin again, and misses nothing by it.
TEST_F(OnServer, AForgottenVersionIs410AndTheStoreIsTrueAgain) {
  if (!plane().owned()) GTEST_SKIP() << "this cluster is not ours to kill";
  create("stays");
  create("goes");
  const auto client = plane().connect();
  const auto informer = this->informer(*client);
  ASSERT_TRUE(fills(*informer));
  const std::string before = api().list(kConfigMaps, ns(), {})->resource_version;
  plane().kill_api_server();  // the stream is cut, and the informer not asked to notice yet
  plane().start_api_server();
  remove("goes");
  create("comes");
  patch("stays");
  plane().compact_etcd();
  plane().restart_api_server();  // what it has in memory begins now

  const auto old = api().watch(kConfigMaps, ns(), {.resource_version = before});
  if (old) {
    const auto event = (*old)->next(30s);
    ASSERT_TRUE(event);
    ASSERT_EQ(event->type, WatchEventType::kError);
    EXPECT_EQ(event->object["code"], 410);
  } else {
    EXPECT_TRUE(old.error().expired());
  }
  changes_.clear();
  EXPECT_TRUE(polls_until(*informer, [&] { return changes_.size() >= 3; }));
  EXPECT_THAT(changes_, UnorderedElementsAre("-goes", "+comes", "~stays"));
  EXPECT_THAT(names(*informer), ElementsAre("comes", "stays"));
  create("later");
  EXPECT_TRUE(polls_until(*informer, [&] { return names(*informer).size() == 3; }));
}

// A connection that ends, and an etcd that is away for a while, cost nothing but the time.
TEST_F(OnServer, AnInformerOutlivesItsServers) {
  if (!plane().owned()) GTEST_SKIP() << "this cluster is not ours to kill";
  create("a");
  const auto client = plane().connect();
  const auto informer = this->informer(*client);
  ASSERT_TRUE(fills(*informer));
  plane().kill_etcd();
  plane().kill_api_server();
  polls_until(*informer, [polls = 0]() mutable { return ++polls > 5; });
  EXPECT_THAT(names(*informer), ElementsAre("a")) << "what was known stays known";
  plane().start_etcd();
  plane().start_api_server();
  create("b");
  EXPECT_TRUE(polls_until(*informer, [&] { return names(*informer).size() == 2; }));
  EXPECT_THAT(changes_, ElementsAre("+a", "+b"));
}

}  // namespace
}  // namespace coxswain::testing
