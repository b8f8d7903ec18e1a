#include "runtime/optim/weight_decay.h"

#include <regex>

namespace coxswain {

bool weight_decay_applies(const std::string& parameter_name) {
  static const std::regex exempt(R"(bias|layernorm|rmsnorm|(^|\.)norm($|\.)|_norm($|\.))");
  std::string lower = parameter_name;
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return !std::regex_search(lower, exempt);
}

}  // namespace coxswain
