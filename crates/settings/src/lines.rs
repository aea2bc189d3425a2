//! The format of a log line: text or JSON, with every value escaped and truncated.
//!
//! Values in log lines come from sites and clients: addresses, ids, headers, and error texts that quote them. They are escaped where fields
//! are formatted, so that this applies to all call sites and to lines of libraries.

use std::fmt::{self, Write as _};

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::field::{MakeVisitor, VisitFmt, VisitOutput};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::escape::{self, CUT_MARK, Escaping};

/// Maximum number of characters of one value: enough for a URL and an error, but few enough that many requests do not fill a disk.
const FIELD_CHARS_MAX: usize = 256;
/// Maximum number of characters of a message. Messages of agentdex are sentences, but those of libraries may quote their input.
const MESSAGE_CHARS_MAX: usize = 1_024;

/// The log target of messages for the person at the terminal. `runtime` uses it when a signal stops the program.
const NOTICE: &str = "runtime::notice";

/// The name under which `tracing` passes the message of an event.
const MESSAGE: &str = "message";

const fn chars_max(is_message: bool) -> usize {
    if is_message { MESSAGE_CHARS_MAX } else { FIELD_CHARS_MAX }
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Whether a line has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    Shown,
    Hidden,
}

/// Writes the lines of a log.
pub(crate) fn layer<S, W>(
    format: LogFormat,
    writer: W,
    colours: Colours,
    shows_target: bool,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colours == Colours::Shown)
        .with_target(shows_target);
    match format {
        LogFormat::Text => lines.fmt_fields(TextFields).map_event_format(TextLine).boxed(),
        LogFormat::Json => lines.json().map_event_format(JsonLine).boxed(),
    }
}

/// Formats a line of text. A notice for the person at the terminal contains only its message, without time and level.
#[derive(Debug)]
struct TextLine<F>(F);

impl<S, N, F> FormatEvent<S, N> for TextLine<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != NOTICE {
            return self.0.format_event(context, writer, event);
        }
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Formats the fields of a line of text.
#[derive(Debug)]
struct TextFields;

impl<'writer> MakeVisitor<Writer<'writer>> for TextFields {
    type Visitor = TextVisitor<'writer>;

    fn make_visitor(&self, writer: Writer<'writer>) -> Self::Visitor {
        TextVisitor { writer, is_first: true, result: Ok(()) }
    }
}

#[derive(Debug)]
struct TextVisitor<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    result: fmt::Result,
}

impl TextVisitor<'_> {
    fn write(&mut self, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        let is_message = name == MESSAGE;
        if !is_message && self.writer.has_ansi_escapes() {
            write!(self.writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m")?;
        } else if !is_message {
            write!(self.writer, "{name}=")?;
        }
        Escaping::new(&mut self.writer, chars_max(is_message)).write_fmt(value)
    }

    fn record(&mut self, name: &str, value: fmt::Arguments<'_>) {
        // the line already contains the metadata of `log` records
        if self.result.is_ok() && !name.starts_with("log.") {
            self.result = self.write(name.strip_prefix("r#").unwrap_or(name), value);
        }
    }
}

impl Visit for TextVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            self.record(MESSAGE, format_args!("{value}"));
        } else {
            self.record(field.name(), format_args!("{value:?}"));
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record(field.name(), format_args!("{value}"));
        let sources: Vec<String> =
            std::iter::successors(value.source(), |error| error.source()).map(ToString::to_string).collect();
        if !sources.is_empty() {
            self.record(&format!("{}.sources", field.name()), format_args!("{sources:?}"));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field.name(), format_args!("{value:?}"));
    }
}

impl VisitOutput<fmt::Result> for TextVisitor<'_> {
    fn finish(self) -> fmt::Result {
        self.result
    }
}

impl VisitFmt for TextVisitor<'_> {
    fn writer(&mut self) -> &mut dyn fmt::Write {
        &mut self.writer
    }
}

/// Formats a line of JSON and truncates its values. JSON escapes line ends. The other unsafe characters are escaped here, so that a line is
/// safe on a terminal. Apart from truncation, parsed values do not change.
#[derive(Debug)]
struct JsonLine<F>(F);

impl<S, N, F> FormatEvent<S, N> for JsonLine<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        if let Ok(mut value) = serde_json::from_str::<Value>(&line) {
            cut(&mut value, false);
            line = value.to_string();
        }
        writeln!(writer, "{}", escape::json(line.trim_end_matches('\n')))
    }
}

fn cut(value: &mut Value, is_message: bool) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(chars_max(is_message)) {
                text.truncate(end);
                text.push_str(CUT_MARK);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, false)),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| cut(value, name == MESSAGE)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::escape::is_unsafe;

    /// A value that forges a log line, controls a terminal and reorders text.
    const HOSTILE: &str = "1\n2026-01-01T00:00:00Z ERROR forged\r\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{2028}x\u{2029}\u{202e}\u{2066}";

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: LogFormat, colours: Colours, log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber =
            tracing_subscriber::registry().with(layer(format, move || writer.clone(), colours, false));
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    #[derive(Debug, thiserror::Error)]
    #[error("outer {0}")]
    struct Outer(String, #[source] io::Error);

    fn log_hostile_values() {
        let span = tracing::error_span!("request", request.id = HOSTILE, url.path = %HOSTILE, later = tracing::field::Empty);
        span.record("later", tracing::field::display(HOSTILE));
        let _entered = span.enter();
        let error = Outer(HOSTILE.to_owned(), io::Error::other(HOSTILE));
        tracing::info!(id = %HOSTILE, text = HOSTILE, debug = ?HOSTILE, "one sentence");
        tracing::info!(error = &error as &dyn std::error::Error, "failed");
        tracing::info!("a library quotes {HOSTILE}");
    }

    #[test]
    fn escapes_line_breaks_and_terminal_controls_in_values() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let log = written(format, Colours::Hidden, log_hostile_values);
            assert_eq!(log.lines().count(), 3, "{log}");
            assert_eq!(log.matches('\n').count(), 3, "{log}");
            assert!(!log.chars().any(|letter| letter != '\n' && is_unsafe(letter)), "{log:?}");
            assert!(log.contains("forged"), "the escaped value is logged: {log}");
        }
    }

    #[test]
    fn json_values_survive_parsing() {
        let log = written(LogFormat::Json, Colours::Hidden, || tracing::info!(id = %HOSTILE, "one sentence"));
        let line: Value = serde_json::from_str(&log).unwrap();
        assert_eq!(line["fields"]["id"], HOSTILE);
        assert_eq!(line["fields"]["message"], "one sentence");
        assert_eq!(line["level"], "INFO");
    }

    #[test]
    fn truncates_long_values_in_both_formats() {
        let value = "x".repeat(20 * 1024);
        for format in [LogFormat::Text, LogFormat::Json] {
            let log = written(format, Colours::Hidden, || {
                let span = tracing::error_span!("request", request.id = value);
                let _entered = span.enter();
                tracing::info!(id = %value, debug = ?value, "one sentence");
            });
            assert!(log.contains(CUT_MARK) && log.contains("one sentence"), "{log}");
            // JSON contains the span twice: as the current span and in the list
            assert!(log.len() < 5 * (FIELD_CHARS_MAX + 64), "{} bytes", log.len());
            let message = written(format, Colours::Hidden, || tracing::info!("quotes {value}"));
            assert!(message.len() < MESSAGE_CHARS_MAX + 256, "{} bytes", message.len());
        }
    }

    #[test]
    fn a_notice_is_a_single_sentence() {
        let log = || tracing::warn!(target: "runtime::notice", "Stopping now.");
        assert_eq!(written(LogFormat::Text, Colours::Shown, log), "Stopping now.\n");
        let line: Value = serde_json::from_str(&written(LogFormat::Json, Colours::Hidden, log)).unwrap();
        assert_eq!((&line["level"], &line["fields"]["message"]), (&"WARN".into(), &"Stopping now.".into()));
    }

    #[test]
    fn leaves_messages_and_plain_values_unchanged() {
        let error = Outer("own".to_owned(), io::Error::other("below"));
        let log = || {
            tracing::warn!(site.name = %"bücher.example", count = 3, "waiting for the database");
            tracing::warn!(error = &error as &dyn std::error::Error, "failed");
        };
        let text = written(LogFormat::Text, Colours::Hidden, log);
        assert!(text.contains(" WARN waiting for the database site.name=bücher.example count=3\n"), "{text}");
        assert!(text.ends_with("failed error=outer own error.sources=[\"below\"]\n"), "{text}");
        let coloured = written(LogFormat::Text, Colours::Shown, log);
        assert!(coloured.contains("\u{1b}[3mcount\u{1b}[0m\u{1b}[2m=\u{1b}[0m3"), "{coloured:?}");
    }
}
