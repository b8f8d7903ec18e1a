// The body of a watch, cut into pieces as a network might, up to the events that a caller sees. The first
// byte says how long the pieces are.
#include "operator/client/metadata.h"
#include "operator/client/rest/api_answer.h"
#include "operator/client/rest/rest_watch.h"
#include "tests/fuzz/require.h"

namespace {

using namespace coxswain;

struct OpenStream : HttpStream {
  void resume() override {}
};

// What a store does with an event: it reads, copies, compares and keeps it.
void take(const WatchEvent& event) {
  metadata::key(event.object);
  metadata::controller(event.object);
  const Json copy = event.object;
  FUZZ_REQUIRE(copy == event.object && event.object.is_object());
  copy.dump(-1, ' ', false, Json::error_handler_t::strict);
}

std::vector<std::string> lines_of(std::string_view body, size_t piece) {
  constexpr size_t kMaxLine = 4096;
  LineFramer framer(kMaxLine);
  std::vector<std::string> lines;
  for (size_t at = 0; at < body.size(); at += piece) {
    const bool fits = framer.feed(body.substr(at, piece), [&](std::string line) {
      FUZZ_REQUIRE(!line.empty() && line.size() <= kMaxLine && line.find('\n') == std::string::npos);
      lines.push_back(std::move(line));
    });
    if (!fits) break;
    FUZZ_REQUIRE(framer.pending() <= kMaxLine + 1);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = 1 + data[0];
  FUZZ_REQUIRE(lines_of(body, piece) == lines_of(body, body.size() + 1));

  auto queue = std::make_shared<WatchQueue>(WatchLimits{4096, 8192}, [] {});
  RestWatch watch(resources::kPods, {"spec/containers/*/env"}, queue, std::make_unique<OpenStream>());
  for (size_t at = 0; at < body.size(); at += piece) queue->on_bytes(body.substr(at, piece));
  queue->on_end();
  while (!watch.ended()) {
    const auto event = watch.next(std::chrono::milliseconds(0));
    FUZZ_REQUIRE(event.has_value());
    take(*event);
  }

  const HttpResponse answer{200, "", std::string(body)};
  if (const auto list = api_answer::list(answer, resources::kPods)) {
    for (const Json& item : list->items)
      take({WatchEventType::kAdded, item.is_object() ? item : Json::object()});
  }
  api_answer::error(HttpResponse{503, std::string(body.substr(0, 20)), std::string(body)});
  return 0;
}
