// The bytes of a TensorBoard event file: protobuf messages Event framed as TFRecords. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace coxswain {

// Event{wall_time, file_version: "brain.Event:2"}: the first of each file.
std::string encode_version_event(double wall_time);

// Event{wall_time, step, session_log: START}: readers forget events of steps ≥ step that came before.
std::string encode_restart_event(double wall_time, int64_t step);

// Event{wall_time, step, summary: (tag, float)…}.
std::string encode_scalars_event(double wall_time, int64_t step,
                                 const std::vector<std::pair<std::string, double>>& scalars);

// Length, its masked CRC32C, data, its masked CRC32C.
std::string frame_record(const std::string& data);

}  // namespace coxswain
