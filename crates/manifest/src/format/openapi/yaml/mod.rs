//! Converts YAML to JSON values, event by event, within a budget.
//!
//! Decides how YAML's wider data model becomes JSON: keys that are numbers or truth values turn into text (response codes are often written
//! bare), application tags are ignored, numbers that JSON cannot represent become null, `<<` is an ordinary name, and the first of two
//! members with the same name is used. Every value is charged before it is built, aliases as often as they are expanded, so that a small
//! document cannot grow into a large one. It refuses `%TAG` directives, because their prefixes would be copied for every tag.
//!
//! Follows YAML 1.2 with its core schema (section 10.3).

mod scalar;
mod window;

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{BufferedInput, Event, Parser, ScanError};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::budget::{self, Cost, Measure, Meter, OverBudget};
use crate::json::STRING_BYTES_MAX;
use window::{Chars, Window};

/// Longest document in YAML. The parser takes several times as long per byte as the JSON parser; the largest OpenAPI documents that are
/// published in YAML have 6 MB.
pub(crate) const YAML_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Maximum number of values that aliases may repeat: this minimum, and one more for each 8 bytes of the document. Aliases in published
/// documents repeat a few hundred values.
const REPEATED_NODES_MIN: usize = 20_000;
const BYTES_PER_REPEATED_NODE: usize = 8;

#[derive(Debug)]
pub(crate) enum YamlError {
    /// The error and its position.
    Syntax(String),
    OverBudget(OverBudget),
}

impl From<OverBudget> for YamlError {
    fn from(over: OverBudget) -> Self {
        Self::OverBudget(over)
    }
}

/// Parses one YAML document.
pub(crate) fn parse(text: &str) -> Result<Value, YamlError> {
    if text.len() > YAML_BYTES_MAX {
        let (limit, measured) = (YAML_BYTES_MAX, text.len());
        return Err(OverBudget { measure: Measure::YamlBytes, limit, measured }.into());
    }
    if let Some(offset) = text.find('\0') {
        return Err(YamlError::Syntax(format!("a null character at byte {offset}")));
    }
    if let Some(line) = text.lines().position(|line| line.starts_with("%TAG")) {
        return Err(YamlError::Syntax(format!("%TAG directives are not supported, at line {}", line + 1)));
    }
    let window = Rc::new(Window::default());
    let chars = Chars::new(text, Rc::clone(&window));
    let builder = Builder {
        parser: Parser::new_from_iter(chars),
        window,
        meter: Meter::new(budget::YAML),
        anchors: HashMap::new(),
        repeated: 0,
        repeated_max: REPEATED_NODES_MIN + text.len() / BYTES_PER_REPEATED_NODE,
    };
    builder.document()
}

/// A value with an anchor, which aliases may repeat.
struct Anchored {
    value: Value,
    cost: Cost,
    /// Levels of containers.
    height: usize,
}

struct Builder<'t> {
    parser: Parser<'t, BufferedInput<Chars<'t>>>,
    window: Rc<Window>,
    meter: Meter,
    anchors: HashMap<usize, Anchored>,
    /// Number of values that aliases have repeated so far, and the limit.
    repeated: usize,
    repeated_max: usize,
}

impl<'t> Builder<'t> {
    fn document(mut self) -> Result<Value, YamlError> {
        let mut root = None;
        loop {
            match self.next()? {
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(YamlError::Syntax("more than one document in one file".to_owned()));
                }
                Event::DocumentStart(_) => {
                    let event = self.next()?;
                    root = Some(self.node(event)?);
                }
                Event::StreamEnd => {
                    return root.ok_or_else(|| YamlError::Syntax("the document is empty".to_owned()));
                }
                _ => return Err(YamlError::Syntax("a value outside the document".to_owned())),
            }
        }
    }

    /// The next event. The window limits the characters that the parser may read for it.
    fn next(&mut self) -> Result<Event<'t>, YamlError> {
        self.window.reopen();
        let event = self.parser.next_event();
        if let Some(over) = self.window.exceeded() {
            return Err(over.into());
        }
        match event {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(YamlError::Syntax(message(&error))),
            None => Err(YamlError::Syntax("the text ends unexpectedly".to_owned())),
        }
    }

    fn node(&mut self, event: Event<'t>) -> Result<Value, YamlError> {
        let before = self.meter.spent();
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.meter.scalar(text.len(), true)?;
                (anchor, scalar::value(text, style, tag.as_deref()).map_err(YamlError::Syntax)?)
            }
            Event::SequenceStart(anchor, _) => (anchor, self.list()?),
            Event::MappingStart(anchor, _) => (anchor, self.object()?),
            Event::Alias(anchor) => return self.expand(anchor),
            _ => return Err(YamlError::Syntax("a value is missing".to_owned())),
        };
        if anchor > 0 {
            let cost = self.meter.spent().since(before);
            self.meter.charge(cost)?;
            let anchored = Anchored { value: value.clone(), cost, height: height(&value) };
            self.anchors.insert(anchor, anchored);
        }
        Ok(value)
    }

    fn list(&mut self) -> Result<Value, YamlError> {
        self.meter.open_list()?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => break,
                event => items.push(self.node(event)?),
            }
        }
        self.meter.close();
        Ok(Value::Array(items))
    }

    fn object(&mut self) -> Result<Value, YamlError> {
        self.meter.open_object()?;
        let mut members = Map::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                event => key_text(self.node(event)?)?,
            };
            self.meter.name(key.len())?;
            let event = self.next()?;
            let value = self.node(event)?;
            if let Entry::Vacant(slot) = members.entry(key) {
                slot.insert(value);
            }
        }
        self.meter.close();
        Ok(Value::Object(members))
    }

    /// The value that an alias repeats, charged again.
    fn expand(&mut self, anchor: usize) -> Result<Value, YamlError> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(YamlError::Syntax("an alias inside the value to which it refers".to_owned()));
        };
        self.repeated += anchored.cost.nodes;
        let (limit, measured) = (self.repeated_max, self.repeated);
        if measured > limit {
            return Err(OverBudget { measure: Measure::Repeated, limit, measured }.into());
        }
        self.meter.scalar(0, false)?;
        self.meter.charge(anchored.cost)?;
        self.meter.check_depth(anchored.height)?;
        Ok(anchored.value.clone())
    }
}

fn height(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(height).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(height).max().unwrap_or(0),
        _ => 0,
    }
}

/// A key as the name of a member. Collections as keys are written as JSON. The limit is needed because nested quotes double the length with
/// every level.
fn key_text(key: Value) -> Result<String, YamlError> {
    let text = match key {
        Value::String(text) => text,
        other => other.to_string(),
    };
    if text.len() > STRING_BYTES_MAX {
        return Err(YamlError::Syntax("a key is longer than 64 KiB".to_owned()));
    }
    Ok(text)
}

fn message(error: &ScanError) -> String {
    let at = error.marker();
    format!("{} at line {} column {}", error.info(), at.line(), at.col() + 1)
}

#[cfg(test)]
mod tests;
