// HTTP as the API client needs it: whole answers, and streamed ones. The one implementation that speaks to a
// network is CppRestTransport.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace coxswain {

struct HttpRequest {
  std::string method;  // GET, POST, PUT, PATCH, DELETE
  std::string target;  // "/api/v1/pods?watch=true", escaped
  std::string accept;
  std::string content_type;  // of the body; "": no body
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // Authorization and the like
};

struct HttpResponse {
  int status = 0;
  std::string retry_after;  // the header; "": none
  std::string body;
};

struct HttpFailure {
  enum class Kind {
    kNotSent,    // the server can't have acted: no name, no connection, no handshake
    kNoAnswer,   // sent, perhaps carried out; the connection went before the answer was complete
    kTimeout,    // the time for the whole exchange passed; perhaps carried out
    kUntrusted,  // the server's certificate was refused, or our own can't be read: nothing was sent
  };
  Kind kind = Kind::kNoAnswer;
  std::string message;  // one sentence; never holds a header or a body
};

using HttpResult = tl::expected<HttpResponse, HttpFailure>;

// Takes a streamed body, on threads of the transport, one call at a time.
class HttpBodySink {
 public:
  virtual ~HttpBodySink() = default;
  // False: hold the rest back until HttpStream::resume().
  virtual bool on_bytes(std::string_view bytes) = 0;
  // The body is complete, was cut, or stalled; called once, last.
  virtual void on_end() = 0;
};

// A body that is still coming. Destroying it closes the connection without waiting; afterwards the sink is
// not called again (a call in progress on another thread may still end).
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  virtual void resume() = 0;
};

// Thread-safe.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  virtual HttpResult send(const HttpRequest& request, std::chrono::milliseconds timeout) = 0;

  struct Opened {
    HttpResponse response;               // body only where there is no stream
    std::unique_ptr<HttpStream> stream;  // of a 200
  };
  // Waits up to `timeout` for the answer's head. An answer other than 200 comes whole, like send()'s.
  virtual tl::expected<Opened, HttpFailure> open(const HttpRequest& request,
                                                 std::chrono::milliseconds timeout,
                                                 std::shared_ptr<HttpBodySink> sink) = 0;

  // Later requests use new connections: client certificates have changed.
  virtual void reconnect() = 0;
};

}  // namespace coxswain
