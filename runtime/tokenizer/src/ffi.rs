//! The functions of `ffi.h`. Each one turns its arguments into Rust's, runs the work under `catch_unwind`, and hands the
//! result over as memory that the matching `…_free` takes back.
//!
//! Safety, for every function here: the caller keeps what `ffi.h` says of pointers and lengths.
#![allow(clippy::missing_safety_doc)]

use std::os::raw::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::Once;

use tokenizers::Tokenizer;

use crate::chat_template::ChatTemplate;
use crate::tokenizer::load_tokenizer;

#[repr(C)]
pub struct Text {
    data: *mut c_char,
    length: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Span {
    begin: u64,
    end: u64,
}

#[repr(C)]
pub struct Encoding {
    ids: *mut u32,
    spans: *mut Span,
    count: usize,
}

#[repr(C)]
pub struct Rendered {
    text: Text,
    generated: *mut Span,
    generated_count: usize,
}

fn give<T>(items: Vec<T>) -> (*mut T, usize) {
    let length = items.len();
    (Box::into_raw(items.into_boxed_slice()) as *mut T, length)
}

unsafe fn take_back<T>(data: *mut T, length: usize) {
    if !data.is_null() {
        drop(Box::from_raw(ptr::slice_from_raw_parts_mut(data, length)));
    }
}

fn give_text(text: String) -> Text {
    let (data, length) = give(text.into_bytes());
    Text { data: data as *mut c_char, length }
}

fn give_spans(spans: impl IntoIterator<Item = (usize, usize)>) -> (*mut Span, usize) {
    give(spans.into_iter().map(|(begin, end)| Span { begin: begin as u64, end: end as u64 }).collect())
}

unsafe fn text_of<'a>(data: *const c_char, length: usize) -> Result<&'a str, String> {
    if length == 0 {
        return Ok("");
    }
    std::str::from_utf8(std::slice::from_raw_parts(data as *const u8, length))
        .map_err(|e| format!("the text is not UTF-8 at byte {}", e.valid_up_to()))
}

/// Runs `work`; a failure or a panic becomes a text in `error` and None.
unsafe fn guarded<T>(error: *mut Text, work: impl FnOnce() -> Result<T, String>) -> Option<T> {
    static QUIET: Once = Once::new();
    // A panic is reported as an error value; Rust's own report of it on stderr is for nobody.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(message)) => message,
        Err(panic) => {
            let reason = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            format!("the tokenizer library failed inside: {reason}")
        }
    };
    *error = give_text(failure);
    None
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_text_free(text: Text) {
    take_back(text.data, text.length);
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_encoding_free(encoding: Encoding) {
    take_back(encoding.ids, encoding.count);
    take_back(encoding.spans, encoding.count);
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_rendered_free(rendered: Rendered) {
    take_back(rendered.text.data, rendered.text.length);
    take_back(rendered.generated, rendered.generated_count);
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_tokenizer_load(
    json: *const c_char,
    length: usize,
    special_tokens: *const c_char,
    special_tokens_length: usize,
    error: *mut Text,
) -> *mut Tokenizer {
    guarded(error, || {
        let tokenizer = load_tokenizer(text_of(json, length)?, text_of(special_tokens, special_tokens_length)?)?;
        Ok(Box::into_raw(Box::new(tokenizer)))
    })
    .unwrap_or(ptr::null_mut())
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: *const c_char,
    length: usize,
    add_special_tokens: bool,
    with_spans: bool,
    out: *mut Encoding,
    error: *mut Text,
) -> bool {
    let encoding = guarded(error, || {
        let (tokenizer, text) = (&*tokenizer, text_of(text, length)?);
        let encoding = if with_spans {
            tokenizer.encode(text, add_special_tokens)
        } else {
            tokenizer.encode_fast(text, add_special_tokens)
        }
        .map_err(|e| format!("the text can't be tokenized: {e}"))?;
        let (ids, count) = give(encoding.get_ids().to_vec());
        let spans = if with_spans { give_spans(encoding.get_offsets().iter().copied()).0 } else { ptr::null_mut() };
        Ok(Encoding { ids, spans, count })
    });
    encoding.map(|encoding| *out = encoding).is_some()
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    count: usize,
    skip_special_tokens: bool,
    out: *mut Text,
    error: *mut Text,
) -> bool {
    let text = guarded(error, || {
        let ids = if count == 0 { &[] } else { std::slice::from_raw_parts(ids, count) };
        (*tokenizer).decode(ids, skip_special_tokens).map_err(|e| format!("the ids can't be decoded: {e}"))
    });
    text.map(|text| *out = give_text(text)).is_some()
}

/// Like `guarded` for look-ups, whose only failure is that there is nothing.
unsafe fn looked_up<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    let mut error = Text { data: ptr::null_mut(), length: 0 };
    let found = guarded(&mut error, || Ok(work()));
    coxswain_text_free(error);
    found.flatten()
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_tokenizer_token_to_id(
    tokenizer: *const Tokenizer,
    token: *const c_char,
    length: usize,
    out: *mut u32,
) -> bool {
    looked_up(|| (*tokenizer).token_to_id(text_of(token, length).ok()?)).map(|id| *out = id).is_some()
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_tokenizer_id_to_token(
    tokenizer: *const Tokenizer,
    id: u32,
    out: *mut Text,
) -> bool {
    looked_up(|| (*tokenizer).id_to_token(id)).map(|token| *out = give_text(token)).is_some()
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_tokenizer_vocabulary_size(tokenizer: *const Tokenizer) -> usize {
    looked_up(|| Some((*tokenizer).get_vocab_size(true))).unwrap_or(0)
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_template_compile(
    source: *const c_char,
    source_length: usize,
    variables: *const c_char,
    variables_length: usize,
    error: *mut Text,
) -> *mut ChatTemplate {
    guarded(error, || {
        let template = ChatTemplate::compile(text_of(source, source_length)?, text_of(variables, variables_length)?)?;
        Ok(Box::into_raw(Box::new(template)))
    })
    .unwrap_or(ptr::null_mut())
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_template_free(template: *mut ChatTemplate) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_template_has_generation_tags(template: *const ChatTemplate) -> bool {
    (*template).has_generation_tags()
}

#[no_mangle]
pub unsafe extern "C" fn coxswain_template_render(
    template: *const ChatTemplate,
    messages: *const c_char,
    length: usize,
    add_generation_prompt: bool,
    out: *mut Rendered,
    error: *mut Text,
) -> bool {
    let rendered = guarded(error, || {
        let rendered = (*template).render(text_of(messages, length)?, add_generation_prompt)?;
        let (generated, generated_count) = give_spans(rendered.generated.into_iter().map(|r| (r.start, r.end)));
        Ok(Rendered { text: give_text(rendered.text), generated, generated_count })
    });
    rendered.map(|rendered| *out = rendered).is_some()
}
