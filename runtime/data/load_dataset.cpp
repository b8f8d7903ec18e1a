#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/data/chat.h"
#include "runtime/data/dataset.h"
#include "runtime/data/jsonl.h"
#include "runtime/data/model_limits.h"
#include "runtime/data/packer.h"
#include "runtime/tokenizer/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"

namespace coxswain {
namespace {

constexpr char kInputIds[] = "input_ids";
constexpr char kLabels[] = "labels";
constexpr char kMessages[] = "messages";

// What a file's rows are, settled by its first row.
struct RowFormat {
  enum class Kind { kTokens, kChat, kText } kind = Kind::kText;
  std::string column;
};

bool wants_chat(const TrainConfig& config) {
  return config.data.chat_template ? *config.data.chat_template != "none" : config.trainer == Trainer::kSft;
}

std::string column_names(const OrderedJson& row) {
  std::string names;
  for (const auto& [name, value] : row.items()) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

Result<RowFormat> detect_format(const TrainConfig& config, const OrderedJson& row) {
  const std::string& text = config.data.text_column;
  const bool chat = wants_chat(config);
  if (text != DataConfig().text_column && !row.contains(text)) {
    return bad_input("the column to train on is not there. Required: " + text +
                     " (column_mapping.text_column); missing: " + text + "; available: " + column_names(row));
  }
  if (row.contains(kInputIds)) return RowFormat{RowFormat::Kind::kTokens, kInputIds};
  // AITraining's column_mapping may name the conversation as the column to train on.
  if (chat && row.contains(text) && row[text].is_array()) return RowFormat{RowFormat::Kind::kChat, text};
  if (chat && row.contains(kMessages)) return RowFormat{RowFormat::Kind::kChat, kMessages};
  if (row.contains(text)) return RowFormat{RowFormat::Kind::kText, text};
  const std::string missing = chat ? std::string(kMessages) + ", " + text : text;
  return bad_input("no column to train on. Required: " +
                   (chat ? "messages (or " + text + ", or input_ids)" : text + " (or input_ids)") +
                   "; missing: " + missing + "; available: " + column_names(row) +
                   ". Rename a column, or name it by column_mapping.text_column" +
                   (row.contains(kMessages) ? "; conversations are trained on with trainer: sft" : ""));
}

// Reads one file into a data set.
class Loader {
 public:
  Loader(const TrainConfig& config, ModelLimits limits, int64_t block_size)
      : config_(config), limits_(limits), block_size_(block_size), packer_(dataset_, block_size) {}

  Result<void> add_line(const OrderedJson& row) {
    if (!format_) {
      if (auto ready = prepare(row); !ready) return ready;
    }
    if (!row.contains(format_->column)) {
      return bad_input("the column of the lines before is not there. Required: " + format_->column +
                       "; missing: " + format_->column + "; available: " + column_names(row));
    }
    switch (format_->kind) {
      case RowFormat::Kind::kTokens:
        return add_tokens(row);
      case RowFormat::Kind::kChat:
        return add_chat(row[format_->column]);
      case RowFormat::Kind::kText:
        return add_text(row[format_->column]);
    }
    return {};
  }

  // Whether add_line failed for a reason that is not of that line.
  bool failed_elsewhere() const { return elsewhere_; }

  Dataset finish() {
    packer_.finish();
    if (tokenizer_ && tokenizer_->pad_id() < limits_.vocabulary_size)
      dataset_.set_pad_id(tokenizer_->pad_id());
    note(empty_, "had no tokens and were left out");
    note(cut_, "were longer than block_size " + std::to_string(block_size_) + " and were cut");
    note(dataset_.rows_without_target(), "have no target token and add nothing to the loss");
    if (no_eos_) dataset_.add_notice("add_eos_token had no effect: the model names no EOS token.");
    return std::move(dataset_);
  }

 private:
  void note(int64_t rows, const std::string& what) {
    if (rows > 0) dataset_.add_notice(std::to_string(rows) + " row(s) of the training data " + what + ".");
  }

  Result<void> prepare(const OrderedJson& row) {
    auto format = detect_format(config_, row);
    if (!format) return tl::unexpected(format.error());
    format_ = *format;
    if (format_->kind == RowFormat::Kind::kTokens) return {};
    auto tokenizer = Tokenizer::load(config_.base_model);
    if (!tokenizer) return stop(tokenizer.error());
    tokenizer_ = std::move(*tokenizer);
    if (format_->kind == RowFormat::Kind::kText) return {};
    auto chat_template = ChatTemplate::load(config_.base_model, tokenizer_->special_tokens().by_name);
    if (!chat_template) return stop(chat_template.error());
    template_ = std::move(*chat_template);
    return {};
  }

  tl::unexpected<Failure> stop(const Failure& failure) {
    elsewhere_ = true;
    return tl::unexpected(failure);
  }

  Result<std::vector<int64_t>> token_list(const OrderedJson& row, const char* column, bool may_ignore) {
    const OrderedJson& list = row[column];
    if (!list.is_array()) {
      return bad_input(std::string(column) + " must be a list of numbers, but is " + describe_type(list));
    }
    std::vector<int64_t> ids;
    ids.reserve(list.size());
    for (const OrderedJson& value : list) {
      const std::string field = std::string(column) + "[" + std::to_string(ids.size()) + "]";
      if (!value.is_number_integer()) {
        return bad_input(field + " must be a whole number, but is " + value.dump());
      }
      const auto id = value.get<int64_t>();
      const bool known = id >= 0 && id < limits_.vocabulary_size;
      if (!known && !(may_ignore && id == kIgnoredLabel)) {
        return bad_input(field + " is " + value.dump() +
                         ", which the model's vocabulary does not have (0 to " +
                         std::to_string(limits_.vocabulary_size - 1) + (may_ignore ? ", or -100)" : ")"));
      }
      ids.push_back(id);
    }
    return ids;
  }

  Result<void> add_tokens(const OrderedJson& row) {
    auto ids = token_list(row, kInputIds, false);
    if (!ids) return tl::unexpected(ids.error());
    if (!row.contains(kLabels) || row[kLabels].is_null()) return add_row(*ids, *ids);
    auto labels = token_list(row, kLabels, true);
    if (!labels) return tl::unexpected(labels.error());
    if (labels->size() != ids->size()) {
      return bad_input("there are " + std::to_string(labels->size()) + " labels for " +
                       std::to_string(ids->size()) + " input_ids; there must be one for each");
    }
    return add_row(*ids, *labels);
  }

  Result<void> add_chat(const OrderedJson& messages) {
    if (auto checked = check_messages(format_->column, messages); !checked) return checked;
    auto chat = ChatTokenizer(*tokenizer_, *template_, config_.response_only_loss).tokenize(messages);
    if (!chat) return tl::unexpected(chat.error());
    return add_row(chat->ids, chat->labels);
  }

  Result<void> add_text(const OrderedJson& text) {
    if (!text.is_string()) {
      return bad_input(format_->column + " must be a string, but is " + describe_type(text));
    }
    auto ids = tokenizer_->encode(text.get_ref<const std::string&>(), true);
    if (!ids) return tl::unexpected(ids.error());
    const auto eos = tokenizer_->special_tokens().eos_id;
    if (config_.add_eos_token && eos && (ids->empty() || ids->back() != *eos)) ids->push_back(*eos);
    no_eos_ = config_.add_eos_token && !eos;
    if (config_.trainer == Trainer::kSft) return add_row(*ids, *ids);
    if (auto known = check_vocabulary(*ids); !known) return known;
    empty_ += ids->empty();
    packer_.add(*ids);
    return {};
  }

  Result<void> check_vocabulary(const std::vector<int64_t>& ids) {
    if (ids.empty() || std::ranges::max(ids) < limits_.vocabulary_size) return {};
    return stop({contract::ExitCode::kBadInput, "The tokenizer of " + config_.base_model + " gave the id " +
                                                    std::to_string(std::ranges::max(ids)) +
                                                    ", but config.json says vocab_size " +
                                                    std::to_string(limits_.vocabulary_size) +
                                                    "; tokenizer and model don't belong together."});
  }

  Result<void> add_row(const std::vector<int64_t>& ids, const std::vector<int64_t>& labels) {
    if (auto known = check_vocabulary(ids); !known) return known;
    if (ids.empty()) {
      ++empty_;
      return {};
    }
    const size_t length = std::min(ids.size(), static_cast<size_t>(block_size_));
    cut_ += length < ids.size();
    dataset_.append(std::span(ids).first(length), std::span(labels).first(length), {});
    return {};
  }

  const TrainConfig& config_;
  ModelLimits limits_;
  int64_t block_size_;
  Dataset dataset_;
  Packer packer_;
  std::optional<RowFormat> format_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  int64_t empty_ = 0;
  int64_t cut_ = 0;
  bool no_eos_ = false;
  bool elsewhere_ = false;
};

std::vector<std::filesystem::path> jsonl_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".jsonl" && entry.is_regular_file(error)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

Result<std::filesystem::path> find_data_file(const DataConfig& data) {
  const std::filesystem::path path = data.path;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return bad_input("data.path: there is no file or folder " + path.string() + ".");
  }
  if (!std::filesystem::is_directory(path, error)) {
    if (path.extension() == ".jsonl" && std::filesystem::is_regular_file(path, error)) return path;
    return bad_input("data.path: " + path.string() +
                     " is no .jsonl file; give a .jsonl file, or a folder with " + data.train_split +
                     ".jsonl.");
  }
  if (auto split = path / (data.train_split + ".jsonl"); std::filesystem::exists(split, error)) return split;
  const auto files = jsonl_files(path);
  // The default names no particular split.
  if (files.size() == 1 && data.train_split == DataConfig().train_split) return files.front();
  std::string names;
  for (const auto& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
  return bad_input("data.path: the folder " + path.string() + " has no " + data.train_split +
                   ".jsonl (data.train_split)" +
                   (files.empty() ? ", nor any other .jsonl file." : "; there is: " + names + "."));
}

Result<Dataset> load_dataset(const TrainConfig& config) {
  auto file = find_data_file(config.data);
  if (!file) return tl::unexpected(file.error());
  auto limits = read_model_limits(config.base_model, config.model_max_length);
  if (!limits) return tl::unexpected(limits.error());
  const BlockSize block = effective_block_size(config.block_size, limits->max_length);

  Loader loader(config, *limits, block.tokens);
  auto read = for_each_json_line(*file, [&](int64_t line, const OrderedJson& row) -> Result<void> {
    auto added = loader.add_line(row);
    if (added || loader.failed_elsewhere()) return added;
    return bad_input(file->string() + " line " + std::to_string(line) + ": " + added.error().message + ".");
  });
  if (!read) return tl::unexpected(read.error());
  Dataset dataset = loader.finish();
  if (dataset.size() == 0) return bad_input(file->string() + " has no row to train on; it is empty.");
  if (dataset.rows_without_target() == dataset.size()) {
    return bad_input("No row of " + file->string() + " has a token to train on within block_size " +
                     std::to_string(block.tokens) +
                     "; give longer rows, a larger block_size, or response_only_loss: false.");
  }
  if (block.notice) dataset.add_notice(*block.notice);
  return dataset;
}

}  // namespace coxswain
