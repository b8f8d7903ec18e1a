// The client's decisions, over a transport that answers by a script; time stands still but for its waits.
#include "operator/client/rest/rest_api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace coxswain {
namespace {

using namespace std::chrono_literals;
using resources::kPods;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = HttpFailure::Kind;

struct Script {
  std::deque<HttpResult> answers;
  std::vector<HttpRequest> requests;
  std::shared_ptr<HttpBodySink> sink;
  int reconnects = 0;
  int resumes = 0;
  bool stream_closed = false;
};

class ScriptedStream : public HttpStream {
 public:
  explicit ScriptedStream(Script& script) : script_(script) {}
  ~ScriptedStream() override { script_.stream_closed = true; }
  void resume() override { ++script_.resumes; }

 private:
  Script& script_;
};

class ScriptedTransport : public HttpTransport {
 public:
  explicit ScriptedTransport(Script& script) : script_(script) {}
  HttpResult send(const HttpRequest& request, std::chrono::milliseconds) override {
    script_.requests.push_back(request);
    if (script_.answers.empty()) return HttpResponse{200, "", "{}"};
    HttpResult answer = script_.answers.front();
    script_.answers.pop_front();
    return answer;
  }
  tl::expected<Opened, HttpFailure> open(const HttpRequest& request, std::chrono::milliseconds timeout,
                                         std::shared_ptr<HttpBodySink> sink) override {
    const HttpResult head = send(request, timeout);
    if (!head) return tl::unexpected(head.error());
    Opened opened{*head, nullptr};
    if (head->status != 200) return opened;
    script_.sink = std::move(sink);
    opened.stream = std::make_unique<ScriptedStream>(script_);
    return opened;
  }
  void reconnect() override { ++script_.reconnects; }

 private:
  Script& script_;
};

HttpResult answer(int status, const std::string& body = "{}", const std::string& retry_after = "") {
  return HttpResponse{status, retry_after, body};
}

HttpResult failed(Kind kind) {
  return tl::unexpected<HttpFailure>({kind, "why"});
}

class RestApiClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<RestApiClient> client() {
    options_.on_request = [this](const RequestRecord& record) {
      records_.push_back(record.verb + " " + record.resource + " " + std::to_string(record.code));
    };
    const RestClientTiming timing{[this] { return now_; },
                                  [this](std::chrono::steady_clock::duration wait) {
                                    waits_.push_back(std::chrono::ceil<std::chrono::milliseconds>(wait));
                                    now_ += wait;
                                  },
                                  [] { return 0.0; }};
    auto credentials = std::make_shared<Credentials>(
        access_, [this] { return wall_; },
        [this](const ExecPlugin&, const std::string&) -> Result<std::string> {
          return R"({"kind":"ExecCredential","apiVersion":"v","status":{"token":")" + tokens_ + R"("}})";
        });
    credentials_ = credentials;
    return std::make_unique<RestApiClient>(std::make_unique<ScriptedTransport>(script_), credentials,
                                           options_, timing);
  }
  std::string header(size_t request, const std::string& name) {
    for (const auto& [key, value] : script_.requests.at(request).headers) {
      if (key == name) return value;
    }
    return "";
  }

  Script script_;
  ClusterAccess access_;
  RestClientOptions options_;
  std::string tokens_;
  TimePoint wall_{1000h};
  std::shared_ptr<Credentials> credentials_;
  std::chrono::steady_clock::time_point now_{1h};
  std::vector<std::chrono::milliseconds> waits_;
  std::vector<std::string> records_;
};

TEST_F(RestApiClientTest, EachCallIsOneRequest) {
  access_.token = "t";
  const auto api = client();
  const Json pod = {{"metadata", {{"name", "p"}}}};
  EXPECT_TRUE(api->get(kPods, "ns", "p"));
  EXPECT_TRUE(api->list(kPods, "ns", {}));
  EXPECT_TRUE(api->create(kPods, "ns", pod, {}));
  EXPECT_TRUE(api->update(kPods, "ns", pod, {}));
  EXPECT_TRUE(api->update_status(kPods, "ns", pod, {}));
  EXPECT_TRUE(api->merge_patch(kPods, "ns", "p", pod, {}));
  EXPECT_TRUE(api->remove(kPods, "ns", "p", {}));
  EXPECT_TRUE(api->watch(kPods, "ns", {}));
  EXPECT_THAT(records_,
              ElementsAre("get pods 200", "list pods 200", "create pods 200", "update pods 200",
                          "update pods/status 200", "patch pods 200", "delete pods 200", "watch pods 200"));
  for (size_t i = 0; i < script_.requests.size(); ++i) {
    EXPECT_EQ(header(i, "Authorization"), "Bearer t");
    EXPECT_EQ(header(i, "User-Agent"), "coxswain-operator");
  }
  EXPECT_THAT(waits_, ::testing::IsEmpty());
}

TEST_F(RestApiClientTest, RetriesAreCountedAndWaitedFor) {
  script_.answers = {answer(503), answer(429, "", "2"), failed(Kind::kNoAnswer), answer(200)};
  EXPECT_TRUE(client()->get(kPods, "ns", "p"));
  EXPECT_THAT(records_, ElementsAre("get pods 503", "get pods 429", "get pods 0", "get pods 200"));
  EXPECT_THAT(waits_, ElementsAre(200ms, 2000ms, 800ms));
}

TEST_F(RestApiClientTest, TheLastAnswerStands) {
  script_.answers.assign(
      10, answer(429, R"({"kind":"Status","reason":"TooManyRequests","message":"later"})", "1"));
  const auto result = client()->create(kPods, "ns", Json::object(), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, 429);
  EXPECT_EQ(result.error().message, "later");
  EXPECT_EQ(result.error().retry_after, 1s);
  EXPECT_EQ(script_.requests.size(), 4u);
}

TEST_F(RestApiClientTest, ACreateWhoseAnswerIsLostIsNotSentAgain) {
  script_.answers = {failed(Kind::kNoAnswer)};
  const auto result = client()->create(kPods, "ns", Json::object(), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, 0);
  EXPECT_EQ(script_.requests.size(), 1u);
}

TEST_F(RestApiClientTest, RequestsKeepToTheLimit) {
  options_.queries_per_second = 10;
  options_.burst = 2;
  const auto api = client();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(api->get(kPods, "ns", "p"));
  EXPECT_THAT(waits_, ElementsAre(100ms, 100ms));
}

TEST_F(RestApiClientTest, A401IsTriedOnceMoreWithAFreshCredential) {
  access_.exec = ExecPlugin{"v", "login", {}, {}, "", false};
  tokens_ = "old";
  const auto api = client();
  EXPECT_TRUE(api->get(kPods, "ns", "p"));
  wall_ += 1h;
  tokens_ = "new";
  script_.answers = {answer(401), answer(201)};
  EXPECT_TRUE(api->create(kPods, "ns", Json::object(), {}));
  EXPECT_EQ(header(1, "Authorization"), "Bearer old");
  EXPECT_EQ(header(2, "Authorization"), "Bearer new");
  EXPECT_EQ(script_.reconnects, 0);
}

TEST_F(RestApiClientTest, ASecond401Stands) {
  access_.exec = ExecPlugin{"v", "login", {}, {}, "", false};
  tokens_ = "old";
  const auto api = client();
  EXPECT_TRUE(api->get(kPods, "ns", "p"));
  wall_ += 1h;
  tokens_ = "new";
  script_.answers.assign(5, answer(401));
  EXPECT_EQ(api->get(kPods, "ns", "p").error().code, 401);
  EXPECT_EQ(script_.requests.size(), 3u);
}

TEST_F(RestApiClientTest, A401WithNothingFresherStands) {
  access_.token = "t";
  script_.answers = {answer(401), answer(200)};
  const auto result = client()->get(kPods, "ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, 401);
  EXPECT_EQ(script_.requests.size(), 1u);
}

TEST_F(RestApiClientTest, WithoutACredentialNothingIsSent) {
  access_.token_file = "/nowhere/token";
  const auto result = client()->get(kPods, "ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, 0);
  EXPECT_THAT(result.error().message, HasSubstr("/nowhere/token"));
  EXPECT_TRUE(script_.requests.empty());
}

TEST_F(RestApiClientTest, AWatchGivesEventsAsTheyCome) {
  int ready = 0;
  auto watch = client()->watch(kPods, "ns", {.resource_version = "7", .on_ready = [&] { ++ready; }});
  ASSERT_TRUE(watch);
  EXPECT_FALSE((*watch)->next(0ms));
  EXPECT_TRUE(script_.sink->on_bytes("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na"));
  EXPECT_EQ(ready, 0);
  EXPECT_FALSE((*watch)->next(0ms));
  EXPECT_TRUE(script_.sink->on_bytes("me\":\"p\"}}}\n"));
  EXPECT_EQ(ready, 1);
  const auto event = (*watch)->next(0ms);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, WatchEventType::kAdded);
  EXPECT_EQ(event->object.at("metadata").at("name"), "p");
  EXPECT_EQ(event->object.at("kind"), "Pod");
  EXPECT_FALSE((*watch)->ended());
}

TEST_F(RestApiClientTest, AnEndedWatchGivesWhatHasComeAndDropsHalfALine) {
  int ready = 0;
  auto watch = client()->watch(kPods, "ns", {.resource_version = "", .on_ready = [&] { ++ready; }});
  ASSERT_TRUE(watch);
  script_.sink->on_bytes("{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"DEL");
  script_.sink->on_end();
  EXPECT_EQ(ready, 2);
  EXPECT_FALSE((*watch)->ended());
  EXPECT_TRUE((*watch)->next(0ms));
  EXPECT_TRUE((*watch)->ended());
  EXPECT_FALSE((*watch)->next(1h));
}

TEST_F(RestApiClientTest, ADestroyedWatchClosesItsStreamAndSignalsNoMore) {
  int ready = 0;
  auto watch = client()->watch(kPods, "ns", {.on_ready = [&] { ++ready; }});
  ASSERT_TRUE(watch);
  watch->reset();
  EXPECT_TRUE(script_.stream_closed);
  script_.sink->on_bytes("{\"type\":\"ADDED\",\"object\":{}}\n");
  script_.sink->on_end();
  EXPECT_EQ(ready, 0);
}

TEST_F(RestApiClientTest, AnErrorEventEndsTheWatch) {
  auto watch = client()->watch(kPods, "ns", {});
  ASSERT_TRUE(watch);
  script_.sink->on_bytes(
      "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n{\"type\":\"ADDED\",\"object\":{}}\n");
  const auto event = (*watch)->next(0ms);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object.at("code"), 410);
  EXPECT_TRUE(script_.stream_closed);
  EXPECT_TRUE((*watch)->ended());
  EXPECT_FALSE((*watch)->next(0ms));
}

TEST_F(RestApiClientTest, AnEventThatIsTooLongEndsTheWatchWithAnError) {
  options_.watch.max_line_bytes = 100;
  auto watch = client()->watch(kPods, "ns", {});
  ASSERT_TRUE(watch);
  script_.sink->on_bytes("{\"type\":\"ADDED\",\"object\":{}}\n" + std::string(200, ' '));
  EXPECT_EQ((*watch)->next(0ms)->type, WatchEventType::kAdded);
  const auto event = (*watch)->next(0ms);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, WatchEventType::kError);
  EXPECT_TRUE((*watch)->ended());
}

TEST_F(RestApiClientTest, ASlowReaderHoldsTheStreamBack) {
  options_.watch.max_queued_bytes = 100;
  auto watch = client()->watch(kPods, "ns", {});
  ASSERT_TRUE(watch);
  const std::string event = "{\"type\":\"ADDED\",\"object\":{}}\n";
  EXPECT_TRUE(script_.sink->on_bytes(event));
  EXPECT_FALSE(script_.sink->on_bytes(event + event + event));
  EXPECT_TRUE((*watch)->next(0ms));
  EXPECT_TRUE((*watch)->next(0ms));
  EXPECT_EQ(script_.resumes, 0);
  EXPECT_TRUE((*watch)->next(0ms));
  EXPECT_EQ(script_.resumes, 1);
  EXPECT_TRUE((*watch)->next(0ms));
  EXPECT_EQ(script_.resumes, 1);
}

TEST_F(RestApiClientTest, AWatchThatIsRefusedIsAnError) {
  script_.answers = {answer(410, R"({"kind":"Status","reason":"Expired","message":"too old","code":410})")};
  const auto watch = client()->watch(kPods, "ns", {});
  ASSERT_FALSE(watch);
  EXPECT_TRUE(watch.error().expired());
}

}  // namespace
}  // namespace coxswain
