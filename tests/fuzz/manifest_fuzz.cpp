// A manifest from text to the objects that the API server would be given.
#include "cli/coxswain/manifest.h"
#include "operator/api/parse.h"
#include "operator/reconcile/render.h"
#include "tests/fuzz/require.h"

namespace {

using namespace coxswain;

void render(const Json& manifest) {
  const TrainingJob job = parse_training_job(manifest);
  FUZZ_REQUIRE(job.spec.nodes == manifest["spec"].value("nodes", 1.0) && job.spec.nodes >= 1);
  overridden_by_operator(job);
  render_service(job);
  if (job.spec.has_config()) render_config_map(job, 0);
  // What differs between the pods of a gang is their rank.
  for (const int64_t rank : {int64_t{0}, job.spec.nodes - 1}) {
    const Json pod = render_pod(job, 1, rank, "runtime:1");
    const auto again = load_yaml(to_yaml(pod), "again");
    FUZZ_REQUIRE(again && again->size() == 1 && again->front() == pod);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto documents = load_yaml({reinterpret_cast<const char*>(data), size}, "job.yaml");
  if (!documents) {
    FUZZ_REQUIRE(documents.error().message.starts_with("job.yaml"));
    return 0;
  }
  for (Json document : *documents) {
    const auto again = load_yaml(to_yaml(document), "again");
    FUZZ_REQUIRE(again && again->size() == 1 && again->front() == document);
    parse_training_job(document);  // promises to bear anything
    if (document.is_object()) anchor_paths(document, "/folder");
    if (check_manifest(document).empty()) render(document);
  }
  return 0;
}
