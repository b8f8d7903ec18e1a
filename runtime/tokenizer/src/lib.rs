//! Hugging Face tokenizers and chat templates behind a C interface (`ffi.h`).

mod chat_template;
mod ffi;
mod python_format;
mod tokenizer;
