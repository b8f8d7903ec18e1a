#include "runtime/checkpoint/commit.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "runtime/checkpoint/fence.h"
#include "runtime/checkpoint/test_hold.h"

namespace coxswain {
namespace fs = std::filesystem;
namespace {

constexpr char kTemporaryPrefix[] = ".tmp-";
constexpr char kReplacedPrefix[] = ".tmp-replaced-";

tl::unexpected<Failure> storage_failure(const std::string& what, const fs::path& path,
                                        const std::string& why) {
  return fail(contract::ExitCode::kStorage, "Cannot " + what + " " + path.string() + ": " + why + ".");
}

std::string errno_text() {
  return std::strerror(errno);
}

Result<void> write_all(int fd, const std::string& content, const fs::path& file) {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return storage_failure("write", file, errno_text());
    done += static_cast<size_t>(n);
  }
  if (::fsync(fd) != 0) return storage_failure("write", file, errno_text());
  return {};
}

Result<void> remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return storage_failure("delete", path, error.message());
  return {};
}

Result<void> rename_path(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return storage_failure("rename " + from.string() + " to", to, error.message());
  return {};
}

bool is_ours(const fs::path& checkpoint) {
  std::error_code ignored;
  return fs::exists(checkpoint / kStateFile, ignored);
}

// .tmp-checkpoint-N-attempt-A and the like, as CheckpointTarget::temporary_path() names them.
bool is_temporary(CheckpointKind kind, const fs::path& path) {
  std::string name = path.filename().string();
  if (!name.starts_with(kTemporaryPrefix)) return false;
  name.erase(0, std::strlen(kTemporaryPrefix));
  if (kind == CheckpointKind::kUser) name = name.substr(0, name.find("-attempt-"));
  return parse_checkpoint_name(kind, name).has_value();
}

// A complete checkpoint that a save was about to take the place of; it stands again if that save came to
// nothing.
Result<void> restore_replaced(const fs::path& replaced) {
  const std::string name = replaced.filename().string().substr(std::strlen(kReplacedPrefix));
  const fs::path checkpoint = replaced.parent_path() / name;
  if (!is_complete(replaced) || is_complete(checkpoint)) return remove_tree(replaced);
  if (auto removed = remove_tree(checkpoint); !removed) return removed;
  if (auto restored = rename_path(replaced, checkpoint); !restored) return restored;
  return make_durable(checkpoint.parent_path());
}

}  // namespace

fs::path CheckpointTarget::final_path() const {
  return directory / checkpoint_name(kind, step, attempt);
}

fs::path CheckpointTarget::temporary_path() const {
  std::string name = kTemporaryPrefix + checkpoint_name(kind, step, attempt);
  if (kind == CheckpointKind::kUser) name += "-attempt-" + std::to_string(attempt);
  return directory / name;
}

Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return storage_failure("make the folder", folder, error.message());
  return {};
}

Result<void> make_durable(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return storage_failure("open", path, errno_text());
  const int rc = ::fsync(fd);
  const int saved = errno;
  ::close(fd);
  if (rc != 0) return storage_failure("write", path, std::strerror(saved));
  return {};
}

Result<void> write_durably(const fs::path& file, const std::string& content) {
  const fs::path temporary = file.parent_path() / (".tmp-" + file.filename().string());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return storage_failure("write", file, errno_text());
  auto written = write_all(fd, content, file);
  ::close(fd);
  if (!written) return written;
  if (auto renamed = rename_path(temporary, file); !renamed) return renamed;
  return make_durable(file.parent_path());
}

Result<std::string> read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return storage_failure("read", file, errno_text());
  std::ostringstream content;
  content << in.rdbuf();
  if (in.bad()) return storage_failure("read", file, errno_text());
  return content.str();
}

Result<void> begin_checkpoint(const CheckpointTarget& target) {
  if (auto fenced = check_attempt(target.fence, target.attempt); !fenced) return fenced;
  if (auto removed = remove_tree(target.temporary_path()); !removed) return removed;
  return make_folder(target.temporary_path());
}

Result<void> commit_checkpoint(const CheckpointTarget& target) {
  const fs::path temporary = target.temporary_path();
  const fs::path final_path = target.final_path();
  const fs::path replaced = target.directory / (kReplacedPrefix + final_path.filename().string());
  if (auto durable = make_durable(temporary); !durable) return durable;
  test_hold("written", 0, target.step);
  if (auto fenced = check_attempt(target.fence, target.attempt); !fenced) return fenced;
  if (fs::exists(final_path)) {
    if (!is_ours(final_path)) {
      return storage_failure("save", final_path,
                             "a folder of that name is there that this program has not written");
    }
    if (auto removed = remove_tree(replaced); !removed) return removed;
    if (auto moved = rename_path(final_path, replaced); !moved) return moved;
  }
  if (auto renamed = rename_path(temporary, final_path); !renamed) return renamed;
  if (auto durable = make_durable(target.directory); !durable) return durable;
  test_hold("renamed", 0, target.step);
  if (auto fenced = check_attempt(target.fence, target.attempt); !fenced) return fenced;
  if (auto marked = write_durably(final_path / kCommitMarker, std::to_string(target.step) + "\n"); !marked) {
    return marked;
  }
  return remove_tree(replaced);
}

Result<void> delete_checkpoint(const fs::path& checkpoint) {
  std::error_code error;
  fs::remove(checkpoint / kCommitMarker, error);
  if (error) return storage_failure("delete", checkpoint, error.message());
  return remove_tree(checkpoint);
}

Result<void> remove_unfinished(const fs::path& directory, CheckpointKind kind) {
  std::vector<fs::path> unfinished, replaced;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = parse_checkpoint_name(kind, entry->path()) && is_ours(entry->path());
    if (name.starts_with(kReplacedPrefix)) {
      if (is_ours(entry->path())) replaced.push_back(entry->path());
    } else if (is_temporary(kind, entry->path()) || (ours && !is_complete(entry->path()))) {
      unfinished.push_back(entry->path());
    }
  }
  if (error) return storage_failure("list", directory, error.message());
  for (const fs::path& path : unfinished) {
    if (auto removed = remove_tree(path); !removed) return removed;
  }
  for (const fs::path& path : replaced) {
    if (auto restored = restore_replaced(path); !restored) return restored;
  }
  return {};
}

}  // namespace coxswain
