// Prints the rows that a data set becomes, one JSON object a line: {"ids", "labels", "segments", "text"};
// `text` is what the tokenizer decodes the ids to. Notices go to stderr. Ends like the runtime: 2 for bad
// input, with its sentence.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/data/dataset.h"
#include "runtime/tokenizer/tokenizer.h"

namespace {

int fail(const coxswain::Failure& failure) {
  std::cerr << failure.message << '\n';
  return static_cast<int>(failure.code);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rows of a training set");
  coxswain::TrainConfig config;
  bool sft = false, all_tokens = false, no_eos = false;
  app.add_option("--model", config.base_model)->required();
  app.add_option("--data", config.data.path)->required();
  app.add_option("--block-size", config.block_size);
  app.add_flag("--sft", sft);
  app.add_flag("--all-tokens", all_tokens);
  app.add_flag("--no-eos", no_eos);
  CLI11_PARSE(app, argc, argv);
  config.trainer = sft ? coxswain::Trainer::kSft : coxswain::Trainer::kDefault;
  config.response_only_loss = !all_tokens;
  config.add_eos_token = !no_eos;

  auto dataset = coxswain::load_dataset(config);
  if (!dataset) return fail(dataset.error());
  auto tokenizer = coxswain::Tokenizer::load(config.base_model);
  if (!tokenizer) return fail(tokenizer.error());
  for (const std::string& notice : dataset->notices()) std::cerr << notice << '\n';
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const coxswain::Row row = dataset->row(i);
    auto text = tokenizer->decode(row.ids, false);
    if (!text) return fail(text.error());
    nlohmann::json line = {
        {"ids", row.ids}, {"labels", row.labels}, {"segments", row.segments}, {"text", *text}};
    std::cout << line.dump() << '\n';
  }
  return 0;
}
