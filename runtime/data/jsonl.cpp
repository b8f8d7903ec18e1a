#include "runtime/data/jsonl.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace coxswain {
namespace {

// A file mapped for reading; unmapped when it goes.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path) {
    MappedFile file;
    struct stat status {};
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::fstat(fd, &status) != 0) return failed(path, fd);
    file.size_ = static_cast<size_t>(status.st_size);
    if (file.size_ > 0) file.data_ = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file.data_ == MAP_FAILED) return failed(path, fd);
    ::close(fd);
    if (file.size_ > 0) ::madvise(file.data_, file.size_, MADV_SEQUENTIAL);
    return file;
  }

  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (size_ > 0 && data_ != MAP_FAILED) ::munmap(data_, size_);
  }

  std::string_view content() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile() = default;

  static tl::unexpected<Failure> failed(const std::filesystem::path& path, int fd) {
    const int cause = errno;
    if (fd >= 0) ::close(fd);
    return bad_input("Can't read " + path.string() + ": " + std::strerror(cause) + ".");
  }

  void* data_ = nullptr;
  size_t size_ = 0;
};

// The part of the library's message that says what is wrong: after its own prefix with position and context.
std::string reason_of(const OrderedJson::parse_error& error) {
  std::string text = error.what();
  if (const auto dash = text.find(" - "); dash != std::string::npos) text = text.substr(dash + 3);
  if (const auto read = text.find("; last read: "); read != std::string::npos) {
    const auto end = text.find("; expected ", read);
    text = text.substr(0, read) + (end == std::string::npos ? "" : text.substr(end));
  }
  return text;
}

// Deeper than this no row is meant, and what walks a row later (copies, templates) recurses.
constexpr int kMaxNesting = 100;

int nesting(std::string_view line) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest;
}

bool continues(unsigned char c) {
  return (c & 0xC0) == 0x80;
}

// Length of the valid character at text[i], 0 if there is none (RFC 3629).
size_t utf8_length(const unsigned char* text, size_t left) {
  const unsigned char c = text[0];
  if (c < 0x80) return 1;
  const size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
  if (c < 0xC2 || c > 0xF4 || left < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
  }
  if (c == 0xE0 && text[1] < 0xA0) return 0;  // overlong
  if (c == 0xED && text[1] > 0x9F) return 0;  // surrogates
  if (c == 0xF0 && text[1] < 0x90) return 0;  // overlong
  if (c == 0xF4 && text[1] > 0x8F) return 0;  // beyond U+10FFFF
  return length;
}

Result<OrderedJson> parse_line(const std::string& where, std::string_view line) {
  if (auto byte = find_invalid_utf8(line)) {
    return bad_input(where + " is not valid UTF-8 at byte " + std::to_string(*byte + 1) +
                     " of the line; save the file as UTF-8.");
  }
  if (nesting(line) > kMaxNesting) {
    return bad_input(where + " is nested deeper than " + std::to_string(kMaxNesting) + " levels.");
  }
  try {
    auto row = OrderedJson::parse(line);
    if (row.is_object()) return row;
    return bad_input(where + " must be a JSON object, but is " + describe_type(row) + ".");
  } catch (const OrderedJson::parse_error& error) {
    return bad_input(where + " is not valid JSON at column " + std::to_string(error.byte) + ": " +
                     reason_of(error) + ".");
  }
}

}  // namespace

const char* describe_type(const OrderedJson& value) {
  switch (value.type()) {
    case OrderedJson::value_t::string:
      return "a string";
    case OrderedJson::value_t::array:
      return "a list";
    case OrderedJson::value_t::object:
      return "an object";
    case OrderedJson::value_t::boolean:
      return "true or false";
    case OrderedJson::value_t::null:
      return "null";
    default:
      return "a number";
  }
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t i = 0; i < text.size();) {
    uint64_t eight = 0;
    if (text.size() - i >= sizeof(eight)) {
      std::memcpy(&eight, bytes + i, sizeof(eight));
      if ((eight & 0x8080808080808080ULL) == 0) {
        i += sizeof(eight);
        continue;
      }
    }
    const size_t length = utf8_length(bytes + i, text.size() - i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

Result<void> for_each_json_line(
    const std::filesystem::path& path,
    const std::function<Result<void>(int64_t line, const OrderedJson& row)>& use) {
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  std::string_view rest = file->content();
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // byte order mark
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto row = parse_line(path.string() + " line " + std::to_string(number), line);
    if (!row) return tl::unexpected(row.error());
    if (auto used = use(number, *row); !used) return used;
  }
  return {};
}

}  // namespace coxswain
