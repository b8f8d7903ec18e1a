//! Loading a tokenizer.json as transformers does.

use serde::Deserialize;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

#[derive(Deserialize)]
struct Options {
    special_tokens: Vec<String>,
    frame: Option<Frame>,
}

/// What is put around a text when special tokens are asked for.
#[derive(Deserialize)]
struct Frame {
    bos: Option<String>,
    eos: Option<String>,
}

pub fn load_tokenizer(json: &str, options: &str) -> Result<Tokenizer, String> {
    let options: Options = serde_json::from_str(options).map_err(|e| format!("bad options: {e}"))?;
    let mut tokenizer: Tokenizer = json.parse().map_err(|e| format!("{e}"))?;
    tokenizer.with_padding(None).with_truncation(None).map_err(|e| format!("{e}"))?;
    let known = options.special_tokens.into_iter().filter(|token| tokenizer.token_to_id(token).is_some());
    let added: Vec<_> = known.map(|token| AddedToken::from(token, true)).collect();
    tokenizer.add_special_tokens(added).map_err(|e| format!("{e}"))?;
    if let Some(frame) = options.frame {
        let processor = frame.processor(&tokenizer)?;
        tokenizer.with_post_processor(Some(processor));
    }
    Ok(tokenizer)
}

impl Frame {
    fn processor(&self, tokenizer: &Tokenizer) -> Result<TemplateProcessing, String> {
        let mut pieces = vec!["$A:0".to_string()];
        let mut tokens = Vec::new();
        for (place, token) in [(0, &self.bos), (usize::MAX, &self.eos)] {
            let Some(token) = token else { continue };
            let id = tokenizer.token_to_id(token).ok_or_else(|| format!("{token:?} is not in the vocabulary"))?;
            pieces.insert(place.min(pieces.len()), format!("{token}:0"));
            tokens.push((token.clone(), id));
        }
        TemplateProcessing::builder()
            .try_single(pieces)
            .map_err(|e| format!("{e}"))?
            .special_tokens(tokens)
            .build()
            .map_err(|e| format!("{e}"))
    }
}
