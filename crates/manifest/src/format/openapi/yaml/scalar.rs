//! Converts YAML scalars by the core schema of YAML 1.2 (section 10.3), extended by binary integers.

use std::borrow::Cow;

use saphyr_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

/// Longest text that may be a number: an `f64` written out in full has 330 digits.
const NUMBER_BYTES_MAX: usize = 400;

/// The value of a scalar. Tags of the core schema are applied; others are ignored.
pub(super) fn value(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let core = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    let demanded = match core {
        Some("bool") => truth(&text).map(Value::Bool),
        Some("int") => integer(&text),
        Some("float") => float(&text),
        Some("null") => is_null(&text).then_some(Value::Null),
        Some(_) => Some(Value::String(text.clone().into_owned())),
        None if style == ScalarStyle::Plain => return Ok(plain(text)),
        None => return Ok(Value::String(text.into_owned())),
    };
    demanded.ok_or_else(|| {
        let shown = crate::text::capped(&text, 80);
        format!("\"{shown}\" is not of the type that its tag !!{} names", core.unwrap_or_default())
    })
}

/// A scalar without quotes and tag.
fn plain(text: Cow<'_, str>) -> Value {
    if text.is_empty() || is_null(&text) {
        return Value::Null;
    }
    if let Some(truth) = truth(&text) {
        return Value::Bool(truth);
    }
    let number = integer(&text).or_else(|| if is_padded(&text) { None } else { float(&text) });
    number.unwrap_or_else(|| Value::String(text.into_owned()))
}

fn is_null(text: &str) -> bool {
    matches!(text, "null" | "Null" | "NULL" | "~")
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Whether a text consists of digits with a leading zero. It is read as text, because it may be a postcode.
fn is_padded(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whole numbers in decimal, hexadecimal (`0x`), octal (`0o`) and binary (`0b`).
fn integer(text: &str) -> Option<Value> {
    if text.len() > NUMBER_BYTES_MAX {
        return None;
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.starts_with(['+', '-']) || is_padded(text) {
        return None;
    }
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, radix)));
    let (digits, radix) = radix.unwrap_or((digits, 10));
    if digits.starts_with(['+', '-']) {
        return None;
    }
    if !negative {
        return u64::from_str_radix(digits, radix).ok().map(Value::from);
    }
    i64::from_str_radix(&format!("-{digits}"), radix).ok().map(Value::from)
}

/// Numbers with a fraction or an exponent, and whole numbers beyond the integer types. Numbers that are not finite are null in JSON.
fn float(text: &str) -> Option<Value> {
    if text.len() > NUMBER_BYTES_MAX {
        return None;
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if text.starts_with('+') && unsigned.starts_with(['+', '-']) {
        return None;
    }
    if matches!(unsigned.strip_prefix('-').unwrap_or(unsigned), ".inf" | ".Inf" | ".INF")
        || matches!(text, ".nan" | ".NaN" | ".NAN")
    {
        return Some(Value::Null);
    }
    let number = unsigned.parse::<f64>().ok().filter(|number| number.is_finite())?;
    Number::from_f64(number).map(Value::Number)
}
