#include "operator/client/rest/api_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coxswain {
namespace {

using namespace api_request;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const Resource kNodes{"", "v1", "nodes", "Node"};

TEST(ApiRequest, Paths) {
  using namespace resources;
  EXPECT_EQ(path(kPods, "ns"), "/api/v1/namespaces/ns/pods");
  EXPECT_EQ(path(kPods, ""), "/api/v1/pods");
  EXPECT_EQ(path(kPods, "ns", "p"), "/api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(path(kNodes, "", "n"), "/api/v1/nodes/n");
  EXPECT_EQ(path(kTrainingJobs, "ns", "j", "status"),
            "/apis/training.coxswain.dev/v1alpha1/namespaces/ns/trainingjobs/j/status");
  EXPECT_EQ(path(kTrainingJobs, ""), "/apis/training.coxswain.dev/v1alpha1/trainingjobs");
}

TEST(ApiRequest, NamesCannotLeaveTheirSegment) {
  EXPECT_EQ(path(resources::kPods, "a/b", "../x?y#z"), "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy%23z");
}

struct ListCase {
  ListOptions options;
  std::string query;
};

TEST(ApiRequest, ListQueries) {
  const std::vector<ListCase> cases{
      {{}, ""},
      {{.label_selector = "a=b,c in (d,e)"}, "?labelSelector=a%3Db%2Cc%20in%20%28d%2Ce%29"},
      {{.limit = 500}, "?limit=500"},
      {{.resource_version = "0", .resource_version_match = "NotOlderThan"},
       "?resourceVersion=0&resourceVersionMatch=NotOlderThan"},
      // The first page's version holds for all.
      {{.limit = 5, .continue_token = "a+b=", .resource_version = "7", .resource_version_match = "Exact"},
       "?limit=5&continue=a%2Bb%3D"},
  };
  for (const auto& c : cases) {
    const HttpRequest request = api_request::list(resources::kPods, "ns", c.options);
    EXPECT_EQ(request.method, "GET");
    EXPECT_EQ(request.target, "/api/v1/namespaces/ns/pods" + c.query);
    EXPECT_EQ(request.accept, "application/json");
  }
}

struct WatchCase {
  WatchOptions options;
  std::string query;
};

TEST(ApiRequest, WatchQueries) {
  const std::vector<WatchCase> cases{
      {{}, "?watch=true&allowWatchBookmarks=true"},
      {{.label_selector = "a", .resource_version = "7", .allow_bookmarks = false},
       "?watch=true&labelSelector=a&resourceVersion=7"},
      {{.resource_version = "",
        .allow_bookmarks = false,
        .send_initial_events = true,
        .server_timeout = std::chrono::seconds(290)},
       "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
       "&timeoutSeconds=290"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(api_request::watch(resources::kPods, "", c.options).target, "/api/v1/pods" + c.query);
  }
}

TEST(ApiRequest, MetadataOnlyAsksForPartialObjects) {
  EXPECT_THAT(api_request::list(resources::kPods, "", {.metadata_only = true}).accept,
              StartsWith("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"));
  EXPECT_THAT(api_request::watch(resources::kPods, "", {.metadata_only = true}).accept,
              StartsWith("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"));
}

TEST(ApiRequest, Writes) {
  const Json pod = {{"metadata", {{"name", "p"}}}};
  const HttpRequest create = api_request::create(resources::kPods, "ns", pod, {.dry_run = true});
  EXPECT_EQ(create.method, "POST");
  EXPECT_EQ(create.target, "/api/v1/namespaces/ns/pods?dryRun=All");
  EXPECT_EQ(create.content_type, "application/json");
  EXPECT_EQ(Json::parse(create.body), pod);

  const auto status = api_request::update(resources::kPods, "ns", pod, {}, "status");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->method, "PUT");
  EXPECT_EQ(status->target, "/api/v1/namespaces/ns/pods/p/status");

  const HttpRequest patch = api_request::merge_patch(resources::kPods, "ns", "p", {{"a", nullptr}}, {});
  EXPECT_EQ(patch.method, "PATCH");
  EXPECT_EQ(patch.content_type, "application/merge-patch+json");
  EXPECT_EQ(patch.body, "{\"a\":null}");
}

TEST(ApiRequest, AnUpdateWithoutANameIsRefusedHere) {
  const auto request = api_request::update(resources::kPods, "ns", Json::object(), {}, "");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, 400);
  EXPECT_THAT(request.error().message, HasSubstr("metadata.name"));
}

TEST(ApiRequest, DeletesCarryTheirOptionsInTheBody) {
  const HttpRequest plain = api_request::remove(resources::kPods, "ns", "p", {});
  EXPECT_EQ(plain.method, "DELETE");
  EXPECT_EQ(Json::parse(plain.body), Json({{"kind", "DeleteOptions"}, {"apiVersion", "v1"}}));
  DeleteOptions options{"u", "7", 0, true, "Background"};
  EXPECT_EQ(Json::parse(api_request::remove(resources::kPods, "ns", "p", options).body),
            Json({{"kind", "DeleteOptions"},
                  {"apiVersion", "v1"},
                  {"preconditions", {{"uid", "u"}, {"resourceVersion", "7"}}},
                  {"gracePeriodSeconds", 0},
                  {"propagationPolicy", "Background"},
                  {"dryRun", {"All"}}}));
}

TEST(ApiRequest, TextThatIsNoUtf8DoesNotEndTheProgram) {
  const Json event = {{"message", "half a sign: \xc3"}};
  EXPECT_THAT(api_request::create(resources::kEvents, "ns", event, {}).body, HasSubstr("half a sign"));
}

}  // namespace
}  // namespace coxswain
