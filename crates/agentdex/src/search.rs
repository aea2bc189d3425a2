//! `agentdex search`: runs `GET /search` on the data directory, and prints the response as a table or as JSON.

use std::io::{IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;

use api::{ApiConfig, App, LocalResults, LocalSearchError};
use crawler::cli::UsageError;
use crawler::output::OutputFormat;
use indexer::{IndexConfig, IndexError, Searcher};
use serde_json::Value;
use settings::command_line::with_flags;
use settings::log::LogLevel;
use settings::{SharedFlags, escape};
use store::Store;
use terminal_size::{Width, terminal_size};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::serve::{self, ServeFlags};

/// The columns of the table with their maximum widths. The last one uses the remaining width.
const COLUMNS: [(&str, usize); 4] = [("NAME", 30), ("SITE", 28), ("TYPE", 24), ("WHAT IT DOES", usize::MAX)];
/// Spaces between two columns.
const GAP: usize = 2;
/// Minimum width of the last column.
const LAST_WIDTH_MIN: usize = 20;

/// Search the index of the data directory
///
/// The words may contain "a phrase", -word, and the operators site:, type:, format:, method:, safety: and auth:. Quote a query that
/// has phrases or excludes words: agentdex search '"book flight" -hotel'.
#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// What to search for, in quotes if it excludes words: '"book flight" -hotel'; may be left out when a filter is given
    words: Vec<String>,
    /// A filter of GET /search, such as safety=read or format=awp,atp: values mean OR, filters mean AND
    #[arg(long, value_name = "NAME=VALUE")]
    filter: Vec<String>,
    /// Results shown, at most 100 [default: 20]
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
    /// Order of the results, such as relevance or name [default: relevance]
    #[arg(long, value_name = "ORDER")]
    sort: Option<String>,
    /// `next_cursor` of the previous page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl SearchArgs {
    /// The parameters of `GET /search`.
    fn parameters(&self) -> Result<Vec<(String, String)>, UsageError> {
        let filters = self.filter.iter().map(|filter| match filter.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(UsageError(format!("--filter {filter}: write it like safety=read"))),
        });
        let mut parameters = filters.collect::<Result<Vec<_>, _>>()?;
        let words = (!self.words.is_empty()).then(|| self.words.join(" "));
        let limit = self.limit.map(|limit| limit.to_string());
        let others =
            [("q", words), ("limit", limit), ("sort", self.sort.clone()), ("cursor", self.cursor.clone())];
        parameters.extend(others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Ok(parameters)
    }
}

/// Searches, and prints the results.
pub(crate) async fn run(
    args: &SearchArgs,
    shared: &SharedFlags,
    serve: &ServeFlags,
    format: OutputFormat,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let parameters = args.parameters()?;
    if args.words.iter().all(|word| word.trim().is_empty()) && args.filter.is_empty() {
        let why = "name what to search for, as in `agentdex search book flight`, or a filter, as in --filter format=awp";
        return Err(UsageError(why.to_owned()).into());
    }
    let settings = serve::searcher_settings(shared, serve, shared.data_dir.as_deref())?;
    // the response explains why the index cannot be used, so a log line is not needed
    let log_level = if shared.verbose == 0 { LogLevel::Error } else { settings.log_level };
    let settings = indexer::cli::Settings { log_level, ..settings };
    let _log = settings.start_logging("agentdex");
    let embedder = settings.open_embedder().map_err(serve::usage)?;
    let config = serve::api_settings(shared, serve)?.resolve(settings).map_err(serve::usage)?;
    let store = Store::open_existing(&config.database).await?;
    let index = config.index.clone();
    let app = App::with_store(ApiConfig { embedder, ..config }, store.clone());
    app.refresh_index().await;
    let found = api::search(&app, parameters).await;
    let empty = match &found {
        Ok(found) if found.page["total"] == 0 => {
            why_empty(&index, &store).await?.or_else(|| found.has_no_words.then_some(NO_WORDS))
        }
        _ => None,
    };
    store.close().await;
    let LocalResults { page, .. } = found.map_err(|error| match error {
        LocalSearchError::Query(why) => anyhow::Error::from(UsageError(why)),
        LocalSearchError::Unavailable(why) => {
            // clients of an API get no paths and reasons of its machine
            let why = match Searcher::of(&index).err() {
                Some(IndexError::Missing { dir }) => missing_index(&dir),
                error => error.map_or(why, |error| error.to_string()),
            };
            anyhow::anyhow!(why)
        }
    })?;
    match format {
        OutputFormat::Json => writeln!(out, "{}", escape::json(&serde_json::to_string(&page)?))?,
        OutputFormat::Text => {
            let width = terminal_size().filter(|_| std::io::stdout().is_terminal());
            let width = width.map(|(Width(columns), _)| usize::from(columns));
            let text = empty.map_or_else(
                || text(&page, width),
                |why| format!("{}\n", with_flags(why, &shared.location(store::url_to_type))),
            );
            write!(out, "{text}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shown for a request such as `the` or `!!!`.
const NO_WORDS: &str =
    "These words are not searched for. Write what an agent should do, as in `agentdex search book a table`.";

/// What to do without an index, for example after `agentdex check`, which only stores what it finds.
fn missing_index(dir: &Path) -> String {
    format!(
        "there is no index in {}: `agentdex --seeds FILE --contact-email YOU` builds it while it crawls, `indexer rebuild` from what is stored",
        dir.display()
    )
}

/// Why nothing can be found, if the index is empty.
async fn why_empty(index: &IndexConfig, store: &Store) -> anyhow::Result<Option<&'static str>> {
    let config = index.clone();
    let opened = tokio::task::spawn_blocking(move || Searcher::of(&config)).await?;
    if opened.is_ok_and(|searcher| searcher.capabilities() > 0) {
        return Ok(None);
    }
    Ok(Some(if serve::has_manifests(store).await? {
        "The index is empty: it has no capability of the stored manifests. `agentdex doctor` shows whether an indexer keeps it current."
    } else {
        "The index is empty: nothing has been found yet. `agentdex status` shows the state of the crawl."
    }))
}

/// The results as a table, which is as wide as the terminal, if there is one.
fn text(page: &Value, width: Option<usize>) -> String {
    let results = page["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<[String; 4]> = results.iter().map(cells).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        let header = COLUMNS.map(|(title, _)| title.to_owned());
        let widths = widths(&header, &rows, width);
        text.push_str(&line(&header, widths));
        let relevant = page["relevant"].as_u64().and_then(|count| usize::try_from(count).ok());
        for (index, (row, result)) in rows.iter().zip(results).enumerate() {
            if relevant == Some(index) {
                text.push_str(if index == 0 {
                    "Nothing matches closely. Less related:\n"
                } else {
                    "Less related:\n"
                });
            }
            text.push_str(&line(row, widths));
            text.extend(copies(result));
        }
        text.push('\n');
    }
    let grouped = results.iter().filter_map(|result| result["group"]["others"].as_u64()).sum::<u64>();
    text.push_str(&footer(page, rows.len() as u64 + grouped));
    text
}

/// The near copies of a result, by their sites.
fn copies(result: &Value) -> Option<String> {
    let count = result["group"]["others"].as_u64().filter(|count| *count > 0)?;
    let members = result["group"]["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut sites: Vec<String> = Vec::new();
    for site in members.iter().filter_map(|member| member["site"].as_str()) {
        let site = escape::line(site).into_owned();
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    let noun = if count == 1 { "near copy" } else { "near copies" };
    Some(format!("  and {count} {noun}: {}\n", sites.join(", ")))
}

fn cells(result: &Value) -> [String; 4] {
    let word = |value: &Value| escape::line(value.as_str().unwrap_or_default()).into_owned();
    let kind = match &result["semantic_types"][0] {
        Value::String(_) => &result["semantic_types"][0],
        _ => &result["kind"],
    };
    // a description may have several lines
    let description = result["description"].as_str().unwrap_or_default();
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    [word(&result["name"]), word(&result["site"]), word(kind), escape::line(&description).into_owned()]
}

fn widths(header: &[String; 4], rows: &[[String; 4]], terminal: Option<usize>) -> [usize; 4] {
    let mut widths = [0; 4];
    for (index, (width, (_, most))) in widths.iter_mut().zip(COLUMNS).enumerate() {
        let cells = std::iter::once(header).chain(rows).filter_map(|row| row.get(index));
        *width = cells.map(|cell| cell.width()).max().unwrap_or_default().min(most);
    }
    if let (Some(terminal), [first @ .., last]) = (terminal, &mut widths) {
        let before = first.iter().map(|width| width + GAP).sum::<usize>();
        *last = (*last).min(terminal.saturating_sub(before).max(LAST_WIDTH_MIN));
    }
    widths
}

fn line(row: &[String; 4], widths: [usize; 4]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| {
        let cell = cut(cell, width);
        let filled = width.saturating_sub(cell.width()) + GAP;
        format!("{cell}{}", " ".repeat(filled))
    });
    format!("{}\n", cells.collect::<String>().trim_end())
}

/// A text of at most this width; omissions are marked.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or_default();
        used < width
    };
    format!("{}…", text.chars().take_while(fits).collect::<String>())
}

fn footer(page: &Value, shown: u64) -> String {
    let total = page["total"].as_u64().unwrap_or_default();
    let mut text = match total {
        0 => "Nothing in the index matches.".to_owned(),
        1 => "1 result.".to_owned(),
        _ if total == shown => format!("{total} results."),
        _ => format!("{shown} of {total} results; --limit shows up to 100."),
    };
    if let Some(other) = page["did_you_mean"].as_str() {
        text = format!("{text} Did you mean: {}?", escape::line(other));
    }
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page() -> Value {
        json!({ "total": 7, "did_you_mean": null, "results": [
            { "name": "Book flight", "site": "skyhop.example", "kind": "action", "semantic_types": ["travel:Flight"],
              "description": "Books a seat.\nPays for it, too, and sends a ticket by mail." },
            { "name": "予約する", "site": "kyoto.example", "kind": "tool", "semantic_types": [], "description": null },
        ]})
    }

    #[test]
    fn a_missing_index_is_explained_with_the_commands_that_build_it() {
        let why = missing_index(Path::new("d/index"));
        let commands: Vec<&str> = why.split('`').skip(1).step_by(2).collect();
        let [crawl, rebuild] = commands.as_slice() else { panic!("{why}") };
        crate::cli::command().try_get_matches_from(crawl.split(' ')).unwrap();
        assert!(why.contains("d/index") && *rebuild == "indexer rebuild", "{why}");
    }

    #[test]
    fn separates_less_related_results() {
        let with = |relevant: Value| {
            let mut page = page();
            page["relevant"] = relevant;
            text(&page, None).lines().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(with(json!(1))[2], "Less related:");
        assert_eq!(with(json!(0))[1], "Nothing matches closely. Less related:");
        for relevant in [json!(2), json!(null)] {
            assert!(!with(relevant).iter().any(|line| line.contains("Less related")));
        }
    }

    #[test]
    fn prints_a_table_as_wide_as_the_terminal() {
        let shown = text(&page(), Some(70));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "NAME         SITE            TYPE           WHAT IT DOES");
        assert_eq!(lines[1], "Book flight  skyhop.example  travel:Flight  Books a seat. Pays for it…");
        assert_eq!(lines[2], "予約する     kyoto.example   tool");
        assert_eq!(lines[4], "2 of 7 results; --limit shows up to 100.");
        assert!(lines.iter().all(|line| line.width() <= 70), "{shown}");
        assert!(text(&page(), None).contains("sends a ticket by mail."), "a pipe gets the whole text");
    }

    #[test]
    fn texts_of_sites_do_not_control_the_terminal() {
        let hostile =
            json!({ "total": 1, "results": [{ "name": "a\u{1b}[2Jb", "description": "x\u{202e}y" }] });
        let shown = text(&hostile, Some(200));
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }

    #[test]
    fn table_lists_near_copies_by_site_and_counts_them() {
        let page = json!({ "total": 4, "results": [
            { "name": "Book flight", "site": "one.example", "kind": "action", "group": { "by": "copies", "others": 3, "members": [
                { "site": "two.example" }, { "site": "\u{1b}three.example" }, { "site": "two.example" } ] } },
        ]});
        let shown = text(&page, Some(100));
        assert!(shown.contains("\n  and 3 near copies: two.example, "), "{shown}");
        assert!(shown.ends_with("\n4 results.\n") && !shown.contains('\u{1b}'), "{shown:?}");
    }

    #[tokio::test]
    async fn says_why_the_index_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let config = IndexConfig::at(dir.path().join("index"));
        let expected =
            "The index is empty: nothing has been found yet. `agentdex status` shows the state of the crawl.";
        assert_eq!(why_empty(&config, &store).await.unwrap(), Some(expected));
        indexer::follow::rebuild(store.clone(), config.clone()).await.unwrap();
        assert_eq!(why_empty(&config, &store).await.unwrap(), Some(expected));
    }

    #[test]
    fn reports_that_nothing_matches() {
        let none = json!({ "total": 0, "results": [], "did_you_mean": "book flight" });
        assert_eq!(text(&none, None), "Nothing in the index matches. Did you mean: book flight?\n");
    }
}
