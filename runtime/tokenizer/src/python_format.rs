//! How Python writes values, where a template's output depends on it: `{{ true }}` is `True`, and `tojson` is `json.dumps`.

use std::io;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};
use serde::Serialize;
use serde_json::ser::Formatter;

/// Environment formatter: what `{{ value }}` writes, as Python's `str(value)`.
pub fn write_str(out: &mut Output, _state: &State, value: &Value) -> Result<(), Error> {
    let text = match value.kind() {
        ValueKind::Bool | ValueKind::None | ValueKind::Seq | ValueKind::Map => repr(value)?,
        _ => return write!(out, "{value}").map_err(Error::from),
    };
    out.write_str(&text).map_err(Error::from)
}

fn repr(value: &Value) -> Result<String, Error> {
    Ok(match value.kind() {
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_string(),
        ValueKind::None => "None".to_string(),
        ValueKind::String => quoted(value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            let items: Result<Vec<_>, _> = value.try_iter()?.map(|item| repr(&item)).collect();
            format!("[{}]", items?.join(", "))
        }
        ValueKind::Map => {
            let mut items = Vec::new();
            for key in value.try_iter()? {
                items.push(format!("{}: {}", repr(&key)?, repr(&value.get_item(&key)?)?));
            }
            format!("{{{}}}", items.join(", "))
        }
        _ => value.to_string(),
    })
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// The filter `tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub fn tojson(value: Value, kwargs: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = kwargs.get("indent")?;
    let separators: Option<(String, String)> = kwargs.get::<Option<Vec<String>>>("separators")?.and_then(|s| {
        let [item, key] = <[String; 2]>::try_from(s).ok()?;
        Some((item, key))
    });
    let (item_separator, key_separator) =
        separators.unwrap_or_else(|| (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string()));
    let formatter = JsonDumps {
        indent,
        item_separator,
        key_separator,
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        depth: 0,
        has_value: false,
    };
    let sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    kwargs.assert_all_used()?;

    let failed = |e: serde_json::Error| Error::new(ErrorKind::InvalidOperation, format!("tojson: {e}"));
    let mut json = serde_json::to_value(&value).map_err(failed)?;
    if sort_keys {
        json.sort_all_objects();
    }
    let mut bytes = Vec::new();
    json.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter)).map_err(failed)?;
    String::from_utf8(bytes).map_err(|e| Error::new(ErrorKind::InvalidOperation, format!("tojson: {e}")))
}

struct JsonDumps {
    indent: Option<usize>,
    item_separator: String,
    key_separator: String,
    ensure_ascii: bool,
    depth: usize,
    has_value: bool,
}

impl JsonDumps {
    fn newline<W: ?Sized + io::Write>(&self, w: &mut W) -> io::Result<()> {
        match self.indent {
            Some(n) => write!(w, "\n{}", " ".repeat(n * self.depth)),
            None => Ok(()),
        }
    }

    fn open<W: ?Sized + io::Write>(&mut self, w: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        w.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, w: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.newline(w)?;
        }
        w.write_all(bracket)
    }

    fn next<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if !first {
            w.write_all(self.item_separator.as_bytes())?;
        }
        self.newline(w)
    }
}

impl Formatter for JsonDumps {
    fn begin_array<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.open(w, b"[")
    }
    fn end_array<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.close(w, b"]")
    }
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.next(w, first)
    }
    fn end_array_value<W: ?Sized + io::Write>(&mut self, _w: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
    fn begin_object<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.open(w, b"{")
    }
    fn end_object<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.close(w, b"}")
    }
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.next(w, first)
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(self.key_separator.as_bytes())
    }
    fn end_object_value<W: ?Sized + io::Write>(&mut self, _w: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, w: &mut W, fragment: &str) -> io::Result<()> {
        if !self.ensure_ascii {
            return w.write_all(fragment.as_bytes());
        }
        for c in fragment.chars() {
            if c.is_ascii() {
                w.write_all(&[c as u8])?;
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(w, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}
