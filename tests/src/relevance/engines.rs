//! Ranks the tools for the requests of a set: with the index of agentdex, SQLite FTS5, and PostgreSQL full-text search.
//!
//! The peers index the same words, with split identifiers, in weighted columns, and run OR queries with stemming. With AND, the default of
//! both, a whole sentence finds nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Context;
use indexer::{
    Embedder, Grouping, IndexBuilder, SearchAnswer, SearchRequest, Searcher, WordWeights, vectors,
};
use sqlx::{Connection, PgConnection, SqliteConnection};
use store::FeedPosition;
use tokio_util::sync::CancellationToken;

use super::judge::{CUT, Scores, judge, mean};
use super::measures::{Outcome, is_short};
use super::sets::{Field, PublicSet, Request, Tool};

/// The results of one engine for each request, best first, as ids of tools.
pub type Rankings = Vec<Vec<String>>;

/// Means over the requests of a set.
pub fn scores(requests: &[Request], rankings: &Rankings) -> Scores {
    let each = requests.iter().zip(rankings).map(|(request, found)| scores_of(request, found));
    mean(&each.collect::<Vec<_>>())
}

fn scores_of(request: &Request, found: &[String]) -> Scores {
    judge(found, &request.relevant.iter().map(|id| (id.as_str(), 1)).collect())
}

/// The outcomes of rankings of any engine.
pub fn outcomes(requests: &[Request], rankings: &Rankings) -> Vec<Outcome> {
    let each = requests.iter().zip(rankings);
    each.map(|(request, found)| outcome(request, scores_of(request, found), !found.is_empty())).collect()
}

fn outcome(request: &Request, scores: Scores, has_relevant: bool) -> Outcome {
    Outcome {
        scores,
        by_site: None,
        has_relevant,
        has_answer: !request.relevant.is_empty(),
        is_short: is_short(&request.text),
        is_english: request.language.as_deref().is_none_or(|language| language == "en"),
    }
}

/// An index of a set in a separate directory.
pub struct OwnIndex {
    dir: tempfile::TempDir,
}

impl OwnIndex {
    pub fn of(set: &PublicSet) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let builder = IndexBuilder::begin(dir.path(), "relevance")?;
        for stored in set.manifests()? {
            builder.add(&stored)?;
        }
        builder.finish(FeedPosition(1))?;
        Ok(Self { dir })
    }

    /// Stores a vector for every tool. Rankings with the same embedder use the vectors.
    pub fn embed(&self, embedder: &dyn Embedder) -> anyhow::Result<()> {
        let kept = vectors::catch_up(self.dir.path(), embedder, &CancellationToken::new())?;
        anyhow::ensure!(kept.missing == 0, "{} tools got no vector", kept.missing);
        Ok(())
    }

    /// Ranks requests as the search route does.
    pub fn rank(
        &self,
        requests: &[Request],
        word_weights: &Arc<WordWeights>,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> anyhow::Result<Rankings> {
        let searcher = Searcher::open_with(self.dir.path(), word_weights, embedder)?;
        requests.iter().map(|request| Ok(ids(ask(&searcher, request, Grouping::None)?))).collect()
    }

    /// The outcomes of all requests of a set, by tool and, where the set names sites, by site.
    pub fn outcomes(&self, set: &PublicSet, known: &Arc<WordWeights>) -> anyhow::Result<Vec<Outcome>> {
        let searcher = Searcher::open_with(self.dir.path(), known, None)?;
        let sites = set.sites();
        let one = |request: &Request| {
            let answer = ask(&searcher, request, Grouping::None)?;
            let has_relevant = answer.relevant != Some(0);
            let mut outcome = outcome(request, scores_of(request, &ids(answer)), has_relevant);
            let wanted = request.relevant.iter().map(|id| Some((*sites.get(id.as_str())?, 1)));
            let wanted: Option<BTreeMap<&str, u32>> = wanted.collect();
            if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) {
                let of_site = |id: String| sites.get(id.as_str()).map(|site| (*site).to_owned());
                let found = ids(ask(&searcher, request, Grouping::Site)?).into_iter();
                let found: Vec<String> = found.map(|id| of_site(id).unwrap_or_default()).collect();
                outcome.by_site = Some(judge(&found, &wanted));
            }
            Ok(outcome)
        };
        set.requests.iter().map(one).collect()
    }
}

fn ask(searcher: &Searcher, request: &Request, group_by: Grouping) -> anyhow::Result<SearchAnswer> {
    let phrasings = vec![request.text.clone()];
    let asked = SearchRequest { phrasings, limit: CUT, group_by, ..SearchRequest::default() };
    searcher.search(&asked).with_context(|| request.text.clone())
}

fn ids(answer: SearchAnswer) -> Vec<String> {
    answer.hits.into_iter().map(|hit| hit.native_id).collect()
}

/// The words of a tool for a peer, in three columns by importance.
struct Columns {
    name: String,
    about: String,
    inputs: String,
    rest: String,
}

impl Columns {
    fn of(tool: &Tool) -> Self {
        let names = |fields: &[Field]| joined(fields.iter().map(|field| field.name.as_str()));
        let texts = |fields: &[Field]| joined(fields.iter().filter_map(|field| field.description.as_deref()));
        let title = tool.title.as_deref().unwrap_or_default();
        Self {
            name: split(&format!("{} {title}", tool.name)),
            about: split(&format!("{} {} {}", tool.description, tool.site, tool.category)),
            inputs: split(&format!("{} {}", names(&tool.params), texts(&tool.params))),
            rest: split(&format!(
                "{} {} {} {}",
                names(&tool.outputs),
                texts(&tool.outputs),
                tool.site_description,
                tool.extra
            )),
        }
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join(" ")
}

/// Splits identifiers: inserts a space between a lower-case and an upper-case letter, and replaces every character that is not a letter or
/// digit by a space.
pub fn split(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        words.push(if c.is_alphanumeric() { c } else { ' ' });
        before = c;
    }
    words
}

/// The distinct words of a request.
pub fn request_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = split(text).split_whitespace().map(str::to_lowercase).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// FTS5 with the Porter stemmer and weighted bm25.
pub async fn sqlite(set: &PublicSet) -> anyhow::Result<Rankings> {
    let mut db = SqliteConnection::connect("sqlite::memory:").await?;
    sqlx::query(
        "CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, name, about, inputs, rest, tokenize='porter')",
    )
    .execute(&mut db)
    .await?;
    for tool in &set.tools {
        let columns = Columns::of(tool);
        sqlx::query("INSERT INTO tools VALUES (?, ?, ?, ?, ?)")
            .bind(&tool.id)
            .bind(columns.name)
            .bind(columns.about)
            .bind(columns.inputs)
            .bind(columns.rest)
            .execute(&mut db)
            .await?;
    }
    let mut rankings = Vec::with_capacity(set.requests.len());
    for request in &set.requests {
        let any = fts5_query(&request.text);
        let sql = "SELECT id FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 0, 4, 2, 2, 1) LIMIT 10";
        rankings.push(sqlx::query_scalar(sql).bind(any).fetch_all(&mut db).await?);
    }
    Ok(rankings)
}

/// Any of the words.
pub fn fts5_query(text: &str) -> String {
    let words = request_words(text);
    if words.is_empty() {
        return "\"\"".to_owned();
    }
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ")
}

/// `ts_rank` with weights A to D and the English configuration.
pub async fn postgres(url: &str, set: &PublicSet) -> anyhow::Result<Rankings> {
    let mut db = PgConnection::connect(url).await.context("PostgreSQL cannot be reached")?;
    sqlx::query("CREATE TEMPORARY TABLE tools (id text, words tsvector)").execute(&mut db).await?;
    let insert = "INSERT INTO tools VALUES ($1, setweight(to_tsvector('english', $2), 'A') || \
                  setweight(to_tsvector('english', $3), 'B') || setweight(to_tsvector('english', $4), 'C') || \
                  setweight(to_tsvector('english', $5), 'D'))";
    for tool in &set.tools {
        let columns = Columns::of(tool);
        sqlx::query(insert)
            .bind(&tool.id)
            .bind(columns.name)
            .bind(columns.about)
            .bind(columns.inputs)
            .bind(columns.rest)
            .execute(&mut db)
            .await?;
    }
    sqlx::query("CREATE INDEX ON tools USING gin (words)").execute(&mut db).await?;
    let mut rankings = Vec::with_capacity(set.requests.len());
    for request in &set.requests {
        let sql = "SELECT id FROM tools, to_tsquery('english', $1) AS wanted WHERE words @@ wanted \
                   ORDER BY ts_rank(words, wanted, 1) DESC, id LIMIT 10";
        rankings.push(sqlx::query_scalar(sql).bind(tsquery(&request.text)).fetch_all(&mut db).await?);
    }
    Ok(rankings)
}

/// Any of the words.
pub fn tsquery(text: &str) -> String {
    let mut any = String::new();
    for word in request_words(text) {
        let bar = if any.is_empty() { "" } else { " | " };
        // Writing to a string does not fail.
        if write!(any, "{bar}'{word}'").is_err() {
            return any;
        }
    }
    any
}
