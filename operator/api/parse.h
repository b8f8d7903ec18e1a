// TrainingJob ↔ the JSON of the Kubernetes API, and manifests as YAML text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "operator/api/training_job.h"

namespace coxswain {

// JSON of the API server (or of a manifest) → typed, defaults applied. Lenient where validate() is strict:
// what has the wrong type is left at its default, so call validate() first wherever a person wrote the JSON.
// Never throws.
TrainingJob parse_training_job(const Json& object);

// The status subresource's JSON. Absent optionals and empty strings are left out.
Json status_to_json(const TrainingJobStatus& status);
TrainingJobStatus parse_status(const Json& status);

// All documents of a YAML stream as JSON, by YAML 1.2's core schema: quoted scalars stay strings; plain ones
// become null, bool, integer or float where they look like it (`yes`, `on` and `012` do not; `1e-5` is a
// float); anchors and merge keys are resolved. Empty documents are left out. `name` is the file name for
// messages: `name:line: …`.
Result<std::vector<Json>> load_yaml(std::string_view text, const std::string& name);
// The same of a file; a missing or unreadable file is a failure that names it.
Result<std::vector<Json>> load_yaml_file(const std::string& path);

// JSON as block-style YAML that load_yaml (and any YAML 1.1 or 1.2 reader) reads back as the same values. Map
// keys come in the order of `value`; for Kubernetes objects apiVersion, kind and metadata come first. Ends
// with a newline.
std::string to_yaml(const Json& value);

// RFC 3339 in UTC, whole seconds: 2026-11-30T22:15:00Z.
std::string format_time(TimePoint time);
// Accepts fractions and offsets; nothing where the text is no RFC 3339 time.
std::optional<TimePoint> parse_time(const std::string& text);

// A Kubernetes quantity (`500m`, `1.5Gi`, `2e3`) as a number, or nothing where it is none.
std::optional<double> parse_quantity(const std::string& text);

}  // namespace coxswain
