#include "runtime/model/llama_config.h"

#include <algorithm>

namespace coxswain {
namespace {

using nlohmann::json;

// Reads typed fields and keeps the first complaint.
class Fields {
 public:
  Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  int64_t size(const char* name, int64_t missing = 0) {
    if (absent(name) && missing > 0) return missing;
    const bool good = !absent(name) && object_[name].is_number_integer() && object_[name].get<int64_t>() > 0;
    if (!good) complain(name, "must be a whole number above 0");
    return good ? object_[name].get<int64_t>() : 1;
  }

  double positive(const char* name, double missing) {
    if (absent(name)) return missing;
    const bool good = object_[name].is_number() && object_[name].get<double>() > 0;
    if (!good) complain(name, "must be a number above 0");
    return good ? object_[name].get<double>() : missing;
  }

  bool flag(const char* name, bool missing) {
    if (absent(name)) return missing;
    if (!object_[name].is_boolean()) complain(name, "must be true or false");
    return object_[name].is_boolean() ? object_[name].get<bool>() : missing;
  }

  std::string text(const char* name, const std::string& missing) {
    if (absent(name)) return missing;
    if (!object_[name].is_string()) complain(name, "must be a string");
    return object_[name].is_string() ? object_[name].get<std::string>() : missing;
  }

  bool absent(const char* name) const { return !object_.contains(name) || object_[name].is_null(); }
  void complain(const char* name, const std::string& what) {
    if (complaint_.empty()) complaint_ = path_ + ": " + name + " " + what + ".";
  }
  const std::string& complaint() const { return complaint_; }

 private:
  const json& object_;
  std::string path_;
  std::string complaint_;
};

std::string read_rope(const json& config, const std::string& path, RopeConfig& rope) {
  Fields top(config, path);
  rope.theta = top.positive("rope_theta", 10000.0);
  if (!top.complaint().empty()) return top.complaint();
  const char* key = !top.absent("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (top.absent(key)) return "";
  if (!config[key].is_object()) return path + ": " + key + " must be an object.";
  Fields fields(config[key], path + ": " + key);
  rope.theta = fields.positive("rope_theta", rope.theta);
  const std::string type = fields.text("rope_type", fields.text("type", "default"));
  if (type == "llama3") {
    rope.llama3 = true;
    rope.factor = fields.positive("factor", 0);
    rope.low_freq_factor = fields.positive("low_freq_factor", 0);
    rope.high_freq_factor = fields.positive("high_freq_factor", 0);
    rope.original_max_positions = fields.positive("original_max_position_embeddings", 0);
    for (const char* name :
         {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
      if (fields.absent(name)) fields.complain(name, "is missing, which rope type llama3 needs");
    }
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      fields.complain("high_freq_factor", "must be above low_freq_factor");
    }
  } else if (type != "default") {
    fields.complain("rope_type", "is '" + type + "', which is not supported (default, llama3)");
  }
  return fields.complaint();
}

std::string check_shapes(const LlamaConfig& config, const std::string& path) {
  if (config.heads % config.kv_heads != 0) {
    return path + ": num_attention_heads (" + std::to_string(config.heads) +
           ") must be a multiple of num_key_value_heads (" + std::to_string(config.kv_heads) + ").";
  }
  if (config.head_size % 2 != 0) {
    return path + ": head_dim is " + std::to_string(config.head_size) + ", but must be even.";
  }
  return "";
}

}  // namespace

Result<LlamaConfig> parse_llama_config(const json& config, const std::string& path) {
  Fields fields(config, path);
  LlamaConfig out;
  out.vocab_size = fields.size("vocab_size");
  out.hidden_size = fields.size("hidden_size");
  out.intermediate_size = fields.size("intermediate_size");
  out.layers = fields.size("num_hidden_layers");
  out.heads = fields.size("num_attention_heads");
  out.kv_heads = fields.size("num_key_value_heads", out.heads);
  if (fields.absent("head_dim") && out.hidden_size % out.heads != 0) {
    fields.complain("hidden_size", "must be a multiple of num_attention_heads where head_dim is not given");
  }
  out.head_size = fields.size("head_dim", std::max<int64_t>(1, out.hidden_size / out.heads));
  out.max_positions = fields.size("max_position_embeddings", 2048);
  out.rms_norm_eps = fields.positive("rms_norm_eps", 1e-6);
  out.tied = fields.flag("tie_word_embeddings", false);
  out.attention_bias = fields.flag("attention_bias", false);
  out.mlp_bias = fields.flag("mlp_bias", false);
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    fields.complain("hidden_act", "is '" + activation + "', which is not supported (silu)");
  }
  if (!fields.complaint().empty()) return bad_input(fields.complaint());
  if (auto complaint = read_rope(config, path, out.rope); !complaint.empty()) return bad_input(complaint);
  if (auto complaint = check_shapes(out, path); !complaint.empty()) return bad_input(complaint);
  return out;
}

}  // namespace coxswain
