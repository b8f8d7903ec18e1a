// TCP ports of this machine.
#pragma once

#include <string>

#include "contract/result.h"

namespace coxswain {

// Whether `address` names this machine's loopback ("127.0.0.1", "localhost", "::1"): then the job is all on
// this machine, and nothing of it needs to be reached from elsewhere.
bool is_loopback(const std::string& address);

// kPortInUse if a listener has the port; `name` says in the message whose port it is ("MASTER_PORT").
Result<void> check_port_free(const std::string& name, int port);

// A port number from text; `name` is the variable it stands in.
Result<int> read_port(const std::string& name, const std::string& text);

// A port that is free now.
Result<int> find_free_port();

}  // namespace coxswain
