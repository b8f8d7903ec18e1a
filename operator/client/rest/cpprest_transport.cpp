#include "operator/client/rest/cpprest_transport.h"

#include <cpprest/http_client.h>
#include <cpprest/producerconsumerstream.h>
#include <openssl/err.h>
#include <pplx/threadpool.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace coxswain {

namespace {

namespace http = web::http;
using Clock = std::chrono::steady_clock;
using ErrorKind = HttpFailure::Kind;

// Enough for the callbacks, which only move bytes; more cost switches between them, and the library's own 40
// threads memory, for nothing.
constexpr size_t kThreads = 1;
// What it sets aside for each read. Its own 64 KiB are cleared each time, and too large for the heap's quick
// lists.
constexpr size_t kReadBytes = 16 << 10;

void start_threads() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(kThreads);
    } catch (const std::exception&) {
      // Somebody in this process has already used the library: its pool will do.
    }
  });
}

// What a caller waits for while the library's threads work. Shared, since the caller may give up first.
class Exchange {
 public:
  std::atomic<bool> sent{false};

  void finish(HttpResult result) {
    std::lock_guard lock(mutex_);
    if (!result_) result_ = std::move(result);
    done_.notify_all();
  }
  std::optional<HttpResult> wait_until(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    done_.wait_until(lock, deadline, [&] { return result_.has_value(); });
    return std::move(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<HttpResult> result_;
};

// Where the library writes a streamed body. Holds bytes back until it is known what they are, and while the
// sink is full: the library reads on only when a write's task is done.
class SinkBuffer : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  SinkBuffer() : streambuf_state_manager(std::ios_base::out) {}

  void stream_to(std::shared_ptr<HttpBodySink> sink) { settle(Mode::kStream, std::move(sink)); }
  void collect() { settle(Mode::kCollect, nullptr); }
  void drop() { settle(Mode::kDrop, nullptr); }

  std::string collected() {
    std::lock_guard lock(mutex_);
    return std::move(collected_);
  }
  void resume() {
    std::optional<Held> held;
    {
      std::lock_guard lock(mutex_);
      resumed_ = true;
      held = std::exchange(held_, std::nullopt);
    }
    if (held) held->written.set(held->count);
  }
  void end() {
    std::shared_ptr<HttpBodySink> sink;
    {
      std::lock_guard lock(mutex_);
      sink = std::exchange(sink_, nullptr);
    }
    if (sink) sink->on_end();
  }

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return static_cast<pos_type>(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override {
    return static_cast<pos_type>(traits::eof());
  }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return static_cast<pos_type>(traits::eof());
  }
  bool acquire(uint8_t*&, size_t&) override { return false; }
  void release(uint8_t*, size_t) override {}

 protected:
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count) override {
    std::unique_lock lock(mutex_);
    if (mode_ == Mode::kUnknown) {
      held_ = Held{bytes, count, {}};
      return pplx::create_task(held_->written);
    }
    return put(std::move(lock), bytes, count);
  }
  pplx::task<int_type> _putc(uint8_t byte) override {
    return _putn(&byte, 1).then([byte](size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<int_type> _bumpc() override { return eof(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return eof(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return eof(); }
  pplx::task<int_type> _ungetc() override { return eof(); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

 private:
  enum class Mode { kUnknown, kStream, kCollect, kDrop };
  struct Held {
    const uint8_t* bytes;
    size_t count;
    pplx::task_completion_event<size_t> written;
  };

  static pplx::task<int_type> eof() { return pplx::task_from_result<int_type>(traits::eof()); }

  void settle(Mode mode, std::shared_ptr<HttpBodySink> sink) {
    std::unique_lock lock(mutex_);
    const bool unknown = mode_ == Mode::kUnknown;
    if (mode_ != Mode::kDrop) {
      mode_ = mode;
      sink_ = std::move(sink);
    }
    auto held = std::exchange(held_, std::nullopt);
    if (!held) return;
    if (!unknown || mode == Mode::kDrop) {
      lock.unlock();
      held->written.set(held->count);
      return;
    }
    put(std::move(lock), held->bytes, held->count).then([held = *held](size_t count) {
      held.written.set(count);
    });
  }

  pplx::task<size_t> put(std::unique_lock<std::mutex> lock, const uint8_t* bytes, size_t count) {
    const std::string_view text(reinterpret_cast<const char*>(bytes), count);
    if (mode_ == Mode::kCollect) collected_ += text;
    const auto sink = sink_;
    if (!sink) return pplx::task_from_result(count);
    resumed_ = false;
    lock.unlock();
    const bool more = sink->on_bytes(text);
    lock.lock();
    if (more || resumed_ || !sink_) return pplx::task_from_result(count);
    held_ = Held{nullptr, count, {}};
    return pplx::create_task(held_->written);
  }

  std::mutex mutex_;
  Mode mode_ = Mode::kUnknown;
  std::shared_ptr<HttpBodySink> sink_;
  std::string collected_;
  std::optional<Held> held_;
  bool resumed_ = false;
};

class CppRestStream : public HttpStream {
 public:
  CppRestStream(std::shared_ptr<SinkBuffer> buffer, pplx::cancellation_token_source cancel)
      : buffer_(std::move(buffer)), cancel_(std::move(cancel)) {}
  ~CppRestStream() override {
    buffer_->drop();
    cancel_.cancel();
  }
  void resume() override { buffer_->resume(); }

 private:
  const std::shared_ptr<SinkBuffer> buffer_;
  pplx::cancellation_token_source cancel_;
};

HttpResponse head_of(const http::http_response& response) {
  HttpResponse head;
  head.status = response.status_code();
  response.headers().match("Retry-After", head.retry_after);
  return head;
}

// The library hands an OpenSSL error's number on as if it were errno's.
std::string describe(const http::http_exception& error) {
  const int code = error.error_code().value();
  std::string text = error.what();
  if (const char* reason = ERR_reason_error_string(static_cast<unsigned>(code))) {
    return text + ": " + reason;
  }
  // It calls a refused connection EHOSTUNREACH, which would mislead.
  if (code > 0 && code < 200 && code != EHOSTUNREACH)
    return text + ": " + std::generic_category().message(code);
  return text;
}

// Puts failures in words. Shared with callbacks that may outlive the transport.
struct Explainer {
  std::string authority;
  TlsDiagnosis tls;

  HttpFailure failure(const std::exception_ptr& exception, bool sent) {
    const std::string refused = sent ? "" : tls.take();
    if (!refused.empty()) return {ErrorKind::kUntrusted, authority + ": " + refused};
    std::string why = "unknown error";
    try {
      std::rethrow_exception(exception);
    } catch (const http::http_exception& error) {
      why = describe(error);
      // What the library says of a POST that it can't send a second time.
      if (why.starts_with("cannot rewind")) why = "the server closed the connection before it answered";
    } catch (const std::exception& error) {
      why = error.what();
    }
    return {sent ? ErrorKind::kNoAnswer : ErrorKind::kNotSent, authority + ": " + why};
  }

  HttpFailure timed_out(std::chrono::milliseconds timeout, bool sent) const {
    return {ErrorKind::kTimeout, authority + (sent ? ": no complete answer" : ": no connection") +
                                     " within " + std::to_string(timeout.count()) + " ms"};
  }
};

// The head of a streamed answer is there: says what becomes of its body.
void receive(const http::http_response& response, const std::shared_ptr<Exchange>& exchange,
             const std::shared_ptr<SinkBuffer>& buffer, const std::shared_ptr<HttpBodySink>& sink) {
  const HttpResponse head = head_of(response);
  const bool streams = head.status == 200;
  if (streams) {
    exchange->finish(head);
    buffer->stream_to(sink);
  } else {
    buffer->collect();
  }
  response.content_ready().then([=](const pplx::task<http::http_response>& done) {
    try {
      done.get();
    } catch (...) {
      // Cut or stalled: for a stream that is how it ends; of an error's body what came will do.
    }
    if (streams) return buffer->end();
    HttpResponse whole = head;
    whole.body = buffer->collected();
    exchange->finish(std::move(whole));
  });
}

}  // namespace

class CppRestTransport : public HttpTransport {
 public:
  explicit CppRestTransport(TransportSettings settings)
      : settings_(std::move(settings)), explain_(std::make_shared<Explainer>()) {
    explain_->authority = settings_.server.authority();
    start_threads();
    reconnect();
  }

  HttpResult send(const HttpRequest& request, std::chrono::milliseconds timeout) override;
  tl::expected<Opened, HttpFailure> open(const HttpRequest& request, std::chrono::milliseconds timeout,
                                         std::shared_ptr<HttpBodySink> sink) override;
  void reconnect() override;

 private:
  using Client = std::shared_ptr<http::client::http_client>;

  http::client::http_client_config config(std::chrono::milliseconds idle, bool compression) const;
  http::http_request message(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) const;
  Client client(bool streams) {
    std::lock_guard lock(mutex_);
    return streams ? streams_ : requests_;
  }

  const TransportSettings settings_;
  const std::shared_ptr<Explainer> explain_;
  std::mutex mutex_;
  Client requests_;
  Client streams_;
};

http::client::http_client_config CppRestTransport::config(std::chrono::milliseconds idle,
                                                          bool compression) const {
  http::client::http_client_config config;
  config.set_timeout(idle);
  config.set_chunksize(kReadBytes);
  config.set_max_redirects(0);  // a redirect would take the token with it
  config.set_request_compressed_response(compression);
  config.set_validate_certificates(settings_.tls.verify);
  config.set_tlsext_sni_enabled(!is_ip_address(settings_.tls.server_name));
  config.set_ssl_context_callback(
      [tls = settings_.tls, explain = explain_](boost::asio::ssl::context& context) {
        // Shares the explainer's life.
        const std::shared_ptr<TlsDiagnosis> diagnosis(explain, &explain->tls);
        const auto configured = configure_tls(context.native_handle(), tls, diagnosis);
        if (configured) return;
        diagnosis->note(configured.error().message);
        throw std::runtime_error("TLS can't be set up");
      });
  if (settings_.proxy) {
    const Url& url = *settings_.proxy;
    web::web_proxy proxy(web::uri("http://" + url.authority()));
    if (!url.user.empty()) proxy.set_credentials(web::credentials(url.user, url.password));
    config.set_proxy(proxy);
  }
  return config;
}

void CppRestTransport::reconnect() {
  const Url& server = settings_.server;
  // The library would look up an IPv6 address with its brackets; without them its parser still finds the
  // port. message() sets the Host header right.
  const web::uri address(server.scheme + "://" + server.host + ":" + std::to_string(server.port));
  auto requests = std::make_shared<http::client::http_client>(
      address, config(settings_.request_idle_timeout, settings_.compression));
  auto streams =
      std::make_shared<http::client::http_client>(address, config(settings_.stream_idle_timeout, false));
  std::lock_guard lock(mutex_);
  requests_ = std::move(requests);
  streams_ = std::move(streams);
}

http::http_request CppRestTransport::message(const HttpRequest& request,
                                             const std::shared_ptr<Exchange>& exchange) const {
  http::http_request message(request.method);
  message.set_request_uri(web::uri(settings_.server.path + request.target));
  auto& headers = message.headers();
  headers.add("Accept", request.accept);
  for (const auto& [name, value] : request.headers) headers.add(name, value);
  // The library sends the Host header's name as SNI, too.
  const bool other_name = settings_.server.tls() && settings_.tls.server_name != settings_.server.host;
  if (other_name) {
    headers.add("Host", settings_.tls.server_name);
  } else if (is_ipv6_address(settings_.server.host)) {
    headers.add("Host", settings_.server.authority());
  }
  if (request.method == "POST") {
    // A stream that can't be rewound keeps the library from sending it a second time.
    concurrency::streams::producer_consumer_buffer<uint8_t> body;
    body.putn_nocopy(reinterpret_cast<const uint8_t*>(request.body.data()), request.body.size()).wait();
    body.close(std::ios_base::out).wait();
    message.set_body(body.create_istream(), request.body.size(), request.content_type);
  } else if (!request.content_type.empty()) {
    message.set_body(std::vector<unsigned char>(request.body.begin(), request.body.end()));
    headers.set_content_type(request.content_type);
  }
  message.set_progress_handler([exchange](http::message_direction::direction direction, utility::size64_t) {
    if (direction == http::message_direction::upload) exchange->sent = true;
  });
  return message;
}

HttpResult CppRestTransport::send(const HttpRequest& request, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  auto exchange = std::make_shared<Exchange>();
  pplx::cancellation_token_source cancel;
  try {
    auto head = std::make_shared<HttpResponse>();
    client(false)
        ->request(message(request, exchange), cancel.get_token())
        .then([head](const http::http_response& response) {
          *head = head_of(response);
          return response.extract_vector();
        })
        .then([explain = explain_, head, exchange](const pplx::task<std::vector<unsigned char>>& task) {
          try {
            const auto body = task.get();
            head->body.assign(body.begin(), body.end());
            exchange->finish(std::move(*head));
          } catch (...) {
            exchange->finish(tl::unexpected(explain->failure(std::current_exception(), exchange->sent)));
          }
        });
  } catch (...) {
    return tl::unexpected(explain_->failure(std::current_exception(), false));
  }
  if (auto result = exchange->wait_until(deadline)) return std::move(*result);
  cancel.cancel();
  return tl::unexpected(explain_->timed_out(timeout, exchange->sent));
}

tl::expected<HttpTransport::Opened, HttpFailure> CppRestTransport::open(const HttpRequest& request,
                                                                        std::chrono::milliseconds timeout,
                                                                        std::shared_ptr<HttpBodySink> sink) {
  const auto deadline = Clock::now() + timeout;
  auto exchange = std::make_shared<Exchange>();
  auto buffer = std::make_shared<SinkBuffer>();
  pplx::cancellation_token_source cancel;
  try {
    auto outgoing = message(request, exchange);
    const concurrency::streams::streambuf<uint8_t> body(buffer);
    outgoing.set_response_stream(body.create_ostream());
    client(true)
        ->request(outgoing, cancel.get_token())
        .then([explain = explain_, exchange, buffer, sink](const pplx::task<http::http_response>& task) {
          try {
            receive(task.get(), exchange, buffer, sink);
          } catch (...) {
            exchange->finish(tl::unexpected(explain->failure(std::current_exception(), exchange->sent)));
          }
        });
  } catch (...) {
    return tl::unexpected(explain_->failure(std::current_exception(), false));
  }
  auto result = exchange->wait_until(deadline);
  if (!result) {
    buffer->drop();
    cancel.cancel();
    return tl::unexpected(explain_->timed_out(timeout, exchange->sent));
  }
  if (!*result) return tl::unexpected(result->error());
  Opened opened{std::move(**result), nullptr};
  if (opened.response.status == 200) {
    opened.stream = std::make_unique<CppRestStream>(std::move(buffer), std::move(cancel));
  }
  return opened;
}

std::unique_ptr<HttpTransport> make_cpprest_transport(TransportSettings settings) {
  return std::make_unique<CppRestTransport>(std::move(settings));
}

}  // namespace coxswain
