#include <string>

#include "runtime/config/key_table.h"

namespace coxswain {

namespace {

std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string sentence(const std::string& text) {
  return text.ends_with('.') ? text : text + ".";
}

std::string harmless_values(const ConfigKey& key) {
  std::string list = "none";
  for (const std::string& value : key.asks_nothing) list += ", " + value;
  return list;
}

}  // namespace

std::string configuration_reference() {
  std::string page =
      "# Configuration\n\n"
      "The training configuration is AITraining's YAML: the file that trains on a laptop trains in a "
      "TrainingJob\n"
      "(`spec.config`). On the command line, `coxswain-runtime llm --train` takes the same keys as flags.\n"
      "`${NAME}` in a value is replaced by the environment variable. Any key may also stand under `params`, "
      "and wins\n"
      "there. This page is generated from the program's own table of keys (`coxswain-runtime keys`).\n\n"
      "```yaml\n"
      "task: llm-sft\n"
      "base_model: models/SmolLM2-135M-Instruct\n"
      "project_name: my-first-run\n"
      "data:\n"
      "  path: data/train.jsonl\n"
      "  column_mapping:\n"
      "    text_column: messages\n"
      "params:\n"
      "  epochs: 1\n"
      "  peft: true\n"
      "```\n\n"
      "## Keys that work\n\n"
      "| Key | Flag | Values | Default | Meaning |\n|---|---|---|---|---|\n";
  for (const ConfigKey& key : key_table())
    if (key.answer == KeyAnswer::kImplemented)
      page += "| `" + key.path() + "` | `" + flag_name(key.field) + "`" +
              (key.is_boolean ? ", `--no-" + flag_name(key.field).substr(2) + "`" : "") + " | " +
              cell(key.values) + " | " + cell(key.standard) + " | " + cell(key.text) + " |\n";
  page +=
      "\n## Keys that are accepted without effect\n\nA notice says so at the start.\n\n"
      "| Key | Why |\n|---|---|\n";
  for (const ConfigKey& key : key_table())
    if (key.answer == KeyAnswer::kNoEffect)
      page += "| `" + key.path() + "` | " + cell(sentence(key.text)) + " |\n";
  page +=
      "\n## Keys that are not supported yet\n\n"
      "AITraining knows these. A value in the second column asks for nothing and is accepted; any other is "
      "refused.\n\n"
      "| Key | Accepted | What to do |\n|---|---|---|\n";
  for (const ConfigKey& key : key_table())
    if (key.answer == KeyAnswer::kUnsupported)
      page += "| `" + key.path() + "` | " + cell(harmless_values(key)) + " | " + cell(sentence(key.text)) +
              " |\n";
  page += "\nAny other key is refused, with the nearest name.\n";
  return page;
}

}  // namespace coxswain
