#include "runtime/metrics/event_record.h"

#include <bit>
#include <boost/crc.hpp>
#include <cstring>

namespace coxswain {

namespace {

static_assert(std::endian::native == std::endian::little, "TFRecord and protobuf numbers are little-endian");

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Field numbers of tensorflow's event.proto and summary.proto.
enum EventField : uint64_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField : uint64_t { kValue = 1 };
enum ValueField : uint64_t { kTag = 1, kSimpleValue = 2 };
enum SessionLogField : uint64_t { kStatus = 1 };
constexpr uint64_t kSessionStart = 1;

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, uint64_t field, WireType type) {
  put_varint(out, field << 3 | type);
}

template <typename T>
void put_raw(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_bytes(std::string& out, uint64_t field, const std::string& bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_at(double wall_time, int64_t step) {
  std::string event;
  put_key(event, kWallTime, kFixed64);
  put_raw(event, wall_time);
  put_key(event, kStep, kVarint);
  put_varint(event, static_cast<uint64_t>(step));
  return event;
}

uint32_t masked_crc(const std::string& bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc32c;
  crc32c.process_bytes(bytes.data(), bytes.size());
  const uint32_t crc = crc32c.checksum();
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

}  // namespace

std::string encode_version_event(double wall_time) {
  std::string event = event_at(wall_time, 0);
  put_bytes(event, kFileVersion, "brain.Event:2");
  return event;
}

std::string encode_restart_event(double wall_time, int64_t step) {
  std::string log;
  put_key(log, kStatus, kVarint);
  put_varint(log, kSessionStart);
  std::string event = event_at(wall_time, step);
  put_bytes(event, kSessionLog, log);
  return event;
}

std::string encode_scalars_event(double wall_time, int64_t step,
                                 const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, kTag, tag);
    put_key(value, kSimpleValue, kFixed32);
    put_raw(value, static_cast<float>(number));
    put_bytes(summary, kValue, value);
  }
  std::string event = event_at(wall_time, step);
  put_bytes(event, kSummary, summary);
  return event;
}

std::string frame_record(const std::string& data) {
  std::string record;
  put_raw(record, static_cast<uint64_t>(data.size()));
  put_raw(record, masked_crc(record));
  record += data;
  put_raw(record, masked_crc(data));
  return record;
}

}  // namespace coxswain
