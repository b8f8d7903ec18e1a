//! Loading a tokenizer.json as transformers does: its own post-processor says which special tokens are added
//! (add_bos_token and add_eos_token of tokenizer_config.json don't count beside it).

use tokenizers::{AddedToken, Tokenizer};

pub fn load_tokenizer(json: &str, special_tokens: &str) -> Result<Tokenizer, String> {
    let special_tokens: Vec<String> =
        serde_json::from_str(special_tokens).map_err(|e| format!("the special tokens are no JSON array: {e}"))?;
    let mut tokenizer: Tokenizer = json.parse().map_err(|e| format!("{e}"))?;
    tokenizer.with_padding(None).with_truncation(None).map_err(|e| format!("{e}"))?;
    let known = special_tokens.into_iter().filter(|token| tokenizer.token_to_id(token).is_some());
    let added: Vec<_> = known.map(|token| AddedToken::from(token, true)).collect();
    tokenizer.add_special_tokens(added).map_err(|e| format!("{e}"))?;
    Ok(tokenizer)
}
