#include <algorithm>
#include <map>

#include "runtime/config/settings.h"
#include "runtime/config/value.h"

namespace coxswain {

namespace {

std::string default_hint(const ConfigKey& key) {
  if (key.standard.empty() || key.standard == "required") return ".";
  return "; leave it out for the default (" + key.standard + ").";
}

Result<void> apply_implemented(const Setting& setting, TrainConfig& config) {
  const ConfigKey& key = *setting.key;
  const std::optional<ValueRefusal> refusal = key.apply(setting.value, config);
  if (!refusal) return {};
  const std::string value = setting.label + " is " + describe(setting.value);
  if (!refusal->sentence.empty()) return bad_input(value + ": " + refusal->sentence + ".");
  if (key.field == "distributed_backend")
    return bad_input("Unsupported distributed backend: " + value + ", but must be " + key.values + ".");
  return bad_input(value + ", but must be " + key.values + default_hint(key));
}

Result<void> refuse_unsupported(const Setting& setting) {
  const ConfigKey& key = *setting.key;
  const YAML::Node& value = setting.value;
  if (is_none(value)) return {};
  const auto same = [&](const std::string& harmless) {
    if (!value.IsScalar()) return false;
    if (value.Scalar() == harmless) return true;
    const YAML::Node other(harmless);
    if (as_boolean(other)) return as_boolean(value) == as_boolean(other);
    return false;
  };
  if (std::any_of(key.asks_nothing.begin(), key.asks_nothing.end(), same)) return {};
  return bad_input(setting.label + " is " + describe(value) + ": " + key.text + ".");
}

// One notice for each reason, naming the keys that have no effect.
void note_without_effect(const std::vector<std::pair<std::string, std::string>>& keys_and_reasons,
                         TrainConfig& config) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const auto& [name, reason] : keys_and_reasons) {
    auto found =
        std::find_if(by_reason.begin(), by_reason.end(), [&](auto& entry) { return entry.first == reason; });
    if (found == by_reason.end()) found = by_reason.insert(by_reason.end(), {reason, {}});
    found->second.push_back(name);
  }
  for (const auto& [reason, names] : by_reason) {
    std::string list;
    for (size_t i = 0; i < names.size(); ++i)
      list += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    config.notices.push_back(list + (names.size() == 1 ? " has" : " have") + " no effect: " + reason + ".");
  }
}

void settle_chat_template(TrainConfig& config) {
  if (config.data.chat_template) return;
  const bool sft = config.trainer == Trainer::kSft;
  config.data.chat_template = sft ? "tokenizer" : "none";
  if (sft)
    config.notices.push_back(
        "data.chat_template is left out: with trainer sft the model's own template is used.");
}

// For each field the setting that counts, in the order of the table, so that messages come in one order.
std::map<std::string, const Setting*> last_of_each(const std::vector<Setting>& settings) {
  std::map<std::string, const Setting*> last;
  for (const Setting& setting : settings) last[setting.key->field] = &setting;
  return last;
}

void note_lora_without_peft(const std::map<std::string, const Setting*>& given, TrainConfig& config) {
  if (config.peft) return;
  std::vector<std::pair<std::string, std::string>> names;
  for (const char* field : {"lora_r", "lora_alpha", "lora_dropout", "target_modules", "merge_adapter"})
    if (given.contains(field)) names.emplace_back(field, "peft is false, so all weights are trained");
  note_without_effect(names, config);
}

}  // namespace

Result<TrainConfig> config_from_settings(const std::vector<Setting>& settings, const std::string& origin,
                                         std::string (*name_key)(const ConfigKey&)) {
  TrainConfig config;
  const std::map<std::string, const Setting*> given = last_of_each(settings);
  std::vector<std::pair<std::string, std::string>> without_effect;
  // In the order of the table: the task comes before the trainer that overrides it.
  for (const ConfigKey& key : key_table()) {
    const auto found = given.find(key.field);
    if (found == given.end()) continue;
    const Setting& setting = *found->second;
    Result<void> applied;
    if (key.answer == KeyAnswer::kUnsupported)
      applied = refuse_unsupported(setting);
    else if (key.apply)
      applied = apply_implemented(setting, config);
    if (!applied) return tl::unexpected(applied.error());
    if (key.answer == KeyAnswer::kNoEffect && !is_none(setting.value))
      without_effect.emplace_back(name_key(key), key.text);
  }
  for (const char* field : {"model", "project_name", "data_path"}) {
    if (given.contains(field)) continue;
    const ConfigKey& key = *find_key_by_field(field);
    return bad_input(origin + ": " + name_key(key) + " is missing; give " + key.values + ".");
  }
  note_without_effect(without_effect, config);
  note_lora_without_peft(given, config);
  if (!given.contains("log"))
    find_key_by_field("log")->apply(YAML::Node("wandb"), config);  // its default says so
  settle_chat_template(config);
  return config;
}

}  // namespace coxswain
