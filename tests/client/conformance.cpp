#include "tests/client/conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "operator/client/resource_version.h"
#include "tests/client/objects.h"

namespace coxswain {
namespace {

using ::testing::HasSubstr;
using namespace resources;

std::string version_of(const Json& object) {
  return object["metadata"]["resourceVersion"];
}

// The server's background work (garbage collection) and a watch's transport take their time.
bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The next event that isn't a bookmark.
std::optional<WatchEvent> next_event(Watch& watch) {
  for (;;) {
    auto event = watch.next(std::chrono::seconds(30));
    if (!event || event->type != WatchEventType::kBookmark) return event;
  }
}

// A server whose etcd can't report a watch's progress says so where it would have to: when a watch is to
// begin with what there is now.
bool refused_by_old_etcd(const WatchEvent& event) {
  return event.type == WatchEventType::kError && event.object.value("code", 0) == 500 &&
         event.object.value("message", "").find("RequestWatchProgress") != std::string::npos;
}

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().code << " " << (result).error().message

TEST_P(ApiConformance, CreateGivesIdentityAndGetGivesTheSame) {
  const auto created = api().create(kConfigMaps, ns(), a_config_map("c"), {});
  ASSERT_OK(created);
  EXPECT_EQ((*created)["metadata"]["namespace"], ns());
  EXPECT_FALSE((*created)["metadata"].value("uid", "").empty());
  EXPECT_FALSE((*created)["metadata"].value("creationTimestamp", "").empty());
  EXPECT_FALSE(version_of(*created).empty());
  const auto read = api().get(kConfigMaps, ns(), "c");
  ASSERT_OK(read);
  EXPECT_EQ((*read)["metadata"]["uid"], (*created)["metadata"]["uid"]);
  EXPECT_EQ(version_of(*read), version_of(*created));
  EXPECT_EQ((*read)["data"]["key"], "value");
}

TEST_P(ApiConformance, GetOfNothingIs404) {
  const auto read = api().get(kPods, ns(), "nobody");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, 404);
  EXPECT_EQ(read.error().reason, "NotFound");
  EXPECT_THAT(read.error().message, HasSubstr("\"nobody\" not found"));
}

TEST_P(ApiConformance, CreateOfATakenNameIs409AlreadyExists) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("c"), {}));
  const auto again = api().create(kConfigMaps, ns(), a_config_map("c"), {});
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().already_exists());
  EXPECT_FALSE(again.error().conflict());
}

TEST_P(ApiConformance, CreateWithAResourceVersionIs500) {
  Json map = a_config_map("c");
  map["metadata"]["resourceVersion"] = "1";
  const auto created = api().create(kConfigMaps, ns(), map, {});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, 500);
  EXPECT_THAT(created.error().message, HasSubstr("resourceVersion should not be set"));
}

TEST_P(ApiConformance, ABadNameIs422ThatNamesTheField) {
  for (const Resource& resource : {kPods, kServices, kConfigMaps}) {
    Json object = resource == kPods ? a_pod("x") : resource == kServices ? a_service("x") : a_config_map("x");
    object["metadata"]["name"] = "Not_A_Name";
    const auto created = api().create(resource, ns(), object, {});
    ASSERT_FALSE(created) << resource.plural;
    EXPECT_EQ(created.error().code, 422) << resource.plural;
    EXPECT_EQ(created.error().reason, "Invalid");
    EXPECT_THAT(created.error().message, HasSubstr("metadata.name"));
    EXPECT_TRUE(created.error().permanent());
  }
}

TEST_P(ApiConformance, APodWithoutContainersIs422) {
  Json pod = a_pod("p");
  pod["spec"]["containers"] = Json::array();
  const auto created = api().create(kPods, ns(), pod, {});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, 422);
  EXPECT_THAT(created.error().message, HasSubstr("spec.containers"));
}

TEST_P(ApiConformance, DryRunStoresNothing) {
  const auto created = api().create(kConfigMaps, ns(), a_config_map("c"), {.dry_run = true});
  ASSERT_OK(created);
  EXPECT_FALSE(api().get(kConfigMaps, ns(), "c"));
  const auto stored = api().create(kConfigMaps, ns(), a_config_map("c"), {});
  ASSERT_OK(stored);
  Json changed = *stored;
  changed["data"]["key"] = "other";
  ASSERT_OK(api().update(kConfigMaps, ns(), changed, {.dry_run = true}));
  DeleteOptions removal;
  removal.dry_run = true;
  ASSERT_OK(api().remove(kConfigMaps, ns(), "c", removal));
  EXPECT_EQ(version_of(*api().get(kConfigMaps, ns(), "c")), version_of(*stored));
}

TEST_P(ApiConformance, ADryRunIsStillRefused) {
  Json job = a_training_job("j");
  job["spec"]["nodes"] = 0;
  const auto created = api().create(kTrainingJobs, ns(), job, {.dry_run = true});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, 422);
}

TEST_P(ApiConformance, UpdateOfAStaleVersionIs409Conflict) {
  const auto first = api().create(kConfigMaps, ns(), a_config_map("c"), {});
  ASSERT_OK(first);
  Json changed = *first;
  changed["data"]["key"] = "second";
  const auto second = api().update(kConfigMaps, ns(), changed, {});
  ASSERT_OK(second);
  EXPECT_NE(version_of(*second), version_of(*first));
  changed["data"]["key"] = "third";  // still the first one's version
  const auto third = api().update(kConfigMaps, ns(), changed, {});
  ASSERT_FALSE(third);
  EXPECT_TRUE(third.error().conflict());
  EXPECT_EQ((*api().get(kConfigMaps, ns(), "c"))["data"]["key"], "second");
}

TEST_P(ApiConformance, AnUpdateThatChangesNothingMakesNoNewVersion) {
  const auto created = api().create(kConfigMaps, ns(), a_config_map("c"), {});
  ASSERT_OK(created);
  const auto same = api().update(kConfigMaps, ns(), *created, {});
  ASSERT_OK(same);
  EXPECT_EQ(version_of(*same), version_of(*created));
}

TEST_P(ApiConformance, UpdateOfNothingIs404) {
  Json map = a_config_map("c");
  const auto created = api().create(kConfigMaps, ns(), map, {});
  ASSERT_OK(created);
  ASSERT_OK(api().remove(kConfigMaps, ns(), "c", {}));
  const auto updated = api().update(kConfigMaps, ns(), *created, {});
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().code, 404);
}

TEST_P(ApiConformance, ACustomResourceIsNotUpdatedWithoutAVersion) {
  const auto created = api().create(kTrainingJobs, ns(), a_training_job("j"), {});
  ASSERT_OK(created);
  Json blind = *created;
  blind["metadata"].erase("resourceVersion");
  const auto updated = api().update(kTrainingJobs, ns(), blind, {});
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().code, 422);
  EXPECT_THAT(updated.error().message, HasSubstr("metadata.resourceVersion"));
}

TEST_P(ApiConformance, MergePatchMergesAndNullRemoves) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("c"), {}));
  const Json patch = {{"data", {{"key", nullptr}, {"new", "1"}}}};
  const auto patched = api().merge_patch(kConfigMaps, ns(), "c", patch, {});
  ASSERT_OK(patched);
  EXPECT_EQ((*patched)["data"], Json({{"new", "1"}}));
}

TEST_P(ApiConformance, MergePatchWithAStaleVersionIs409Conflict) {
  const auto first = api().create(kConfigMaps, ns(), a_config_map("c"), {});
  ASSERT_OK(first);
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "c", {{"data", {{"a", "1"}}}}, {}));
  const Json late = {{"metadata", {{"resourceVersion", version_of(*first)}}}, {"data", {{"b", "1"}}}};
  const auto patched = api().merge_patch(kConfigMaps, ns(), "c", late, {});
  ASSERT_FALSE(patched);
  EXPECT_TRUE(patched.error().conflict());
}

TEST_P(ApiConformance, StatusIsItsOwnSubresource) {
  Json job = a_training_job("j");
  job["status"] = {{"attempt", 7}};
  const auto created = api().create(kTrainingJobs, ns(), job, {});
  ASSERT_OK(created);
  EXPECT_FALSE(created->contains("status")) << "a POST sets no status";

  Json both = *created;
  both["spec"]["suspend"] = true;
  both["status"] = {{"attempt", 1}};
  const auto status_written = api().update_status(kTrainingJobs, ns(), both, {});
  ASSERT_OK(status_written);
  EXPECT_EQ((*status_written)["status"]["attempt"], 1);
  EXPECT_FALSE((*status_written)["spec"].value("suspend", false)) << "a status write sets no spec";

  both = *status_written;
  both["spec"]["suspend"] = true;
  both["status"]["attempt"] = 2;
  const auto spec_written = api().update(kTrainingJobs, ns(), both, {});
  ASSERT_OK(spec_written);
  EXPECT_TRUE((*spec_written)["spec"]["suspend"]);
  EXPECT_EQ((*spec_written)["status"]["attempt"], 1) << "a spec write sets no status";
}

TEST_P(ApiConformance, StatusWriteOfAStaleVersionIs409Conflict) {
  const auto created = api().create(kTrainingJobs, ns(), a_training_job("j"), {});
  ASSERT_OK(created);
  ASSERT_OK(api().merge_patch(kTrainingJobs, ns(), "j", {{"spec", {{"suspend", true}}}}, {}));
  Json late = *created;
  late["status"] = {{"attempt", 1}};
  const auto written = api().update_status(kTrainingJobs, ns(), late, {});
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().conflict());
}

TEST_P(ApiConformance, GenerationRisesWithTheSpecOnly) {
  const auto created = api().create(kTrainingJobs, ns(), a_training_job("j"), {});
  ASSERT_OK(created);
  EXPECT_EQ((*created)["metadata"]["generation"], 1);
  Json next = *created;
  next["status"] = {{"attempt", 1}};
  next = *api().update_status(kTrainingJobs, ns(), next, {});
  next = *api().merge_patch(kTrainingJobs, ns(), "j", {{"metadata", {{"labels", {{"a", "b"}}}}}}, {});
  EXPECT_EQ(next["metadata"]["generation"], 1);
  next = *api().merge_patch(kTrainingJobs, ns(), "j", {{"spec", {{"suspend", true}}}}, {});
  EXPECT_EQ(next["metadata"]["generation"], 2);
}

TEST_P(ApiConformance, ABadTrainingJobIs422ThatNamesTheField) {
  Json job = a_training_job("j");
  job["spec"]["nodes"] = 0;
  const auto created = api().create(kTrainingJobs, ns(), job, {});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, 422);
  EXPECT_EQ(created.error().reason, "Invalid");
  EXPECT_THAT(created.error().message, HasSubstr("spec.nodes"));
}

TEST_P(ApiConformance, ARunningTrainingJobKeepsItsShape) {
  ASSERT_OK(api().create(kTrainingJobs, ns(), a_training_job("j"), {}));
  const Json more_nodes = {{"spec", {{"nodes", 2}}}};
  const auto refused = api().merge_patch(kTrainingJobs, ns(), "j", more_nodes, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 422);
  EXPECT_THAT(refused.error().message, HasSubstr("spec"));
  ASSERT_OK(api().merge_patch(kTrainingJobs, ns(), "j", {{"spec", {{"suspend", true}}}}, {}));
  ASSERT_OK(api().merge_patch(kTrainingJobs, ns(), "j", more_nodes, {}));
}

TEST_P(ApiConformance, AnImmutableConfigMapStaysAsItIs) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("c", true), {}));
  for (const Json& patch : {Json{{"data", {{"key", "other"}}}}, Json{{"immutable", false}}}) {
    const auto patched = api().merge_patch(kConfigMaps, ns(), "c", patch, {});
    ASSERT_FALSE(patched);
    EXPECT_EQ(patched.error().code, 422);
    EXPECT_THAT(patched.error().message, HasSubstr("immutable"));
  }
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "c", {{"metadata", {{"labels", {{"x", "y"}}}}}}, {}));
}

TEST_P(ApiConformance, APodsSpecStaysAsItIs) {
  ASSERT_OK(api().create(kPods, ns(), a_pod("p"), {}));
  const auto patched = api().merge_patch(kPods, ns(), "p", {{"spec", {{"hostname", "other"}}}}, {});
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().code, 422);
  EXPECT_THAT(patched.error().message, HasSubstr("spec"));
}

TEST_P(ApiConformance, ANewPodIsPending) {
  Json pod = a_pod("p");
  pod["status"] = {{"phase", "Succeeded"}};
  const auto created = api().create(kPods, ns(), pod, {});
  ASSERT_OK(created);
  EXPECT_EQ((*created)["status"]["phase"], "Pending");
}

TEST_P(ApiConformance, DeleteOfNothingIs404) {
  const auto removed = api().remove(kPods, ns(), "nobody", {});
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, 404);
}

TEST_P(ApiConformance, DeleteOfAnotherUidIs409Conflict) {
  const auto created = api().create(kPods, ns(), a_pod("p"), {});
  ASSERT_OK(created);
  DeleteOptions options;
  options.uid = "00000000-0000-4000-8000-000000000000";
  const auto refused = api().remove(kPods, ns(), "p", options);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().conflict());
  options.uid = (*created)["metadata"]["uid"].get<std::string>();
  ASSERT_OK(api().remove(kPods, ns(), "p", options));
}

TEST_P(ApiConformance, DeleteOfAStaleVersionIs409Conflict) {
  const auto created = api().create(kConfigMaps, ns(), a_config_map("c"), {});
  ASSERT_OK(created);
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "c", {{"data", {{"a", "b"}}}}, {}));
  DeleteOptions options;
  options.resource_version = version_of(*created);
  const auto refused = api().remove(kConfigMaps, ns(), "c", options);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().conflict());
}

TEST_P(ApiConformance, APodWithoutANodeIsGoneAtOnce) {
  ASSERT_OK(api().create(kPods, ns(), a_pod("p"), {}));
  ASSERT_OK(api().remove(kPods, ns(), "p", {}));
  EXPECT_TRUE(eventually([&] { return !api().get(kPods, ns(), "p"); }));
}

TEST_P(ApiConformance, APodOnANodeWaitsForTheNode) {
  Json pod = a_pod("p");
  pod["spec"]["nodeName"] = "no-such-node";
  ASSERT_OK(api().create(kPods, ns(), pod, {}));
  ASSERT_OK(api().remove(kPods, ns(), "p", {}));
  const auto terminating = api().get(kPods, ns(), "p");
  ASSERT_OK(terminating);
  EXPECT_TRUE((*terminating)["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ((*terminating)["metadata"]["deletionGracePeriodSeconds"], 5) << "the pod's own grace period";
  DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_OK(api().remove(kPods, ns(), "p", now));
  EXPECT_FALSE(api().get(kPods, ns(), "p"));
}

TEST_P(ApiConformance, AFinishedPodIsGoneAtOnce) {
  Json pod = a_pod("p");
  pod["spec"]["nodeName"] = "no-such-node";
  Json created = *api().create(kPods, ns(), pod, {});
  created["status"]["phase"] = "Failed";
  ASSERT_OK(api().update_status(kPods, ns(), created, {}));
  ASSERT_OK(api().remove(kPods, ns(), "p", {}));
  EXPECT_FALSE(api().get(kPods, ns(), "p"));
}

TEST_P(ApiConformance, AFinalizerHoldsAnObjectBack) {
  Json map = a_config_map("c");
  map["metadata"]["finalizers"] = {"example.com/hold"};
  ASSERT_OK(api().create(kConfigMaps, ns(), map, {}));
  ASSERT_OK(api().remove(kConfigMaps, ns(), "c", {}));
  const auto held = api().get(kConfigMaps, ns(), "c");
  ASSERT_OK(held);
  EXPECT_TRUE((*held)["metadata"].contains("deletionTimestamp"));
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "c", {{"metadata", {{"finalizers", nullptr}}}}, {}));
  EXPECT_FALSE(api().get(kConfigMaps, ns(), "c"));
}

TEST_P(ApiConformance, ChildrenGoWithTheirOwner) {
  if (!under_test_.collects_garbage) GTEST_SKIP() << "no controller-manager runs beside this server";
  const auto job = api().create(kTrainingJobs, ns(), a_training_job("j"), {});
  ASSERT_OK(job);
  ASSERT_OK(api().create(kConfigMaps, ns(), owned_by(a_config_map("child"), *job), {}));
  ASSERT_OK(api().create(kPods, ns(), owned_by(a_pod("child"), *job), {}));
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("stranger"), {}));
  ASSERT_OK(api().remove(kTrainingJobs, ns(), "j", {}));
  EXPECT_TRUE(
      eventually([&] { return !api().get(kConfigMaps, ns(), "child") && !api().get(kPods, ns(), "child"); }));
  EXPECT_TRUE(api().get(kConfigMaps, ns(), "stranger"));
}

TEST_P(ApiConformance, ListSelectsByLabels) {
  for (const char* name : {"a", "b", "c"}) {
    Json map = a_config_map(name);
    map["metadata"]["labels"]["name"] = name;
    ASSERT_OK(api().create(kConfigMaps, ns(), map, {}));
  }
  const auto count = [&](const std::string& selector) {
    const auto list = api().list(kConfigMaps, ns(), {selector});
    return list ? static_cast<int>(list->items.size()) : -list.error().code;
  };
  EXPECT_EQ(count("app=test"), 3);
  EXPECT_EQ(count("app=test,name!=a"), 2);
  EXPECT_EQ(count("name in (a,b)"), 2);
  EXPECT_EQ(count("app=test,name notin (a, b)"), 1);
  EXPECT_EQ(count("name"), 3);
  EXPECT_EQ(count("app=test,!name"), 0);
  EXPECT_EQ(count("app=other"), 0);
  EXPECT_EQ(count("this is no selector"), -400);
}

TEST_P(ApiConformance, WatchFromAListMissesNothing) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("before"), {}));
  const auto list = api().list(kConfigMaps, ns(), {"app=test"});
  ASSERT_OK(list);
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("between"), {}));
  auto watch = api().watch(kConfigMaps, ns(), {"app=test", list->resource_version, true, {}});
  ASSERT_OK(watch);
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "before", {{"data", {{"key", "2"}}}}, {}));
  ASSERT_OK(api().remove(kConfigMaps, ns(), "between", {}));

  const std::pair<WatchEventType, std::string> expected[] = {{WatchEventType::kAdded, "between"},
                                                             {WatchEventType::kModified, "before"},
                                                             {WatchEventType::kDeleted, "between"}};
  for (const auto& [type, name] : expected) {
    const auto event = next_event(**watch);
    ASSERT_TRUE(event) << name;
    EXPECT_EQ(event->type, type) << name;
    EXPECT_EQ(event->object["metadata"]["name"], name);
    EXPECT_FALSE(version_of(event->object).empty());
  }
}

TEST_P(ApiConformance, WatchWithoutAVersionBeginsWithWhatThereIs) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("a"), {}));
  auto watch = api().watch(kConfigMaps, ns(), {"app=test", "", true, {}});
  ASSERT_OK(watch);
  const auto event = next_event(**watch);
  ASSERT_TRUE(event);
  if (refused_by_old_etcd(*event)) return;
  ASSERT_EQ(event->type, WatchEventType::kAdded) << event->object;
  EXPECT_EQ(event->object["metadata"]["name"], "a");
}

TEST_P(ApiConformance, AnObjectThatStopsMatchingIsDeletedToTheWatch) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("a"), {}));
  const auto list = api().list(kConfigMaps, ns(), {"app=test"});
  ASSERT_OK(list);
  auto watch = api().watch(kConfigMaps, ns(), {"app=test", list->resource_version, true, {}});
  ASSERT_OK(watch);
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "a", {{"metadata", {{"labels", {{"app", "other"}}}}}}, {}));
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "a", {{"metadata", {{"labels", {{"app", "test"}}}}}}, {}));
  for (const WatchEventType type : {WatchEventType::kDeleted, WatchEventType::kAdded}) {
    const auto event = next_event(**watch);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->type, type);
  }
}

TEST_P(ApiConformance, AWatchSignalsThatItHasSomething) {
  const auto list = api().list(kConfigMaps, ns(), {"app=test"});
  ASSERT_OK(list);
  std::atomic<int> signals{0};
  auto watch = api().watch(kConfigMaps, ns(), {"app=test", list->resource_version, true, [&] { ++signals; }});
  ASSERT_OK(watch);
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("a"), {}));
  EXPECT_TRUE(eventually([&] { return signals > 0; }));
  EXPECT_TRUE(eventually([&] { return (*watch)->next(std::chrono::milliseconds(0)).has_value(); }));
  watch->reset();  // the signal refers to a local of this test
}

TEST_P(ApiConformance, PagesAreOneListOfOneVersion) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("m" + std::to_string(i)), {}));
  }
  ListOptions options{.label_selector = "app=test", .limit = 2};
  std::vector<std::string> names;
  std::vector<size_t> sizes;
  std::set<std::string> versions;
  do {
    const auto page = api().list(kConfigMaps, ns(), options);
    ASSERT_OK(page);
    for (const Json& object : page->items) names.push_back(object["metadata"]["name"]);
    sizes.push_back(page->items.size());
    versions.insert(page->resource_version);
    options.continue_token = page->continue_token;
    if (sizes.size() > 1) continue;
    ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("m9"), {}));
  } while (!options.continue_token.empty());
  EXPECT_THAT(names, ::testing::ElementsAre("m0", "m1", "m2", "m3", "m4"));
  EXPECT_THAT(sizes, ::testing::ElementsAre(2, 2, 1));
  EXPECT_EQ(versions.size(), 1U);
}

TEST_P(ApiConformance, AListOfMetadataHasNothingElse) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("a"), {}));
  const auto list = api().list(kConfigMaps, ns(), {.label_selector = "app=test", .metadata_only = true});
  ASSERT_OK(list);
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(list->items[0]["metadata"]["name"], "a");
  EXPECT_FALSE(list->items[0].contains("data"));
  auto watch = api().watch(
      kConfigMaps, ns(),
      {.label_selector = "app=test", .resource_version = list->resource_version, .metadata_only = true});
  ASSERT_OK(watch);
  ASSERT_OK(api().merge_patch(kConfigMaps, ns(), "a", {{"data", {{"key", "2"}}}}, {}));
  const auto event = next_event(**watch);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object["metadata"]["uid"], list->items[0]["metadata"]["uid"]);
  EXPECT_FALSE(event->object.contains("data"));
}

TEST_P(ApiConformance, AStreamingListEndsWithItsBookmarkAndGoesOn) {
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("a"), {}));
  auto watch = api().watch(
      kConfigMaps, ns(), {.label_selector = "app=test", .resource_version = "", .send_initial_events = true});
  ASSERT_OK(watch);
  const auto first = (*watch)->next(std::chrono::seconds(30));
  ASSERT_TRUE(first);
  if (refused_by_old_etcd(*first)) return;
  EXPECT_EQ(first->type, WatchEventType::kAdded);
  std::optional<WatchEvent> end;
  do {
    end = (*watch)->next(std::chrono::seconds(30));
    ASSERT_TRUE(end);
    ASSERT_EQ(end->type, WatchEventType::kBookmark);
  } while (!end->object.contains("/metadata/annotations/k8s.io~1initial-events-end"_json_pointer));
  ASSERT_OK(api().create(kConfigMaps, ns(), a_config_map("b"), {}));
  const auto next = next_event(**watch);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->object["metadata"]["name"], "b");
  EXPECT_TRUE(compare_versions(version_of(next->object), version_of(end->object)) > 0);
}

TEST_P(ApiConformance, VersionsRiseWithEachWrite) {
  const auto created = api().create(kConfigMaps, ns(), a_config_map("a"), {});
  ASSERT_OK(created);
  const auto changed = api().merge_patch(kConfigMaps, ns(), "a", {{"data", {{"key", "2"}}}}, {});
  ASSERT_OK(changed);
  const auto list = api().list(kConfigMaps, ns(), {"app=test"});
  ASSERT_OK(list);
  EXPECT_TRUE(compare_versions(version_of(*created), version_of(*changed)) < 0);
  EXPECT_TRUE(compare_versions(version_of(*changed), list->resource_version) <= 0);
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ApiConformance);

}  // namespace coxswain
