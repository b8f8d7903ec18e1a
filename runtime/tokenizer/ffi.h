/* The C interface of the Rust library coxswain-tokenizer. C++ code uses tokenizer.h and chat_template.h
 * instead.
 *
 * Text is UTF-8 with a length, never NUL-terminated. What a function hands out through an `out` or `error`
 * argument belongs to the caller, who frees it with the matching function. A function that returns false or
 * NULL has set `error` to one sentence; else `error` is untouched. No function unwinds or aborts on bad
 * input. Handles may be shared by threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coxswain_tokenizer coxswain_tokenizer;
typedef struct coxswain_template coxswain_template;

typedef struct {
  char* data;
  size_t length;
} coxswain_text;

/* A pair of byte offsets [begin, end). */
typedef struct {
  uint64_t begin;
  uint64_t end;
} coxswain_span;

typedef struct {
  uint32_t* ids;
  coxswain_span* spans; /* one for each id; NULL unless asked for */
  size_t count;
} coxswain_encoding;

typedef struct {
  coxswain_text text;
  coxswain_span* generated; /* NULL if generated_count is 0 */
  size_t generated_count;
} coxswain_rendered;

void coxswain_text_free(coxswain_text text);
void coxswain_encoding_free(coxswain_encoding encoding);
void coxswain_rendered_free(coxswain_rendered rendered);

/* `json`: the content of a tokenizer.json. Its truncation and padding are turned off. `special_tokens`: a
 * JSON array of strings; those that the vocabulary has are matched as special tokens, whatever tokenizer.json
 * says of them. */
coxswain_tokenizer* coxswain_tokenizer_load(const char* json, size_t length, const char* special_tokens,
                                            size_t special_tokens_length, coxswain_text* error);
void coxswain_tokenizer_free(coxswain_tokenizer* tokenizer);
bool coxswain_tokenizer_encode(const coxswain_tokenizer* tokenizer, const char* text, size_t length,
                               bool add_special_tokens, bool with_spans, coxswain_encoding* out,
                               coxswain_text* error);
bool coxswain_tokenizer_decode(const coxswain_tokenizer* tokenizer, const uint32_t* ids, size_t count,
                               bool skip_special_tokens, coxswain_text* out, coxswain_text* error);
/* False where there is no such token or id; sets no error. */
bool coxswain_tokenizer_token_to_id(const coxswain_tokenizer* tokenizer, const char* token, size_t length,
                                    uint32_t* out);
bool coxswain_tokenizer_id_to_token(const coxswain_tokenizer* tokenizer, uint32_t id, coxswain_text* out);
size_t coxswain_tokenizer_vocabulary_size(const coxswain_tokenizer* tokenizer);

/* `variables`: a JSON object of strings that the template sees (bos_token …). */
coxswain_template* coxswain_template_compile(const char* source, size_t source_length, const char* variables,
                                             size_t variables_length, coxswain_text* error);
void coxswain_template_free(coxswain_template* chat_template);
bool coxswain_template_has_generation_tags(const coxswain_template* chat_template);
/* `messages`: a JSON array of objects. */
bool coxswain_template_render(const coxswain_template* chat_template, const char* messages, size_t length,
                              bool add_generation_prompt, coxswain_rendered* out, coxswain_text* error);

#ifdef __cplusplus
}
#endif
