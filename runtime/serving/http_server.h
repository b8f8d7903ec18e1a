// A small HTTP server for what a program shows of itself: a few pages, GET and HEAD, small answers. No TLS.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>

namespace coxswain {

struct HttpPage {
  int status = 200;
  std::string content_type;
  std::string body;
};

// By path. Called from any of the server's threads, several at a time; one that throws answers 500.
using HttpPages = std::map<std::string, std::function<HttpPage()>>;

struct HttpServerOptions {
  std::string host;  // a name or address of this machine; "": all addresses, IPv6 where there is any
  int port = 0;      // 0: any free one
  int threads = 16;  // connections served at a time; others wait
  // A connection, from the first look at it to the end of the answer: each has one request. A client that is
  // slow holds a thread no longer than this, whatever it does.
  std::chrono::milliseconds connection_limit{3000};
};

class HttpServer {
 public:
  // Serves until destroyed. The failure says why the port can't be opened, as the end of a sentence.
  static tl::expected<std::unique_ptr<HttpServer>, std::string> start(HttpPages pages,
                                                                      const HttpServerOptions& options);

  // Closes the port and all connections, and waits only for pages that are being made.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace coxswain
