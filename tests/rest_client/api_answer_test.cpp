#include "operator/client/rest/api_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coxswain {
namespace {

using ::testing::HasSubstr;

HttpResult answer(int status, const std::string& body, const std::string& retry_after = "") {
  return HttpResponse{status, retry_after, body};
}

TEST(ApiAnswer, AStatusIsTakenOverAsItIs) {
  const auto result = api_answer::object(answer(
      409, R"({"kind":"Status","reason":"AlreadyExists","message":"pods \"p\" already exists","code":409})"));
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().already_exists());
  EXPECT_EQ(result.error().message, "pods \"p\" already exists");
}

TEST(ApiAnswer, RetryAfterComesFromTheHeaderElseFromTheDetails) {
  const std::string body =
      R"({"kind":"Status","reason":"TooManyRequests","message":"m","details":{"retryAfterSeconds":4}})";
  EXPECT_EQ(api_answer::error({429, "9", body}).retry_after, std::chrono::seconds(9));
  EXPECT_EQ(api_answer::error({429, "", body}).retry_after, std::chrono::seconds(4));
  EXPECT_EQ(api_answer::error({429, "", ""}).retry_after, std::nullopt);
}

TEST(ApiAnswer, AGatewaysPageIsQuotedShort) {
  const ApiError error = api_answer::error({502, "", "<html>" + std::string(5000, 'x')});
  EXPECT_EQ(error.code, 502);
  EXPECT_THAT(error.message, ::testing::StartsWith("HTTP 502: <html>x"));
  EXPECT_LT(error.message.size(), 300u);
  EXPECT_EQ(api_answer::error({404, "", ""}).reason, "NotFound");
}

TEST(ApiAnswer, NoAnswerIsCodeZero) {
  for (const auto kind : {HttpFailure::Kind::kNotSent, HttpFailure::Kind::kNoAnswer,
                          HttpFailure::Kind::kTimeout, HttpFailure::Kind::kUntrusted}) {
    const auto result = api_answer::object(tl::unexpected<HttpFailure>({kind, "why"}));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, 0);
    EXPECT_EQ(result.error().message, "why");
  }
}

TEST(ApiAnswer, ABodyThatIsNoObjectIsAnError) {
  for (const std::string body : {"", "[]", "{\"a\"", "null"}) {
    const auto result = api_answer::object(answer(200, body));
    ASSERT_FALSE(result) << body;
    EXPECT_EQ(result.error().code, 0);
  }
}

TEST(ApiAnswer, ListItemsGetTheirKind) {
  const auto list = api_answer::list(
      answer(200,
             R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"c","remainingItemCount":3},
                      "items":[{"metadata":{"name":"a"}},
                               {"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{}}]})"),
      resources::kPods);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->resource_version, "7");
  EXPECT_EQ(list->continue_token, "c");
  EXPECT_EQ(list->remaining, 3);
  ASSERT_EQ(list->items.size(), 2u);
  for (const Json& item : list->items) {
    EXPECT_EQ(item.at("kind"), "Pod");
    EXPECT_EQ(item.at("apiVersion"), "v1");
  }
}

TEST(ApiAnswer, EmptyListsMayBeNull) {
  const auto list =
      api_answer::list(answer(200, R"({"metadata":{"resourceVersion":"7"},"items":null})"), resources::kPods);
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->items.empty());
  EXPECT_FALSE(api_answer::list(answer(200, R"({"items":{}})"), resources::kPods));
}

TEST(ApiAnswer, WatchEvents) {
  const auto event = [](const std::string& line) { return api_answer::watch_event(line, resources::kPods); };
  EXPECT_EQ(event(R"({"type":"ADDED","object":{"kind":"Pod"}})").type, WatchEventType::kAdded);
  EXPECT_EQ(event(R"({"type":"MODIFIED","object":{}})").object.at("kind"), "Pod");
  EXPECT_EQ(event(R"({"type":"DELETED","object":{}})").type, WatchEventType::kDeleted);
  EXPECT_EQ(event(R"({"type":"BOOKMARK","object":{}})").type, WatchEventType::kBookmark);
  const WatchEvent expired = event(R"({"type":"ERROR","object":{"kind":"Status","code":410}})");
  EXPECT_EQ(expired.type, WatchEventType::kError);
  EXPECT_EQ(expired.object.at("code"), 410);
}

TEST(ApiAnswer, AnObjectNestedWithoutEndIsNoDangerToTheOthers) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(100'000, '}');
  const std::string object = R"({"metadata":{"name":"j"},"spec":)" + deep + "}";
  const WatchEvent event =
      api_answer::watch_event(R"({"type":"ADDED","object":)" + object + "}", resources::kTrainingJobs);
  EXPECT_EQ(event.type, WatchEventType::kAdded);
  EXPECT_EQ(event.object.at("metadata").at("name"), "j");
  const Json copy = event.object;
  EXPECT_EQ(copy, event.object);
  const auto list =
      api_answer::list(answer(200, R"({"metadata":{"resourceVersion":"7"},"items":[)" + object + "]}"),
                       resources::kTrainingJobs);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items.size(), 1u);
}

TEST(ApiAnswer, NobodyIsWaitedForLongerThanAnHour) {
  const auto asked = [](const std::string& seconds) {
    return api_answer::error(
               {503, "", R"({"kind":"Status","details":{"retryAfterSeconds":)" + seconds + "}}"})
        .retry_after;
  };
  EXPECT_EQ(asked("7"), std::chrono::seconds(7));
  EXPECT_EQ(asked("99999999999999"), std::chrono::hours(1));
  EXPECT_EQ(asked("18446744073709551615"), std::nullopt);
  EXPECT_EQ(asked("-1"), std::nullopt);
  EXPECT_EQ(api_answer::error({503, "2000000000", ""}).retry_after, std::chrono::hours(1));
}

TEST(ApiAnswer, ALineThatIsNoEventIsAnError) {
  for (const std::string line :
       {"x", "{}", "[]", "3", R"({"type":"ADDED"})", R"({"type":"ADDED","object":3})",
        R"({"type":"OTHER","object":{}})", R"({"type":3,"object":{}})"}) {
    const WatchEvent event = api_answer::watch_event(line, resources::kPods);
    EXPECT_EQ(event.type, WatchEventType::kError) << line;
    EXPECT_EQ(event.object.at("code"), 500) << line;
  }
  EXPECT_EQ(api_answer::watch_event(R"({"kind":"Status","code":410})", resources::kPods).object.at("code"),
            410);
}

}  // namespace
}  // namespace coxswain
