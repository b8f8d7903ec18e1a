//! A chat template rendered as transformers renders it: Jinja with trim_blocks and lstrip_blocks, Python's methods on
//! strings, `raise_exception`, `strftime_now`, `tojson`, loop controls, and `{% generation %}` blocks.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use serde_json::{Map, Value as Json};

use crate::python_format;

const NAME: &str = "chat_template";
const BEGIN: &str = "_generation_begin";
const END: &str = "_generation_end";

pub struct ChatTemplate {
    environment: Environment<'static>,
    variables: Map<String, Json>,
    has_generation_tags: bool,
}

pub struct Rendered {
    pub text: String,
    pub generated: Vec<Range<usize>>,
}

impl ChatTemplate {
    pub fn compile(source: &str, variables: &str) -> Result<Self, String> {
        let variables: Map<String, Json> =
            serde_json::from_str(variables).map_err(|e| format!("the special tokens are no JSON object: {e}"))?;
        let mut environment = environment();
        let marked = mark_generation(source);
        let has_generation_tags = matches!(marked, Cow::Owned(_));
        environment
            .add_template_owned(NAME, marked.into_owned())
            .map_err(|e| format!("the chat template does not compile: {}", describe(&e)))?;
        Ok(ChatTemplate { environment, variables, has_generation_tags })
    }

    pub fn has_generation_tags(&self) -> bool {
        self.has_generation_tags
    }

    pub fn render(&self, messages_json: &str, add_generation_prompt: bool) -> Result<Rendered, String> {
        let messages: Vec<Map<String, Json>> = serde_json::from_str(messages_json)
            .map_err(|e| format!("the messages are no JSON array of objects: {e}"))?;
        let messages: Vec<Json> = messages.into_iter().map(|m| Json::Object(normalized(m))).collect();

        let mut context = self.variables.clone();
        context.insert("messages".into(), Json::Array(messages));
        context.insert("tools".into(), Json::Null);
        context.insert("documents".into(), Json::Null);
        context.insert("add_generation_prompt".into(), add_generation_prompt.into());
        let marks = if self.has_generation_tags { Some(unused_marks(&context)?) } else { None };
        if let Some((begin, end)) = marks {
            context.insert(BEGIN.into(), begin.to_string().into());
            context.insert(END.into(), end.to_string().into());
        }
        let text = self
            .environment
            .get_template(NAME)
            .and_then(|template| template.render(Value::from_serialize(&context)))
            .map_err(|e| match raised(&e) {
                Some(message) => format!("the chat template refuses the conversation: {message}"),
                None => format!("the chat template can't be rendered: {}", describe(&e)),
            })?;
        Ok(match marks {
            Some(marks) => split_marks(&text, marks),
            None => Rendered { text, generated: Vec::new() },
        })
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(python_format::write_str);
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", python_format::tojson);
    environment.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
        let message = message.to_string();
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    environment.add_function("strftime_now", |format: String| -> Result<String, Error> {
        use std::fmt::Write;
        let mut out = String::new();
        write!(out, "{}", chrono::Local::now().format(&format))
            .map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: bad format {format:?}")))?;
        Ok(out)
    });
    environment
}

/// The message that a template gave to raise_exception, carried as the source of the error.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raised(error: &Error) -> Option<&str> {
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        if let Some(raised) = source.downcast_ref::<Raised>() {
            return Some(&raised.0);
        }
        next = source.source();
    }
    None
}

fn describe(error: &Error) -> String {
    let mut text = error.kind().to_string();
    if let Some(detail) = error.detail() {
        text = format!("{text}: {detail}");
    }
    match error.line() {
        Some(line) => format!("{text} (line {line} of the template)"),
        None => text,
    }
}

/// What transformers does to a message before a template sees it: keys without a value are dropped, and the reasoning is
/// found under each of its names.
fn normalized(message: Map<String, Json>) -> Map<String, Json> {
    let mut message: Map<String, Json> = message.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let reasoning = ["reasoning_content", "thinking", "reasoning"].iter().find_map(|key| message.get(*key)).cloned();
    if let Some(reasoning) = reasoning {
        message.entry("thinking").or_insert_with(|| reasoning.clone());
        message.insert("reasoning_content".into(), reasoning);
    }
    message
}

/// Rewrites generation tags, which the engine doesn't know, into a scope whose first and last output is a mark. The tags' own
/// whitespace control stays where it was. Borrowed if there are none.
fn mark_generation(source: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut cursor = 0;
    while let Some(found) = source[cursor..].find("{%") {
        let open = cursor + found;
        let Some(length) = source[open + 2..].find("%}") else { break };
        let inner = &source[open + 2..open + 2 + length];
        let close = open + length + 4;
        cursor = close;
        let sign = |c: Option<char>| match c {
            Some('-') => "-",
            Some('+') => "+",
            _ => "",
        };
        let (lead, trail) = (sign(inner.chars().next()), sign(inner.chars().next_back()));
        let tag = match inner.trim_matches(['-', '+']).trim() {
            "generation" => format!("{{%{lead} with %}}{{{{ {BEGIN} }}}}{{% if true {trail}%}}"),
            "endgeneration" => format!("{{%{lead} endif %}}{{{{ {END} }}}}{{% endwith {trail}%}}"),
            _ => continue,
        };
        out.push_str(&source[copied..open]);
        out.push_str(&tag);
        copied = close;
    }
    if copied == 0 {
        return Cow::Borrowed(source);
    }
    out.push_str(&source[copied..]);
    Cow::Owned(out)
}

/// Two noncharacters (which Unicode keeps for such internal use) that the conversation does not contain.
fn unused_marks(context: &Map<String, Json>) -> Result<(char, char), String> {
    let text = serde_json::to_string(context).map_err(|e| e.to_string())?;
    let mut unused = ('\u{FDD0}'..='\u{FDEF}').filter(|c| !text.contains(*c));
    match (unused.next(), unused.next()) {
        (Some(begin), Some(end)) => Ok((begin, end)),
        _ => Err("the conversation uses all of the Unicode noncharacters U+FDD0 to U+FDEF".into()),
    }
}

fn split_marks(marked: &str, (begin, end): (char, char)) -> Rendered {
    let mut text = String::with_capacity(marked.len());
    let mut generated = Vec::new();
    let mut start = None;
    for c in marked.chars() {
        if c == begin {
            start = Some(text.len());
        } else if c == end {
            if let Some(start) = start.take() {
                generated.push(start..text.len());
            }
        } else {
            text.push(c);
        }
    }
    Rendered { text, generated }
}
