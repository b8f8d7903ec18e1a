// A kubeconfig, and the choice of each of its contexts.
#include "operator/client/rest/kubeconfig.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coxswain;
  auto config = parse_kubeconfig({reinterpret_cast<const char*>(data), size}, "/folder/config");
  if (!config) {
    FUZZ_REQUIRE(!config.error().message.empty());
    return 0;
  }
  Kubeconfig merged = *config;
  merge_kubeconfig(merged, *config);
  FUZZ_REQUIRE(merged.contexts.size() == config->contexts.size());
  for (const auto& [name, _] : merged.contexts) {
    const auto access = select_context(merged, name);
    FUZZ_REQUIRE(access ? !access->server.host.empty() : !access.error().message.empty());
  }
  select_context(merged, "");
  return 0;
}
