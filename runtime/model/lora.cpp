#include "runtime/model/lora.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/model/durable_file.h"
#include "runtime/model/linear.h"

namespace coxswain {
namespace {

using torch::Tensor;

constexpr char kPeftPrefix[] = "base_model.model.";
constexpr char kASuffix[] = ".lora_A.weight";
constexpr char kBSuffix[] = ".lora_B.weight";
constexpr char kAllLinear[] = "all-linear";

// A module that only holds a weight, so that it is named lora_A.weight.
class LoraFactor : public torch::nn::Module {
 public:
  explicit LoraFactor(const Tensor& values) : weight(register_parameter("weight", values)) {}

  Tensor weight;
};

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool matches(const std::string& module, const std::string& target) {
  return module == target || module.ends_with("." + target);
}

bool all_linear(const LoraConfig& config) {
  return config.target_modules == std::vector<std::string>{kAllLinear};
}

std::vector<std::pair<std::string, std::shared_ptr<Linear>>> linears_of(CausalLM& model) {
  std::vector<std::pair<std::string, std::shared_ptr<Linear>>> found;
  for (const auto& module : model.named_modules()) {
    if (auto linear = std::dynamic_pointer_cast<Linear>(module.value()))
      found.emplace_back(module.key(), linear);
  }
  return found;
}

Result<void> check(const LoraConfig& config,
                   const std::vector<std::pair<std::string, std::shared_ptr<Linear>>>& linears) {
  if (config.rank < 1)
    return bad_input("lora_r is " + std::to_string(config.rank) + ", but must be 1 or more.");
  if (config.dropout < 0 || config.dropout >= 1) {
    return bad_input("lora_dropout is " + std::to_string(config.dropout) + ", but must be in [0, 1).");
  }
  if (config.target_modules.empty())
    return bad_input("target_modules is empty; use all-linear or module names.");
  if (all_linear(config)) return {};
  for (const auto& target : config.target_modules) {
    const bool hit = std::any_of(linears.begin(), linears.end(),
                                 [&](const auto& linear) { return matches(linear.first, target); });
    if (hit) continue;
    std::set<std::string> suffixes;
    for (const auto& linear : linears) suffixes.insert(last_part(linear.first));
    std::string list;
    for (const auto& suffix : suffixes) list += ", " + suffix;
    return bad_input("target_modules: '" + target + "' matches no linear module of the model; there are " +
                     kAllLinear + list + ".");
  }
  return {};
}

bool selected(const LoraConfig& config, const std::string& module) {
  return all_linear(config) || std::any_of(config.target_modules.begin(), config.target_modules.end(),
                                           [&](const auto& target) { return matches(module, target); });
}

void adapt(Linear& linear, const LoraConfig& config, at::Generator& generator) {
  const auto options = linear.weight.options().dtype(at::kFloat).requires_grad(false);
  const int64_t out_features = linear.weight.size(0), in_features = linear.weight.size(1);
  // Kaiming's bound for a = √5 is 1/√in.
  const double bound = 1.0 / std::sqrt(static_cast<double>(in_features));
  Tensor a_values = torch::empty({config.rank, in_features}, options);
  a_values.uniform_(-bound, bound, generator);
  auto a = linear.register_module("lora_A", std::make_shared<LoraFactor>(a_values));
  auto b = linear.register_module(
      "lora_B", std::make_shared<LoraFactor>(torch::zeros({out_features, config.rank}, options)));
  const double scale = config.alpha / config.rank, dropout = config.dropout;
  linear.set_adapter([a, b, scale, dropout](const Tensor& x, const Tensor& y, bool training) {
    const Tensor in = training && dropout > 0 ? at::dropout(x, dropout, true) : x;
    return at::addmm(y, at::linear(in, a->weight), b->weight.t(), 1.0, scale);
  });
}

nlohmann::json adapter_config(const LoraConfig& config, const std::string& base_model,
                              const std::set<std::string>& adapted) {
  const auto targets =
      all_linear(config) ? adapted
                         : std::set<std::string>(config.target_modules.begin(), config.target_modules.end());
  const bool whole = config.alpha == std::floor(config.alpha);  // peft writes 32, not 32.0
  return {{"base_model_name_or_path", base_model},
          {"bias", "none"},
          {"exclude_modules", nullptr},
          {"fan_in_fan_out", false},
          {"inference_mode", true},
          {"init_lora_weights", true},
          {"lora_alpha",
           whole ? nlohmann::json(static_cast<int64_t>(config.alpha)) : nlohmann::json(config.alpha)},
          {"lora_bias", false},
          {"lora_dropout", config.dropout},
          {"modules_to_save", nullptr},
          {"peft_type", "LORA"},
          {"r", config.rank},
          {"rank_pattern", nlohmann::json::object()},
          {"alpha_pattern", nlohmann::json::object()},
          {"target_modules", targets},
          {"task_type", "CAUSAL_LM"},
          {"use_dora", false},
          {"use_rslora", false}};
}

}  // namespace

Result<void> apply_lora(CausalLM& model, const LoraConfig& config, uint64_t seed) {
  const auto linears = linears_of(model);
  if (auto checked = check(config, linears); !checked) return checked;
  for (auto& parameter : model.parameters()) parameter.set_requires_grad(false);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (const auto& [name, linear] : linears) {
    if (selected(config, name)) adapt(*linear, config, generator);
  }
  return {};
}

bool is_lora_parameter(const std::string& name) {
  return name.ends_with(kASuffix) || name.ends_with(kBSuffix);
}

Result<void> save_adapter(const std::string& folder, const LoraConfig& config, const std::string& base_model,
                          const TensorMap& parameters) {
  TensorMap adapter;
  std::set<std::string> adapted;
  for (const auto& [name, tensor] : parameters) {
    if (!is_lora_parameter(name)) continue;
    adapter[kPeftPrefix + name] = tensor;
    adapted.insert(last_part(name.substr(0, name.size() - std::string(kASuffix).size())));
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(contract::ExitCode::kStorage, folder + ": could not be made: " + error.message() + ".");
  const std::filesystem::path root(folder);
  if (auto done = write_safetensors((root / "adapter_model.safetensors").string(), adapter); !done)
    return done;
  const auto json = adapter_config(config, base_model, adapted);
  return write_file_durably((root / "adapter_config.json").string(), json.dump(2) + "\n");
}

Result<void> load_adapter(CausalLM& model, const std::string& folder) {
  const torch::NoGradGuard no_grad;
  const std::string path = (std::filesystem::path(folder) / "adapter_model.safetensors").string();
  auto reader = SafetensorsReader::open({path});
  if (!reader) return tl::unexpected(reader.error());
  for (const auto& parameter : model.named_parameters()) {
    if (!is_lora_parameter(parameter.key())) continue;
    const std::string name = kPeftPrefix + parameter.key();
    if (!reader->has(name)) return bad_input(path + ": tensor '" + name + "' is missing.");
    auto tensor = reader->tensor_fp32(name);
    if (!tensor) return tl::unexpected(tensor.error());
    if (tensor->sizes() != parameter.value().sizes()) {
      return bad_input(path + ": tensor '" + name + "' has another shape than lora_r asks for.");
    }
    Tensor handle = parameter.value();
    handle.copy_(*tensor);
  }
  return {};
}

Result<void> merge_lora(TensorMap& parameters, const LoraConfig& config) {
  const torch::NoGradGuard no_grad;
  for (auto it = parameters.begin(); it != parameters.end();) {
    if (!it->first.ends_with(kASuffix)) {
      ++it;
      continue;
    }
    const std::string module = it->first.substr(0, it->first.size() - std::string(kASuffix).size());
    auto base = parameters.find(module + ".weight");
    auto b = parameters.find(module + kBSuffix);
    if (base == parameters.end() || b == parameters.end()) {
      return fail(contract::ExitCode::kInternal,
                  "merge: the base weight or lora_B of " + module + " is missing.");
    }
    const Tensor wide = base->second.detach().to(at::kFloat);
    base->second = at::addmm(wide, b->second.detach().to(at::kFloat), it->second.detach().to(at::kFloat), 1.0,
                             config.alpha / config.rank);
    parameters.erase(b);
    it = parameters.erase(it);
  }
  return {};
}

}  // namespace coxswain
