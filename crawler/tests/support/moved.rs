//! Moves a crawl to another database, with changed rows.

use serde_json::Value;
use store::Store;
use tokio::sync::mpsc;

use crate::support::Crawl;

/// The lines of a dump of the store.
pub(crate) async fn dump(store: &Store) -> Vec<String> {
    let (sender, mut lines) = mpsc::channel(16);
    let reading = async {
        let mut all = Vec::new();
        while let Some(line) = lines.recv().await {
            all.push(line);
        }
        all
    };
    let export = async {
        store.export(&sender).await.unwrap();
        drop(sender);
    };
    tokio::join!(export, reading).1
}

/// A table and a row of a dump.
pub(crate) fn row(line: &str) -> Option<(String, Vec<Value>)> {
    serde_json::from_str(line).ok()
}

/// Moves a crawl to a new database with the same rows, except for those that `change` changes, or leaves out by returning false.
pub(crate) async fn moved(
    crawl: &mut Crawl,
    change: impl Fn(&str, &mut Vec<Value>) -> bool,
) -> tempfile::TempDir {
    let lines = dump(&crawl.store).await.into_iter().filter_map(|line| match row(&line) {
        Some((table, mut values)) => {
            change(&table, &mut values).then(|| serde_json::to_string(&(table, values)).unwrap())
        }
        None => Some(line),
    });
    let lines: Vec<String> = lines.collect();
    let dir = tempfile::tempdir().unwrap();
    crawl.store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let (sender, mut receiver) = mpsc::channel(16);
    let sending = async {
        for line in lines {
            if sender.send(line).await.is_err() {
                break;
            }
        }
        drop(sender);
    };
    let importing = async {
        let imported = crawl.store.import(&mut receiver).await;
        // an import that failed reads no further lines
        receiver.close();
        imported
    };
    let ((), imported) = tokio::join!(sending, importing);
    imported.unwrap();
    dir
}
