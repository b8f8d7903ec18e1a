// Takes over text that the Rust library handed out.
#pragma once

#include <string>

#include "runtime/tokenizer/ffi.h"

namespace coxswain {

inline std::string take(coxswain_text text) {
  std::string copy(text.data, text.length);
  coxswain_text_free(text);
  return copy;
}

}  // namespace coxswain
